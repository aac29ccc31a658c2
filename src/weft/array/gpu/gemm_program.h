// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products of 16-bit arrays as programs: extents and strides are arguments, the schedule is that of
// the rule gemm_tensor_core with decisions made at the call.

#include "weft/base/dtype.h"
#include "weft/ir/node.h"
#include "weft/rules/gemm_tensor_core.h"

namespace weft::device {

/// out[p, batch..., m, n] = sum over k of part p of a[batch..., m, k] * b[batch..., k, n]; the axis
/// p only where there are several parts. Parameters: a, b, out; then, as integers, m, n / unit, k,
/// parts, steps of 64 terms of a part; `batch_axes` extents, outermost first; of a and then of b,
/// in eighths, the stride of each batch axis along which it moves, then that of its rows.
struct GemmProgram {
  static constexpr int kMostBatchAxes = 2;
  DType type;                                // of the operands
  bool partial = false;                      // the result is float32, else of the operands' type
  bool a_along_m = false, b_along_n = true;  // the innermost axis; otherwise k
  int unit = 8;                              // 8, 2 or 1: n is a multiple of it
  int batch_axes = 0;
  bool moves_a[kMostBatchAxes] = {}, moves_b[kMostBatchAxes] = {};  // outermost first
  rules::GemmDecisions decisions;

  /// Without a schedule.
  ir::PrimFunc program() const;
  /// Throws Error(schedule, …) where a step of the schedule is refused.
  ir::PrimFunc scheduled() const;
};

}  // namespace weft::device
