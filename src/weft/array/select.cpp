// SPDX-License-Identifier: Apache-2.0
// Selection: a few keys drawn from a row, in order, give two bounds that a place of the order lies
// between almost surely. One pass parts the row at the bounds, and so on with the few between. A
// draw that misses costs a sort of the part with the place.

#include "weft/array/select.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#include "weft/array/ops.h"
#include "weft/array/rows.h"
#include "weft/host/quick_select.h"
#include "weft/host/sort_kernels.h"
#include "weft/host/vector_sort.h"

namespace weft {

namespace {

/// Rows up to here are sorted.
constexpr std::int64_t kSorted = 128;
/// And up to here where vectors sort.
constexpr std::int64_t kVectorSorted = 1024;

/// Rows up to which parting at one key at a time, in vectors, costs less than at two that were
/// drawn.
constexpr std::int64_t kQuick = 16384;

/// Keys are integers, so that there is no NaN and no zero with a sign (sort_kernels.h).
template <typename K>
constexpr Elem key_elem() {
  return sizeof(K) == 4 ? Elem::uint32 : Elem::uint64;
}
template <typename K>
void sort_keys(K* x, std::int64_t n) {
  if (n < kVectorSort || !vector_sort(x, n, false)) std::sort(x, x + n);
}
/// Sorts keys that sorting costs less than selection; false, and nothing done, for others.
template <typename K>
bool sort_few(K* x, std::int64_t n) {
  if (n > kVectorSorted) return false;
  if (n >= kVectorSort && vector_sort(x, n, false)) return true;
  if (n > kSorted) return false;
  std::sort(x, x + n);
  return true;
}

/// Do vectors sort keys here?
bool vectors_sort() {
  static const bool there = [] {
    std::uint32_t keys[kVectorSort] = {};
    return vector_sort(keys, kVectorSort, false);
  }();
  return there;
}

/// Two keys that the places from `first` to `last` of the order lie between, almost surely.
template <typename K>
void find_bounds(const K* x, std::int64_t n, std::int64_t first, std::int64_t last,
                 std::vector<K>& drawn, K bounds[2]) {
  const double size = static_cast<double>(n);
  const auto count = static_cast<std::int64_t>(2 * std::sqrt(size));
  const auto margin = static_cast<std::int64_t>(1.5 * std::sqrt(static_cast<double>(count))) + 1;
  drawn.resize(static_cast<std::size_t>(count));
  std::uint64_t state = 0x9e3779b97f4a7c15u;
  for (K& d : drawn) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const double share = static_cast<double>(state >> 11) * 0x1p-53;
    d = x[std::min(static_cast<std::int64_t>(share * size), n - 1)];
  }
  sort_keys(drawn.data(), count);
  const double scale = static_cast<double>(count) / size;
  const auto place = [&](std::int64_t k) {
    return static_cast<std::int64_t>(static_cast<double>(k) * scale);
  };
  const std::int64_t i = place(first) - margin, j = place(last) + margin;
  bounds[0] = i < 0 ? K{0} : drawn[static_cast<std::size_t>(i)];
  bounds[1] = j >= count ? ~K{0} : drawn[static_cast<std::size_t>(j)];
}

/// Selects in rows of up to n keys, in memory that it keeps between them.
template <typename K>
class Selection {
 public:
  /// Of the device's blocks, which are kept for the next call.
  Selection(const NDArray& x, std::int64_t n)
      : room_(NDArray::empty(x.device(), key_elem<K>(), Dims{2 * (n + kPartRoom)})),
        middle_(reinterpret_cast<K*>(room_.host())),
        right_(middle_ + n + kPartRoom),
        part_(sort_kernels().get<PartFn>(SortKernel::part, key_elem<K>())) {}

  /// Puts the keys at `places`, ascending and less than n, where sorting would.
  void arrange(K* x, std::int64_t n, std::span<const std::int64_t> places) {
    if (n <= kQuick && quick_select_runs()) quick_select(x, n, places, middle_);
    else arrange_part(x, n, places, 0);
  }

