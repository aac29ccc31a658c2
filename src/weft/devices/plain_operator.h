// SPDX-License-Identifier: Apache-2.0
#pragma once
// Operators that are data (operators/plain.h) for arrays of any device: processors, grids and
// machines build the same nests.

#include <span>

#include "weft/array/ops.h"
#include "weft/operators/plain.h"

namespace weft {

/// The operator of arrays of one floating type, which may have equal further axes in front (a
/// batch). Throws Error(shape, "array.<op>.shape") and (dtype, "array.<op>.type").
NDArray plain_run(const operators::PlainOperator& op, std::span<const NDArray> operands);
/// The gradient for operand `k`, of the operands, the result and its gradient.
NDArray plain_gradient(const operators::PlainOperator& op, std::size_t k,
                       std::span<const NDArray> operands, const NDArray& out, const NDArray& g);

}  // namespace weft
