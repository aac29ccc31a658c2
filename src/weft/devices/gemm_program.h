// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products of arrays of 16-bit floats or float8 as programs: extents and strides are arguments, the
// schedule is that of the rule gemm_tensor_core with decisions made at the call.

#include "weft/base/dtype.h"
#include "weft/ir/node.h"
#include "weft/rules/gemm_tensor_core.h"

namespace weft::device {

/// out[p, batch..., m, n] = sum over k of part p of a[batch..., m, k] * b[batch..., k, n]; the axis
/// p only where there are several parts. Parameters: a, b, out; then, as integers, m, n / unit, k,
/// parts, steps of a part; `batch_axes` extents, outermost first; of a and then of b,
/// in vectors of 16 bytes, the stride of its planes where it has them, of each batch axis along
/// which it moves, then that of its rows; the stride of out's rows / unit where it is `pitched`.
///
/// Scales, and a bias, multiply and follow the sums: further parameters in this order, float32
/// arrays before the integers. One of a has an element or one for each row, one of b an element or
/// one for each column, a bias one for each column.
struct GemmProgram {
  static constexpr int kMostBatchAxes = 2;
  enum class Scale : std::uint8_t { none, one, each };
  DType type, type_b;    // of the operands
  DType result;          // where it is not partial
  bool partial = false;  // the result is float32 sums of parts
  bool pitched = false;  // rows of one product lie apart
  Scale scale_a = Scale::none, scale_b = Scale::none;
  bool bias = false;
  DType bias_type = dtypes::float32;  // or the result's
  bool pieces = false;  // of float32 operands (devices/pieces.h): axis 0 of both has the planes
  bool a_along_m = false, b_along_n = true;  // the innermost axis; otherwise k
  int unit = 8;                              // 8, 2 or 1: n is a multiple of it
  /// Elements of 16 bytes, which strides are counted in, and terms of a step.
  std::int64_t vector() const { return 16 / type.bytes(); }
  std::int64_t step() const { return 128 / type.bytes(); }
  int batch_axes = 0;
  bool moves_a[kMostBatchAxes] = {}, moves_b[kMostBatchAxes] = {};  // outermost first
  rules::GemmDecisions decisions;

  /// Without a schedule.
  ir::PrimFunc program() const;
  /// Throws Error(schedule, …) where a step of the schedule is refused.
  ir::PrimFunc scheduled() const;
};

}  // namespace weft::device
