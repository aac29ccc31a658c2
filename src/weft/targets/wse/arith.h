// SPDX-License-Identifier: Apache-2.0
#pragma once
// Exact scalar arithmetic of a PE: conversions between canonical register bits and values,
// single-rounded 16- and 32-bit floats, and one element of every bulk operation.

#include <bit>
#include <cmath>
#include <cstdint>

#include "weft/base/dtype.h"
#include "weft/targets/wse/program.h"

namespace weft::wse {

inline float f32_of(std::uint64_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
}
inline std::uint64_t bits_of(float v) { return std::bit_cast<std::uint32_t>(v); }

/// binary16 to binary32; exact.
inline float half_value(std::uint16_t h) {
  std::uint32_t sign = static_cast<std::uint32_t>(h & 0x8000u) << 16;
  std::uint32_t em = h & 0x7fffu;
  if (em >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | (em & 0x3ffu) << 13);
  if (em < 0x400u) {  // subnormal: em * 2^-24
    float v = static_cast<float>(em) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(v));
  }
  return std::bit_cast<float>(sign | ((em << 13) + 0x38000000u));
}

/// binary32 to binary16, nearest even.
inline std::uint16_t half_bits(float v) {
  std::uint32_t x = std::bit_cast<std::uint32_t>(v);
  std::uint32_t sign = x >> 16 & 0x8000u;
  x &= 0x7fffffffu;
  if (x >= 0x7f800000u)
    return static_cast<std::uint16_t>(sign | (x > 0x7f800000u ? 0x7e00u : 0x7c00u));
  if (x >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);
  if (x < 0x38800000u) {  // below the smallest normal: the addition rounds at 2^-24
    float r = std::bit_cast<float>(x) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(r) - 0x3f000000u));
  }
  std::uint32_t odd = x >> 13 & 1u;
  return static_cast<std::uint16_t>(sign | (x - 0x38000000u + 0xfffu + odd) >> 13);
}

/// cb16: 1 sign, 6 exponent (bias 31), 9 mantissa bits; subnormals and specials as IEEE would have
/// them.
float cb16_value(std::uint16_t bits);
std::uint16_t cb16_bits(double value);

/// The value of canonical register bits as double; exact for every type (64-bit integers round).
double to_double(Ty ty, std::uint64_t bits);
/// A double rounded once to a float type, as register bits.
std::uint64_t from_double(Ty ty, double value);

constexpr bool is_float(Ty ty) {
  return ty == Ty::f16 || ty == Ty::bf16 || ty == Ty::cb16 || ty == Ty::f32;
}
constexpr bool is_signed(Ty ty) { return ty <= Ty::i64; }
constexpr int bits_of_type(Ty ty) { return 8 * size_of(ty); }

/// The low bits of `bits` made canonical for `ty`.
inline std::uint64_t canonical(Ty ty, std::uint64_t bits) {
  const int unused = ty == Ty::b1 ? 63 : 64 - bits_of_type(ty);
  const std::uint64_t up = bits << unused;
  return is_signed(ty) ? static_cast<std::uint64_t>(static_cast<std::int64_t>(up) >> unused)
                       : up >> unused;
}

/// The NaN that scalar f32 arithmetic makes.
inline constexpr std::uint64_t kNan32 = 0x7fc00000u;
/// add sub mul div rem fma min max on float bits, rounded once.
std::uint64_t float_op(Op op, Ty ty, std::uint64_t a, std::uint64_t b, std::uint64_t c = 0);
/// a + b * c rounded once to a 16-bit float format.
std::uint16_t fma16(Ty ty, std::uint16_t a, std::uint16_t b, std::uint16_t c);

/// @as(to, value of type from).
std::uint64_t convert(Ty to, Ty from, std::uint64_t bits);
std::uint64_t math_call(MathFn fn, Ty ty, std::uint64_t a, std::uint64_t b);

/// One element of a bulk operation: bits in, bits out. `half` is the 16-bit float format.
std::uint32_t bulk_element(Bulk code, Ty half, std::uint32_t a, std::uint32_t b, std::uint32_t s);

}  // namespace weft::wse
