// SPDX-License-Identifier: Apache-2.0
#include "weft/array/complex_order.h"

#include <algorithm>
#include <complex>
#include <limits>

#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft {

namespace {

NDArray real_part(const NDArray& x) { return apply(Op::real, x); }
NDArray imaginary_part(const NDArray& x) { return apply(Op::imag, x); }
NDArray compared(Op op, const NDArray& a, const NDArray& b) { return apply(op, a, b); }
NDArray both(const NDArray& a, const NDArray& b) { return apply(Op::logical_and, a, b); }
NDArray either(const NDArray& a, const NDArray& b) { return apply(Op::logical_or, a, b); }

Axes one_axis(int axis) {
  Axes out;
  out.all = false;
  out.axes.push_back(axis);
  return out;
}

/// -1, 0, 1: the order of two numbers of which neither is NaN.
int order_of(std::complex<double> a, std::complex<double> b) {
  if (a.real() != b.real()) return a.real() < b.real() ? -1 : 1;
  return a.imag() == b.imag() ? 0 : a.imag() < b.imag() ? -1 : 1;
}

/// Where NumPy puts a number with NaNs: behind all without, NaN imaginary parts first.
int nan_class(std::complex<double> z) {
  return 2 * static_cast<int>(z.real() != z.real()) + static_cast<int>(z.imag() != z.imag());
}

bool before(std::complex<double> a, std::complex<double> b) {
  const int p = nan_class(a), q = nan_class(b);
  if (p != q) return p < q;
  if (p == 0) return order_of(a, b) < 0;
  return p == 1 ? a.real() < b.real() : p == 2 && a.imag() < b.imag();
}

}  // namespace

NDArray complex_argsort(const NDArray& x, int axis, bool descending) {
  NDArray order = argsort(imaginary_part(x).contiguous(), axis, descending);
  const auto then = [&](const NDArray& key, bool down) {
    const NDArray moved = take_along_axis(key, order, axis);
    order = take_along_axis(order, argsort(moved, axis, down), axis);
  };
  then(real_part(x).contiguous(), descending);
  // The NaNs of each part went to the end of its own sort; those of the other part follow them.
  const NDArray nan = apply(Op::isnan, imaginary_part(x)).astype(Elem::int8);
  const NDArray worse = apply(Op::isnan, real_part(x)).astype(Elem::int8);
  then(apply(Op::add, nan, apply(Op::multiply, worse, Scalar(std::int64_t{2}))), false);
  return order;
}

NDArray complex_extreme_positions(bool largest, const NDArray& x, int axis) {
  const ReduceOp op = largest ? ReduceOp::max : ReduceOp::min;
  const NDArray re = real_part(x), im = imaginary_part(x), nan = apply(Op::isnan, x);
  const double none =
      largest ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  const NDArray top = compared(Op::equal, re, reduce(op, re, one_axis(axis), true));
  const NDArray kept = where(top, im, Scalar(none));
  const NDArray best = both(top, compared(Op::equal, kept, reduce(op, kept, one_axis(axis), true)));
  const NDArray any = reduce(ReduceOp::any, nan, one_axis(axis), true);
  const NDArray found = either(both(any, nan), both(apply(Op::logical_not, any), best));
  return arg_reduce(true, found.astype(Elem::uint8), axis, true);
}

NDArray complex_extreme(bool largest, const NDArray& x, std::uint64_t mask, bool keepdims) {
  std::vector<int> order;
  Dims kept, shape;
  std::int64_t n = 1;
  for (int i = 0; i < x.ndim(); ++i) {
    const bool gone = mask >> i & 1;
    if (gone) n *= x.shape()[i];
    else order.push_back(i), kept.push_back(x.shape()[i]), shape.push_back(x.shape()[i]);
    if (gone && keepdims) shape.push_back(1);
  }
  for (int i = 0; i < x.ndim(); ++i)
    if (mask >> i & 1) order.push_back(i);
  kept.push_back(n);
  const NDArray rows = x.permute(order).reshape(kept);
  const int last = rows.ndim() - 1;
  if (n == 0 && rows.shape().size() > 0 &&
      NDArray::empty(x.device(), Elem::boolean, shape).size() > 0) {
    const std::string_view name = largest ? "max" : "min";
    throw Error(ErrorKind::value, cat("array.", name, ".empty"),
                cat(name, " of no elements: shape ", to_string(x.shape()), " has an empty axis"));
  }
  if (n == 0) return NDArray::empty(x.device(), x.elem(), shape);
  return take_along_axis(rows, complex_extreme_positions(largest, rows, last), last).reshape(shape);
}

NDArray complex_larger(bool largest, const NDArray& x, const NDArray& y) {
  const NDArray a = real_part(x), b = real_part(y), p = imaginary_part(x), q = imaginary_part(y);
  const Op beyond = largest ? Op::greater : Op::less,
           not_before = largest ? Op::greater_equal : Op::less_equal;
  const NDArray first =
      either(compared(beyond, a, b), both(compared(Op::equal, a, b), compared(not_before, p, q)));
  const NDArray sound = apply(Op::logical_not, apply(Op::isnan, y));
  return where(either(both(first, sound), apply(Op::isnan, x)), x, y);
}

NDArray complex_searchsorted(const NDArray& sorted, const NDArray& values, bool right) {
  if (!sorted.on_host()) {
    throw Error(ErrorKind::dtype, "array.searchsorted.dtype",
                cat("searchsorted is not defined for ", name_of(sorted.elem()), " on ",
                    sorted.device()->info().name));
  }
  const NDArray row = sorted.astype(Elem::complex128), wanted = values.astype(Elem::complex128);
  NDArray out = NDArray::empty(sorted.device(), Elem::int64, values.shape());
  using Z = std::complex<double>;
  const Z *begin = reinterpret_cast<const Z*>(row.host()), *end = begin + row.size();
  const Z* v = reinterpret_cast<const Z*>(wanted.host());
  auto* o = reinterpret_cast<std::int64_t*>(out.host());
  for (std::int64_t i = 0; i < wanted.size(); ++i) {
    o[i] = (right ? std::upper_bound(begin, end, v[i], before)
                  : std::lower_bound(begin, end, v[i], before)) -
           begin;
  }
  return out;
}

}  // namespace weft
