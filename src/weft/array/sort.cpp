// SPDX-License-Identifier: Apache-2.0
// Sorting along an axis, stable, NaN last in either direction; positions in sorted arrays.

#include <algorithm>
#include <bit>
#include <iterator>
#include <memory>
#include <numeric>
#include <type_traits>

#include "weft/array/complex_order.h"
#include "weft/array/nest.h"
#include "weft/array/on_device.h"
#include "weft/array/ops.h"
#include "weft/array/rows.h"
#include "weft/array/sort_lines.h"
#include "weft/array/topk_long.h"
#include "weft/elements/with_type.h"
#include "weft/host/radix.h"
#include "weft/host/vector_kernels.h"
#include "weft/host/vector_sort.h"
#include "weft/runtime/pool.h"

namespace weft {

namespace {

template <typename T>
struct Before {
  bool descending;
  bool operator()(T a, T b) const {
    if (is_nan(a) || is_nan(b)) return !is_nan(a) && is_nan(b);
    return descending ? a > b : a < b;
  }
};

/// Without gaps, of a type that is computed with.
NDArray owned(const NDArray& x) {
  const Elem kernel = arithmetic_elem(x.elem());
  return kernel == x.elem() ? x.copy() : x.astype(kernel);
}
NDArray rows_of(const NDArray& x, int axis) { return owned(x.transpose(axis, -1)); }
Lines lines_of(const NDArray& x, int axis) {
  Lines out{1, x.shape()[axis], 1};
  for (int i = 0; i < axis; ++i) out.outer *= x.shape()[i];
  for (int i = axis + 1; i < x.ndim(); ++i) out.inner *= x.shape()[i];
  return out;
}

/// Memory that is not cleared before it is written.
template <typename T>
std::unique_ptr<T[]> room(std::int64_t n) {
  return std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(n));
}

template <int kBytes>
struct Word;
template <>
struct Word<1> {
  using type = std::uint8_t;
};
template <>
struct Word<2> {
  using type = std::uint16_t;
};
template <>
struct Word<4> {
  using type = std::uint32_t;
};
template <>
struct Word<8> {
  using type = std::uint64_t;
};

template <typename T>
constexpr Elem elem_of() {
  constexpr int at = std::countr_zero(sizeof(T));
  constexpr Elem reals[] = {Elem::float32, Elem::float64},
                 whole[] = {Elem::int8, Elem::int16, Elem::int32, Elem::int64},
                 words[] = {Elem::uint8, Elem::uint16, Elem::uint32, Elem::uint64};
  if constexpr (std::is_floating_point_v<T>) return reals[at - 2];
  else return std::is_signed_v<T> ? whole[at] : words[at];
}

/// Sorts rows of one length, in memory that it keeps between them.
template <typename T>
class Sorter {
 public:
  Sorter(std::int64_t n, bool descending) : n_(n), flip_(descending ? -1 : 0) {}

  /// Stable: -0 and 0 keep their order, NaNs theirs and their bits.
  void values(T* row) {
    if constexpr (std::is_integral_v<T>) {
      if (n_ >= kCounted && used_digits(row) == 1) return counted(row);
    }
    std::int64_t counts[2] = {};
    if constexpr (std::is_floating_point_v<T>)
      kernel<DigitCountsFn>(SortKernel::special)(row, counts, n_);
    const std::int64_t special = counts[0];
    if (!special) {
      if (n_ < kVectorSort) return std::sort(row, row + n_, Before<T>{flip_ != 0});
      if (!counts[1] && alone() && !kFewDigits && vector_sort(row, n_, flip_ != 0)) return;
    }
    zeros_.clear();
    nans_.clear();
    if constexpr (std::is_floating_point_v<T>) {
      if (special) {
        std::copy_if(row, row + n_, std::back_inserter(zeros_), [](T x) { return x == 0; });
        std::copy_if(row, row + n_, std::back_inserter(nans_), [](T x) { return x != x; });
      }
    }
    if (!keys_) keys_ = room<K>(2 * n_);
    keys(row, keys_.get());
    const K* sorted = keys_.get();
    if (!alone() || kFewDigits || !vector_sort(keys_.get(), n_, false)) {
      if (n_ < kShort) std::sort(keys_.get(), keys_.get() + n_);
      else sorted = radix::sort(key_layout(row), keys_.get(), keys_.get() + n_, n_);
    }
    const auto back = kernel<KeysFn>(SortKernel::values);
    shared([&](std::int64_t i, std::int64_t n) { back(sorted + i, row + i, n, flip_); });
    const T none = 0;
    K least = 0;
    kernel<KeysFn>(SortKernel::keys)(&none, &least, 1, flip_);
    const K* zero = std::lower_bound(sorted, sorted + n_, least);
    std::copy(zeros_.begin(), zeros_.end(), row + (zero - sorted));
    std::copy(nans_.begin(), nans_.end(), row + n_ - static_cast<std::int64_t>(nans_.size()));
  }

