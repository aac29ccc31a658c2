// SPDX-License-Identifier: Apache-2.0
#include "weft/elements/complex_ir.h"

#include "weft/elements/complex_parts.h"

namespace weft::complex_ir {

Wide widen(const Complex& z) {
  const bool narrow = z.re->dtype == dtypes::float32;
  return {ir::cast(dtypes::float64, z.re), ir::cast(dtypes::float64, z.im), narrow,
          narrow && z.quick};
}

Complex like(const Complex& z, const Expr& re, const Expr& im) {
  return {ir::cast(z.re->dtype, re), ir::cast(z.re->dtype, im)};
}

Pair sum_of(const Expr& a, const Expr& b) {
  const Expr s = a + b, from_b = s - a;
  return {s, (a - (s - from_b)) + (b - from_b)};
}

Pair square_of(const Expr& a) {
  const Expr c = a * lit(134217729.0), high = c - (c - a), low = a - high, p = a * a;
  return {p, ((high * high - p) + high * low * lit(2)) + low * low};
}

Expr magnitude(const Wide& z) {
  Expr out;
  if (z.narrow) {
    out = root(z.x * z.x + z.y * z.y);
  } else {
    // Scaled where squares leave the range. The larger square is added without rounding where the
    // processor does so: the root is within one unit then, and within 1.1 elsewhere.
    const Expr ax = size(z.x), ay = size(z.y), m = larger(ax, ay), n = smaller(ax, ay);
    const Expr up = ir::gt(m, lit(0x1p511)), down = ir::lt(m, lit(0x1p-459));
    const Expr scale = ir::select(up, lit(0x1p-600), ir::select(down, lit(0x1p600), lit(1)));
    const Expr back = ir::select(up, lit(0x1p600), ir::select(down, lit(0x1p-600), lit(1)));
    const Expr a = m * scale, b = n * scale;
    out = root(ir::call("fma", {a, a, b * b})) * back;
  }
  return ir::select(either(infinite(z.x), infinite(z.y)), infinity(), out);
}

Complex one_(const Complex& x) {
  return {ir::make_const(1, x.re->dtype), ir::make_const(0, x.re->dtype)};
}
Complex add_(const Complex& x, const Complex& y) { return {x.re + y.re, x.im + y.im}; }
Complex sub_(const Complex& x, const Complex& y) { return {x.re - y.re, x.im - y.im}; }
Complex mul_(const Complex& x, const Complex& y) {
  // Two sums: a difference beside a sum becomes a fused instruction of some processors, whatever
  // the compiler was told about contraction.
  return {x.re * y.re + x.im * minus(y.im), x.re * y.im + x.im * y.re};
}

Complex divide_(const Complex& x, const Complex& y) {
  const Expr zero = ir::make_const(0, x.re->dtype);
  const Expr wide = ir::ge(size(y.re), size(y.im));
  const Expr large = ir::select(wide, y.re, y.im), small = ir::select(wide, y.im, y.re);
  const Expr r = over(small, large), m = large + small * r;
  const Expr u = ir::select(wide, x.re, x.im), v = ir::select(wide, x.im, x.re);
  const Expr ur = u * r, re = over(u + v * r, m);
  const Expr im = over(ir::select(wide, v - ur, ur - v), m);
  const Expr none = both(ir::eq(y.re, zero), ir::eq(y.im, zero));
  return {ir::select(none, over(x.re, y.re), re), ir::select(none, over(x.im, y.re), im)};
}

Complex neg_(const Complex& x) { return {minus(x.re), minus(x.im)}; }
Complex conj_(const Complex& x) { return {x.re, minus(x.im)}; }
Complex round_(const Complex& x) { return {call("round", x.re), call("round", x.im)}; }

Expr abs_(const Complex& x) {
  const Wide z = widen(x);
  if (!z.narrow) return magnitude(z);
  // No square leaves the range; (infinity, NaN) alone needs a second look, at twice as many lanes.
  const Expr root_of_sum = ir::cast(dtypes::float32, root(z.x * z.x + z.y * z.y));
  return ir::select(either(infinite(x.re), infinite(x.im)),
                    ir::make_const(std::numeric_limits<double>::infinity(), dtypes::float32),
                    root_of_sum);
}

Complex sign_(const Complex& x) {
  const Expr m = abs_(x), zero = ir::make_const(0, x.re->dtype), none = ir::eq(m, zero);
  return {ir::select(none, zero, over(x.re, m)), ir::select(none, zero, over(x.im, m))};
}

Expr real_(const Complex& x) { return x.re; }
Expr imag_(const Complex& x) { return x.im; }
Expr eq_(const Complex& x, const Complex& y) {
  return both(ir::eq(x.re, y.re), ir::eq(x.im, y.im));
}
Expr ne_(const Complex& x, const Complex& y) {
  return either(ir::ne(x.re, y.re), ir::ne(x.im, y.im));
}
Expr isnan_(const Complex& x) { return either(ir::ne(x.re, x.re), ir::ne(x.im, x.im)); }
Expr isinf_(const Complex& x) { return either(infinite(x.re), infinite(x.im)); }
Expr isfinite_(const Complex& x) { return both(finite(x.re), finite(x.im)); }

}  // namespace weft::complex_ir
