// SPDX-License-Identifier: Apache-2.0
#pragma once
// Element types, with their only printer and parser. Codes and layout are DLPack's.

#include <cstdint>
#include <string>
#include <string_view>

namespace weft {

enum class TypeCode : std::uint8_t {
  int_ = 0,
  uint_ = 1,
  float_ = 2,
  handle = 3,
  bfloat = 4,
  complex = 5,
  bool_ = 6,
  float8_e4m3fn = 10,
  float8_e5m2 = 12,
};

/// A scalar or vector type: code, bits of one lane, number of lanes.
struct DType {
  TypeCode code = TypeCode::float_;
  std::uint8_t bits = 32;
  std::uint16_t lanes = 1;

  constexpr bool operator==(const DType&) const = default;
  constexpr bool is_int() const { return code == TypeCode::int_; }
  constexpr bool is_uint() const { return code == TypeCode::uint_; }
  constexpr bool is_bool() const { return code == TypeCode::bool_; }
  constexpr bool is_float() const {
    return code == TypeCode::float_ || code == TypeCode::bfloat || is_float8();
  }
  constexpr bool is_bfloat() const { return code == TypeCode::bfloat; }
  constexpr bool is_float8() const {
    return code == TypeCode::float8_e4m3fn || code == TypeCode::float8_e5m2;
  }
  constexpr bool is_complex() const { return code == TypeCode::complex; }
  constexpr bool is_handle() const { return code == TypeCode::handle; }
  constexpr bool is_integral() const { return is_int() || is_uint(); }
  constexpr bool is_scalar() const { return lanes == 1; }
  constexpr DType with_lanes(int n) const { return {code, bits, static_cast<std::uint16_t>(n)}; }
  constexpr DType element() const { return with_lanes(1); }
  /// Bytes of one lane in memory; bool takes one byte.
  constexpr int bytes() const { return (bits + 7) / 8; }
  constexpr int total_bytes() const { return bytes() * lanes; }
};

namespace dtypes {
inline constexpr DType boolean{TypeCode::bool_, 8, 1};
inline constexpr DType int8{TypeCode::int_, 8, 1};
inline constexpr DType int16{TypeCode::int_, 16, 1};
inline constexpr DType int32{TypeCode::int_, 32, 1};
inline constexpr DType int64{TypeCode::int_, 64, 1};
inline constexpr DType uint8{TypeCode::uint_, 8, 1};
inline constexpr DType uint16{TypeCode::uint_, 16, 1};
inline constexpr DType uint32{TypeCode::uint_, 32, 1};
inline constexpr DType uint64{TypeCode::uint_, 64, 1};
inline constexpr DType float8_e4m3fn{TypeCode::float8_e4m3fn, 8, 1};
inline constexpr DType float8_e5m2{TypeCode::float8_e5m2, 8, 1};
inline constexpr DType float16{TypeCode::float_, 16, 1};
inline constexpr DType bfloat16{TypeCode::bfloat, 16, 1};
inline constexpr DType float32{TypeCode::float_, 32, 1};
inline constexpr DType float64{TypeCode::float_, 64, 1};
inline constexpr DType complex64{TypeCode::complex, 64, 1};
inline constexpr DType complex128{TypeCode::complex, 128, 1};
inline constexpr DType handle{TypeCode::handle, 64, 1};
}  // namespace dtypes

/// "float32", "int8x4", "bool", "bfloat16", "handle".
std::string to_string(DType type);

/// Inverse of to_string. Throws Error(dtype, "dtype.unknown") listing the known names.
DType parse_dtype(std::string_view text);
/// As parse_dtype, without throwing.
bool try_parse_dtype(std::string_view text, DType& out);

/// Conversions of 16-bit floats (round to nearest even), for interpreters and constants.
float half_to_float(std::uint16_t bits);
std::uint16_t float_to_half(float value);
std::uint16_t double_to_half(double value);
float bfloat_to_float(std::uint16_t bits);
std::uint16_t float_to_bfloat(float value);
std::uint16_t double_to_bfloat(double value);

/// Conversions of the formats E4M3 and E5M2 of the OCP specification, without saturation: what
/// exceeds the largest number becomes NaN in float8_e4m3fn, which has no infinity, and infinite in
/// float8_e5m2. `type` is one of the two.
float float8_to_float(DType type, std::uint8_t bits);
std::uint8_t float_to_float8(DType type, float value);
std::uint8_t double_to_float8(DType type, double value);

/// Floats of at most 16 bits: their values by their bits, and the bits of the nearest value.
double narrow_to_double(DType type, std::uint16_t bits);
std::uint16_t double_to_narrow(DType type, double value);

}  // namespace weft
