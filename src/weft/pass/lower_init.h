// SPDX-License-Identifier: Apache-2.0
#pragma once
// Replaces a block's `init` by a guarded statement before its body: it runs when every reduction
// iterator is at its minimum.

#include "weft/ir/node.h"

namespace weft::pass {

ir::PrimFunc lower_init(const ir::PrimFunc& f);

}  // namespace weft::pass
