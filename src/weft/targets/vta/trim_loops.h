// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tiles that do not divide leave a condition such as `y_0 * 6 + y_1 < 56` around the innermost
// statement. Where the condition bounds one loop it becomes that loop's extent, min(6, 56 - y_0 *
// 6): the last tile is then a smaller rectangle, whole in memory, and not one with holes.

#include "weft/ir/node.h"

namespace weft::vta {

/// Whether a statement reads or writes one of the chip's memories.
bool touches_chip(const ir::Stmt& s);

/// Runs after buffers were made compact, which are then compacted once more. Only nests that touch
/// the chip's memories change.
ir::PrimFunc trim_loops(const ir::PrimFunc& f);

}  // namespace weft::vta
