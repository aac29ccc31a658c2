// SPDX-License-Identifier: Apache-2.0
#pragma once
// Names of operations. The tables (*.def) have more to say, and may have more rows: this list
// is what C++ code and the cells of gradients name. So a row may come or change without all that
// names an operation being compiled again (rows.h says which number a row has).

#include <cstdint>

namespace weft {

// The formatter would move the names at each run.
// clang-format off
#define WEFT_UNARY_OPS(X) \
  X(abs) X(acos) X(acosh) X(asin) X(asinh) X(atan) X(atanh) X(bitwise_invert) X(ceil) X(conj) \
  X(cos) X(cosh) X(erf) X(exp) X(exp2) X(expm1) X(floor) X(imag) X(isfinite) X(isinf) X(isnan) \
  X(log) X(log10) X(log1p) X(log2) X(logical_not) X(negative) X(positive) X(real) X(reciprocal) \
  X(relu) X(round) X(rsqrt) X(sigmoid) X(sign) X(signbit) X(sin) X(sinh) X(sqrt) X(square) \
  X(tan) X(tanh) X(trunc)
#define WEFT_BINARY_OPS(X) \
  X(add) X(atan2) X(bitwise_and) X(bitwise_left_shift) X(bitwise_or) X(bitwise_right_shift) \
  X(bitwise_xor) X(copysign) X(divide) X(equal) X(floor_divide) X(greater) X(greater_equal) \
  X(hypot) X(less) X(less_equal) X(logaddexp) X(logical_and) X(logical_or) X(logical_xor) \
  X(maximum) X(minimum) X(multiply) X(nextafter) X(not_equal) X(pow) X(remainder) X(subtract)
#define WEFT_REDUCE_OPS(X) X(sum) X(prod) X(max) X(min) X(all) X(any)
// clang-format on

#define WEFT_NAME(name) name,
enum class Op : std::uint16_t { WEFT_UNARY_OPS(WEFT_NAME) WEFT_BINARY_OPS(WEFT_NAME) named_ };
enum class ReduceOp : std::uint16_t { WEFT_REDUCE_OPS(WEFT_NAME) named_ };
#undef WEFT_NAME

/// Room in tables that operations index.
inline constexpr int kMostOps = 128, kMostReduceOps = 16;
/// How many rows the tables have: operations are 0 to count - 1.
int op_count();
int reduce_op_count();

}  // namespace weft
