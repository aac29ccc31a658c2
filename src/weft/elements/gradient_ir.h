// SPDX-License-Identifier: Apache-2.0
#pragma once
// The table's cells of gradients as IR expressions, so that a gradient is one kernel.

#include <string_view>
#include <vector>

#include "weft/elements/op.h"
#include "weft/ir/build.h"

namespace weft {

/// What a row's gradient towards an operand reads (bits), and how many operations its cell has;
/// none where it is zero almost everywhere or the incoming gradient itself.
struct GradientCell {
  static constexpr std::uint32_t kFirst = 1, kSecond = 2, kResult = 1u << 31;
  std::uint32_t reads = 0;
  int operations = 0;
};
GradientCell gradient_cell(Op op, int operand);

/// The gradient of a row of real floats towards an operand: of the incoming one, operands and
/// result, all of the type that is computed in. What the cell does not read may be undefined.
ir::Expr gradient_value(Op op, int operand, const ir::Expr& g, const std::vector<ir::Expr>& in,
                        const ir::Expr& out);

}  // namespace weft
