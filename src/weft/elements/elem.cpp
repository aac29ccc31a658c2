// SPDX-License-Identifier: Apache-2.0
#include "weft/elements/elem.h"

#include <iterator>

namespace weft {

namespace {
constexpr std::string_view kNames[] = {
    "bool",     "int8",    "int16",   "int32",         "int64",       "uint8",
    "uint16",   "uint32",  "uint64",  "float8_e4m3fn", "float8_e5m2", "float16",
    "bfloat16", "float32", "float64", "complex64",     "complex128"};
static_assert(std::size(kNames) == kElems);
int width(Elem e) { return elem_bytes(e); }
Elem signed_of(int bytes) {
  return bytes == 1   ? Elem::int8
         : bytes == 2 ? Elem::int16
         : bytes == 4 ? Elem::int32
                      : Elem::int64;
}
}  // namespace

std::string_view name_of(Elem e) { return kNames[static_cast<int>(e)]; }

Elem elem_of(DType type) {
  if (type.lanes == 1) {
    for (int i = 0; i < kElems; ++i) {
      if (dtype_of(static_cast<Elem>(i)) == type) return static_cast<Elem>(i);
    }
  }
  std::string known;
  for (std::string_view name : kNames) known += (known.empty() ? "" : ", ") + std::string(name);
  throw Error(ErrorKind::dtype, "array.dtype.unsupported",
              cat("arrays cannot hold ", to_string(type)))
      .note("element types: " + known);
}

bool try_promote(Elem a, Elem b, Elem& out) {
  if (a == b) {
    out = a;
    return true;
  }
  Kind ka = kind_of(a), kb = kind_of(b);
  if (ka > kb) {
    std::swap(a, b);
    std::swap(ka, kb);
  }
  if (ka != kb) {
    out = b;
    if (kb == Kind::complex && (a == Elem::float64)) out = Elem::complex128;
    return true;
  }
  switch (ka) {
    case Kind::boolean: out = a; return true;
    case Kind::integer: {
      if (is_signed_int(a) == is_signed_int(b)) {
        out = width(a) >= width(b) ? a : b;
        return true;
      }
      Elem s = is_signed_int(a) ? a : b, u = is_signed_int(a) ? b : a;
      if (width(s) > width(u)) {
        out = s;
        return true;
      }
      if (width(u) >= 8) return false;
      out = signed_of(width(u) * 2);
      return true;
    }
    case Kind::real:
      if (width(a) == width(b)) {
        out = Elem::float32;
      } else {
        out = width(a) >= width(b) ? a : b;
      }
      return true;
    case Kind::complex: out = Elem::complex128; return true;
  }
  return false;
}

Elem promote(Elem a, Elem b) {
  Elem out;
  if (try_promote(a, b, out)) return out;
  throw Error(ErrorKind::dtype, "array.promote.none",
              cat("no common type of ", name_of(a), " and ", name_of(b)))
      .note("no 64-bit integer type holds both")
      .help("convert one side first, for example with astype(weft.int64)");
}

Elem promote_weak(Elem array, Kind scalar) {
  Kind kind = kind_of(array);
  if (kind >= scalar) return array;
  switch (scalar) {
    case Kind::integer: return kDefaultInt;
    case Kind::real: return kDefaultReal;
    default: return kind == Kind::real ? complex_of(array) : kDefaultComplex;
  }
}

Elem real_of(Elem e) {
  return e == Elem::complex64 ? Elem::float32 : e == Elem::complex128 ? Elem::float64 : e;
}

Elem complex_of(Elem e) {
  return e == Elem::float64 || e == Elem::complex128 ? Elem::complex128 : Elem::complex64;
}

bool can_cast(Elem from, Elem to) {
  Elem common;
  return try_promote(from, to, common) && common == to &&
         (kind_of(from) == kind_of(to) ||
          (kind_of(from) == Kind::real && kind_of(to) == Kind::complex));
}

}  // namespace weft
