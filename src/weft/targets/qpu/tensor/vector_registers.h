// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "weft/ir/node.h"

namespace weft::qpu::tensor {

/// Local arrays whose element 16 x + lane is lane's own become arrays of vectors, with the index x.
ir::Stmt vector_registers(const ir::Stmt& body, const ir::LaunchAxis& lane);

}  // namespace weft::qpu::tensor
