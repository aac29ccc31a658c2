// SPDX-License-Identifier: Apache-2.0
#pragma once
// A condition that no iteration of a loop changes is asked once, before the loop:
//
//   for i: if (row < m) { body }   ->   if (row < m) { for i: body }
//
// so that the loads of an unrolled loop stand in one block and are in flight together.

#include "weft/ir/node.h"

namespace weft::pass {

/// Serial and unrolled loops whose body is one condition of indices alone, without loads.
ir::PrimFunc hoist_conditions(const ir::PrimFunc& f);

}  // namespace weft::pass
