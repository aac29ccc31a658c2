// SPDX-License-Identifier: Apache-2.0
#pragma once
// Gradients of the table's rows as one kernel each, on devices with a grid.

#include <span>
#include <vector>

#include "weft/autograd/tensor.h"

namespace weft {

/// An operand of a row: one of a node's inputs, or a number.
struct RowOperand {
  int input = -1;
  Scalar number{0};
  bool wanted = false;  // an input's gradient
};

/// Do gradients of this call need graphs of their own?
bool gradient_is_linked(const GradientCall& c);

/// Computes those of the wanted gradients whose cells have several operations, or sums at their
/// end, and says which operands they are (bits). The others, and all where there is no grid or
/// where gradients have gradients, are for operations on tensors.
unsigned grid_row_gradients(Op op, const GradientCall& c, std::span<const RowOperand> operands,
                            std::vector<Tensor>& out);

/// x where the condition is `chosen`, else the number.
Tensor where(const Tensor& condition, const Tensor& x, const Scalar& number, bool chosen);
/// The gradients of a choice towards the inputs `a` and `b`, -1: not wanted; false where there is
/// no grid.
bool grid_where_gradients(const NDArray& condition, const GradientCall& c, int a, int b,
                          std::vector<Tensor>& out);

/// The gradients of reductions of x to a result of the shape `kept`; undefined where there is no
/// grid. Equal extremes share theirs.
Tensor grid_extreme_gradient(const GradientCall& c, const Dims& kept);
Tensor grid_logsumexp_gradient(const GradientCall& c, const Dims& kept);

}  // namespace weft
