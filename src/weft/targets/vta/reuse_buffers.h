// SPDX-License-Identifier: Apache-2.0
#pragma once
// ALU works in place, so a chain of elementwise statements over buffers of its own would copy every
// element between them (a reset and an addition). Where a statement reads a buffer for the last
// time and writes another of the same shape at the same places, the two become one.

#include "weft/ir/node.h"

namespace weft::vta {

ir::PrimFunc reuse_buffers(const ir::PrimFunc& f);

}  // namespace weft::vta
