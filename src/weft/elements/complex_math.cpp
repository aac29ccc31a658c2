// SPDX-License-Identifier: Apache-2.0
// Roots, exponentials, logarithms and their like of complex numbers. Each works in float64, so that
// of float32 neither range nor rounding is a matter; of float64 both are taken care of. Where a
// number is `quick`, what is asked of its parts themselves is computed in float32.

#include <cmath>

#include "weft/elements/complex_parts.h"

namespace weft::complex_ir {

namespace {

constexpr double kPi = 3.14159265358979323846, kLog2 = 0.69314718055994530942;
Complex swapped(const Complex& z) { return {z.im, z.re}; }

/// e^x as e^rest and up to two factors of e^650, by which what is small is multiplied before the
/// product leaves the range. Where there is a factor, e^-rest is nothing beside e^rest.
struct Growth {
  Expr rest, first, second;
};
Growth growth_of(const Expr& x) {
  const Expr one = ir::select(ir::gt(x, lit(709)), lit(1), lit(0));
  const Expr two = ir::select(ir::gt(x, lit(1359)), lit(1), lit(0));
  const Expr rest = x - (one + two) * lit(650), more = lit(std::exp(650) - 1);
  return {ir::select(ir::gt(rest, lit(709)), lit(709), rest), one * more + lit(1),
          two * more + lit(1)};
}
Expr grow(const Expr& v, const Growth& g) { return v * g.first * g.second; }

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

Expr held_to(const Expr& x, double most) { return ir::select(ir::gt(x, lit(most)), lit(most), x); }

/// Of a float32 that may be beyond its range as an exponent: half of it, or of what 64 less leave,
/// without error; and the factor that is missing then. To 240, where e^x times the least sine is
/// infinite as a float32.
struct Halved {
  Expr half, factor;
};
Halved halved(const Expr& x) {
  const Expr big = ir::gt(x, lit(128));
  return {(x - ir::select(big, lit(64), lit(0))) * lit(0.5),
          ir::select(big, lit(std::exp(64)), lit(1))};
}

/// e^x and the factors that it lacks.
struct Grown {
  Expr e;
  Growth growth;
};
Grown grown(const Expr& x, bool quick) {
  if (!quick) {
    const Growth g = growth_of(x);
    return {call("exp", g.rest), g};
  }
  const Halved h = halved(x);
  const Expr half = call("exp", h.half, true);
  return {half * half * h.factor, {x, lit(1), lit(1)}};
}

Plane exp_plane(const Expr& x, const Expr& y, bool quick = false) {
  const auto [e, g] = grown(x, quick);
  const Expr level = ir::eq(y, lit(0)), odd = unknown(y);
  const Expr gone = both(odd, ir::eq(x, minus(infinity())));
  const Expr full = both(odd, ir::eq(x, infinity()));
  const Expr re = grow(call("cos", y, quick), g) * e, im = grow(call("sin", y, quick), g) * e;
  return {ir::select(gone, lit(0), ir::select(full, infinity(), ir::select(level, grow(e, g), re))),
          ir::select(gone, with_sign(lit(0), y), ir::select(level, y, im))};
}

/// cosh and sinh of |x| without the growth's factors.
struct Hyperbolic {
  Expr cosh, sinh;
  Growth growth;
};
/// e^x - 1 of x from 0, held to 240 where quick.
Expr above_one(const Expr& x, bool quick) {
  if (!quick) return call("expm1", x);
  const Expr small = ir::lt(x, lit(1));
  const Halved h = halved(held_to(x, 240));
  const Expr part = call("expm1", ir::select(small, x, h.half), true);
  return ir::select(small, part, part * (part + lit(2)) * h.factor + (h.factor - lit(1)));
}
Hyperbolic hyperbolic(const Expr& x, bool quick) {
  const Growth g = quick ? Growth{size(x), lit(1), lit(1)} : growth_of(size(x));
  const Expr q = above_one(g.rest, quick), e = q + lit(1);
  return {(e + over(lit(1), e)) * lit(0.5), (q + over(q, e)) * lit(0.5), g};
}

Plane cosh_plane(const Expr& x, const Expr& y, bool quick) {
  const Hyperbolic h = hyperbolic(x, quick);
  const Expr odd = unknown(y);
  const Expr re = grow(call("cos", y, quick), h.growth) * h.cosh;
  const Expr im = grow(call("sin", y, quick), h.growth) * with_sign(h.sinh, x);
  const Expr level = ir::eq(y, lit(0));
  return {
      ir::select(both(infinite(x), odd), infinity(), ir::select(level, grow(h.cosh, h.growth), re)),
      ir::select(level, y * with_sign(lit(1), x), ir::select(both(ir::eq(x, lit(0)), odd), x, im))};
}

Plane sinh_plane(const Expr& x, const Expr& y, bool quick) {
  const Hyperbolic h = hyperbolic(x, quick);
  const Expr odd = unknown(y);
  const Expr sinh = with_sign(h.sinh, x);
  const Expr re = grow(call("cos", y, quick), h.growth) * sinh;
  const Expr im = grow(call("sin", y, quick), h.growth) * h.cosh;
  const Expr still = both(either(ir::eq(x, lit(0)), infinite(x)), odd);
  const Expr level = ir::eq(y, lit(0));
  return {ir::select(still, x, ir::select(level, grow(sinh, h.growth), re)),
          ir::select(level, y, im)};
}

/// sinh x cosh x / (sinh^2 x + cos^2 y) and sin y cos y over the same: no difference of like
/// numbers.
Plane tanh_plane(const Expr& x, const Expr& y, bool quick) {
  const Expr ax = size(x), held = held_to(ax, 700);
  const Expr q = above_one(held, quick), e = q + lit(1);
  const Expr cosh = (e + over(lit(1), e)) * lit(0.5), sinh = (q + over(q, e)) * lit(0.5);
  const Expr c = call("cos", y, quick), s = call("sin", y, quick);
  const Expr far = ir::gt(ax, lit(22)), end = infinite(x);
  const Expr whole = sinh * sinh + c * c;
  // Far out s - s is none where the angle is no number.
  const Expr re = ir::select(far, lit(1) + (s - s), over(sinh * cosh, whole));
  const Expr im = ir::select(far, over(s, e) * lit(4) * over(c, e), over(s * c, whole));
  const Expr level = either(end, ir::eq(y, lit(0)));
  return {ir::select(ir::eq(x, lit(0)), x, with_sign(ir::select(end, lit(1), re), x)),
          ir::select(level, with_sign(lit(0), y), im)};
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
  const Wide w = widen(z);
  return like(z, exp_plane(w.x, w.y, w.quick));
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
  const Wide w = widen(z);
  return like(z, sinh_plane(w.x, w.y, w.quick));
}
Complex cosh_(const Complex& z) {
  const Wide w = widen(z);
  return like(z, cosh_plane(w.x, w.y, w.quick));
}
Complex tanh_(const Complex& z) {
  const Wide w = widen(z);
  return like(z, tanh_plane(w.x, w.y, w.quick));
}
// With i z = -y + i x: sin z = -i sinh(i z), cos z = cosh(i z), tan z = -i tanh(i z); all are odd
// or even.
Complex sin_(const Complex& z) {
  const Wide w = widen(z);
  return swapped(like(z, sinh_plane(w.y, w.x, w.quick)));
}
Complex cos_(const Complex& z) {
  const Wide w = widen(z);
  return like(z, cosh_plane(minus(w.y), w.x, w.quick));
}
Complex tan_(const Complex& z) {
  const Wide w = widen(z);
  return swapped(like(z, tanh_plane(w.y, w.x, w.quick)));
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
