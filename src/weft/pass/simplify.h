// SPDX-License-Identifier: Apache-2.0
#pragma once
// The simplifier as a pass, and the removal of statements without effect.

#include "weft/ir/node.h"

namespace weft::pass {

/// Canonical index arithmetic under loop ranges and guards; loops of extent 1 disappear, loops of
/// extent 0 and guards with a known answer too.
ir::PrimFunc simplify(const ir::PrimFunc& f);

/// floordiv and floormod whose operands are provably non-negative become C's division and
/// remainder; a power of two as divisor becomes a shift or a mask.
ir::PrimFunc lower_division(const ir::PrimFunc& f);

}  // namespace weft::pass
