// SPDX-License-Identifier: Apache-2.0
#pragma once
// What complex_ir.cpp and complex_math.cpp share: short names for real expressions of float64 and
// sums without rounding error.

#include <limits>

#include "weft/elements/complex_ir.h"

namespace weft::complex_ir {

inline Expr lit(double v) { return ir::make_const(v, dtypes::float64); }
inline Expr infinity() { return lit(std::numeric_limits<double>::infinity()); }
inline Expr call(const char* name, const Expr& x) { return ir::call(name, {x}); }
inline Expr size(const Expr& x) { return call("abs", x); }
inline Expr root(const Expr& x) { return call("sqrt", x); }
inline Expr over(const Expr& x, const Expr& y) { return ir::div(x, y); }
inline Expr angle(const Expr& y, const Expr& x) { return ir::call("atan2", {y, x}); }
inline Expr minus(const Expr& x) { return x * ir::make_const(-1, x->dtype); }
/// The magnitude of x with the sign of y.
inline Expr with_sign(const Expr& x, const Expr& y) { return ir::call("copysign", {x, y}); }
inline Expr both(const Expr& a, const Expr& b) { return ir::call("bitwise_and", {a, b}); }
inline Expr either(const Expr& a, const Expr& b) { return ir::call("bitwise_or", {a, b}); }
inline Expr infinite(const Expr& x) {
  return ir::eq(size(x), ir::make_const(std::numeric_limits<double>::infinity(), x->dtype));
}
inline Expr finite(const Expr& x) {
  return ir::lt(size(x), ir::make_const(std::numeric_limits<double>::infinity(), x->dtype));
}
/// Infinite or NaN.
inline Expr unknown(const Expr& x) { return either(infinite(x), ir::ne(x, x)); }
inline Expr larger(const Expr& x, const Expr& y) { return ir::select(ir::ge(x, y), x, y); }
inline Expr smaller(const Expr& x, const Expr& y) { return ir::select(ir::ge(x, y), y, x); }

/// A number in float64. `narrow`: it was a float32, so that squares of its parts are exact and far
/// from both ends of the range. `quick`: Complex::quick of such a number.
struct Wide {
  Expr x, y;
  bool narrow, quick = false;
};
/// The function of x in float64, or where `quick` of x in float32.
inline Expr call(const char* name, const Expr& x, bool quick) {
  return quick ? ir::cast(dtypes::float64, call(name, ir::cast(dtypes::float32, x)))
               : call(name, x);
}
inline Expr angle(const Expr& y, const Expr& x, bool quick) {
  if (!quick) return angle(y, x);
  return ir::cast(dtypes::float64,
                  angle(ir::cast(dtypes::float32, y), ir::cast(dtypes::float32, x)));
}
Wide widen(const Complex& z);
/// Parts of float64 as those of z's type.
Complex like(const Complex& z, const Expr& re, const Expr& im);

/// high + low, the sum or product without error (Dekker 1971).
struct Pair {
  Expr high, low;
};
Pair sum_of(const Expr& a, const Expr& b);
Pair square_of(const Expr& a);

/// sqrt(x*x + y*y) of float64, infinite if either is.
Expr magnitude(const Wide& z);

}  // namespace weft::complex_ir
