// SPDX-License-Identifier: Apache-2.0
#include "weft/array/constant_operand.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "weft/elements/with_type.h"

namespace weft {

namespace {

/// What quotients by `d` >= 2 are computed with (Granlund and Montgomery, "Division by invariant
/// integers using multiplication", PLDI 1994), for numerators of `bits` bits:
///   signed    the numerator without its sign has bits - 1: m = 2^(bits - 1 + l) / d + 1
///   unsigned  m = 2^bits (2^l - d) / d + 1
/// with l = ceil(log2 d). Elements: m, l - 1, d;
/// and of 8 bits m = 2^16 / d + 1 in 16 bits, with nothing to shift.
template <typename T>
void division(T d, std::int64_t* constants) {
  if constexpr (sizeof(T) == 1) {
    const std::uint16_t words[3] = {static_cast<std::uint16_t>(65536 / d + 1), 0,
                                    static_cast<std::uint16_t>(d)};
    std::memcpy(constants, words, sizeof(words));
    return;
  }
  constexpr int bits = 8 * static_cast<int>(sizeof(T));
  using U = std::make_unsigned_t<T>;
  __extension__ typedef unsigned __int128 Wide;
  const int l = std::bit_width(static_cast<U>(d - 1));
  const Wide power = std::is_signed_v<T> ? Wide{1} << (bits - 1 + l)
                                         : ((Wide{1} << l) - static_cast<U>(d)) << bits;
  const U words[3] = {static_cast<U>(power / static_cast<U>(d) + 1), static_cast<U>(l - 1),
                      static_cast<U>(d)};
  std::memcpy(constants, words, sizeof(words));
}

}  // namespace

ConstantOperandKernel constant_limits_kernel(Elem kernel, const Scalar& low, const Scalar& high) {
  ConstantOperandKernel out;
  if (kernel != Elem::float32 && kernel != Elem::float64) return out;
  for (const Scalar* limit : {&low, &high}) {
    if (limit->kind == Kind::complex || limit->beyond || std::isnan(exponent_of(*limit)))
      return out;
  }
  write_scalar(low, kernel, out.constants);
  write_scalar(high, kernel, reinterpret_cast<char*>(out.constants) + elem_bytes(kernel));
  out.fn = loop_kernels().between[static_cast<int>(kernel)];
  return out;
}

ConstantOperandKernel constant_operand_kernel(Op op, Elem kernel, const Scalar& number) {
  ConstantOperandKernel out;
  const auto e = static_cast<int>(kernel);
  auto known = [&](Known way) { return one_kernels().known[static_cast<int>(way)][e]; };
  auto row = [&](Op same) { return kernels().elementwise[static_cast<int>(same)][e]; };
  const bool whole = is_integer(kernel), real = is_real_float(kernel);
  if (op == Op::pow && (whole || real)) {
    const double p = exponent_of(number);
    if (p == 2) out.fn = row(Op::square);
    if (p == 3) out.fn = known(Known::cube);
    if (p == -1 && real) out.fn = row(Op::reciprocal);
    if (p == 0.5 && real) out.fn = known(Known::root);
    if (p == -0.5 && real) out.fn = known(Known::inverse_root);
  }
  if ((op == Op::maximum || op == Op::minimum) && real && number.kind != Kind::complex &&
      !number.beyond && !std::isnan(exponent_of(number))) {
    write_scalar(number, kernel, out.constants);
    out.fn = known(op == Op::maximum ? Known::at_least : Known::at_most);
  }
  if ((op == Op::floor_divide || op == Op::remainder) && whole && number.kind == Kind::integer &&
      number.i >= 2 && !number.large && !number.beyond) {
    with_type(kernel, [&]<typename T>(T) {
      if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
        if (static_cast<std::uint64_t>(number.i) >
            static_cast<std::uint64_t>(std::numeric_limits<T>::max()))
          return;
        division(static_cast<T>(number.i), out.constants);
        out.fn = known(op == Op::floor_divide ? Known::quotient : Known::rest);
      }
    });
  }
  // Shifts of bytes, which compilers widen to words of 32 bits, are quotients by a power of two.
  if (op == Op::bitwise_right_shift && whole && elem_bytes(kernel) == 1 &&
      number.kind == Kind::integer && number.i >= 1 && !number.large && !number.beyond &&
      number.i < (is_signed_int(kernel) ? 7 : 8)) {
    if (kernel == Elem::int8) division(static_cast<std::int8_t>(1 << number.i), out.constants);
    else division(static_cast<std::uint8_t>(1 << number.i), out.constants);
    out.fn = known(Known::quotient);
  }
  return out;
}

}  // namespace weft