  /// Integers whose keys differ in one digit: equal ones need no moves, only their numbers.
  void counted(T* row) {
    if (!keys_) keys_ = room<K>(2 * n_);
    keys(row, keys_.get());
    std::int64_t counts[256] = {};
    table().get<DigitFn>(SortKernel::digit, elem_of<K>())(keys_.get(), counts, n_, 0);
    const K high = keys_[0] & static_cast<K>(~K{255});
    K* to = keys_.get();
    for (int d = 0; d < 256; ++d) to = std::fill_n(to, counts[d], static_cast<K>(high | d));
    kernel<KeysFn>(SortKernel::values)(keys_.get(), row, n_, flip_);
  }

  /// Are a row's numbers and positions sorted as one word each, on the stack?
  bool sorts_items() const { return sizeof(T) <= 4 && n_ < kShort; }

  void places(const T* row, std::int64_t* out) {
    if constexpr (sizeof(T) <= 4) {
      if (sorts_items()) {  // the position behind the key makes equal keys differ
        std::uint64_t both[kShort];
        kernel<ItemsFn>(SortKernel::items)(row, both, n_, 0, flip_);
        if (n_ < kVectorSort || !vector_sort(both, n_, false)) std::sort(both, both + n_);
        return place<ItemPlacesFn>(SortKernel::item_places)(both, out, n_);
      }
      if (n_ <= UINT32_MAX) {
        const int used = used_digits(row);
        return places_of(row, out, items_, SortKernel::items, SortKernel::item_places,
                         {Elem::uint64, sizeof(T), 32,
                          table().get<DigitCountsFn>(SortKernel::item_digits, elem_of<K>()), used});
      }
    }
    if (places_by_halves(row, out)) return;
    if (n_ < kShort) {
      std::iota(out, out + n_, 0);
      return std::stable_sort(out, out + n_, [&](std::int64_t a, std::int64_t b) {
        return Before<T>{flip_ != 0}(row[a], row[b]);
      });
    }
    places_of(
        row, out, pairs_, SortKernel::pairs, SortKernel::pair_places,
        {Elem::complex128, 8, 0, table().get<DigitCountsFn>(SortKernel::digits, Elem::complex128)});
  }

 private:
  using K = typename Word<sizeof(T)>::type;
  struct Pair {
    std::uint64_t key, at;
  };
  /// Two digits take less than the partitions of short keys, which few processors compress in
  /// registers.
  static constexpr bool kFewDigits = sizeof(T) <= 2;
  /// From so many integers on their extremes are asked for, whether one digit has them all.
  static constexpr std::int64_t kCounted = 256;
  /// Below this many elements comparisons are faster than counting digits.
  static constexpr std::int64_t kShort = sizeof(T) == 8 ? 256 : 128;

