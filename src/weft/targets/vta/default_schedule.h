// SPDX-License-Identifier: Apache-2.0
#pragma once
// A schedule for functions that have none: packed matrix products and elementwise chains, written
// with the public primitives, so that what it does can be printed and repeated by hand.

#include "weft/ir/node.h"
#include "weft/targets/vta/config.h"

namespace weft::vta {

/// Whether some buffer already lies in a scope of this machine.
bool is_scheduled(const ir::PrimFunc& f);
/// Refuses ("vta.accepts.unscheduled") what has neither a schedule nor a default one.
Verdict accepts_default(const ir::PrimFunc& f, const Config& config);
ir::PrimFunc default_schedule(const ir::PrimFunc& f, const Config& config);

}  // namespace weft::vta
