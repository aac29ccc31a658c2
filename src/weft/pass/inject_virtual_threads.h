// SPDX-License-Identifier: Apache-2.0
#pragma once
// Loops bound to virtual axes are expanded inside the kernel: the loop moves down to the statements
// that need it, as an unrolled loop, so that points interleave; memory private to the axis gets one
// more dimension.

#include <functional>

#include "weft/ir/node.h"
#include "weft/machine/target_info.h"

namespace weft::pass {

/// `whole`: statements that are copied as they are instead of being entered, for machines whose
/// instructions are loop nests.
ir::PrimFunc inject_virtual_threads(const ir::PrimFunc& f, const TargetInfo& machine,
                                    const std::function<bool(const ir::Stmt&)>& whole = {});

}  // namespace weft::pass
