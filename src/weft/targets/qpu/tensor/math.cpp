// SPDX-License-Identifier: Apache-2.0
// Functions of one or two floats, to about 1e-6 relative. The SFU gives 10 to 12 bits; quotients
// and roots are refined by Newton steps, exponentials and logarithms are polynomials (Taylor series
// on a centred interval, so that the neglected term is below 2^-23).

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
  // Beyond these a float overflows or is flushed to zero.
  F c = keep(max(min(x, F(127.99f)), F(-127.0f)));
  I n = keep(toInt(c + select(c < F(0), F(-0.5f), F(0.5f))));
  F f = keep(c - toFloat(n));
  F p = F(1.5403530e-4f);
  for (float k : {1.3333558e-3f, 9.6181291e-3f, 5.5504109e-2f, 2.4022651e-1f, 6.9314718e-1f, 1.0f})
    p = keep(p * f + F(k));
  F y = floatOf(bitsOf(p) + (n << I(23)));
  return select(x < F(-126.0f), F(0), y);
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
  if (name == "tanh") return tanh_full(x).expr;
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
       {"exp", "exp2", "log", "log2", "log10", "sqrt", "rsqrt", "sin", "cos", "tanh", "floor",
        "ceil", "trunc", "round", "sigmoid", "pow", "fmod", "hypot", "copysign"}) {
    if (name == known) return true;
  }
  return false;
}

}  // namespace weft::qpu::tensor
