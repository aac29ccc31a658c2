// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tensor programs on the QPU: what is taken, and kernels as one binary.

#include "weft/base/error.h"
#include "weft/ir/node.h"
#include "weft/runtime/binary.h"

namespace weft::qpu::tensor {

/// Refuses ("qpu.accepts.*") statements and expressions without a form here, naming the block.
Verdict accepts(const ir::PrimFunc& f);

/// Kernels (a Launch over qpu and lane each) compiled, one after the other, into one binary.
runtime::Binary emit(const std::vector<ir::PrimFunc>& kernels, const std::string& target);

}  // namespace weft::qpu::tensor