  static const SortTable& table() { return sort_kernels(); }
  template <typename F>
  static F kernel(SortKernel k) {
    return table().get<F>(k, elem_of<T>());
  }
  template <typename F>
  static F place(SortKernel k) {
    return table().get<F>(k, Elem::uint64);
  }
  radix::Layout key_layout(const T* row) const {
    return {elem_of<K>(), sizeof(K), 0,
            table().get<DigitCountsFn>(SortKernel::digits, elem_of<K>()), used_digits(row)};
  }
  /// Up to which digit the keys of a row differ, asked of the extremes: counting a digit that is
  /// the same everywhere takes as long as moving by it, since each count waits for the one before.
  int used_digits(const T* row) const {
    if constexpr (sizeof(T) == 1 || std::is_floating_point_v<T>) {
      return sizeof(T);
    } else {
      T ends[2] = {row[0], row[0]};
      constexpr ReduceOp both[2] = {ReduceOp::min, ReduceOp::max};
      for (int k = 0; k < 2; ++k)
        kernels().reduce[static_cast<int>(both[k])][static_cast<int>(elem_of<T>())](n_, row,
                                                                                    &ends[k]);
      const auto differ = static_cast<K>(static_cast<K>(ends[0]) ^ static_cast<K>(ends[1]));
      return std::max(1, (static_cast<int>(std::bit_width(differ)) + 7) / 8);
    }
  }
  /// Is a row sorted by one thread?
  bool alone() const { return n_ < radix::kShared || runtime::Pool::shared().threads() == 1; }
  template <typename F>
  void shared(const F& f) const {
    runtime::Pool::shared().parallel_for(n_, radix::kShared,
                                         [&](std::int64_t i, std::int64_t end) { f(i, end - i); });
  }
  void keys(const T* row, K* out) const {
    const auto fn = kernel<KeysFn>(SortKernel::keys);
    shared([&](std::int64_t i, std::int64_t n) { fn(row + i, out + i, n, flip_); });
  }
  template <typename Item>
  void places_of(const T* row, std::int64_t* out, std::unique_ptr<Item[]>& items, SortKernel make,
                 SortKernel take, const radix::Layout& layout) {
    if (!items) items = room<Item>(2 * n_);
    const auto fn = kernel<ItemsFn>(make);
    shared([&](std::int64_t i, std::int64_t n) { fn(row + i, items.get() + i, n, i, flip_); });
    const Item* sorted = items.get();
    bool done = false;
    if constexpr (std::is_integral_v<Item>)
      done = layout.used > 1 && !prefers_digits() && alone() && vector_sort(items.get(), n_, false);
    if (!done) sorted = radix::sort(layout, items.get(), items.get() + n_, n_);
    const auto back = place<ItemPlacesFn>(take);
    shared([&](std::int64_t i, std::int64_t n) { back(sorted + i, out + i, n); });
  }

  /// Are a row's items, whose keys have 32 bits at most, sorted by digits? One digit takes less
  /// time than any partition, two do from some hundred items on; of more, and of two in short rows,
  /// vectors of fewer than 64 bytes have few items, and no minimum of 64 bits.
  bool prefers_digits() const {
    const std::int64_t least = kFewDigits ? 0 : 4096, always = sizeof(T) == 1 ? 0 : 512;
    return (kFewDigits && n_ >= always) || (n_ >= least && vector_kernels().shape.bytes < 64);
  }

