// SPDX-License-Identifier: Apache-2.0
#pragma once
// Operators that are data (operators/plain.h) on tensors.

#include <string_view>

#include "weft/autograd/tensor.h"

namespace weft {

/// The operator with this name. Its gradients have none: they raise Error(dtype,
/// "array.<op>.gradient").
Tensor plain_operator(std::string_view name, const std::vector<Tensor>& operands);

}  // namespace weft
