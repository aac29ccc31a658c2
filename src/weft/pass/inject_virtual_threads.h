// SPDX-License-Identifier: Apache-2.0
#pragma once
// Loops bound to virtual axes are expanded inside the kernel: the loop moves down to the statements
// that need it, as an unrolled loop, so that points interleave; memory private to the axis gets one
// more dimension.

#include "weft/ir/node.h"
#include "weft/pass/machine.h"

namespace weft::pass {

ir::PrimFunc inject_virtual_threads(const ir::PrimFunc& f, const Machine& machine);

}  // namespace weft::pass
