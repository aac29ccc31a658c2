// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/wse/csl/value.h"

#include <bit>
#include <cmath>

#include "weft/base/dtype.h"

namespace weft::wse::csl {
namespace {

// cb16: sign, 6 exponent bits (bias 31), 9 mantissa bits, laid out as IEEE formats are.
std::uint32_t double_to_cb16(double v) {
  std::uint32_t sign = std::signbit(v) ? 0x8000u : 0u;
  double a = std::fabs(v);
  if (std::isnan(v)) return sign | 0x7f00u;
  if (std::isinf(v)) return sign | 0x7e00u;
  if (a == 0) return sign;
  int e = 0;
  std::frexp(a, &e);
  int exponent = std::max(e - 1, -30);
  double scaled = std::nearbyint(std::ldexp(a, 9 - exponent));
  if (scaled >= 1024) {
    scaled /= 2;
    ++exponent;
  }
  if (exponent > 31) return sign | 0x7e00u;
  std::uint32_t m = static_cast<std::uint32_t>(scaled);
  if (m < 512) return sign | m;
  return sign | (static_cast<std::uint32_t>(exponent + 31) << 9) | (m - 512);
}

double cb16_to_double(std::uint32_t bits) {
  int e = static_cast<int>(bits >> 9 & 63);
  double m = static_cast<double>(bits & 511);
  double v = e == 63  ? (m != 0 ? std::nan("") : INFINITY)
             : e == 0 ? std::ldexp(m, -39)
                      : std::ldexp(512 + m, e - 40);
  return bits & 0x8000u ? -v : v;
}

}  // namespace

Aggregate& mutable_aggregate(Value& v) {
  auto* old = static_cast<Aggregate*>(v.obj.get());
  if (old->ref_count() == 1) {
    old->expand();
    return *old;
  }
  Ref<Aggregate> copy(new Aggregate(*old));
  copy->expand();
  Aggregate* raw = copy.get();
  v.obj = copy;
  return *raw;
}

std::uint32_t float_bits(TypeRef type, double value) {
  switch (type->kind) {
    case T::f16: return double_to_half(value);
    case T::bf16: return double_to_bfloat(value);
    case T::cb16: return double_to_cb16(value);
    default: return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  }
}

double float_from_bits(TypeRef type, std::uint32_t bits) {
  switch (type->kind) {
    case T::f16: return half_to_float(static_cast<std::uint16_t>(bits));
    case T::bf16: return bfloat_to_float(static_cast<std::uint16_t>(bits));
    case T::cb16: return cb16_to_double(bits);
    default: return std::bit_cast<float>(bits);
  }
}

double round_to(TypeRef type, double value) {
  if (type->kind == T::f32) return static_cast<float>(value);
  if (!type->is_float()) return value;
  return float_from_bits(type, float_bits(type, value));
}

Int128 wrap_to(TypeRef type, Int128 value) {
  if (type->kind == T::bool_) return value != 0;
  if (type->kind == T::comptime_int) return value;
  int bits = type->bits();
  if (bits == 0 || bits >= 128) return value;
  UInt128 mask = (UInt128(1) << bits) - 1;
  UInt128 u = static_cast<UInt128>(value) & mask;
  if (type->is_signed() && (u >> (bits - 1)) != 0) u |= ~mask;
  return static_cast<Int128>(u);
}

bool fits(TypeRef type, Int128 value) { return wrap_to(type, value) == value; }

}  // namespace weft::wse::csl
