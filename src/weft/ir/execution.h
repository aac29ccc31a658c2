// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the part of an axis that executes a block means: a condition on the loop bound to the axis.

#include "weft/ir/build.h"

namespace weft::ir {

/// Whether the point of `loop`, bound to the block's execution axis, is one that runs the block.
inline Expr executes_at(const Execution& execution, const ForNode* loop) {
  const DType type = loop->var->dtype;
  const Expr point = Expr(loop->var) - loop->min;
  return logical_and(ge(point, make_int(execution.begin, type)),
                     lt(point, make_int(execution.end, type)));
}

}  // namespace weft::ir
