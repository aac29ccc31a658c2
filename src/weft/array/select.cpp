// SPDX-License-Identifier: Apache-2.0
// Selection: a few elements drawn from a row, in order, give two bounds that a place of the order
// lies between almost surely. One pass parts the row at the bounds, and the few elements between
// are sorted. A draw that misses costs a sort of the part with the place.

#include "weft/array/select.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#include "weft/array/ops.h"
#include "weft/elements/with_type.h"
#include "weft/host/sort_kernels.h"
#include "weft/host/vector_sort.h"
#include "weft/runtime/pool.h"

namespace weft {

namespace {

/// Rows up to here are sorted.
constexpr std::int64_t kSorted = 2048;

template <typename T>
bool is_nan(T x) {
  if constexpr (std::is_floating_point_v<T>) return x != x;
  else return false;
}

/// Numbers without NaN.
template <typename T>
void sort_numbers(T* x, std::int64_t n) {
  bool finite = true;
  if constexpr (std::is_floating_point_v<T>) {
    T sum = 0;  // of 0 times each: NaN where one is infinite
    for (std::int64_t i = 0; i < n; ++i) sum += x[i] * T(0);
    finite = sum == 0;
  }
  if (n < kVectorSort || !finite || !vector_sort(x, n, false)) std::sort(x, x + n);
}

/// Two elements that about `places` of the order lie between.
template <typename T>
struct Bounds {
  T low, high;
  Bounds(const T* x, std::int64_t n, std::int64_t first, std::int64_t last, std::vector<T>& drawn) {
    const double size = static_cast<double>(n);
    const auto count = static_cast<std::int64_t>(std::pow(size, 2.0 / 3));
    const auto margin =
        static_cast<std::int64_t>(1.5 * std::sqrt(static_cast<double>(count))) + 1;
    drawn.resize(static_cast<std::size_t>(count));
    std::uint64_t state = 0x9e3779b97f4a7c15u;
    for (T& d : drawn) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      const double share = static_cast<double>(state >> 11) * 0x1p-53;
      d = x[std::min(static_cast<std::int64_t>(share * size), n - 1)];
    }
    sort_numbers(drawn.data(), count);
    const double scale = static_cast<double>(count) / size;
    const auto place = [&](std::int64_t k) {
      return static_cast<std::int64_t>(static_cast<double>(k) * scale);
    };
    const std::int64_t i = place(first) - margin, j = place(last) + margin;
    low = i < 0 ? lowest() : drawn[static_cast<std::size_t>(i)];
    high = j >= count ? highest() : drawn[static_cast<std::size_t>(j)];
  }
  static T lowest() {
    if constexpr (std::is_floating_point_v<T>) return -std::numeric_limits<T>::infinity();
    else return std::numeric_limits<T>::min();
  }
  static T highest() {
    if constexpr (std::is_floating_point_v<T>) return std::numeric_limits<T>::infinity();
    else return std::numeric_limits<T>::max();
  }
};

/// Selects in rows of up to n elements, in memory that it keeps between them.
template <typename T>
class Selection {
 public:
  explicit Selection(std::int64_t n) : middle_(room(n)), right_(room(n)) {}

  /// Puts the elements at `places`, ascending and less than n, where sorting would. No NaN.
  void arrange(T* x, std::int64_t n, std::span<const std::int64_t> places, std::int64_t first = 0) {
    if (places.empty() || n < 2) return;
    if (n <= kSorted) return sort_numbers(x, n);
    const std::int64_t k = places[places.size() / 2] - first;
    const Bounds<T> at(x, n, k, k, drawn_);
    std::int64_t l = 0, m = 0, r = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const T v = x[i];
      const bool less = v < at.low, more = at.high < v;
      x[l] = v;
      middle_[m] = v;
      right_[r] = v;
      l += less;
      r += more;
      m += !less && !more;
    }
    std::copy_n(middle_.get(), m, x + l);
    std::copy_n(right_.get(), r, x + l + m);
    const std::int64_t ends[4] = {0, l, l + m, n};
    for (int p = 0; p < 3; ++p) {
      const std::int64_t size = ends[p + 1] - ends[p];
      const auto begin = std::lower_bound(places.begin(), places.end(), first + ends[p]);
      const auto end = std::lower_bound(begin, places.end(), first + ends[p + 1]);
      if (begin == end) continue;
      // Little less than before: many equal elements, or a draw that missed.
      if (size > n / 8 * 7) sort_numbers(x + ends[p], size);
      else arrange(x + ends[p], size, {begin, end}, first + ends[p]);
    }
  }

  /// x in order at k, and at the place behind it or at k again at the end. No NaN; x stays.
  void pair(const T* x, std::int64_t n, std::int64_t k, T out[2]) {
    const std::int64_t next = std::min(k + 1, n - 1);
    if (n > kSorted) {
      const Bounds<T> at(x, n, k, next, drawn_);
      std::int64_t less = 0, m = 0;
      for (std::int64_t i = 0; i < n; ++i) {
        const T v = x[i];
        const bool below = v < at.low;
        middle_[m] = v;
        less += below;
        m += !below && !(at.high < v);
      }
      if (k >= less && next < less + m) {
        if (at.low == at.high) return void(out[0] = out[1] = at.low);
        sort_numbers(middle_.get(), m);
        out[0] = middle_[k - less], out[1] = middle_[next - less];
        return;
      }
    }
    std::copy_n(x, n, middle_.get());
    sort_numbers(middle_.get(), n);
    out[0] = middle_[k], out[1] = middle_[next];
  }

 private:
  static std::unique_ptr<T[]> room(std::int64_t n) {
    return std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(n));
  }

  std::unique_ptr<T[]> middle_, right_;
  std::vector<T> drawn_;
};

