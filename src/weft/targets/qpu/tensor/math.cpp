// SPDX-License-Identifier: Apache-2.0
// Functions of one or two floats, to about 1e-6 relative. The SFU gives 10 to 12 bits; quotients
// and roots are refined by Newton steps, exponentials and logarithms are polynomials (Taylor series
// on a centred interval, so that the neglected term is below 2^-23).

#include <initializer_list>
#include <numbers>

#include "weft/targets/qpu/tensor/lowerer.h"

namespace weft::qpu::tensor {

namespace {
using F = FloatExpr;
using I = IntExpr;

F keep(F x) {
  Float v = x;
  return F(v);
}
I keep(I x) {
  Int v = x;
  return I(v);
}

F exp2_full(F x) {
  // Beyond these a float overflows, or is below all normal ones: at -127 the last sum is 0.
  F c = keep(max(min(x, F(127.99f)), F(-127.0f)));
  // Sums are rounded toward zero: this one has the nearest whole number in its low bits, and what
  // the shift keeps of the others is 0.
  constexpr float kWhole = 0x1.8p23f;
  F shifted = keep(c + F(0.5f) + F(kWhole));
  F f = keep(c - (shifted - F(kWhole)));
  F p = F(1.5403530e-4f);
  for (float k : {1.3333558e-3f, 9.6181291e-3f, 5.5504109e-2f, 2.4022651e-1f, 6.9314718e-1f, 1.0f})
    p = keep(p * f + F(k));
  return floatOf(bitsOf(p) + (bitsOf(shifted) << I(23)));
}

F log2_full(F x) {
  I bits = keep(bitsOf(x));
  I e = keep((bits >> I(23)) - I(127));
  F m = keep(floatOf((bits & I(0x7fffff)) | I(0x3f800000)));
  BoolExpr high = m > F(std::numbers::sqrt2_v<float>);
  F half = keep(select(high, m * F(0.5f), m));
  F whole = keep(toFloat(select(high, e + I(1), e)));
  F z = keep((half - F(1)) / (half + F(1))), s = keep(z * z);
  F p = F(1.0f / 9);
  for (float k : {1.0f / 7, 1.0f / 5, 1.0f / 3, 1.0f}) p = keep(p * s + F(k));
  F y = whole + z * p * F(2 * std::numbers::log2e_v<float>);
  return select(x <= F(0), floatOf(I(static_cast<int>(0xff800000u))), y);
}

F rsqrt_full(F x) {
  F y = keep(rsqrt(x));
  for (int step = 0; step < 2; ++step) y = keep(y * (F(1.5f) - F(0.5f) * x * y * y));
  return y;
}

F trunc_full(F x) {
  F whole = toFloat(toInt(x));
  BoolExpr large = floatOf(bitsOf(x) & I(0x7fffffff)) >= F(8388608.0f);
  return keep(select(large, x, whole));
}
F floor_full(F x) {
  F t = trunc_full(x);
  return keep(select(t > x, t - F(1), t));
}

F round_full(F x) {  // ties to even
  F up = keep(floor_full(x + F(0.5f)));
  BoolExpr odd_tie = up - x == F(0.5f) && (toInt(up) & I(1)) == I(1);
  return select(odd_tie, up - F(1), up);
}

/// sin(x + quarter * pi / 2): the angle as quarter turns and a rest within +-pi / 4.
F sine(F x, int quarter) {
  F q = keep(round_full(x * F(2 / std::numbers::pi_v<float>)));
  // pi / 2 in three parts, so that the rest keeps its bits.
  F r = keep(((x - q * F(1.5703125f)) - q * F(4.8351288e-4f)) - q * F(3.1385e-7f - 5.126688e-11f));
  F s = keep(r * r);
  F odd = keep(r + r * s * (F(-1.6666654e-1f) + s * (F(8.3321608e-3f) + s * F(-1.9515296e-4f))));
  F even = keep(F(1) - s * F(0.5f) +
                s * s * (F(4.1666646e-2f) + s * (F(-1.3887316e-3f) + s * F(2.4433157e-5f))));
  I n = keep(toInt(q) + I(quarter));
  F y = keep(select((n & I(1)) == I(0), odd, even));
  return select((n & I(2)) == I(0), y, F(0) - y);
}

F exp_full(F x) { return exp2_full(x * F(std::numbers::log2e_v<float>)); }
F log_full(F x) { return log2_full(x) * F(std::numbers::ln2_v<float>); }
F tanh_full(F x) {
  // Near zero the quotient loses digits: x - x^3 / 3 + 2 x^5 / 15.
  F s = keep(x * x);
  F small = x * (F(1) + s * (F(-1.0f / 3) + s * F(2.0f / 15)));
  F c = keep(max(min(x, F(15)), F(-15)));
  F y = F(1) - F(2) * recipFull(exp_full(c + c) + F(1));
  return select(s < F(0.01f), small, y);
}
F size_of(F x) { return floatOf(bitsOf(x) & I(0x7fffffff)); }
F with_sign_of(F size, F x) {
  return floatOf((bitsOf(size) & I(0x7fffffff)) | (bitsOf(x) & ~I(0x7fffffff)));
}
F sqrt_full(F x) { return select(x > F(0), x * rsqrt_full(x), F(0)); }
/// x (1 + k0 s + k1 s^2 + ...), the last coefficient first.
F series(F x, F s, std::initializer_list<float> last_first) {
  F p = F(0);
  for (float k : last_first) p = keep((p + F(k)) * s);
  return x + x * p;
}

F expm1_full(F x) {
  F small = series(x, x, {1.0f / 5040, 1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f});
  return keep(select(size_of(x) < F(0.5f), small, exp_full(x) - F(1)));
}
F log1p_full(F x) {  // log((1 + z) / (1 - z))
  F z = keep(x / (x + F(2)));
  F small = F(2) * series(z, keep(z * z), {1.0f / 11, 1.0f / 9, 1.0f / 7, 1.0f / 5, 1.0f / 3});
  return keep(select(size_of(x) < F(0.4f), small, log_full(keep(x + F(1)))));
}
F sinh_full(F x) {
  F small = series(x, keep(x * x), {1.0f / 362880, 1.0f / 5040, 1.0f / 120, 1.0f / 6});
  F e = keep(exp_full(size_of(x)));
  F large = with_sign_of((e - recipFull(e)) * F(0.5f), x);
  return select(size_of(x) < F(1), small, large);
}
F cosh_full(F x) {
  F e = keep(exp_full(size_of(x)));
  return (e + recipFull(e)) * F(0.5f);
}

/// For 0 <= a: reduced to |r| <= tan(pi / 8), then a polynomial to 1e-7 there.
F atan_positive(F a) {
  BoolExpr far = a > F(2.4142136f), middle = a > F(0.41421356f);
  F from = keep(select(far, F(std::numbers::pi_v<float> / 2),
                       select(middle, F(std::numbers::pi_v<float> / 4), F(0))));
  F r = keep(select(far, F(-1), select(middle, a - F(1), a)) /
             select(far, a, select(middle, a + F(1), F(1))));
  return keep(from + series(r, keep(r * r),
                            {8.05374449538e-2f, -1.38776856032e-1f, 1.99777106478e-1f,
                             -3.33329491539e-1f}));
}
F atan_full(F x) { return with_sign_of(atan_positive(keep(size_of(x))), x); }
F atan2_full(F y, F x) {
  F up = keep(size_of(y)), along = keep(size_of(x));
  // The quotient of the smaller by the larger, so that it is finite; 0 / 0 is 0.
  BoolExpr steep = up > along;
  F small = keep(min(up, along)), large = keep(max(up, along));
  F a = keep(atan_positive(keep(select(large > F(0), small / large, F(0)))));
  a = keep(select(steep, F(std::numbers::pi_v<float> / 2) - a, a));
  a = keep(select(bitsOf(x) < I(0), F(std::numbers::pi_v<float>) - a, a));
  return with_sign_of(a, y);
}
F asin_full(F x) { return atan2_full(x, keep(sqrt_full(keep((F(1) - x) * (F(1) + x))))); }
F acos_full(F x) { return atan2_full(keep(sqrt_full(keep((F(1) - x) * (F(1) + x)))), x); }
F asinh_full(F x) {
  F a = keep(size_of(x)), root = keep(sqrt_full(keep(a * a + F(1))));
  return with_sign_of(log1p_full(keep(a + a * a / (F(1) + root))), x);
}
F acosh_full(F x) { return log_full(keep(x + sqrt_full(keep((x - F(1)) * (x + F(1)))))); }
F atanh_full(F x) { return F(0.5f) * log1p_full(keep((x + x) / (F(1) - x))); }

/// Abramowitz and Stegun 7.1.26 (1.5e-7 absolute); near zero the series, which keeps digits.
F erf_full(F x) {
  F a = keep(min(size_of(x), F(6))), s = keep(a * a);
  F small = keep(F(2 * std::numbers::inv_sqrtpi_v<float>) *
                 series(a, s, {-1.0f / 1320, 1.0f / 216, -1.0f / 42, 1.0f / 10, -1.0f / 3}));
  F t = keep(recipFull(F(1) + F(0.3275911f) * a));
  F p = F(1.061405429f);
  for (float k : {-1.453152027f, 1.421413741f, -0.284496736f, 0.254829592f}) p = keep(p * t + F(k));
  F large = F(1) - p * t * exp_full(keep(F(0) - s));
  return with_sign_of(select(a < F(0.5f), small, large), x);
}
}  // namespace

Value math(const std::string& name, Value a, Value b) {
  F x = F::of(a), y = F::of(b);
  if (name == "exp") return exp_full(x).expr;
  if (name == "exp2") return exp2_full(x).expr;
  if (name == "log") return log_full(x).expr;
  if (name == "log2") return log2_full(x).expr;
  if (name == "log10") return (log2_full(x) * F(0.30102999f)).expr;
  if (name == "sqrt") return select(x > F(0), x * rsqrt_full(x), F(0)).expr;
  if (name == "rsqrt") return rsqrt_full(x).expr;
  if (name == "sin") return sine(x, 0).expr;
  if (name == "cos") return sine(x, 1).expr;
  if (name == "tan") return (sine(x, 0) / keep(sine(x, 1))).expr;
  if (name == "asin") return asin_full(x).expr;
  if (name == "acos") return acos_full(x).expr;
  if (name == "atan") return atan_full(x).expr;
  if (name == "atan2") return atan2_full(x, y).expr;
  if (name == "sinh") return sinh_full(x).expr;
  if (name == "cosh") return cosh_full(x).expr;
  if (name == "tanh") return tanh_full(x).expr;
  if (name == "asinh") return asinh_full(x).expr;
  if (name == "acosh") return acosh_full(x).expr;
  if (name == "atanh") return atanh_full(x).expr;
  if (name == "expm1") return expm1_full(x).expr;
  if (name == "log1p") return log1p_full(x).expr;
  if (name == "erf") return erf_full(x).expr;
  if (name == "floor") return floor_full(x).expr;
  if (name == "ceil") return (F(0) - floor_full(keep(F(0) - x))).expr;
  if (name == "trunc") return trunc_full(x).expr;
  if (name == "round") return round_full(x).expr;
  if (name == "sigmoid") return recipFull(F(1) + exp_full(keep(F(0) - x))).expr;
  if (name == "pow") {  // a negative base with an odd exponent gives a negative power
    F size = exp2_full(keep(y * log2_full(keep(floatOf(bitsOf(x) & I(0x7fffffff))))));
    BoolExpr odd = (toInt(y) & I(1)) == I(1);
    return select(x < F(0) && odd, F(0) - size, size).expr;
  }
  if (name == "fmod") return (x - trunc_full(keep(x / y)) * y).expr;
  if (name == "hypot") {
    F s = keep(x * x + y * y);
    return select(s > F(0), s * rsqrt_full(s), F(0)).expr;
  }
  if (name == "copysign")
    return floatOf((bitsOf(x) & I(0x7fffffff)) | (bitsOf(y) & ~I(0x7fffffff))).expr;
  return nullptr;
}

bool has_math(const std::string& name) {
  for (const char* known :
       {"exp",  "exp2",  "log",   "log2",    "log10", "sqrt",  "rsqrt", "sin",
        "cos",  "tan",   "asin",  "acos",    "atan",  "atan2", "sinh",  "cosh",
        "tanh", "asinh", "acosh", "atanh",   "expm1", "log1p", "erf",   "floor",
        "ceil", "trunc", "round", "sigmoid", "pow",   "fmod",  "hypot", "copysign"}) {
    if (name == known) return true;
  }
  return false;
}

}  // namespace weft::qpu::tensor
