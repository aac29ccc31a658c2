// SPDX-License-Identifier: Apache-2.0
#include "weft/ir/eval.h"

#include <bit>
#include <cmath>
#include <limits>

#include "weft/ir/float_cast.h"
#include "weft/ir/interpret.h"

namespace weft::ir {

std::int64_t wrap_int(std::int64_t v, DType t) {
  if (t.is_bool()) return v != 0;
  if (t.bits >= 64) return v;
  std::uint64_t u = static_cast<std::uint64_t>(v) & ((1ull << t.bits) - 1);
  if (t.is_int() && (u >> (t.bits - 1))) u |= ~0ull << t.bits;
  return static_cast<std::int64_t>(u);
}

double round_float(double v, DType t) {
  if (t.bits == 64) return v;
  if (t.bits == 32) return static_cast<float>(v);
  return narrow_to_double(t, double_to_narrow(t, v));
}

namespace {

std::uint64_t bits_of(std::int64_t v) { return static_cast<std::uint64_t>(v); }
std::int64_t from_bits(std::uint64_t v) { return static_cast<std::int64_t>(v); }

/// Upper half of a product of two values of t.
std::int64_t mul_high(std::int64_t a, std::int64_t b, DType t) {
  if (t.bits < 64) {
    if (t.is_uint()) return from_bits((bits_of(a) * bits_of(b)) >> t.bits);
    return (a * b) >> t.bits;
  }
  std::uint64_t x = bits_of(a), y = bits_of(b);
  std::uint64_t x0 = x & 0xffffffff, x1 = x >> 32, y0 = y & 0xffffffff, y1 = y >> 32;
  std::uint64_t mid = x1 * y0 + ((x0 * y0) >> 32);
  std::uint64_t low = x0 * y1 + (mid & 0xffffffff);
  std::uint64_t high = x1 * y1 + (mid >> 32) + (low >> 32);
  if (t.is_int()) {
    if (a < 0) high -= y;
    if (b < 0) high -= x;
  }
  return from_bits(high);
}

}  // namespace

bool eval_int_binary(ExprKind kind, DType t, std::int64_t x, std::int64_t y, std::int64_t* out) {
  bool is_unsigned = t.is_uint() || t.is_bool();
  std::uint64_t ux = bits_of(x), uy = bits_of(y);
  std::int64_t r = 0;
  switch (kind) {
    case ExprKind::add: r = from_bits(ux + uy); break;
    case ExprKind::sub: r = from_bits(ux - uy); break;
    case ExprKind::mul: r = from_bits(ux * uy); break;
    case ExprKind::div:
    case ExprKind::floordiv:
    case ExprKind::mod:
    case ExprKind::floormod: {
      if (y == 0) return false;
      bool quotient = kind == ExprKind::div || kind == ExprKind::floordiv;
      if (is_unsigned) {
        r = from_bits(quotient ? ux / uy : ux % uy);
      } else if (y == -1) {  // also the one quotient that overflows
        r = quotient ? from_bits(0 - ux) : 0;
      } else {
        std::int64_t q = x / y, m = x % y;
        bool down = (kind == ExprKind::floordiv || kind == ExprKind::floormod) && m != 0 &&
                    (m < 0) != (y < 0);
        r = quotient ? (down ? q - 1 : q) : (down ? m + y : m);
      }
      break;
    }
    case ExprKind::min: r = (is_unsigned ? ux < uy : x < y) ? x : y; break;
    case ExprKind::max: r = (is_unsigned ? ux > uy : x > y) ? x : y; break;
    case ExprKind::eq: *out = x == y; return true;
    case ExprKind::ne: *out = x != y; return true;
    case ExprKind::lt: *out = is_unsigned ? ux < uy : x < y; return true;
    case ExprKind::le: *out = is_unsigned ? ux <= uy : x <= y; return true;
    case ExprKind::gt: *out = is_unsigned ? ux > uy : x > y; return true;
    case ExprKind::ge: *out = is_unsigned ? ux >= uy : x >= y; return true;
    case ExprKind::and_: *out = x && y; return true;
    case ExprKind::or_: *out = x || y; return true;
    default: return false;
  }
  *out = wrap_int(r, t);
  return true;
}

double eval_float_binary(ExprKind kind, DType t, double a, double b) {
  switch (kind) {
    case ExprKind::add: return round_float(a + b, t);
    case ExprKind::sub: return round_float(a - b, t);
    case ExprKind::mul: return round_float(a * b, t);
    case ExprKind::div: return round_float(a / b, t);
    case ExprKind::mod: return round_float(std::fmod(a, b), t);
    case ExprKind::floordiv: return round_float(std::floor(a / b), t);
    case ExprKind::floormod: return round_float(a - std::floor(a / b) * b, t);
    case ExprKind::min: return a < b || a != a ? a : b;  // a NaN on either side is the result
    case ExprKind::max: return a > b || a != a ? a : b;
    default: return std::numeric_limits<double>::quiet_NaN();
  }
}

bool eval_float_compare(ExprKind kind, double a, double b) {
  switch (kind) {
    case ExprKind::eq: return a == b;
    case ExprKind::ne: return a != b;
    case ExprKind::lt: return a < b;
    case ExprKind::le: return a <= b;
    case ExprKind::gt: return a > b;
    default: return a >= b;
  }
}

Lane eval_cast(Lane v, DType from, DType to) {
  if (const DType carrier = carrier_of_float(to); from.is_float() && carrier != to)
    return eval_cast(eval_cast(v, from, carrier), carrier, to);
  Lane out;
  if (from.is_float()) {
    if (to.is_float()) {
      out.f = round_float(v.f, to);
    } else if (to.is_bool()) {
      out.i = v.f != 0;
    } else if (std::isnan(v.f)) {
      out.i = 0;
    } else {
      double low = to.is_uint() ? 0 : -std::ldexp(1, to.bits - 1),
             high = std::ldexp(1, to.is_uint() ? to.bits : to.bits - 1);
      double x = std::trunc(v.f);
      if (x < low) out.i = to.is_uint() ? 0 : from_bits(~0ull << (to.bits - 1));
      else if (x >= high)
        out.i =
            to.is_uint() ? from_bits(~0ull >> (64 - to.bits)) : from_bits(~0ull >> (65 - to.bits));
      else
        out.i = x >= 9223372036854775808.0 ? from_bits(static_cast<std::uint64_t>(x))
                                           : static_cast<std::int64_t>(x);
    }
  } else if (to.is_float()) {
    // One rounding: 64-bit integers reach float32 directly, not through double.
    bool big = from.is_uint() && v.i < 0;
    if (to.bits == 32) out.f = big ? static_cast<float>(bits_of(v.i)) : static_cast<float>(v.i);
    else
      out.f = round_float(big ? static_cast<double>(bits_of(v.i)) : static_cast<double>(v.i), to);
  } else {
    out.i = wrap_int(v.i, to);
  }
  return out;
}

Lane eval_reinterpret(Lane v, DType from, DType to) {
  std::uint64_t bits;
  if (!from.is_float()) bits = bits_of(v.i);
  else if (from.bits == 64) bits = std::bit_cast<std::uint64_t>(v.f);
  else if (from.bits == 32) bits = std::bit_cast<std::uint32_t>(static_cast<float>(v.f));
  else bits = double_to_narrow(from, v.f);
  Lane out;
  if (!to.is_float()) out.i = wrap_int(from_bits(bits), to);
  else if (to.bits == 64) out.f = std::bit_cast<double>(bits);
  else if (to.bits == 32) out.f = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  else out.f = narrow_to_double(to, static_cast<std::uint16_t>(bits));
  return out;
}

namespace {

bool float_intrinsic(IntrinsicId id, DType t, std::span<const Lane> a, Lane* out) {
  using I = IntrinsicId;
  double x = a[0].f, y = a.size() > 1 ? a[1].f : 0;
  double r;
  switch (id) {
    case I::exp_: r = std::exp(x); break;
    case I::exp2_flush_:
    case I::exp2_: r = std::exp2(x); break;
    case I::expm1_: r = std::expm1(x); break;
    case I::log_: r = std::log(x); break;
    case I::log2_: r = std::log2(x); break;
    case I::log10_: r = std::log10(x); break;
    case I::log1p_: r = std::log1p(x); break;
    case I::sqrt_: r = std::sqrt(x); break;
    case I::rsqrt_: r = 1 / std::sqrt(x); break;
    case I::sin_: r = std::sin(x); break;
    case I::cos_: r = std::cos(x); break;
    case I::tan_: r = std::tan(x); break;
    case I::asin_: r = std::asin(x); break;
    case I::acos_: r = std::acos(x); break;
    case I::atan_: r = std::atan(x); break;
    case I::sinh_: r = std::sinh(x); break;
    case I::cosh_: r = std::cosh(x); break;
    case I::tanh_: r = std::tanh(x); break;
    case I::asinh_: r = std::asinh(x); break;
    case I::acosh_: r = std::acosh(x); break;
    case I::atanh_: r = std::atanh(x); break;
    case I::erf_: r = std::erf(x); break;
    case I::floor_: r = std::floor(x); break;
    case I::ceil_: r = std::ceil(x); break;
    case I::trunc_: r = std::trunc(x); break;
    case I::round_: r = std::nearbyint(x); break;
    case I::sigmoid_: r = 1 / (1 + std::exp(-x)); break;
    case I::abs_: r = std::fabs(x); break;
    case I::pow_: r = std::pow(x, y); break;
    case I::atan2_: r = std::atan2(x, y); break;
    case I::fmod_: r = std::fmod(x, y); break;
    case I::hypot_: r = std::hypot(x, y); break;
    case I::copysign_: r = std::copysign(x, y); break;
    case I::nextafter_:
      if (t.bits == 64) {
        r = std::nextafter(x, y);
      } else if (t.bits == 32) {
        r = std::nextafter(static_cast<float>(x), static_cast<float>(y));
      } else if (x == y || std::isnan(x) || std::isnan(y)) {
        r = std::isnan(x) ? x : y;
      } else {  // one step in the ordered bit pattern of a narrow float
        std::uint16_t bits = double_to_narrow(t, x);
        if (x == 0) bits = static_cast<std::uint16_t>(y > 0 ? 1 : 1 | 1 << (t.bits - 1));
        else bits = static_cast<std::uint16_t>((y > x) == (x > 0) ? bits + 1 : bits - 1);
        r = narrow_to_double(t, bits);
      }
      break;
    case I::fma_:
      if (t.bits == 32)
        r = std::fmaf(static_cast<float>(x), static_cast<float>(y), static_cast<float>(a[2].f));
      else r = std::fma(x, y, a[2].f);
      break;
    case I::isnan_: out->i = std::isnan(x); return true;
    case I::isinf_: out->i = std::isinf(x); return true;
    case I::isfinite_: out->i = std::isfinite(x); return true;
    case I::signbit_: out->i = std::signbit(x); return true;
    case I::likely_:
    case I::nontemporal_: r = x; break;
    case I::atomic_add_: r = x + y; break;
    default: return false;
  }
  out->f = round_float(r, t);
  return true;
}

}  // namespace

bool eval_intrinsic(IntrinsicId id, DType t, std::span<const Lane> a, Lane* out) {
  using I = IntrinsicId;
  if (t.is_float()) return float_intrinsic(id, t, a, out);
  std::int64_t x = a[0].i, y = a.size() > 1 ? a[1].i : 0;
  int width = t.is_bool() ? 1 : t.bits;
  std::uint64_t pattern = width == 64 ? bits_of(x) : bits_of(x) & ((1ull << width) - 1);
  std::int64_t r;
  switch (id) {
    case I::abs_: r = t.is_int() && x < 0 ? from_bits(0 - bits_of(x)) : x; break;
    case I::shift_left_:
      r = bits_of(y) >= static_cast<std::uint64_t>(width) ? 0 : from_bits(bits_of(x) << y);
      break;
    case I::shift_right_:
      if (bits_of(y) >= static_cast<std::uint64_t>(width)) r = t.is_int() && x < 0 ? -1 : 0;
      else r = t.is_int() ? x >> y : from_bits(pattern >> y);
      break;
    case I::bitwise_and_: r = x & y; break;
    case I::bitwise_or_: r = x | y; break;
    case I::bitwise_xor_: r = x ^ y; break;
    case I::bitwise_not_: r = t.is_bool() ? !x : ~x; break;
    case I::popcount_: r = std::popcount(pattern); break;
    case I::clz_: r = std::countl_zero(pattern) - (64 - width); break;
    case I::mulhi_: r = mul_high(x, y, t); break;
    case I::likely_:
    case I::nontemporal_: r = x; break;
    case I::atomic_add_: r = from_bits(bits_of(x) + bits_of(y)); break;
    case I::atomic_max_: r = (t.is_int() ? x > y : bits_of(x) > bits_of(y)) ? x : y; break;
    default: return false;
  }
  out->i = wrap_int(r, t);
  return true;
}

bool try_evaluate_int(const Expr& e, std::int64_t* out) {
  if (!e || !e->dtype.is_scalar()) return false;
  if (is_const_int(e, out)) return true;
  if (const auto* c = as<CastNode>(e)) {
    if (c->value->dtype.is_float() || e->dtype.is_float() || !try_evaluate_int(c->value, out))
      return false;
    *out = wrap_int(*out, e->dtype);
    return true;
  }
  if (const auto* n = as<NotNode>(e)) {
    if (!try_evaluate_int(n->a, out)) return false;
    *out = !*out;
    return true;
  }
  std::int64_t c, a, b;
  if (const auto* s = as<SelectNode>(e)) {
    if (!try_evaluate_int(s->condition, &c) || !try_evaluate_int(s->a, &a) ||
        !try_evaluate_int(s->b, &b))
      return false;
    *out = c ? a : b;
    return true;
  }
  if (const auto* k = as<CallNode>(e); k && k->op == "if_then_else")
    return try_evaluate_int(k->args[0], &c) && try_evaluate_int(k->args[c ? 1 : 2], out);
  const auto* bin = as<BinaryNode>(e);
  if (!bin || bin->a->dtype.is_float()) return false;
  return try_evaluate_int(bin->a, &a) && try_evaluate_int(bin->b, &b) &&
         eval_int_binary(bin->kind, bin->a->dtype, a, b, out);
}

}  // namespace weft::ir