  /// x in order at k, and at the place behind it or at k again at the end; x stays.
  void pair(const K* x, std::int64_t n, std::int64_t k, K out[2]) {
    const std::int64_t next = std::min(k + 1, n - 1);
    const K* from = x;
    std::int64_t before = 0, size = n;
    while (size > kSorted) {
      K bounds[2];
      find_bounds(from, size, k - before, next - before, drawn_, bounds);
      std::int64_t counts[2] = {0, 0};
      part_(from, bounds, nullptr, middle_, nullptr, counts, size);
      if (k < before + counts[0] || next >= before + counts[0] + counts[1]) {  // missed
        from = x, before = 0, size = n;
        break;
      }
      if (bounds[0] == bounds[1]) return void(out[0] = out[1] = bounds[0]);
      const bool slow = counts[1] > size / 8 * 7;
      from = middle_;
      before += counts[0];
      size = counts[1];
      if (slow) break;
    }
    std::copy_n(from, size, right_);
    sort_keys(right_, size);
    out[0] = right_[k - before], out[1] = right_[next - before];
  }

 private:
  void arrange_part(K* x, std::int64_t n, std::span<const std::int64_t> places,
                    std::int64_t first) {
    if (places.empty() || n < 2) return;
    if (sort_few(x, n)) return;
    const std::int64_t k = places[places.size() / 2] - first;
    K bounds[2];
    find_bounds(x, n, k, k, drawn_, bounds);
    std::int64_t counts[2] = {1, 0};
    part_(x, bounds, x, middle_, right_, counts, n);
    const std::int64_t l = counts[0], m = counts[1];
    std::copy_n(middle_, m, x + l);
    std::copy_n(right_, n - l - m, x + l + m);
    const std::int64_t ends[4] = {0, l, l + m, n};
    for (int p = 0; p < 3; ++p) {
      const std::int64_t size = ends[p + 1] - ends[p];
      const auto begin = std::lower_bound(places.begin(), places.end(), first + ends[p]);
      const auto end = std::lower_bound(begin, places.end(), first + ends[p + 1]);
      if (begin == end || (p == 1 && bounds[0] == bounds[1])) continue;
      // Little less than before: many equal keys, or a draw that missed.
      if (size > n / 8 * 7) sort_keys(x + ends[p], size);
      else arrange_part(x + ends[p], size, {begin, end}, first + ends[p]);
    }
  }

