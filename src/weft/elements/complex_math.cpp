// SPDX-License-Identifier: Apache-2.0
// Roots, exponentials, logarithms and their like of complex numbers. Each works in float64, so that
// of float32 neither range nor rounding is a matter; of float64 both are taken care of. Where a
// number is `quick`, exponentials, sines and their like work in float32, and logarithms ask
// functions of float32.

#include <cmath>

#include "weft/elements/complex_parts.h"

namespace weft::complex_ir {

namespace {

constexpr double kPi = 3.14159265358979323846, kLog2 = 0.69314718055994530942;
Complex swapped(const Complex& z) { return {z.im, z.re}; }

/// A constant of x's type.
Expr constant(double v, const Expr& x) { return ir::make_const(v, x->dtype); }
Expr infinity_of(const Expr& x) { return constant(std::numeric_limits<double>::infinity(), x); }
Expr held_to(const Expr& x, double most) {
  return ir::select(ir::gt(x, constant(most, x)), constant(most, x), x);
}

/// e^x as e^rest and two factors, which are 1 unless it might leave the range. Where they are not,
/// e^-rest is nothing beside e^rest.
struct Growth {
  Expr rest, first, second;
};
Growth growth_of(const Expr& x) {
  if (x->dtype == dtypes::float32) {
    // From 240 on the product with the least sine is infinite.
    constexpr double kHeld = 80, kMore = 160;
    const Expr above = x - constant(kHeld, x), none = constant(0, x);
    const Expr more = held_to(ir::select(ir::gt(above, none), above, none), kMore);
    const Expr factor = call("exp", more * constant(0.5, x));
    return {held_to(x, kHeld), factor, factor};
  }
  const Expr one = ir::select(ir::gt(x, lit(709)), lit(1), lit(0));
  const Expr two = ir::select(ir::gt(x, lit(1359)), lit(1), lit(0));
  const Expr rest = x - (one + two) * lit(650), more = lit(std::exp(650) - 1);
  return {held_to(rest, 709), one * more + lit(1), two * more + lit(1)};
}
Expr grow(const Expr& v, const Growth& g) { return v * g.first * g.second; }
/// v e with the growth's factors. Of float32 the large product comes first: v may have few digits.
Expr grown(const Expr& v, const Expr& e, const Growth& g) {
  return v->dtype == dtypes::float32 ? grow(v * e, g) : grow(v, g) * e;
}

/// log(high + low), where low is far smaller.
Expr log_of(const Pair& p) { return call("log", p.high) + over(p.low, p.high); }

/// x*x + y*y of what is within the range.
Pair squares(const Expr& x, const Expr& y, bool narrow) {
  if (narrow) return sum_of(x * x, y * y);
  const Pair p = square_of(x), q = square_of(y), s = sum_of(p.high, q.high);
  const Pair lows = sum_of(p.low, q.low), more = sum_of(s.low, lows.high);
  const Expr u = s.high + more.high;
  return {u, (more.high - (u - s.high)) + (more.low + lows.low)};
}

struct Size {
  Pair square;  // of the scaled number's magnitude
  Expr shift;   // log of the scale
};
Size size_of(const Wide& z) {
  if (z.narrow) return {squares(z.x, z.y, true), lit(0)};
  const Expr m = larger(size(z.x), size(z.y));
  const Expr up = ir::gt(m, lit(0x1p500)), down = ir::lt(m, lit(0x1p-450));
  const Expr scale = ir::select(up, lit(0x1p-600), ir::select(down, lit(0x1p600), lit(1)));
  return {squares(z.x * scale, z.y * scale, false),
          ir::select(up, lit(600 * kLog2), ir::select(down, lit(-600 * kLog2), lit(0)))};
}

/// log|z|, of zero and infinities too.
Expr log_size(const Wide& z, const Size& s) {
  const Expr value = log_of(s.square) * lit(0.5) + s.shift;
  const Expr none = both(ir::eq(z.x, lit(0)), ir::eq(z.y, lit(0)));
  return ir::select(either(infinite(z.x), infinite(z.y)), infinity(),
                    ir::select(none, minus(infinity()), value));
}

/// log|z| by functions of float32: log m + log(1 + (n / m)^2) / 2 of the larger and the smaller
/// part, or half of log(1 + (|z|^2 - 1)) where these terms would cancel.
Expr quick_log_size(const Wide& z) {
  const Expr m = larger(size(z.x), size(z.y)), n = smaller(size(z.x), size(z.y));
  const Expr r = over(ir::cast(dtypes::float32, n), ir::cast(dtypes::float32, m));
  const Pair s = squares(z.x, z.y, true);
  const Expr near = both(ir::gt(s.high, lit(0.5)), ir::lt(s.high, lit(2)));
  const Expr small = ir::select(near, (s.high - lit(1)) + s.low, ir::cast(dtypes::float64, r * r));
  const Expr half = call("log1p", small, true) * lit(0.5);
  const Expr value = ir::select(near, half, call("log", m, true) + half);
  const Expr none = both(ir::eq(z.x, lit(0)), ir::eq(z.y, lit(0)));
  return ir::select(either(infinite(z.x), infinite(z.y)), infinity(),
                    ir::select(none, minus(infinity()), value));
}

struct Plane {
  Expr x, y;
};
Plane log_plane(const Wide& z) {
  return {z.quick ? quick_log_size(z) : log_size(z, size_of(z)), angle(z.y, z.x, z.quick)};
}

Plane exp_plane(const Expr& x, const Expr& y) {
  Growth g = growth_of(x);
  if (x->dtype == dtypes::float32) {  // so that a subnormal product is rounded once
    const Expr low = ir::lt(x, constant(-80, x));
    g.rest = ir::select(low, x + constant(40, x), g.rest);
    g.second = ir::select(low, constant(std::exp(-40), x), g.second);
  }
  const Expr e = call("exp", g.rest), none = constant(0, x);
  const Expr level = ir::eq(y, none), odd = unknown(y);
  const Expr gone = both(odd, ir::eq(x, minus(infinity_of(x))));
  const Expr full = both(odd, ir::eq(x, infinity_of(x)));
  const Expr re = grown(call("cos", y), e, g), im = grown(call("sin", y), e, g);
  return {
      ir::select(gone, none, ir::select(full, infinity_of(x), ir::select(level, grow(e, g), re))),
      ir::select(gone, with_sign(none, y), ir::select(level, y, im))};
}

/// cosh and sinh of x from 0, without the growth's factors.
struct Hyperbolic {
  Expr cosh, sinh, e, back;  // e^x and e^-x
};
/// x / y, by 1 / y where that costs no more than a rounding of float32.
Expr quotient(const Expr& x, const Expr& y, const Expr& one_over_y) {
  return x->dtype == dtypes::float32 ? x * one_over_y : over(x, y);
}
Hyperbolic hyperbolic(const Expr& x) {
  const Expr q = call("expm1", x), one = constant(1, x), e = q + one, back = over(one, e);
  return {(e + back) * constant(0.5, x), (q + quotient(q, e, back)) * constant(0.5, x), e, back};
}

Plane cosh_plane(const Expr& x, const Expr& y) {
  const Growth g = growth_of(size(x));
  const Hyperbolic h = hyperbolic(g.rest);
  const Expr odd = unknown(y), level = ir::eq(y, constant(0, x));
  const Expr re = grown(call("cos", y), h.cosh, g);
  const Expr im = grown(call("sin", y), with_sign(h.sinh, x), g);
  return {
      ir::select(both(infinite(x), odd), infinity_of(x), ir::select(level, grow(h.cosh, g), re)),
      ir::select(level, y * with_sign(constant(1, x), x),
                 ir::select(both(ir::eq(x, constant(0, x)), odd), x, im))};
}

Plane sinh_plane(const Expr& x, const Expr& y) {
  const Growth g = growth_of(size(x));
  const Hyperbolic h = hyperbolic(g.rest);
  const Expr sinh = with_sign(h.sinh, x);
  const Expr re = grown(call("cos", y), sinh, g);
  const Expr im = grown(call("sin", y), h.cosh, g);
  const Expr still = both(either(ir::eq(x, constant(0, x)), infinite(x)), unknown(y));
  const Expr level = ir::eq(y, constant(0, x));
  return {ir::select(still, x, ir::select(level, grow(sinh, g), re)), ir::select(level, y, im)};
}

/// sinh x cosh x / (sinh^2 x + cos^2 y) and sin y cos y over the same: no difference of like
/// numbers.
Plane tanh_plane(const Expr& x, const Expr& y) {
  const bool narrow = x->dtype == dtypes::float32;
  const Expr ax = size(x);
  const Hyperbolic h = hyperbolic(held_to(ax, narrow ? 80 : 700));
  const Expr c = call("cos", y), s = call("sin", y);
  // From there on the real part is 1 in all its digits.
  const Expr far = ir::gt(ax, constant(narrow ? 12 : 22, x)), end = infinite(x);
  const Expr whole = h.sinh * h.sinh + c * c, share = over(constant(1, x), whole);
  // Far out s - s is none where the angle is no number.
  const Expr re =
      ir::select(far, constant(1, x) + (s - s), quotient(h.sinh * h.cosh, whole, share));
  const Expr im =
      ir::select(far, quotient(s, h.e, h.back) * constant(4, x) * quotient(c, h.e, h.back),
                 quotient(s * c, whole, share));
  const Expr level = either(end, ir::eq(y, constant(0, x)));
  return {
      ir::select(ir::eq(x, constant(0, x)), x, with_sign(ir::select(end, constant(1, x), re), x)),
      ir::select(level, with_sign(constant(0, x), y), im)};
}

/// What asin and acos are made of, for |x| and |y| (Hull, Fairgrieve, Tang: "Implementing the
/// complex arcsine and arccosine functions using exception handling", 1997). Every sum is of terms
/// of one sign.
struct Arc {
  Expr opposite;  // sqrt(a^2 - x^2): asin's real part is the angle of (opposite, x)
  Expr imag;
};
Arc arc_of(const Wide& z) {
  const Expr x = size(z.x), y = size(z.y), below = x - lit(1), above = x + lit(1), yy = y * y;
  const Expr r = root(above * above + yy);
  // Where squares vanish, y is all there is.
  const Expr s = larger(larger(root(below * below + yy), size(below)), y);
  const Expr a = (r + s) * lit(0.5), ax = a + x, right = r + above;
  const Expr first = over(yy, right), inside = ir::le(x, lit(1));
  const Expr near = s - below, far = s + below;
  Expr opposite = ir::select(inside, root(ax * lit(0.5) * (first + near)),
                             y * root((over(ax, right) + over(ax, far)) * lit(0.5)));
  // a - 1 is half of it.
  const Expr rise = first + ir::select(ir::lt(x, lit(1)), over(yy, near), far);
  Expr argument = rise * lit(0.5) + root(rise * ((a + lit(1)) * lit(0.5)));
  if (z.narrow) return {opposite, call("log1p", argument)};
  const Expr m = larger(x, y), n = smaller(x, y), huge = ir::gt(m, lit(0x1p500));
  const Expr ratio = over(n, m), tiny = both(ir::lt(y, lit(0x1p-500)), ir::lt(x, lit(1)));
  // log(2|z|) = log(|z| / 1024) + 11 log 2.
  argument = ir::select(huge, m * lit(0x1p-10) * root(ratio * ratio + lit(1)), argument);
  const Expr logarithm = call("log1p", argument) + ir::select(huge, lit(11 * kLog2), lit(0));
  return {ir::select(huge, y, opposite),
          ir::select(tiny, over(y, root(minus(below) * above)), logarithm)};
}

Plane asin_plane(const Wide& z) {
  const Arc arc = arc_of(z);
  const Expr ends = either(infinite(z.x), infinite(z.y));
  const Expr re = angle(size(z.x), ir::select(ends, size(z.y), arc.opposite));
  return {ir::select(ir::eq(z.x, lit(0)), z.x, with_sign(re, z.x)),
          with_sign(ir::select(ends, infinity(), arc.imag), z.y)};
}

Plane acos_plane(const Wide& z) {
  const Arc arc = arc_of(z);
  const Expr ends = either(infinite(z.x), infinite(z.y));
  const Expr re = angle(ir::select(ends, size(z.y), arc.opposite), z.x);
  const Expr upright = both(ir::eq(z.x, lit(0)), ir::ne(z.y, z.y));
  return {ir::select(upright, lit(kPi / 2), re),
          minus(with_sign(ir::select(ends, infinity(), arc.imag), z.y))};
}

/// Half the angle of (1 - z)(1 + conj z), and a quarter of log(|1 + z|^2 / |1 - z|^2).
Plane atanh_plane(const Wide& z) {
  const Expr x = size(z.x), y = size(z.y), below = lit(1) - x, yy = y * y;
  Expr argument = over(x * lit(4), below * below + yy), share = lit(0.25), shift = lit(0);
  Expr im = angle(y * lit(2), below * (x + lit(1)) - yy) * lit(0.5), re;
  if (z.narrow) {
    re = call("log1p", argument) * share;
  } else {
    // Close to the pole: log(2 / y) / 2. Far out: the real part of 1 / z.
    const Expr pole = both(ir::eq(x, lit(1)), ir::lt(y, lit(0x1p-500)));
    argument = ir::select(pole, over(lit(0x1p-100), y), argument);
    share = ir::select(pole, lit(0.5), share);
    shift = ir::select(pole, lit(101 * kLog2 / 2), shift);
    const Expr m = larger(x, y), n = smaller(x, y), ratio = over(n, m);
    const Expr huge = ir::gt(m, lit(0x1p500));
    re = ir::select(huge, over(over(over(x, m), ratio * ratio + lit(1)), m),
                    call("log1p", argument) * share + shift);
    im = ir::select(huge, ir::select(ir::ne(x, x), x, lit(kPi / 2)), im);
  }
  const Expr ends = either(infinite(z.x), infinite(z.y));
  re = ir::select(either(ends, ir::eq(x, lit(0))), lit(0), re);
  im = ir::select(ends, ir::select(ir::ne(y, y), y, lit(kPi / 2)), im);
  return {with_sign(re, z.x), with_sign(im, z.y)};
}

Wide turned(const Wide& z) { return {z.y, z.x, z.narrow}; }
Complex like(const Complex& z, const Plane& p) { return complex_ir::like(z, p.x, p.y); }
/// The parts in the type that exponentials and their like compute in.
Plane plane_of(const Complex& z) {
  const Wide w = widen(z);
  return w.quick ? Plane{z.re, z.im} : Plane{w.x, w.y};
}

}  // namespace

Complex sqrt_(const Complex& z) {
  const Wide w = widen(z);
  Expr x = w.x, y = w.y, back;
  if (!w.narrow) {
    const Expr m = larger(size(x), size(y));
    const Expr up = ir::gt(m, lit(0x1p500)), down = ir::lt(m, lit(0x1p-450));
    const Expr scale = ir::select(up, lit(0x1p-600), ir::select(down, lit(0x1p600), lit(1)));
    back = ir::select(up, lit(0x1p300), ir::select(down, lit(0x1p-300), lit(1)));
    x = x * scale;
    y = y * scale;
  }
  Expr t = root((root(x * x + y * y) + size(x)) * lit(0.5));
  if (back) t = t * back;
  const Expr other = over(size(w.y), t * lit(2)), right = ir::ge(x, lit(0));
  Expr re = ir::select(right, t, other), im = ir::select(right, other, t);
  const Expr none = both(ir::eq(w.x, lit(0)), ir::eq(w.y, lit(0)));
  const Expr left = ir::eq(w.x, minus(infinity())), far = ir::eq(w.x, infinity());
  const Expr known = ir::eq(w.y, w.y);
  re = ir::select(none, lit(0), ir::select(far, infinity(), re));
  re = ir::select(left, ir::select(known, lit(0), w.y), re);
  im = ir::select(none, lit(0), ir::select(left, infinity(), im));
  im = ir::select(far, ir::select(known, lit(0), w.y), im);
  const Expr upright = infinite(w.y);
  return like(z, {ir::select(upright, infinity(), re),
                  with_sign(ir::select(upright, infinity(), im), w.y)});
}

Complex exp_(const Complex& z) {
  const Plane w = plane_of(z);
  return like(z, exp_plane(w.x, w.y));
}

Complex expm1_(const Complex& z) {
  const Wide w = widen(z);
  const Plane e = exp_plane(w.x, w.y);
  const Expr s = call("sin", w.y * lit(0.5)), q = call("expm1", w.x);
  const Expr re = q * call("cos", w.y) - s * s * lit(2);
  const Expr level = ir::eq(w.y, lit(0)), far = ir::gt(w.x, lit(40));
  const Expr gone = ir::eq(w.x, minus(infinity()));
  const Expr flat = ir::select(ir::eq(w.x, lit(0)), lit(0), q);
  return like(z,
              {ir::select(level, flat, ir::select(far, e.x, ir::select(gone, lit(-1), re))), e.y});
}

Complex log_(const Complex& z) { return like(z, log_plane(widen(z))); }
Complex log2_(const Complex& z) {
  const Plane l = log_plane(widen(z));
  const Expr scale = lit(1.4426950408889634074);
  return like(z, {l.x * scale, l.y * scale});
}
Complex log10_(const Complex& z) {
  const Plane l = log_plane(widen(z));
  const Expr scale = lit(0.43429448190325182765);
  return like(z, {l.x * scale, l.y * scale});
}

Complex log1p_(const Complex& z) {
  const Wide w = widen(z);
  const Wide moved = {w.x + lit(1), w.y, w.narrow};
  const Size far = size_of(moved);
  // |1 + z|^2 = 1 + 2x + x^2 + y^2 without error.
  const Pair p = w.narrow ? Pair{w.x * w.x, lit(0)} : square_of(w.x);
  const Pair q = w.narrow ? Pair{w.y * w.y, lit(0)} : square_of(w.y);
  const Pair a = sum_of(w.x * lit(2), p.high), b = sum_of(a.high, q.high);
  const Pair u = sum_of(lit(1), b.high);
  const Expr low = u.low + ((a.low + b.low) + (p.low + q.low));
  const Expr near =
      both(both(ir::lt(size(w.x), lit(1)), ir::lt(size(w.y), lit(2))), ir::gt(u.high, lit(0.5)));
  const Size all = {
      {ir::select(near, u.high, far.square.high), ir::select(near, low, far.square.low)},
      ir::select(near, lit(0), far.shift)};
  return like(z, {log_size(moved, all), angle(w.y, moved.x)});
}

Complex pow_(const Complex& z, const Complex& e) {
  const Wide w = widen(z), p = widen(e);
  const Plane l = log_plane(w);
  const Plane v = exp_plane(p.x * l.x - p.y * l.y, p.x * l.y + p.y * l.x);
  // Of exponent 0: 1. Of 0: 0 where the exponent's real part is positive.
  const Expr nought = both(ir::eq(p.x, lit(0)), ir::eq(p.y, lit(0)));
  const Expr base = both(both(ir::eq(w.x, lit(0)), ir::eq(w.y, lit(0))), ir::gt(p.x, lit(0)));
  return like(e, {ir::select(nought, lit(1), ir::select(base, lit(0), v.x)),
                  ir::select(either(nought, base), lit(0), v.y)});
}

Complex sinh_(const Complex& z) {
  const Plane w = plane_of(z);
  return like(z, sinh_plane(w.x, w.y));
}
Complex cosh_(const Complex& z) {
  const Plane w = plane_of(z);
  return like(z, cosh_plane(w.x, w.y));
}
Complex tanh_(const Complex& z) {
  const Plane w = plane_of(z);
  return like(z, tanh_plane(w.x, w.y));
}
// With i z = -y + i x: sin z = -i sinh(i z), cos z = cosh(i z), tan z = -i tanh(i z); all are odd
// or even.
Complex sin_(const Complex& z) {
  const Plane w = plane_of(z);
  return swapped(like(z, sinh_plane(w.y, w.x)));
}
Complex cos_(const Complex& z) {
  const Plane w = plane_of(z);
  return like(z, cosh_plane(minus(w.y), w.x));
}
Complex tan_(const Complex& z) {
  const Plane w = plane_of(z);
  return swapped(like(z, tanh_plane(w.y, w.x)));
}
Complex asin_(const Complex& z) { return like(z, asin_plane(widen(z))); }
Complex asinh_(const Complex& z) { return swapped(like(z, asin_plane(turned(widen(z))))); }
Complex acos_(const Complex& z) { return like(z, acos_plane(widen(z))); }
Complex acosh_(const Complex& z) {
  const Plane p = acos_plane(widen(z));
  return like(z, {size(p.y), with_sign(p.x, widen(z).y)});
}
Complex atanh_(const Complex& z) { return like(z, atanh_plane(widen(z))); }
Complex atan_(const Complex& z) { return swapped(like(z, atanh_plane(turned(widen(z))))); }

}  // namespace weft::complex_ir
