// SPDX-License-Identifier: Apache-2.0
#pragma once
// Words that do not change while a loop runs (the weights of a convolution, a bias) are read once,
// before it, as far as registers allow.

#include <vector>

#include "weft/ir/node.h"

namespace weft::qpu::tensor {

ir::Stmt hoist_reads(const ir::Stmt& body, const std::vector<ir::LaunchAxis>& axes);

}  // namespace weft::qpu::tensor