  /// Items that differ, in order; false (and nothing done) where the library that sorts long ones
  /// is absent.
  static bool sort_items(std::uint64_t* items, std::int64_t n) {
    if (n >= kVectorSort) return vector_sort(items, n, false);
    std::sort(items, items + n);
    return true;
  }
  /// The same, with or without the library.
  static bool sort_run(std::uint64_t* items, std::int64_t n) {
    if (!sort_items(items, n)) std::sort(items, items + n);
    return true;
  }
  /// Keys of 8 bytes by their upper halves with positions, runs of equal ones by the lower halves.
  bool places_by_halves(const T* row, std::int64_t* out) {
    if constexpr (sizeof(T) != 8) {
      return false;
    } else {
      if (n_ > UINT32_MAX || !alone()) return false;
      if (!items_) items_ = room<std::uint64_t>(2 * n_);
      std::uint64_t* const items = items_.get();
      const std::uint64_t* key = nullptr;
      if constexpr (std::is_same_v<T, std::uint64_t>) key = flip_ ? nullptr : row;
      if (!key) {
        if (!keys_) keys_ = room<K>(2 * n_);
        keys(row, keys_.get());
        key = keys_.get();
      }
      const bool whole = whole_items(key, n_, items);
      if (!whole) upper_items(key, n_, items);
      const std::uint64_t* sorted = items;
      if (prefers_digits()) {
        sorted = radix::sort({Elem::uint64, 4, 32,
                              table().get<DigitCountsFn>(SortKernel::item_digits, Elem::uint32)},
                             items, items + n_, n_);
      } else if (!sort_items(items, n_)) {
        return false;
      }
      if (!whole) order_equal_uppers(key, n_, items + (sorted - items), sort_run);
      place<ItemPlacesFn>(SortKernel::item_places)(sorted, out, n_);
      return true;
    }
  }

  const std::int64_t n_, flip_;
  std::unique_ptr<K[]> keys_;
  std::unique_ptr<std::uint64_t[]> items_;
  std::unique_ptr<Pair[]> pairs_;
  std::vector<T> zeros_, nans_;
};

}  // namespace

NDArray sort(const NDArray& x, int axis, bool descending) {
  axis = normalize_axis(axis, x.ndim(), "sort");
  if (is_complex(x.elem())) return take_along_axis(x, complex_argsort(x, axis, descending), axis);
  if (has_grid(x)) {
    return on_device()
        .sort(x.transpose(axis, -1), descending, false)
        .transpose(axis, -1)
        .contiguous();
  }
  const Lines lines = lines_of(x, axis);
  if (!x.on_host()) {
    NDArray rows = rows_of(x, axis);
    NDArray out = rows.size() > 0 ? on_device().sort(rows, descending, false) : rows;
    return out.transpose(axis, -1).astype(x.elem());
  }
  const Elem kernel = arithmetic_elem(x.elem());
  const auto as_given = [&](const NDArray& out) {
    return kernel == x.elem() ? out : out.astype(x.elem());
  };
  if (x.size() > 0 && lines.inner > 1 && suits_network(kernel, lines, false)) {
    const NDArray out = owned(x);
    if (special_values(kernel, out.host(), out.size()) == 0) {
      sort_lines(kernel, out.host(), lines, descending);
      return as_given(out);
    }
  }
  NDArray rows = lines.inner == 1 ? owned(x) : rows_of(x, axis);
  const Lines whole{lines.count(), lines.n, 1};
  if (x.size() > 0 && suits_network(kernel, whole, false) &&
      special_values(kernel, rows.host(), rows.size()) == 0) {
    sort_lines(kernel, rows.host(), whole, descending);
  } else if (x.size() > 0) {
    with_type(kernel, [&]<typename T>(T) {
      T* data = reinterpret_cast<T*>(rows.host());
      for_rows(whole.outer, whole.n, [&](std::int64_t r, std::int64_t end) {
        Sorter<T> sorter(whole.n, descending);
        for (; r < end; ++r) sorter.values(data + r * whole.n);
      });
    });
  }
  return as_given(lines.inner == 1 ? rows : rows.transpose(axis, -1).contiguous());
}

