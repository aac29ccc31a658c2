// SPDX-License-Identifier: Apache-2.0
#pragma once
// The schedule of a function without one on a processor. Element-wise blocks are left to the
// compiler, whose loops in vectors are as fast; it may not reorder sums, so reductions are
// scheduled here: rows into vectors of partial sums, columns and products into tiles of registers.

#include <string>
#include <vector>

#include "weft/rules/facts.h"
#include "weft/schedule/schedule.h"

namespace weft::rules {

/// Whether nobody has scheduled the function: each block stands in its own loops, in their order,
/// one for each iterator, and no loop has a kind or an annotation.
bool is_plain(const ir::PrimFunc& f);
/// The function itself where is_plain is false, or where no rule matches.
ir::PrimFunc schedule_for_host(const ir::PrimFunc& f, const TargetInfo& machine);

}  // namespace weft::rules
