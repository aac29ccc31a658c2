// SPDX-License-Identifier: Apache-2.0
#pragma once
// Table rows as IR expressions (value_ir.h), by the row's number.

#include <vector>

#include "weft/elements/elem.h"
#include "weft/elements/op.h"
#include "weft/ir/build.h"

namespace weft {

/// Thrown by the functions below for what the IR cannot say.
struct RowUnsupported {};

/// The row's value of operands of the type it computes in.
ir::Expr row_value(Op op, const std::vector<ir::Expr>& in);
/// The reduction's combination of two values, and the value that changes nothing.
ir::Expr reduce_value(ReduceOp op, const ir::Expr& a, const ir::Expr& x);
ir::Expr reduce_identity(ReduceOp op, Elem e);
/// The value as another element type, as astype converts.
ir::Expr convert_value(const ir::Expr& x, Elem e);

}  // namespace weft
