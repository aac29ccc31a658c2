// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which points of its iterators a block visits: the loops, conditions and outer blocks around it,
// brought into conditions on the iterators. What cannot be expressed so is refused with the reason
// (Error(lower, "stages.…")), never dropped.

#include <cstdint>
#include <string>
#include <vector>

#include "weft/stages/blocks.h"

namespace weft::stages {

/// An axis of the machine that loops around blocks may be bound to.
struct BoundAxis {
  std::string name;
  std::int64_t limit;
};

/// One term of a binding: `scale` times the loop's count from 0.
struct Digit {
  const ir::ForNode* loop;
  std::int64_t min, extent;  // of the loop
  std::int64_t scale;
  bool reversed = false;  // the loop runs against the iterator
};

/// An iterator as `start` plus its digits, the largest scale first.
struct Binding {
  std::int64_t start = 0;
  std::vector<Digit> digits;
};

struct Visits {
  bool never = false;             // some loop runs zero times, or a condition never holds
  ir::Exprs conditions;           // on the block's iterators; a point is visited if all hold
  std::vector<Binding> bindings;  // one per iterator; empty when they are no sums of loops
};

/// Each visited point is visited once, or as if once: a loop that repeats a block is accepted
/// only where the block gives the same result each time.
Visits visits_of(const Leaf& leaf, const std::vector<BoundAxis>& axes);

}  // namespace weft::stages
