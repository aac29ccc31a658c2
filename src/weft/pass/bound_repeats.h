// SPDX-License-Identifier: Apache-2.0
#pragma once
// Refuses ("lower.axis.repeated") statements under two nested loops of one axis that the outer one
// repeats. As loops, such a statement runs once for every pair of iterations; on the axis, once for
// every position. Both leave the same only where a repetition finds what the first run found.

#include "weft/ir/node.h"
#include "weft/machine/target_info.h"

namespace weft::pass {

/// Runs after check_bound_twice: what depends on both loops is refused there.
void check_bound_repeats(const ir::Stmt& kernel, const TargetInfo& machine);

}  // namespace weft::pass
