// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which points of its iterators a block visits, and on which PEs: the loops, conditions and outer
// blocks around it, brought into conditions on the iterators and parts along the axes. What cannot
// be said that way is refused with the reason.

#include <cstdint>
#include <string>
#include <vector>

#include "weft/ir/node.h"

namespace weft::wse {

enum class Spread : std::uint8_t { none, x, y, xy };  // xy: over all PEs, row by row

/// A block with everything around it, outermost loop first. Iterators of outer blocks are
/// replaced by what they are bound to.
struct Leaf {
  ir::Block block;
  std::vector<const ir::ForNode*> loops;
  ir::Exprs iter_values;
  ir::Exprs conditions;  // of realizations and of `if` statements without `else`
};

/// Blocks without blocks inside, in program order, and the buffers allocated around them.
/// Throws Error(lower, "wse.lower.…").
std::vector<Leaf> collect_leaves(const ir::Stmt& body, std::vector<ir::Buffer>* temporaries);

/// Part of an iterator that a PE gets because a loop is bound to "pe.x" or "pe.y".
struct BoundPart {
  Spread spread = Spread::none;
  std::int64_t chunk = 0;
};

struct Visits {
  bool never = false;            // some loop runs zero times, or a condition never holds
  ir::Exprs conditions;          // on the block's iterators; a point is visited if all hold
  std::vector<BoundPart> parts;  // one per iterator; without any bound loop: empty
};

/// Each visited point is visited once, or as if once: a loop that repeats a block is accepted
/// only where the block gives the same result each time.
Visits visits_of(const Leaf& leaf, std::int32_t width, std::int32_t height);

}  // namespace weft::wse
