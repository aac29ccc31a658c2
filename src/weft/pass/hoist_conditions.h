// SPDX-License-Identifier: Apache-2.0
#pragma once
// A condition that no iteration of a loop changes is asked once, before the loop:
//
//   for i: if (row < m) { body }   ->   if (row < m) { for i: body }
//
// so that the loads of an unrolled loop stand in one block and are in flight together. For the same
// reason a loop that is marked reads without asking what it reads only under a condition: the first
// element of the array where the condition does not hold, whose value is not used.

#include "weft/ir/node.h"

namespace weft::pass {

/// Annotation of a loop that runs only where the arrays that it reads under conditions have
/// elements.
inline constexpr const char* kReadsAhead = "weft.reads_ahead";

/// Serial and unrolled loops whose body is one condition of indices alone, without loads.
ir::PrimFunc hoist_conditions(const ir::PrimFunc& f);

}  // namespace weft::pass
