// SPDX-License-Identifier: Apache-2.0
#pragma once
// A scheduled function as the interpreter runs points that hand work to one another.

#include "weft/ir/node.h"

namespace weft {

/// Points that meet at barriers in shared memory must run in turns, not one after another: their
/// loops are joined into a launch. Other functions stay as they are.
ir::PrimFunc join_points(const ir::PrimFunc& f);

}  // namespace weft
