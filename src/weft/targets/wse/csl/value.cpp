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

int fraction_bits(TypeRef type) {
  switch (type->kind) {
    case T::f16: return 10;
    case T::bf16: return 7;
    case T::cb16: return 9;
    default: return 23;
  }
}

// NaNs keep their sign and fraction, so that bits are the same after @bitcast there and back.
std::uint32_t nan_bits(TypeRef type, double value) {
  const int fraction = fraction_bits(type), width = type->kind == T::f32 ? 32 : 16;
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const auto exponent = ((std::uint64_t{1} << (width - 1)) - 1) >> fraction << fraction;
  const auto low = bits >> (52 - fraction) & ((std::uint64_t{1} << fraction) - 1);
  const auto quiet = std::uint64_t{low == 0} << (fraction - 1);
  return static_cast<std::uint32_t>(bits >> 63 << (width - 1) | exponent | low | quiet);
}

double nan_value(TypeRef type, std::uint32_t bits) {
  const int fraction = fraction_bits(type), width = type->kind == T::f32 ? 32 : 16;
  const std::uint64_t low = bits & ((std::uint64_t{1} << fraction) - 1);
  return std::bit_cast<double>(std::uint64_t{bits >> (width - 1) & 1} << 63 |
                               std::uint64_t{0x7ff} << 52 | low << (52 - fraction));
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
  if (std::isnan(value)) return nan_bits(type, value);
  switch (type->kind) {
    case T::f16: return double_to_half(value);
    case T::bf16: return double_to_bfloat(value);
    case T::cb16: return double_to_cb16(value);
    default: return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  }
}

double float_from_bits(TypeRef type, std::uint32_t bits) {
  double value = 0;
  switch (type->kind) {
    case T::f16: value = half_to_float(static_cast<std::uint16_t>(bits)); break;
    case T::bf16: value = bfloat_to_float(static_cast<std::uint16_t>(bits)); break;
    case T::cb16: value = cb16_to_double(bits); break;
    default: value = std::bit_cast<float>(bits);
  }
  return std::isnan(value) ? nan_value(type, bits) : value;
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
  if (bits == 0 && type->is_int()) return 0;
  if (bits == 0 || bits >= 128) return value;
  UInt128 mask = (UInt128(1) << bits) - 1;
  UInt128 u = static_cast<UInt128>(value) & mask;
  if (type->is_signed() && (u >> (bits - 1)) != 0) u |= ~mask;
  return static_cast<Int128>(u);
}

bool fits(TypeRef type, Int128 value) { return wrap_to(type, value) == value; }

}  // namespace weft::wse::csl
