// SPDX-License-Identifier: Apache-2.0
#pragma once
// Neighbouring steps of a loop that run the same inner loop over common data run it together: what
// does not differ between them is read once, and more requests of what does are in flight.

#include "weft/ir/node.h"

namespace weft::qpu::tensor {

/// Of a kernel's body, after accumulators have become registers. Loops of unknown extent stay.
ir::Stmt jam(const ir::Stmt& body, const ir::VarNode* lane);

}  // namespace weft::qpu::tensor
