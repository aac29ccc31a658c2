// SPDX-License-Identifier: Apache-2.0
#pragma once
// The seventeen element types of arrays as a dense index (tables are indexed by it), and the
// promotion rules of the array API standard, extended to mixed kinds: bool < integer < real <
// complex, where a kind change keeps the width of the higher kind.

#include <cstdint>
#include <string_view>

#include "weft/base/dtype.h"
#include "weft/base/error.h"

namespace weft {

enum class Elem : std::uint8_t {
  boolean,
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  float8_e4m3fn,
  float8_e5m2,
  float16,
  bfloat16,
  float32,
  float64,
  complex64,
  complex128,
};
inline constexpr int kElems = 17;

enum class Kind : std::uint8_t { boolean, integer, real, complex };

constexpr DType dtype_of(Elem e) {
  constexpr DType table[] = {dtypes::boolean,       dtypes::int8,        dtypes::int16,
                             dtypes::int32,         dtypes::int64,       dtypes::uint8,
                             dtypes::uint16,        dtypes::uint32,      dtypes::uint64,
                             dtypes::float8_e4m3fn, dtypes::float8_e5m2, dtypes::float16,
                             dtypes::bfloat16,      dtypes::float32,     dtypes::float64,
                             dtypes::complex64,     dtypes::complex128};
  return table[static_cast<int>(e)];
}
constexpr int elem_bytes(Elem e) {
  constexpr std::uint8_t table[] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 1, 1, 2, 2, 4, 8, 8, 16};
  return table[static_cast<int>(e)];
}
constexpr Kind kind_of(Elem e) {
  return e == Elem::boolean   ? Kind::boolean
         : e <= Elem::uint64  ? Kind::integer
         : e <= Elem::float64 ? Kind::real
                              : Kind::complex;
}
constexpr bool is_signed_int(Elem e) { return e >= Elem::int8 && e <= Elem::int64; }
constexpr bool is_unsigned_int(Elem e) { return e >= Elem::uint8 && e <= Elem::uint64; }
constexpr bool is_integer(Elem e) { return e >= Elem::int8 && e <= Elem::uint64; }
constexpr bool is_real_float(Elem e) { return e >= Elem::float8_e4m3fn && e <= Elem::float64; }
constexpr bool is_float8(Elem e) { return e == Elem::float8_e4m3fn || e == Elem::float8_e5m2; }
/// Floats of at most 16 bits: stored as they are, computed with as float32.
constexpr bool is_narrow_float(Elem e) { return e >= Elem::float8_e4m3fn && e <= Elem::bfloat16; }
constexpr Elem arithmetic_elem(Elem e) { return is_narrow_float(e) ? Elem::float32 : e; }
constexpr bool is_complex(Elem e) { return e >= Elem::complex64; }
constexpr bool is_inexact(Elem e) { return e >= Elem::float8_e4m3fn; }

/// Throws Error(dtype, "array.dtype.unsupported") for vectors and types without array support.
Elem elem_of(DType type);
std::string_view name_of(Elem e);

/// What weft makes of Python's numbers when nothing else says.
inline constexpr Elem kDefaultInt = Elem::int64;
inline constexpr Elem kDefaultReal = Elem::float32;
inline constexpr Elem kDefaultComplex = Elem::complex64;

/// Throws Error(dtype, "array.promote.none"): uint64 with a signed type has no common type.
Elem promote(Elem a, Elem b);
bool try_promote(Elem a, Elem b, Elem& out);
/// A scalar of Python's (weak) against an array's type: keeps the array's type unless the kind is
/// higher.
Elem promote_weak(Elem array, Kind scalar);
/// The real type of a complex one and the reverse; others unchanged (reals to complex: at least
/// complex64).
Elem real_of(Elem e);
Elem complex_of(Elem e);
/// Standard's can_cast: along the promotion lattice.
bool can_cast(Elem from, Elem to);

}  // namespace weft
