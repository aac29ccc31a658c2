// SPDX-License-Identifier: Apache-2.0
#pragma once
// Nested loops on one axis of a machine.

#include "weft/ir/node.h"
#include "weft/machine/target_info.h"

namespace weft::pass {

/// Two loops around a statement that are bound to one axis have its points in common: where the
/// statement depends on both, only pairs of equal positions would be computed. Throws Error(lower,
/// "lower.axis.twice"). A loop inside that a statement uses alone is good: all threads of a group
/// fetch together what each of them computes with.
void check_bound_twice(const ir::Stmt& kernel, const TargetInfo& machine);

}  // namespace weft::pass
