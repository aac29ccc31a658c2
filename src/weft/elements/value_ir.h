// SPDX-License-Identifier: Apache-2.0
#pragma once
// The meaning of the functions that table rows are written in, as IR expressions: the same rows
// give kernels for any target. What the IR cannot say throws RowUnsupported.

#include "weft/elements/row_ir.h"
#include "weft/ir/build.h"

namespace weft::value_ir {

using ir::Expr;

inline Expr lit_(const Expr& like, double v) { return ir::make_const(v, like->dtype); }
inline bool is_float(const Expr& x) { return x->dtype.is_float(); }
inline bool is_bool(const Expr& x) { return x->dtype.is_bool(); }

#define WEFT_CALL1(name, intrinsic) \
  inline Expr name##_(const Expr& x) { return ir::call(intrinsic, {x}); }
WEFT_CALL1(acos, "acos")
WEFT_CALL1(acosh, "acosh")
WEFT_CALL1(asin, "asin")
WEFT_CALL1(asinh, "asinh")
WEFT_CALL1(atan, "atan")
WEFT_CALL1(atanh, "atanh")
WEFT_CALL1(cos, "cos")
WEFT_CALL1(cosh, "cosh")
WEFT_CALL1(erf, "erf")
WEFT_CALL1(exp, "exp")
WEFT_CALL1(exp2, "exp2")
WEFT_CALL1(expm1, "expm1")
WEFT_CALL1(log, "log")
WEFT_CALL1(log10, "log10")
WEFT_CALL1(log1p, "log1p")
WEFT_CALL1(log2, "log2")
WEFT_CALL1(sin, "sin")
WEFT_CALL1(sinh, "sinh")
WEFT_CALL1(sqrt, "sqrt")
WEFT_CALL1(tan, "tan")
WEFT_CALL1(tanh, "tanh")
WEFT_CALL1(signbit, "signbit")
#undef WEFT_CALL1
#define WEFT_ROUND(name) \
  inline Expr name##_(const Expr& x) { return is_float(x) ? ir::call(#name, {x}) : x; }
WEFT_ROUND(ceil)
WEFT_ROUND(floor)
WEFT_ROUND(trunc)
WEFT_ROUND(round)
#undef WEFT_ROUND
#define WEFT_TEST(name, otherwise)                                        \
  inline Expr name##_(const Expr& x) {                                    \
    return is_float(x) ? ir::call(#name, {x}) : ir::make_bool(otherwise); \
  }
WEFT_TEST(isfinite, true)
WEFT_TEST(isinf, false)
WEFT_TEST(isnan, false)
#undef WEFT_TEST

inline Expr one_(const Expr& x) { return lit_(x, 1); }
inline Expr abs_(const Expr& x) { return x->dtype.is_uint() ? x : ir::call("abs", {x}); }
inline Expr invert_(const Expr& x) {
  return is_bool(x) ? ir::logical_not(x) : ir::call("bitwise_not", {x});
}
inline Expr conj_(const Expr& x) { return x; }
inline Expr real_(const Expr& x) { return x; }
inline Expr imag_(const Expr&) { throw RowUnsupported{}; }
inline Expr sub_(const Expr& x, const Expr& y) { return x - y; }
inline Expr neg_(const Expr& x) { return is_float(x) ? x * lit_(x, -1) : lit_(x, 0) - x; }
inline Expr divide_(const Expr& x, const Expr& y) { return ir::div(x, y); }
inline Expr relu_(const Expr& x) { return ir::select(ir::lt(x, lit_(x, 0)), lit_(x, 0), x); }
inline Expr sigmoid_(const Expr& x) { return ir::div(lit_(x, 1), lit_(x, 1) + exp_(neg_(x))); }
/// max(x, 0) - t N(-t) of t = |x|. In float32 the normal distribution function N is exp of a
/// polynomial (least squares over Chebyshev's nodes, weighted), which loses no digits below 0 and
/// takes half the time of erf. Behind 5.7 what is taken off is below the last place of 1.
inline Expr gelu_(const Expr& x) {
  if (x->dtype.bits == 64)
    return x * lit_(x, 0.5) * (erf_(x * lit_(x, 0.70710678118654752)) + one_(x));
  const Expr t = abs_(x), end = lit_(x, 5.7), far = ir::gt(t, end), at = ir::select(far, end, t);
  // In pairs, pairs of pairs, ...: a processor that computes them side by side waits less.
  auto c = [&](double v) { return lit_(x, v); };
  const Expr square = at * at, fourth = square * square;
  const Expr low = (c(-7.9789014651e-01) * at + c(-6.9314708320e-01)) +
                   (c(-3.6500575372e-02) * at + c(-3.1825994753e-01)) * square;
  const Expr high = (c(-1.9635343656e-04) * at + c(5.0470916818e-03)) +
                    (c(2.3670497529e-05) * at + c(-9.6013068354e-05)) * square;
  const Expr top = c(9.7216462565e-08) * at + c(-2.4142917192e-06);
  const Expr p = low + (high + top * fourth) * fourth;
  // A product, not relu: minus infinity gives NaN, as x N(x) does.
  const Expr above = x * ir::select(ir::lt(x, lit_(x, 0)), lit_(x, 0), one_(x));
  return above - ir::select(far, lit_(x, 0), t * exp_(p));
}
inline Expr hardswish_(const Expr& x) {
  const Expr zero = lit_(x, 0), six = lit_(x, 6), t = x + lit_(x, 3);
  const Expr above = ir::select(ir::lt(t, zero), zero, t);
  return x * ir::select(ir::gt(above, six), six, above) * lit_(x, 1.0 / 6);
}
inline Expr elu_(const Expr& x, const Expr& alpha) {
  return ir::select(ir::gt(x, lit_(x, 0)), x, expm1_(x) * alpha);
}
inline Expr leaky_relu_(const Expr& x, const Expr& slope) {
  return ir::select(ir::gt(x, lit_(x, 0)), x, x * slope);
}
/// exp(log(t) / 3) of t = |x| and a step of Newton's, which takes the error of both functions away.
/// 0, infinities and NaN are their own roots.
inline Expr cbrt_(const Expr& x) {
  const Expr zero = lit_(x, 0), size = abs_(x);
  const Expr itself = ir::logical_or(ir::eq(x, zero), ir::logical_not(isfinite_(x)));
  const Expr t = ir::select(itself, one_(x), size), r = exp_(log_(t) * lit_(x, 1.0 / 3));
  const Expr root = r - (r - ir::div(t, r * r)) * lit_(x, 1.0 / 3);
  return ir::select(itself, x, ir::select(ir::lt(x, zero), neg_(root), root));
}
inline Expr replace_nan_(const Expr& x, const Expr& y) { return ir::select(ir::ne(x, x), y, x); }
inline Expr sign_(const Expr& x) {
  Expr zero = lit_(x, 0), one = lit_(x, 1);
  Expr out = ir::select(ir::gt(x, zero), one,
                        x->dtype.is_uint() ? zero : ir::select(ir::lt(x, zero), lit_(x, -1), zero));
  return is_float(x) ? ir::select(ir::ne(x, x), x, out) : out;
}
inline Expr and_(const Expr& x, const Expr& y) {
  return is_bool(x) ? ir::logical_and(x, y) : ir::call("bitwise_and", {x, y});
}
inline Expr or_(const Expr& x, const Expr& y) {
  return is_bool(x) ? ir::logical_or(x, y) : ir::call("bitwise_or", {x, y});
}
/// Of bool the sum is "or" and the product "and".
inline Expr add_(const Expr& x, const Expr& y) { return is_bool(x) ? or_(x, y) : x + y; }
inline Expr mul_(const Expr& x, const Expr& y) { return is_bool(x) ? and_(x, y) : x * y; }
inline Expr xor_(const Expr& x, const Expr& y) {
  return is_bool(x) ? ir::ne(x, y) : ir::call("bitwise_xor", {x, y});
}
inline Expr shl_(const Expr& x, const Expr& y) { return ir::call("shift_left", {x, y}); }
inline Expr shr_(const Expr& x, const Expr& y) { return ir::call("shift_right", {x, y}); }
inline Expr eq_(const Expr& x, const Expr& y) { return ir::eq(x, y); }
inline Expr ne_(const Expr& x, const Expr& y) { return ir::ne(x, y); }
inline Expr gt_(const Expr& x, const Expr& y) { return ir::gt(x, y); }
inline Expr ge_(const Expr& x, const Expr& y) { return ir::ge(x, y); }
inline Expr max_(const Expr& x, const Expr& y) {
  if (is_bool(x)) return ir::logical_or(x, y);
  Expr better = ir::gt(x, y);
  return ir::select(is_float(x) ? ir::logical_or(better, ir::ne(x, x)) : better, x, y);
}
inline Expr min_(const Expr& x, const Expr& y) {
  if (is_bool(x)) return ir::logical_and(x, y);
  Expr better = ir::lt(x, y);
  return ir::select(is_float(x) ? ir::logical_or(better, ir::ne(x, x)) : better, x, y);
}
inline Expr max_number_(const Expr& x, const Expr& y) {
  return ir::select(ir::logical_or(ir::gt(x, y), ir::ne(y, y)), x, y);
}
inline Expr min_number_(const Expr& x, const Expr& y) {
  return ir::select(ir::logical_or(ir::lt(x, y), ir::ne(y, y)), x, y);
}
inline Expr atan2_(const Expr& x, const Expr& y) { return ir::call("atan2", {x, y}); }
inline Expr copysign_(const Expr& x, const Expr& y) { return ir::call("copysign", {x, y}); }
inline Expr hypot_(const Expr& x, const Expr& y) { return ir::call("hypot", {x, y}); }
inline Expr nextafter_(const Expr& x, const Expr& y) { return ir::call("nextafter", {x, y}); }
inline Expr logaddexp_(const Expr& x, const Expr& y) {
  Expr d = abs_(x - y), equal = ir::eq(x, y);
  return ir::select(ir::ne(d, d), ir::select(equal, x, x + y), max_(x, y) + log1p_(exp_(neg_(d))));
}
/// A divisor that no machine traps at: 1 in place of 0 and of -1, whose results are known.
inline Expr safe_divisor(const Expr& y) {
  Expr trap = ir::eq(y, lit_(y, 0));
  if (y->dtype.is_int()) trap = ir::logical_or(trap, ir::eq(y, lit_(y, -1)));
  return ir::select(trap, lit_(y, 1), y);
}
inline Expr remainder_(const Expr& x, const Expr& y) {
  if (is_float(x)) {
    Expr m = ir::call("fmod", {x, y}), zero = lit_(x, 0);
    Expr other = ir::ne(ir::lt(m, zero), ir::lt(y, zero));
    return ir::select(ir::eq(m, zero), copysign_(zero, y), ir::select(other, m + y, m));
  }
  return ir::floormod(x, safe_divisor(y));
}
inline Expr floor_divide_(const Expr& x, const Expr& y) {
  Expr zero = lit_(y, 0);
  if (is_float(x)) {
    // The quotient of what the remainder leaves is whole but for rounding.
    Expr q = ir::div(x, y), m = ir::call("fmod", {x, y});
    Expr other = ir::logical_and(ir::ne(m, zero), ir::ne(ir::lt(m, zero), ir::lt(y, zero)));
    Expr d = ir::div(x - m, y) - ir::select(other, one_(x), zero);
    Expr f = floor_(d), near = ir::select(ir::gt(d - f, lit_(x, 0.5)), f + one_(x), f);
    Expr plain = ir::logical_or(ir::logical_or(ir::eq(y, zero), ir::eq(q, zero)),
                                ir::logical_not(isfinite_(x)));
    return ir::select(plain, floor_(q), ir::select(ir::eq(d, zero), copysign_(zero, q), near));
  }
  Expr q = ir::floordiv(x, safe_divisor(y));
  if (x->dtype.is_int()) q = ir::select(ir::eq(y, lit_(y, -1)), zero - x, q);
  return ir::select(ir::eq(y, zero), zero, q);
}
inline Expr pow_(const Expr& x, const Expr& y) {
  if (!is_float(x)) throw RowUnsupported{};
  return ir::call("pow", {x, y});
}

}  // namespace weft::value_ir
