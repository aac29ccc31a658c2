// SPDX-License-Identifier: Apache-2.0
#pragma once
// A reduction iterator bound to an axis whose points can join (threadIdx, lane): every point
// reduces its share into a private element, the shares meet in shared memory as a tree, or in one
// instruction where the axis has it, and the result is written by point 0, or by every point when
// the output is private to the points.

#include "weft/ir/node.h"
#include "weft/machine/target_info.h"

namespace weft::pass {

/// Runs first, on blocks. Refuses ("lower.cross_thread.*") what ir/reduction_pattern.h does not
/// know, or what does not stand in the deepest loops.
ir::PrimFunc lower_cross_thread_reduction(const ir::PrimFunc& f, const TargetInfo& machine);

}  // namespace weft::pass
