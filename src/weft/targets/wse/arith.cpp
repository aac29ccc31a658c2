// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/wse/arith.h"

#include <algorithm>
#include <limits>

namespace weft::wse {

float cb16_value(std::uint16_t bits) {
  int e = bits >> 9 & 63;
  int m = bits & 511;
  float sign = bits & 0x8000 ? -1.0f : 1.0f;
  if (e == 63)
    return m ? std::numeric_limits<float>::quiet_NaN()
             : sign * std::numeric_limits<float>::infinity();
  if (e == 0) return sign * std::ldexp(static_cast<float>(m), -30 - 9);
  return sign * std::ldexp(static_cast<float>(512 + m), e - 31 - 9);
}

std::uint16_t cb16_bits(double value) {
  std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | 0x7f00);
  double a = std::fabs(value);
  if (std::isinf(a)) return static_cast<std::uint16_t>(sign | 0x7e00);
  int e;
  std::frexp(a, &e);  // a = f * 2^e with 0.5 <= f < 1
  int scale = std::max(e - 1, -30);
  double steps =
      std::nearbyint(std::ldexp(a, 9 - scale));  // round to nearest even in the default mode
  int code = static_cast<int>(steps) + (scale + 30) * 512;  // a carry moves into the exponent
  if (a == 0) code = 0;
  return static_cast<std::uint16_t>(sign | std::min(code, 0x7e00));
}

double to_double(Ty ty, std::uint64_t bits) {
  switch (ty) {
    case Ty::f32: return static_cast<double>(f32_of(bits));
    case Ty::f16: return static_cast<double>(half_value(static_cast<std::uint16_t>(bits)));
    case Ty::bf16:
      return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16));
    case Ty::cb16: return static_cast<double>(cb16_value(static_cast<std::uint16_t>(bits)));
    default:
      return is_signed(ty) ? static_cast<double>(static_cast<std::int64_t>(bits))
                           : static_cast<double>(bits);
  }
}

std::uint64_t from_double(Ty ty, double value) {
  switch (ty) {
    case Ty::f32: return bits_of(static_cast<float>(value));
    case Ty::f16: return double_to_half(value);
    case Ty::bf16: return double_to_bfloat(value);
    case Ty::cb16: return cb16_bits(value);
    default: return 0;
  }
}

namespace {

// a + b rounded to odd in double, so that a later rounding to few bits is as if done once.
double add_to_odd(double a, double b) {
  double s = a + b;
  if (!std::isfinite(s)) return s;
  double bb = s - a;
  double err = (a - (s - bb)) + (b - bb);
  if (err != 0.0 && (std::bit_cast<std::uint64_t>(s) & 1u) == 0) {
    s = std::nextafter(s, err > 0 ? std::numeric_limits<double>::infinity()
                                  : -std::numeric_limits<double>::infinity());
  }
  return s;
}

std::int64_t truncate(double v, double lo, double hi) {
  if (std::isnan(v)) return 0;
  return static_cast<std::int64_t>(std::clamp(std::trunc(v), lo, hi));
}

float max_value(float a, float b) { return std::isnan(a) ? b : std::isnan(b) ? a : std::max(a, b); }

std::uint16_t of16(Ty half, double v) { return static_cast<std::uint16_t>(from_double(half, v)); }
double val16(Ty half, std::uint32_t bits) { return to_double(half, bits & 0xffffu); }

// The exponent of a float as a float: value = mantissa in [1,2) times two to that.
std::int32_t exponent_of(double v) { return v == 0 || !std::isfinite(v) ? 0 : std::ilogb(v); }

}  // namespace

std::uint16_t fma16(Ty ty, std::uint16_t a, std::uint16_t b, std::uint16_t c) {
  return of16(
      ty, add_to_odd(val16(ty, a), val16(ty, b) * val16(ty, c)));  // the product is exact in double
}

std::uint64_t float_op(Op op, Ty ty, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  if (ty == Ty::f32) {
    float x = f32_of(a), y = f32_of(b);
    // One NaN, so that no order of operands and no compiler's folding shows.
    auto out = [](float v) { return std::isnan(v) ? kNan32 : bits_of(v); };
    switch (op) {
      case Op::add: return out(x + y);
      case Op::sub: return out(x - y);
      case Op::mul: return out(x * y);
      case Op::div: return out(x / y);
      case Op::rem: return out(std::fmod(x, y));
      case Op::neg: return a ^ 0x80000000u;
      case Op::fma: return out(std::fma(y, f32_of(c), x));
      default: return 0;
    }
  }
  double x = to_double(ty, a),
         y = to_double(ty, b);  // + - * of 16-bit floats are exact or harmless in double
  switch (op) {
    case Op::add: return from_double(ty, add_to_odd(x, y));
    case Op::sub: return from_double(ty, add_to_odd(x, -y));
    case Op::mul: return from_double(ty, x * y);
    case Op::div: return from_double(ty, x / y);
    case Op::rem: return from_double(ty, std::fmod(x, y));
    case Op::neg: return a ^ 0x8000u;
    case Op::fma:
      return fma16(ty, static_cast<std::uint16_t>(a), static_cast<std::uint16_t>(b),
                   static_cast<std::uint16_t>(c));
    default: return 0;
  }
}

