// SPDX-License-Identifier: Apache-2.0
#pragma once
// A block's `init` belongs to the first iteration of its reduction; a reduction over nothing has
// none. Before the loops of a reduction whose extent may be 0 at run time this puts the same init,
// run when the extent is 0, so that an empty sum is 0 and not what the memory held. Where the
// extent is at least 1 for certain, nothing changes.

#include "weft/ir/node.h"

namespace weft::pass {

ir::PrimFunc init_empty_reductions(const ir::PrimFunc& f);

}  // namespace weft::pass