NDArray argsort(const NDArray& x, int axis, bool descending) {
  axis = normalize_axis(axis, x.ndim(), "argsort");
  if (is_complex(x.elem())) return complex_argsort(x, axis, descending);
  if (has_grid(x)) {
    return on_device()
        .sort(x.transpose(axis, -1), descending, true)
        .transpose(axis, -1)
        .contiguous();
  }
  const Lines lines = lines_of(x, axis);
  NDArray rows = x.on_host() && lines.inner == 1 && x.elem() == arithmetic_elem(x.elem())
                     ? x.contiguous()
                     : rows_of(x, axis);
  if (!x.on_host()) {
    if (rows.size() == 0) return NDArray::empty(x.device(), Elem::int64, x.shape());
    return on_device().sort(rows, descending, true).transpose(axis, -1).contiguous();
  }
  const bool in_place = rows.shape() == x.shape() && lines.inner == 1;
  NDArray order = NDArray::empty(x.device(), Elem::int64, rows.shape());
  const Lines whole{lines.count(), lines.n, 1};
  auto* out = reinterpret_cast<std::int64_t*>(order.host());
  if (x.size() > 0 && suits_network(rows.elem(), whole, true)) {
    argsort_lines(rows.elem(), rows.host(), whole, descending, out);
  } else if (x.size() > 0) {
    with_type(rows.elem(), [&]<typename T>(T) {
      const T* data = reinterpret_cast<const T*>(rows.host());
      for_rows(whole.outer, whole.n, [&](std::int64_t r, std::int64_t end) {
        Sorter<T> sorter(whole.n, descending);
        for (; r < end; ++r) sorter.places(data + r * whole.n, out + r * whole.n);
      });
    });
  }
  return in_place ? order : order.transpose(axis, -1).contiguous();
}

namespace {

/// Positions of the k first of a row in the order of argsort, by keeping the k best seen so far.
template <typename T>
void best_of(const T* row, std::int64_t n, std::int64_t k, bool descending, std::int64_t* out) {
  const Before<T> value{descending};
  const auto before = [&](std::int64_t a, std::int64_t b) {
    return value(row[a], row[b]) || (!value(row[b], row[a]) && a < b);
  };
  std::iota(out, out + k, 0);
  std::make_heap(out, out + k, before);  // the last of them on top
  constexpr std::int64_t kBlock = 256;
  const ReduceFn extreme =
      kernels().reduce[static_cast<int>(descending ? ReduceOp::max : ReduceOp::min)]
                      [static_cast<int>(elem_of<T>())];
  for (std::int64_t i = k; i < n;) {
    const std::int64_t end = std::min(n, i + kBlock);
    // Mostly nothing of a block is better.
    const T last = row[out[0]];
    T best = row[i];
    extreme(end - i, row + i, &best);
    if (is_nan(best) || value(best, last)) {
      for (; i < end; ++i) {
        if (!value(row[i], row[out[0]])) continue;
        std::pop_heap(out, out + k, before);
        out[k - 1] = i;
        std::push_heap(out, out + k, before);
      }
    }
    i = end;
  }
  std::sort_heap(out, out + k, before);
}

}  // namespace

NDArray topk_places(const NDArray& x, std::int64_t k, int axis, bool largest) {
  axis = normalize_axis(axis, x.ndim(), "topk");
  const std::int64_t n = x.shape()[axis];
  if (!x.on_host()) {
    if (const auto found = on_device().best(x.transpose(axis, -1), k, largest))
      return found->transpose(axis, -1).contiguous();
    if (axis == x.ndim() - 1) {
      if (const auto found = topk_of_long_row(x, k, largest)) return *found;
    }
    return argsort(x, axis, largest).slice(axis, 0, k, 1).contiguous();
  }
  if (k > 512 || k * 4 > n || is_complex(x.elem()))
    return argsort(x, axis, largest).slice(axis, 0, k, 1).contiguous();
  const NDArray moved = x.transpose(axis, -1);
  NDArray rows = moved.is_contiguous() && !is_narrow_float(x.elem()) ? moved : rows_of(x, axis);
  Dims shape = rows.shape();
  shape[shape.size() - 1] = k;
  NDArray order = NDArray::empty(x.device(), Elem::int64, shape);
  auto* out = reinterpret_cast<std::int64_t*>(order.host());
  const TopLines side_by_side(rows.elem(), Lines{order.size() > 0 ? rows.size() / n : 0, n, 1}, k,
                              largest);
  if (side_by_side.suits()) {
    side_by_side.run(rows.host(), out);
  } else if (order.size() > 0) {
    with_type(rows.elem(), [&]<typename T>(T) {
      const T* data = reinterpret_cast<const T*>(rows.host());
      for_rows(rows.size() / n, n, [&](std::int64_t r, std::int64_t end) {
        // Short rows are sorted faster than searched.
        Sorter<T> sorter(n, largest);
        std::vector<std::int64_t> order_of_row(sorter.sorts_items() ? static_cast<std::size_t>(n)
                                                                    : 0);
        for (; r < end; ++r) {
          if (order_of_row.empty()) {
            best_of(data + r * n, n, k, largest, out + r * k);
          } else {
            sorter.places(data + r * n, order_of_row.data());
            std::copy_n(order_of_row.begin(), k, out + r * k);
          }
        }
      });
    });
  }
  return order.transpose(axis, -1).contiguous();
}

