// SPDX-License-Identifier: Apache-2.0
#pragma once
// Collectives inside a kernel, for machines whose points exchange through memory: every participant
// writes its region into a place of its own in memory that the participants share, then reads what
// it is due. insert_barriers keeps the two apart. An axis whose points share no on-chip memory or
// cannot meet is refused ("lower.collective.*").

#include "weft/ir/node.h"
#include "weft/machine/target_info.h"

namespace weft::pass {

/// Runs after unify_thread_binding, while buffers have their dimensions.
ir::PrimFunc lower_collectives(const ir::PrimFunc& f, const TargetInfo& machine);

}  // namespace weft::pass
