// SPDX-License-Identifier: Apache-2.0
#pragma once
// Refuses ("lower.axis.twice") statements that two nested loops of one axis decide: the loops have
// their points in common, so only pairs of equal positions would be computed.

#include "weft/ir/node.h"
#include "weft/machine/target_info.h"

namespace weft::pass {

/// A loop inside that a statement uses alone is good: all threads of a group fetch together what
/// each of them computes with.
void check_bound_twice(const ir::Stmt& kernel, const TargetInfo& machine);

}  // namespace weft::pass
