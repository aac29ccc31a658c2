// SPDX-License-Identifier: Apache-2.0
#pragma once
// Barriers among the points of a kernel's group. Two accesses of one buffer, at least one a write,
// by different points need a barrier between them unless the elements are proved distinct: both are
// base + T(point) + offset with the same T, injective with gaps that hold the offsets; or their
// ranges over all points are disjoint. Loop-carried pairs count. A barrier under a condition that
// differs between points splits the condition. check_races.h judges the result and shares nothing
// with this file.

#include "weft/ir/node.h"
#include "weft/machine/target_info.h"

namespace weft::pass {

/// Runs on flat memory, after virtual axes are gone.
ir::PrimFunc insert_barriers(const ir::PrimFunc& f, const TargetInfo& machine);

}  // namespace weft::pass
