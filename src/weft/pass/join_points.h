// SPDX-License-Identifier: Apache-2.0
#pragma once
// A scheduled function as the interpreter runs points that hand work to one another.

#include "weft/ir/node.h"
#include "weft/machine/target_info.h"

namespace weft::pass {

/// Points that meet at barriers in shared memory must run in turns, not one after another: their
/// loops are joined into a launch. Other functions stay as they are.
ir::PrimFunc join_points(const ir::PrimFunc& f, const TargetInfo& machine);

}  // namespace weft::pass