  const NDArray room_;
  K *const middle_, *const right_;
  std::vector<K> drawn_;
  const PartFn part_;
};

/// The type in which a row's elements are selected: narrow ones become wider.
Elem selected_elem(Elem e) {
  if (is_narrow_float(e)) return Elem::float32;
  return elem_bytes(e) < 4 ? Elem::int32 : e;
}
/// fn(K{}) of the type of its keys.
template <typename F>
void with_keys(Elem e, const F& fn) {
  if (elem_bytes(e) == 8) fn(std::uint64_t{});
  else fn(std::uint32_t{});
}
/// How many elements of a row are -0 or NaN.
std::int64_t special_count(Elem e, const void* row, std::int64_t n) {
  std::int64_t counts[2] = {};
  if (is_real_float(e)) sort_kernels().get<DigitCountsFn>(SortKernel::special, e)(row, counts, n);
  return counts[0];
}
/// Keys have one zero and one NaN: those of a row take the places of theirs.
template <typename T>
void put_back(const T* row, T* out, std::int64_t n) {
  std::vector<T> zeros, nans;
  for (std::int64_t i = 0; i < n; ++i) {
    if (row[i] == 0) zeros.push_back(row[i]);
    if (is_nan(row[i])) nans.push_back(row[i]);
  }
  auto zero = zeros.begin(), nan = nans.begin();
  for (std::int64_t i = 0; i < n; ++i) {
    if (out[i] == 0) out[i] = *zero++;
    else if (is_nan(out[i])) out[i] = *nan++;
  }
}

/// Lines along an axis as rows without gaps.
NDArray rows_along(const NDArray& x, int axis) {
  std::int64_t outer = 1, inner = 1;
  for (int i = 0; i < axis; ++i) outer *= x.shape()[i];
  for (int i = axis + 1; i < x.ndim(); ++i) inner *= x.shape()[i];
  const Elem kernel = selected_elem(x.elem());
  const NDArray flat = kernel == x.elem() ? x : x.astype(kernel);
  if (inner == 1) return flat.contiguous();
  return flat.reshape(Dims{outer, x.shape()[axis], inner}).transpose(1, 2).copy();
}
/// Such rows as an array of x's shape and another type.
NDArray as_lines(const NDArray& rows, const NDArray& x, int axis, Elem e) {
  NDArray out = rows;
  std::int64_t inner = 1;
  for (int i = axis + 1; i < x.ndim(); ++i) inner *= x.shape()[i];
  if (inner > 1) {
    const std::int64_t n = x.shape()[axis];
    out = rows.reshape(Dims{x.size() / (n * inner), inner, n}).transpose(1, 2).contiguous();
    out = out.reshape(x.shape());
  }
  return out.elem() == e ? out : out.astype(e);
}

template <typename T, typename K>
T quantile(Selection<K>& select, const K* x, std::int64_t n, double q, Between between,
           bool in_order) {
  double place = q * static_cast<double>(n - 1);
  if (between == Between::nearest) place = std::nearbyint(place);  // halves to even
  const std::int64_t low = std::min(static_cast<std::int64_t>(place), n - 1);
  double share = place - static_cast<double>(low);
  if (between == Between::lower) share = 0;
  if (between == Between::higher) share = share > 0;
  if (between == Between::midpoint) share = share > 0 ? 0.5 : 0;
  K keys[2];
  T at[2];
  if (in_order) keys[0] = x[low], keys[1] = x[std::min(low + 1, n - 1)];
  else select.pair(x, n, low, keys);
  sort_kernels().get<KeysFn>(SortKernel::values, sizeof(T) == 4 ? Elem::float32 : Elem::float64)(
      keys, at, 2, 0);
  // Of infinities there is no difference.
  if (share == 1) return at[1];
  if (between == Between::midpoint && share > 0) return at[0] / 2 + at[1] / 2;
  return share == 0 || at[0] == at[1] ? at[0] : at[0] + (at[1] - at[0]) * static_cast<T>(share);
}

std::vector<std::int64_t> in_order(std::span<const std::int64_t> places) {
  std::vector<std::int64_t> out(places.begin(), places.end());
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

NDArray quantiles(const NDArray& x, std::span<const double> q, int axis, Between between,
                  bool skip_nan) {
  const std::int64_t n = x.shape()[axis], lines = x.size() / n;
  const auto many = static_cast<std::int64_t>(q.size());
  const NDArray rows = rows_along(x, axis);
  Dims shape{many};
  for (int i = 0; i < x.ndim(); ++i) {
    if (i != axis) shape.push_back(x.shape()[i]);
  }
  const NDArray out = NDArray::empty(x.device(), rows.elem(), shape);
  const auto make = sort_kernels().get<KeysFn>(SortKernel::keys, rows.elem());
  const auto run = [&]<typename T, typename K>(T, K) {
    const T* const data = reinterpret_cast<const T*>(rows.host());
    T* const to = reinterpret_cast<T*>(out.host());
    for_rows(lines, n, [&](std::int64_t r, std::int64_t end) {
      Selection<K> select(x, n);
      const NDArray room = NDArray::empty(x.device(), key_elem<K>(), Dims{n});
      K* const keys = reinterpret_cast<K*>(room.host());
      constexpr std::int64_t kMany = 6;  // quantiles from which on the whole order costs less
      for (; r < end; ++r) {
        make(data + r * n, keys, n, 0);
        std::int64_t count = n;
        if (special_count(rows.elem(), data + r * n, n) > 0)
          count = std::remove(keys, keys + n, ~K{0}) - keys;
        const bool none = count == 0 || (count < n && !skip_nan);
        bool sorted = !none && sort_few(keys, count);
        if (!none && !sorted && many >= kMany) sort_keys(keys, count), sorted = true;
        for (std::int64_t k = 0; k < many; ++k)
          to[k * lines + r] = none ? std::numeric_limits<T>::quiet_NaN()
                                   : quantile<T>(select, keys, count,
                                                 q[static_cast<std::size_t>(k)], between, sorted);
      }
    });
  };
  if (rows.elem() == Elem::float64) run(double{}, std::uint64_t{});
  else run(float{}, std::uint32_t{});
  return out.elem() == x.elem() ? out : out.astype(x.elem());
}

NDArray partition(const NDArray& x, std::span<const std::int64_t> places, int axis) {
  const std::int64_t n = x.shape()[axis];
  // Bytes are sorted by counts and short rows by vectors: that takes less than selection.
  const bool sorts = vectors_sort() && !quick_select_runs();
  if (elem_bytes(x.elem()) == 1 || n <= (sorts ? kVectorSorted : kSorted))
    return sort(x, axis, false);
  const std::vector<std::int64_t> order = in_order(places);
  const NDArray rows = rows_along(x, axis);
  const Elem e = rows.elem();
  const NDArray out = NDArray::empty(x.device(), e, rows.shape());
  const auto make = sort_kernels().get<KeysFn>(SortKernel::keys, e);
  const auto back = sort_kernels().get<KeysFn>(SortKernel::values, e);
  const std::int64_t step = n * elem_bytes(e);
  with_keys(e, [&]<typename K>(K) {
    for_rows(x.size() / n, n, [&](std::int64_t r, std::int64_t end) {
      Selection<K> select(x, n);
      for (; r < end; ++r) {
        const char* const row = rows.host() + r * step;
        char* const to = out.host() + r * step;
        make(row, to, n, 0);
        select.arrange(reinterpret_cast<K*>(to), n, order);
        back(to, to, n, 0);
        if (special_count(e, row, n) == 0) continue;
        if (e == Elem::float64)
          put_back(reinterpret_cast<const double*>(row), reinterpret_cast<double*>(to), n);
        else put_back(reinterpret_cast<const float*>(row), reinterpret_cast<float*>(to), n);
      }
    });
  });
  return as_lines(out, x, axis, x.elem());
}

namespace {

/// Positions of smaller keys, of equal ones and of larger ones than that at one place, each in
/// order, of elements of 8 bytes.
NDArray places_about(const NDArray& x, std::int64_t place, int axis) {
  const std::int64_t n = x.shape()[axis];
  const NDArray rows = rows_along(x, axis);
  const NDArray out = NDArray::empty(x.device(), Elem::int64, rows.shape());
  const auto make = sort_kernels().get<KeysFn>(SortKernel::keys, rows.elem());
  for_rows(x.size() / n, n, [&](std::int64_t r, std::int64_t end) {
    using K = std::uint64_t;
    Selection<K> select(x, n);
    const auto room = [n] {
      return std::make_unique_for_overwrite<std::int64_t[]>(static_cast<std::size_t>(n));
    };
    const auto equal = room(), more = room();
    const NDArray kept = NDArray::empty(x.device(), key_elem<K>(), Dims{n});
    K* const keys = reinterpret_cast<K*>(kept.host());
    for (; r < end; ++r) {
      make(rows.host() + r * n * 8, keys, n, 0);
      K at[2];
      select.pair(keys, n, place, at);
      auto* const to = reinterpret_cast<std::int64_t*>(out.host()) + r * n;
      std::int64_t less = 0, same = 0, larger = 0;
      for (std::int64_t i = 0; i < n; ++i) {  // no branches
        const K key = keys[i];
        to[less] = equal[same] = more[larger] = i;
        less += key < at[0];
        same += key == at[0];
        larger += at[0] < key;
      }
      std::copy_n(equal.get(), same, to + less);
      std::copy_n(more.get(), larger, to + less + same);
    }
  });
  return as_lines(out, x, axis, Elem::int64);
}

}  // namespace

std::optional<NDArray> argpartition(const NDArray& x, std::span<const std::int64_t> places,
                                    int axis) {
  const std::int64_t n = x.shape()[axis];
  if (elem_bytes(x.elem()) > 4 && places.size() == 1) return places_about(x, places[0], axis);
  if (elem_bytes(x.elem()) > 4 || n > UINT32_MAX) return std::nullopt;
  const std::vector<std::int64_t> order = in_order(places);
  const NDArray rows = rows_along(x, axis);
  const NDArray out = NDArray::empty(x.device(), Elem::int64, rows.shape());
  const Elem e = rows.elem();
  // A position behind its key makes equal keys differ.
  const auto make = sort_kernels().get<ItemsFn>(SortKernel::items, e);
  const auto take = sort_kernels().get<ItemPlacesFn>(SortKernel::item_places, Elem::uint64);
  auto* const to = reinterpret_cast<std::int64_t*>(out.host());
  for_rows(x.size() / n, n, [&](std::int64_t r, std::int64_t end) {
    Selection<std::uint64_t> select(x, n);
    const NDArray room = NDArray::empty(x.device(), Elem::uint64, Dims{n});
    auto* const items = reinterpret_cast<std::uint64_t*>(room.host());
    for (; r < end; ++r) {
      make(rows.host() + r * n * elem_bytes(e), items, n, 0, 0);
      select.arrange(items, n, order);
      take(items, to + r * n, n);
    }
  });
  return as_lines(out, x, axis, Elem::int64);
}

}  // namespace weft
