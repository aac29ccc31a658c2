// SPDX-License-Identifier: Apache-2.0
#pragma once
// Scalar meaning of every operation, in one place: integers are carried as int64 (unsigned ones as
// their bit pattern) and wrapped to their width after each operation; floats are carried as double
// and rounded to their type after each operation. Signed results wrap; min(a, b) is `a < b ? a :
// b`; a float outside the range of the integer that carries it (float_cast.h) converts to the
// nearest end, NaN to 0.

#include <cstdint>
#include <span>

#include "weft/ir/node.h"

namespace weft::ir {

union Lane {
  std::int64_t i;
  double f;
};

enum class IntrinsicId : std::uint8_t {
#define INTRINSIC(name, arity, type, effect, meaning) name##_,
#include "weft/ir/intrinsics.def"
#undef INTRINSIC
};

std::int64_t wrap_int(std::int64_t v, DType t);
double round_float(double v, DType t);
/// Arithmetic, comparison or logic on integers of type t. False: division by zero.
bool eval_int_binary(ExprKind kind, DType t, std::int64_t a, std::int64_t b, std::int64_t* out);
/// Arithmetic on floats of type t, rounded.
double eval_float_binary(ExprKind kind, DType t, double a, double b);
bool eval_float_compare(ExprKind kind, double a, double b);
/// Conversion between element types.
Lane eval_cast(Lane v, DType from, DType to);
/// The same bits as another type of equal size.
Lane eval_reinterpret(Lane v, DType from, DType to);
/// Pure scalar intrinsics over operands of type t (predicates give 0 or 1). False when `id` is none
/// of them.
bool eval_intrinsic(IntrinsicId id, DType t, std::span<const Lane> args, Lane* out);

}  // namespace weft::ir
