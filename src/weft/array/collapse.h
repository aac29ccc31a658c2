// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "weft/array/dims.h"
#include "weft/array/ops.h"

namespace weft {

/// Merges neighbouring axes of arrays of one shape wherever the steps of all of them allow it, and
/// drops axes of one element. At least one axis stays; row-major order is kept.
void collapse_axes(Dims& shape, std::vector<Dims>& strides);

/// The order of axes in which all arrays of the result's shape lie densely, where it is one that is
/// not row-major: element-wise work goes along memory, and the result has the operands' layout.
bool shared_order(const Dims& shape, const Arg* args, int count, std::vector<int>& order);
/// The permutation that undoes another.
std::vector<int> inverse_order(const std::vector<int>& order);

}  // namespace weft