/// Lines along an axis as rows without gaps, in a copy.
NDArray rows_along(const NDArray& x, int axis) {
  std::int64_t outer = 1, inner = 1;
  for (int i = 0; i < axis; ++i) outer *= x.shape()[i];
  for (int i = axis + 1; i < x.ndim(); ++i) inner *= x.shape()[i];
  const Elem kernel = arithmetic_elem(x.elem());
  const NDArray flat = kernel == x.elem() ? x : x.astype(kernel);
  if (inner == 1) return flat.handle() == x.handle() ? flat.copy() : flat.contiguous();
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

template <typename F>
void for_rows(std::int64_t rows, std::int64_t n, const F& f) {
  runtime::Pool::shared().parallel_for(rows, std::max<std::int64_t>(1, 4096 / n), f);
}

/// Numbers first, in their order; how many they are.
template <typename T>
std::int64_t numbers_first(T* x, std::int64_t n, std::vector<T>& others) {
  if constexpr (std::is_floating_point_v<T>) {
    T sum = 0;
    for (std::int64_t i = 0; i < n; ++i) sum = x[i] == x[i] ? sum : x[i];
    if (sum == sum) return n;
    others.clear();
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      if (is_nan(x[i])) others.push_back(x[i]);
      else x[count++] = x[i];
    }
    std::copy(others.begin(), others.end(), x + count);
    return count;
  } else {
    return n;
  }
}

template <typename T>
T quantile(Selection<T>& select, const T* x, std::int64_t n, double q, Between between,
           bool in_order) {
  double place = q * static_cast<double>(n - 1);
  if (between == Between::nearest) place = std::nearbyint(place);  // halves to even
  const std::int64_t low = std::min(static_cast<std::int64_t>(place), n - 1);
  double share = place - static_cast<double>(low);
  if (between == Between::lower) share = 0;
  if (between == Between::higher) share = share > 0;
  if (between == Between::midpoint) share = share > 0 ? 0.5 : 0;
  T at[2];
  if (in_order) at[0] = x[low], at[1] = x[std::min(low + 1, n - 1)];
  else select.pair(x, n, low, at);
  // Of two infinities there is no difference.
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
  const auto run = [&]<typename T>(T) {
    T* const data = reinterpret_cast<T*>(rows.host());
    T* const to = reinterpret_cast<T*>(out.host());
    for_rows(lines, n, [&](std::int64_t r, std::int64_t end) {
      Selection<T> select(n);
      std::vector<T> others;
      constexpr std::int64_t kMany = 6;  // quantiles from which on the whole order costs less
      for (; r < end; ++r) {
        T* const row = data + r * n;
        const std::int64_t count = numbers_first(row, n, others);
        const bool none = count == 0 || (count < n && !skip_nan);
        const bool sorted = !none && (count <= kSorted || many >= kMany);
        if (sorted) sort_numbers(row, count);
        for (std::int64_t k = 0; k < many; ++k)
          to[k * lines + r] = none ? std::numeric_limits<T>::quiet_NaN()
                                   : quantile(select, row, count, q[static_cast<std::size_t>(k)],
                                              between, sorted);
      }
    });
  };
  if (rows.elem() == Elem::float64) run(double{});
  else run(float{});
  return out.elem() == x.elem() ? out : out.astype(x.elem());
}

NDArray partition(const NDArray& x, std::span<const std::int64_t> places, int axis) {
  const std::int64_t n = x.shape()[axis];
  const std::vector<std::int64_t> order = in_order(places);
  const NDArray rows = rows_along(x, axis);
  with_type(rows.elem(), [&]<typename T>(T) {
    T* const data = reinterpret_cast<T*>(rows.host());
    for_rows(x.size() / n, n, [&](std::int64_t r, std::int64_t end) {
      Selection<T> select(n);
      std::vector<T> others;
      for (; r < end; ++r) {
        const std::int64_t count = numbers_first(data + r * n, n, others);
        const auto last = std::lower_bound(order.begin(), order.end(), count);
        select.arrange(data + r * n, count, {order.begin(), last});
      }
    });
  });
  return as_lines(rows, x, axis, x.elem());
}

std::optional<NDArray> argpartition(const NDArray& x, std::span<const std::int64_t> places,
                                    int axis) {
  const std::int64_t n = x.shape()[axis];
  if (elem_bytes(arithmetic_elem(x.elem())) > 4 || n > UINT32_MAX) return std::nullopt;
  const std::vector<std::int64_t> order = in_order(places);
  const NDArray rows = rows_along(x, axis);
  const NDArray out = NDArray::empty(x.device(), Elem::int64, rows.shape());
  const Elem e = rows.elem() == Elem::boolean ? Elem::uint8 : rows.elem();
  // A position behind its key makes equal keys differ.
  const auto make = sort_kernels().get<ItemsFn>(SortKernel::items, e);
  const auto take = sort_kernels().get<ItemPlacesFn>(SortKernel::item_places, Elem::uint64);
  auto* const to = reinterpret_cast<std::int64_t*>(out.host());
  for_rows(x.size() / n, n, [&](std::int64_t r, std::int64_t end) {
    Selection<std::uint64_t> select(n);
    std::vector<std::uint64_t> items(static_cast<std::size_t>(n));
    for (; r < end; ++r) {
      make(rows.host() + r * n * elem_bytes(e), items.data(), n, 0, 0);
      select.arrange(items.data(), n, order);
      take(items.data(), to + r * n, n);
    }
  });
  return as_lines(out, x, axis, Elem::int64);
}

}  // namespace weft