std::uint64_t convert(Ty to, Ty from, std::uint64_t bits) {
  if (to == Ty::b1) return is_float(from) ? to_double(from, bits) != 0.0 : bits != 0;
  if (is_float(to)) {
    if (is_float(from) || size_of(from) < 8) return from_double(to, to_double(from, bits));
    if (to == Ty::f32) {  // one rounding from 64 bits
      return bits_of(is_signed(from) ? static_cast<float>(static_cast<std::int64_t>(bits))
                                     : static_cast<float>(bits));
    }
    return from_double(to, to_double(from, bits));
  }
  if (!is_float(from)) return canonical(to, bits);
  double v = to_double(from, bits);
  if (to == Ty::u64) {
    if (std::isnan(v) || v <= 0) return 0;
    return v >= 0x1p64 ? ~0ull : static_cast<std::uint64_t>(v);
  }
  return canonical(to, static_cast<std::uint64_t>(truncate(v, -0x1p63, 0x1.fffffffffffffp62)));
}

std::uint64_t math_call(MathFn fn, Ty ty, std::uint64_t a, std::uint64_t b) {
  if (!is_float(ty)) {
    auto x = static_cast<std::int64_t>(a), y = static_cast<std::int64_t>(b);
    bool s = is_signed(ty);
    switch (fn) {
      case MathFn::abs: return canonical(ty, s && x < 0 ? 0 - a : a);
      case MathFn::sign:
        return canonical(ty, static_cast<std::uint64_t>(s ? (x > 0) - (x < 0) : a != 0));
      case MathFn::fmin: return s ? (x < y ? a : b) : std::min(a, b);
      case MathFn::fmax: return s ? (x > y ? a : b) : std::max(a, b);
      default: return a;
    }
  }
  double x = to_double(ty, a), y = to_double(ty, b), r = 0;
  switch (fn) {
    case MathFn::sqrt: r = std::sqrt(x); break;
    case MathFn::rsqrt: r = 1.0 / std::sqrt(x); break;
    case MathFn::inv: r = 1.0 / x; break;
    case MathFn::sin: r = std::sin(x); break;
    case MathFn::cos: r = std::cos(x); break;
    case MathFn::tan: r = std::tan(x); break;
    case MathFn::asin: r = std::asin(x); break;
    case MathFn::acos: r = std::acos(x); break;
    case MathFn::atan: r = std::atan(x); break;
    case MathFn::sinh: r = std::sinh(x); break;
    case MathFn::cosh: r = std::cosh(x); break;
    case MathFn::tanh: r = std::tanh(x); break;
    case MathFn::exp: r = std::exp(x); break;
    case MathFn::exp2: r = std::exp2(x); break;
    case MathFn::log: r = std::log(x); break;
    case MathFn::log2: r = std::log2(x); break;
    case MathFn::log10: r = std::log10(x); break;
    case MathFn::floor: r = std::floor(x); break;
    case MathFn::ceil: r = std::ceil(x); break;
    case MathFn::round: r = std::round(x); break;
    case MathFn::trunc: r = std::trunc(x); break;
    case MathFn::abs: r = std::fabs(x); break;
    case MathFn::sign: r = x > 0 ? 1.0 : x < 0 ? -1.0 : x; break;
    case MathFn::is_nan: return std::isnan(x);
    case MathFn::is_inf: return std::isinf(x);
    case MathFn::is_finite: return std::isfinite(x);
    case MathFn::erf: r = std::erf(x); break;
    case MathFn::cbrt: r = std::cbrt(x); break;
    case MathFn::sigmoid: r = 1 / (1 + std::exp(-x)); break;
    case MathFn::pow: r = std::pow(x, y); break;
    case MathFn::atan2: r = std::atan2(x, y); break;
    case MathFn::fmin: r = std::fmin(x, y); break;
    case MathFn::fmax: r = std::fmax(x, y); break;
    case MathFn::fscale: r = std::ldexp(x, static_cast<int>(static_cast<std::int16_t>(b))); break;
    case MathFn::fmod: r = std::fmod(x, y); break;
    case MathFn::copysign: r = std::copysign(x, y); break;
  }
  return from_double(ty, r);
}

