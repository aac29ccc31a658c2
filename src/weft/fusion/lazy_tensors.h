// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "weft/autograd/tensor.h"
#include "weft/fusion/lazy.h"

namespace weft {

/// An elementwise Lazy graph (rows, casts, choices, numbers) computed by operations on tensors,
/// which broadcast; the results have gradients where the inputs do.
std::vector<Tensor> evaluate(const std::vector<Lazy>& outputs, const std::vector<Tensor>& inputs);

}  // namespace weft
