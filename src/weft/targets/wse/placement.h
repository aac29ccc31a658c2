// SPDX-License-Identifier: Apache-2.0
#pragma once
// The parts of a block's iterators that PEs get because loops are bound to "pe.x" or "pe.y".

#include <cstdint>
#include <vector>

#include "weft/stages/visits.h"

namespace weft::wse {

enum class Partition : std::uint8_t { none, x, y, xy };  // xy: over all PEs, row by row

struct BoundPart {
  Partition partition = Partition::none;
  std::int64_t chunk = 0;
};

/// One part per iterator; empty when no loop is bound. Throws Error(lower, "wse.lower.axis").
std::vector<BoundPart> parts_of(const stages::Leaf& leaf, const stages::Visits& visits,
                                std::int32_t width);

}  // namespace weft::wse
