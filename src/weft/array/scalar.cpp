// SPDX-License-Identifier: Apache-2.0
// Numbers beside arrays: as an element, and against the range of an element type.
#include <cstring>
#include <limits>

#include "weft/array/ops.h"

namespace weft {

Elem elem_of(const Scalar& value) {
  switch (value.kind) {
    case Kind::boolean: return Elem::boolean;
    case Kind::integer: return kDefaultInt;
    case Kind::real: return kDefaultReal;
    default: return kDefaultComplex;
  }
}

namespace {

/// Where an integer lies: below `least` (-1), above `most` (1), between (0).
int side(const Scalar& value, std::int64_t least, std::uint64_t most) {
  if (value.beyond) return value.z.real() < 0 ? -1 : 1;
  if (value.large) return static_cast<std::uint64_t>(value.i) > most ? 1 : 0;
  if (value.i < least) return -1;
  return value.i > 0 && static_cast<std::uint64_t>(value.i) > most ? 1 : 0;
}

int side(const Scalar& value, Elem elem) {
  const int bits = 8 * elem_bytes(elem);
  if (is_unsigned_int(elem)) return side(value, 0, ~std::uint64_t{0} >> (64 - bits));
  const std::uint64_t most = ~std::uint64_t{0} >> (65 - bits);
  return side(value, -static_cast<std::int64_t>(most) - 1, most);
}

}  // namespace

std::optional<bool> constant_comparison_result(Op op, const Arg& x, const Arg& y) {
  const Arg& array = x.array ? x : y;
  const Scalar& number = x.array ? y.scalar : x.scalar;
  const Elem elem = array.array->elem();
  if (number.kind != Kind::integer || kind_of(elem) > Kind::integer) return std::nullopt;
  int above = side(number, promote_weak(elem, Kind::integer));
  if (above == 0) return std::nullopt;
  if (!x.array) above = -above;  // now: is the right one larger (1) or smaller (-1)?
  switch (op) {
    case Op::equal: return false;
    case Op::not_equal: return true;
    case Op::less:
    case Op::less_equal: return above > 0;
    case Op::greater:
    case Op::greater_equal: return above < 0;
    default: return std::nullopt;
  }
}

void write_scalar(const Scalar& value, Elem elem, void* out) {
  auto put = [&](auto v) { std::memcpy(out, &v, sizeof(v)); };
  auto put_int = [&]<typename T>(T) {
    if (value.kind <= Kind::integer) {
      if (side(value, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()) != 0) {
        throw Error(ErrorKind::value, "array.scalar.range",
                    cat("the integer ",
                        value.beyond  ? cat("near ", value.z.real(), " needs more than 64 bits: it")
                        : value.large ? std::to_string(static_cast<std::uint64_t>(value.i))
                                      : std::to_string(value.i),
                        " does not fit in ", name_of(elem)));
      }
      put(static_cast<T>(value.i));
    } else {
      put(static_cast<T>(value.z.real()));
    }
  };
  double real = value.kind <= Kind::integer
                    ? (value.beyond  ? value.z.real()
                       : value.large ? static_cast<double>(static_cast<std::uint64_t>(value.i))
                                     : static_cast<double>(value.i))
                    : value.z.real();
  switch (elem) {
    case Elem::boolean:
      return put(
          static_cast<std::uint8_t>(value.kind <= Kind::integer ? value.i != 0 : value.z != 0.0));
    case Elem::int8: return put_int(std::int8_t{});
    case Elem::int16: return put_int(std::int16_t{});
    case Elem::int32: return put_int(std::int32_t{});
    case Elem::int64: return put_int(std::int64_t{});
    case Elem::uint8: return put_int(std::uint8_t{});
    case Elem::uint16: return put_int(std::uint16_t{});
    case Elem::uint32: return put_int(std::uint32_t{});
    case Elem::uint64: return put_int(std::uint64_t{});
    case Elem::float8_e4m3fn:
    case Elem::float8_e5m2: return put(double_to_float8(dtype_of(elem), real));
    case Elem::float16: return put(double_to_half(real));
    case Elem::bfloat16: return put(double_to_bfloat(real));
    case Elem::float32: return put(static_cast<float>(real));
    case Elem::float64: return put(real);
    case Elem::complex64:
      return put(std::complex<float>(static_cast<float>(real), static_cast<float>(value.z.imag())));
    case Elem::complex128: return put(std::complex<double>(real, value.z.imag()));
  }
}

}  // namespace weft