std::uint32_t bulk_element(Bulk code, Ty half, std::uint32_t a, std::uint32_t b, std::uint32_t s) {
  auto a16 = static_cast<std::uint16_t>(a), b16 = static_cast<std::uint16_t>(b);
  auto fa = [&] { return std::bit_cast<float>(a); };
  auto fb = [&] { return std::bit_cast<float>(b); };
  auto out = [](float v) { return std::bit_cast<std::uint32_t>(v); };
  auto ha = [&] { return val16(half, a); };
  auto hb = [&] { return val16(half, b); };
  switch (code) {
    case Bulk::mov32:
    case Bulk::fmovs: return a;
    case Bulk::mov16:
    case Bulk::fmovh: return a16;
    case Bulk::fadds: return out(fa() + fb());
    case Bulk::fsubs: return out(fa() - fb());
    case Bulk::fmuls: return out(fa() * fb());
    case Bulk::fmacs: {  // two roundings: docs/targets/undocumented.md
      const float product = fb() * std::bit_cast<float>(s);
      return out(fa() + product);
    }
    case Bulk::fmaxs: return out(max_value(fa(), fb()));
    case Bulk::fnegs: return a ^ 0x80000000u;
    case Bulk::fabss: return a & 0x7fffffffu;
    case Bulk::faddh: return static_cast<std::uint32_t>(float_op(Op::add, half, a16, b16));
    case Bulk::fsubh: return static_cast<std::uint32_t>(float_op(Op::sub, half, a16, b16));
    case Bulk::fmulh: return static_cast<std::uint32_t>(float_op(Op::mul, half, a16, b16));
    case Bulk::fmach: return fma16(half, a16, b16, static_cast<std::uint16_t>(s));
    case Bulk::fmaxh:
      return of16(half, max_value(static_cast<float>(ha()), static_cast<float>(hb())));
    case Bulk::fnegh: return a16 ^ 0x8000u;
    case Bulk::fabsh: return a16 & 0x7fffu;
    case Bulk::faddhs:
      return out(static_cast<float>(add_to_odd(fa(), hb())));  // 32-bit first, 16-bit second source
    case Bulk::fmachs:  // 16-bit factor and scalar, 32-bit addend and result
      return out(static_cast<float>(add_to_odd(fa(), hb() * val16(half, s))));
    case Bulk::fh2s: return out(static_cast<float>(ha()));
    case Bulk::fs2h: return of16(half, fa());
    case Bulk::add16: return static_cast<std::uint16_t>(a16 + b16);
    case Bulk::addc16: return static_cast<std::uint16_t>(a16 + b16);  // the carry is the engine's
    case Bulk::sub16: return static_cast<std::uint16_t>(a16 - b16);
    case Bulk::and16: return a16 & b16;
    case Bulk::or16: return a16 | b16;
    case Bulk::xor16: return a16 ^ b16;
    case Bulk::sll16: return b16 >= 16 ? 0u : static_cast<std::uint16_t>(a16 << b16);
    case Bulk::slr16: return b16 >= 16 ? 0u : static_cast<std::uint32_t>(a16 >> b16);
    case Bulk::sar16:
      return static_cast<std::uint16_t>(static_cast<std::int16_t>(a16) >> std::min<int>(b16, 15));
    case Bulk::clz: return static_cast<std::uint32_t>(std::countl_zero(a16));
    case Bulk::ctz: return static_cast<std::uint32_t>(std::countr_zero(a16));
    case Bulk::popcnt: return static_cast<std::uint32_t>(std::popcount(a16));
    case Bulk::fnorms: return out(static_cast<float>(std::ldexp(fa(), -exponent_of(fa()))));
    case Bulk::fnormh: return of16(half, std::ldexp(ha(), -exponent_of(ha())));
    case Bulk::fscales: return out(std::ldexp(fa(), static_cast<std::int16_t>(b16)));
    case Bulk::fscaleh: return of16(half, std::ldexp(ha(), static_cast<std::int16_t>(b16)));
    case Bulk::fh2xp16: return static_cast<std::uint16_t>(convert(Ty::i16, half, a16));
    case Bulk::fs2xp16: return static_cast<std::uint16_t>(convert(Ty::i16, Ty::f32, a));
    case Bulk::xp162fh: return of16(half, static_cast<std::int16_t>(a16));
    case Bulk::xp162fs: return out(static_cast<float>(static_cast<std::int16_t>(a16)));
  }
  return 0;
}

}  // namespace weft::wse