namespace {

/// Places of n values among `numbers` in order, which NaN follows up to `all`. Several searches at
/// once, without branches, which would be foretold wrongly half of the time: none waits for
/// another's memory.
template <typename T>
void search(const T* sorted, std::int64_t numbers, std::int64_t all, const T* v, std::int64_t n,
            bool right, std::int64_t* out) {
  constexpr std::int64_t kLanes = 8;
  const auto some = [&](std::int64_t i, auto lanes, const auto& before) {
    const T* at[kLanes];
    for (std::int64_t k = 0; k < lanes; ++k) at[k] = sorted;
    std::int64_t length = numbers;
    for (; length > 1; length -= length / 2) {
      const std::int64_t half = length / 2;
      for (std::int64_t k = 0; k < lanes; ++k)
        at[k] += half & -static_cast<std::int64_t>(before(at[k][half - 1], v[i + k]));
    }
    for (std::int64_t k = 0; k < lanes; ++k) {
      if (length == 1) at[k] += before(*at[k], v[i + k]);
      out[i + k] = is_nan(v[i + k]) ? (right ? all : numbers) : at[k] - sorted;
    }
  };
  const auto run = [&](const auto& before) {
    std::int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
      some(i, std::integral_constant<std::int64_t, kLanes>(), before);
    for (; i < n; ++i) some(i, std::integral_constant<std::int64_t, 1>(), before);
  };
  if (right) run([](T s, T x) { return s <= x; });
  else run([](T s, T x) { return s < x; });
}

}  // namespace

NDArray searchsorted(const NDArray& x, const NDArray& values, bool right) {
  if (x.ndim() != 1) {
    throw Error(ErrorKind::shape, "array.searchsorted.rank",
                cat("searchsorted needs a 1-d sorted array, got ", describe(x)));
  }
  check_same_device(x, values, "searchsorted");
  Elem e = promote(x.elem(), values.elem());
  Elem kernel = arithmetic_elem(e);
  if (is_complex(e)) return complex_searchsorted(x.astype(e), values.astype(e), right);
  if (has_grid(x))
    return on_device().searchsorted(x.elem() == e ? x : x.astype(e),
                                    values.elem() == e ? values : values.astype(e), right);
  if (!x.on_host()) return on_device().searchsorted(x.astype(kernel), values.astype(kernel), right);
  NDArray sorted = x.astype(kernel), wanted = values.astype(kernel);
  NDArray out = NDArray::empty(x.device(), Elem::int64, values.shape());
  with_type(kernel, [&]<typename T>(T) {
    const T* begin = reinterpret_cast<const T*>(sorted.host());
    const T* end = begin + sorted.size();
    const T* v = reinterpret_cast<const T*>(wanted.host());
    auto* o = reinterpret_cast<std::int64_t*>(out.host());
    const std::int64_t numbers =
        std::lower_bound(begin, end, T{}, [](T a, T) { return !is_nan(a); }) - begin;
    runtime::Pool::shared().parallel_for(
        wanted.size(), 1024, [&](std::int64_t i, std::int64_t stop) {
          search(begin, numbers, sorted.size(), v + i, stop - i, right, o + i);
        });
  });
  return out;
}

}  // namespace weft
