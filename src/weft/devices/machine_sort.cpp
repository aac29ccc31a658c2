// SPDX-License-Identifier: Apache-2.0
// Running sums, positions of extrema, sorting and searching, composed of element-wise operations
// on views.

#include <algorithm>
#include <bit>

#include "weft/devices/dispatch.h"
#include "weft/devices/machine.h"
#include "weft/devices/structured.h"

namespace weft {

namespace {

Op pairwise(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum: return Op::add;
    case ReduceOp::prod: return Op::multiply;
    case ReduceOp::max: return Op::maximum;
    case ReduceOp::min: return Op::minimum;
    case ReduceOp::all: return Op::logical_and;
    default: return Op::logical_or;
  }
}

NDArray both(const NDArray& a, const NDArray& b) { return apply(Op::logical_and, a, b); }
NDArray either(const NDArray& a, const NDArray& b) { return apply(Op::logical_or, a, b); }
NDArray no(const NDArray& a) { return apply(Op::logical_not, a); }

/// Does a come before b? NaN comes last.
NDArray before(const NDArray& a, const NDArray& b, bool descending) {
  NDArray out = apply(descending ? Op::greater : Op::less, a, b);
  if (!is_real_float(a.elem())) return out;
  return either(out, both(apply(Op::isnan, b), no(apply(Op::isnan, a))));
}

/// Positions as results have them.
NDArray as_int64(const NDArray& x) { return x.elem() == Elem::int64 ? x : x.astype(Elem::int64); }

/// Types that comparisons know.
NDArray comparable(const NDArray& x) {
  return x.elem() == Elem::boolean ? x.astype(Elem::uint8) : x;
}

}  // namespace

NDArray device_scan(ReduceOp op, const NDArray& x, int axis, Elem elem) {
  NDArray y = x.astype(elem);
  for (std::int64_t step = 1, n = y.shape()[axis]; step < n; step *= 2) {
    NDArray next = y.copy();
    NDArray late = next.slice(axis, step, n - step, 1);
    apply_into(pairwise(op), late, y.slice(axis, step, n - step, 1), y.slice(axis, 0, n - step, 1));
    y = next;
  }
  return y;
}

NDArray device_arg_reduce(bool largest, const NDArray& x) {
  NDArray y = comparable(x);
  const int last = y.ndim() - 1;
  const std::int64_t n = y.shape()[last];
  Axes axes{false, Dims{last}};
  NDArray best = reduce(largest ? ReduceOp::max : ReduceOp::min, y, axes, true);
  NDArray hit = apply(Op::equal, y, best);
  if (is_real_float(y.elem())) hit = either(hit, apply(Op::isnan, y));
  NDArray places = arange(y.device(), machine_of(y.device()).positions(), 0, 1, n);
  return as_int64(reduce(ReduceOp::min, where(hit, places, Scalar(n)), axes, false));
}

NDArray device_sort(const NDArray& x, bool descending, bool positions) {
  const int last = x.ndim() - 1;
  const std::int64_t n = x.shape()[last];
  const std::int64_t rows = x.size() / n;
  const auto size = static_cast<std::int64_t>(
      std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(n, 1))));
  NDArray source = comparable(x);
  NDArray keys = full(x.device(), source.elem(), Dims{rows, size}, Scalar(0));
  assign(keys.slice(1, 0, n, 1), source.reshape(Dims{rows, n}));
  NDArray places = arange(x.device(), machine_of(x.device()).positions(), 0, 1, size)
                       .broadcast_to(Dims{rows, size})
                       .copy();
  auto exchange = [&](const NDArray& ka, const NDArray& kb, const NDArray& pa, const NDArray& pb) {
    // b before a: by key, then by position; what fills up to a power of two comes last.
    NDArray swap = either(before(kb, ka, descending),
                          both(no(before(ka, kb, descending)), apply(Op::less, pb, pa)));
    if (size != n) {
      swap = both(apply(Op::less, pb, Scalar(n)),
                  either(apply(Op::greater_equal, pa, Scalar(n)), swap));
    }
    NDArray low = where(swap, kb, ka), high = where(swap, ka, kb);
    assign(ka, low);
    assign(kb, high);
    low = where(swap, pb, pa), high = where(swap, pa, pb);
    assign(pa, low);
    assign(pb, high);
  };
  for (std::int64_t run = 2; run <= size; run *= 2) {
    // The first pass of a merge compares with the other half reversed; then all go one way.
    const Dims split{rows, size / run, run};
    const int reversed[] = {2};
    auto first = [&](const NDArray& a) { return a.reshape(split).slice(2, 0, run / 2, 1); };
    auto second = [&](const NDArray& a) {
      return a.reshape(split).slice(2, run / 2, run / 2, 1).flip(reversed);
    };
    exchange(first(keys), second(keys), first(places), second(places));
    for (std::int64_t step = run / 4; step > 0; step /= 2) {
      const Dims pairs{rows, size / (2 * step), 2, step};
      auto side = [&](const NDArray& a, std::int64_t s) { return a.reshape(pairs).select(2, s); };
      exchange(side(keys, 0), side(keys, 1), side(places, 0), side(places, 1));
    }
  }
  NDArray out = (positions ? places : keys).slice(1, 0, n, 1).contiguous().reshape(x.shape());
  if (positions) return as_int64(out);
  return out.elem() == x.elem() ? out : out.astype(x.elem());
}

NDArray device_searchsorted(const NDArray& x, const NDArray& values, bool right) {
  const Elem e = promote(x.elem(), values.elem());
  NDArray sorted = comparable(x.astype(e)), wanted = comparable(values.astype(e));
  const std::int64_t n = x.size();
  NDArray low = full(x.device(), machine_of(x.device()).positions(), values.shape(), Scalar(0));
  if (n == 0) return as_int64(low);
  for (auto step = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(n)));
       step > 0; step /= 2) {
    NDArray next = apply(Op::add, low, Scalar(step));
    NDArray at = apply(Op::subtract, apply(Op::minimum, next, Scalar(n)), Scalar(1));
    NDArray element = device_pick(sorted, at);
    NDArray goes = right ? no(before(wanted, element, false)) : before(element, wanted, false);
    low = where(both(goes, apply(Op::less_equal, next, Scalar(n))), next, low);
  }
  return as_int64(low);
}

std::vector<NDArray> device_nonzero(const NDArray& x) {
  std::vector<NDArray> out;
  NDArray flat = x.astype(Elem::boolean).reshape(Dims{x.size()});
  std::int64_t total = 0;
  NDArray found;
  if (x.size() > 0) {
    const Elem e = machine_of(x.device()).positions();
    NDArray running = device_scan(ReduceOp::sum, flat, 0, e);
    as_int64(running.slice(0, x.size() - 1, 1, 1)).read_element(0, &total);
    found = device_searchsorted(running, arange(x.device(), e, 1, 1, total), false);
  } else {
    found = NDArray::empty(x.device(), Elem::int64, Dims{0});
  }
  found = found.astype(machine_of(x.device()).positions());
  std::int64_t step = x.size();
  for (int axis = 0; axis < x.ndim(); ++axis) {
    const std::int64_t extent = x.shape()[axis];
    step = extent ? step / extent : 0;
    out.push_back(as_int64(
        x.size() == 0
            ? found.copy()
            : apply(Op::remainder, apply(Op::floor_divide, found, Scalar(step)), Scalar(extent))));
  }
  return out;
}

}  // namespace weft
