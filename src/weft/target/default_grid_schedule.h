// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a function gets that no schedule has touched and that runs on a grid of groups of threads:
// chains of element-wise blocks become one, each nest's spatial loops are fused and given to
// blockIdx.x and threadIdx.x (256 points a group), and a reduction with few results runs across the
// threads of a group, one group per result. Blocks that share loops stay together: threads run
// through the shared loops and keep what the blocks hand to one another; where that is not
// possible, one thread runs the nest. Correct for every program; fast for element-wise and reducing
// ones. A function with a bound loop anywhere keeps its own schedule.

#include "weft/ir/node.h"
#include "weft/target/target.h"

namespace weft {

/// f itself when a loop is bound, or when the target has no blockIdx.x and threadIdx.x.
ir::PrimFunc default_grid_schedule(const ir::PrimFunc& f, const TargetInfo& info);

}  // namespace weft
