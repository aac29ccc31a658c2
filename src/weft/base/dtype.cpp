// SPDX-License-Identifier: Apache-2.0
#include "weft/base/dtype.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

#include "weft/base/error.h"

namespace weft {

namespace {
struct Name {
  std::string_view text;
  DType type;
};
constexpr Name kNames[] = {
    {"bool", dtypes::boolean},
    {"int8", dtypes::int8},
    {"int16", dtypes::int16},
    {"int32", dtypes::int32},
    {"int64", dtypes::int64},
    {"uint8", dtypes::uint8},
    {"uint16", dtypes::uint16},
    {"uint32", dtypes::uint32},
    {"uint64", dtypes::uint64},
    {"float8_e4m3fn", dtypes::float8_e4m3fn},
    {"float8_e5m2", dtypes::float8_e5m2},
    {"float16", dtypes::float16},
    {"bfloat16", dtypes::bfloat16},
    {"float32", dtypes::float32},
    {"float64", dtypes::float64},
    {"complex64", dtypes::complex64},
    {"complex128", dtypes::complex128},
    {"handle", dtypes::handle},
};

/// Rounds a double to a float so that a second rounding to 16 bits is still correct (round to odd).
float round_to_odd(double value) {
  float nearest = static_cast<float>(value);
  if (std::isnan(value) || std::isinf(nearest) || static_cast<double>(nearest) == value)
    return nearest;
  std::uint32_t bits = std::bit_cast<std::uint32_t>(nearest);
  if (std::abs(static_cast<double>(nearest)) > std::abs(value)) --bits;  // toward zero
  return std::bit_cast<float>(bits | 1u);
}
}  // namespace

std::string to_string(DType type) {
  DType element = type.element();
  std::string out;
  for (const Name& name : kNames) {
    if (name.type == element) out = name.text;
  }
  if (out.empty()) {
    out = cat("<code ", static_cast<int>(type.code), " bits ", static_cast<int>(type.bits), ">");
  }
  if (type.lanes != 1) out += cat("x", type.lanes);
  return out;
}

bool try_parse_dtype(std::string_view text, DType& out) {
  for (const Name& name : kNames) {
    if (!text.starts_with(name.text)) continue;
    std::string_view rest = text.substr(name.text.size());
    if (rest.empty()) {
      out = name.type;
      return true;
    }
    if (rest.front() != 'x') continue;
    rest.remove_prefix(1);
    unsigned lanes = 0;
    auto result = std::from_chars(rest.data(), rest.data() + rest.size(), lanes);
    if (result.ec == std::errc() && result.ptr == rest.data() + rest.size() && lanes >= 1 &&
        lanes <= 4096) {
      out = name.type.with_lanes(static_cast<int>(lanes));
      return true;
    }
  }
  return false;
}

DType parse_dtype(std::string_view text) {
  DType out;
  if (try_parse_dtype(text, out)) return out;
  std::vector<std::string> known;
  for (const Name& name : kNames) known.emplace_back(name.text);
  // As C, PyTorch and compilers call them.
  static constexpr std::pair<std::string_view, const char*> kElsewhere[] = {
      {"half", "float16"}, {"float", "float32"}, {"double", "float64"}, {"cfloat", "complex64"},
      {"short", "int16"},  {"int", "int32"},     {"long", "int64"},     {"byte", "uint8"},
      {"char", "int8"},    {"f16", "float16"},   {"bf16", "bfloat16"},  {"f32", "float32"},
      {"f64", "float64"},  {"i32", "int32"},     {"i64", "int64"},      {"boolean", "bool"}};
  std::string meant = did_you_mean(text, known);
  for (const auto& [name, ours] : kElsewhere) {
    if (name == text) meant = cat("did you mean \"", ours, "\"?");
  }
  throw Error(ErrorKind::dtype, "dtype.unknown", cat("\"", text, "\" is not an element type"))
      .note(cat("known: ", join(known), "; a suffix such as x4 makes a vector"))
      .help(meant);
}

float half_to_float(std::uint16_t bits) {
  std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  std::uint32_t exponent = (bits >> 10) & 0x1fu;
  std::uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) {
    float value = std::ldexp(static_cast<float>(mantissa), -24);
    return sign ? -value : value;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

std::uint16_t float_to_half(float value) {
  std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  std::uint16_t sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {                                   // subnormal or zero
    float scaled = std::bit_cast<float>(magnitude) * 16777216.0f;  // 2^24, exact
    return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(std::nearbyint(scaled)));
  }
  std::uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

std::uint16_t double_to_half(double value) { return float_to_half(round_to_odd(value)); }

float bfloat_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

std::uint16_t float_to_bfloat(float value) {
  std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

std::uint16_t double_to_bfloat(double value) { return float_to_bfloat(round_to_odd(value)); }

namespace {
/// A format by its bits: of the mantissa, the exponent's bias, the first bits that are no number.
struct Float8 {
  int mantissa, bias;
  std::uint32_t special;  // infinity, or NaN where there is none
  std::uint32_t nan;
};
constexpr Float8 kE4M3{3, 7, 0x7f, 0x7f}, kE5M2{2, 15, 0x7c, 0x7e};
const Float8& float8_of(DType type) { return type.code == TypeCode::float8_e5m2 ? kE5M2 : kE4M3; }
}  // namespace

float float8_to_float(DType type, std::uint8_t bits) {
  const Float8& f = float8_of(type);
  const std::uint32_t magnitude = bits & 0x7fu;
  float value;
  if (magnitude >= f.special) {
    const bool infinite = magnitude == f.special && f.special != f.nan;
    value = std::bit_cast<float>(infinite ? 0x7f800000u : 0x7fc00000u);
  } else {
    const int exponent = static_cast<int>(magnitude >> f.mantissa);
    const std::uint32_t fraction = magnitude & ((1u << f.mantissa) - 1);
    const std::uint32_t whole = exponent ? fraction | 1u << f.mantissa : fraction;
    value = std::ldexp(static_cast<float>(whole), std::max(exponent, 1) - f.bias - f.mantissa);
  }
  return std::copysign(value, bits & 0x80u ? -1.0f : 1.0f);
}

std::uint8_t float_to_float8(DType type, float value) {
  const Float8& f = float8_of(type);
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 24 & 0x80u, magnitude = bits & 0x7fffffffu;
  const int dropped = 23 - f.mantissa;
  std::uint32_t out;
  if (magnitude > 0x7f800000u) {
    out = f.nan;
  } else if (magnitude < static_cast<std::uint32_t>(128 - f.bias) << 23) {  // subnormal or zero
    const float units = std::ldexp(std::bit_cast<float>(magnitude), f.bias - 1 + f.mantissa);
    out = static_cast<std::uint32_t>(std::nearbyint(units));
  } else {
    const std::uint32_t rounded =
        magnitude + (1u << (dropped - 1)) - 1 + (magnitude >> dropped & 1u);
    out = std::min((rounded - (static_cast<std::uint32_t>(127 - f.bias) << 23)) >> dropped,
                   f.special);
  }
  return static_cast<std::uint8_t>(sign | out);
}

std::uint8_t double_to_float8(DType type, double value) {
  return float_to_float8(type, round_to_odd(value));
}

double narrow_to_double(DType type, std::uint16_t bits) {
  if (type.is_float8()) return float8_to_float(type, static_cast<std::uint8_t>(bits));
  return type.is_bfloat() ? bfloat_to_float(bits) : half_to_float(bits);
}

std::uint16_t double_to_narrow(DType type, double value) {
  if (type.is_float8()) return double_to_float8(type, value);
  return type.is_bfloat() ? double_to_bfloat(value) : double_to_half(value);
}

}  // namespace weft
