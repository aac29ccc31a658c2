// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which elements of a compact array of truth values are set: their positions, or the elements of
// another array there. A block counts a tile (scan_reduce), the counts are scanned, and the block
// writes its elements behind those of the tiles before it, in order.

#include <string>

#include "weft/ir/node.h"

namespace weft::operators {

struct SelectSpec {
  std::string element;  // what is moved, as an unsigned word; "": positions, of 64 bits
  int rank = 1;         // of the array of truth values; positions are split into coordinates
  bool narrow = true;
};
inline constexpr int kSelectThreads = 256, kSelectItems = 16,
                     kSelectTile = kSelectThreads * kSelectItems;

/// Elements: (mask, ends, x, out, blocks, n). Positions: (mask, ends, out0.., blocks, n, then the
/// mask's extents), one result for each axis. ends: how many are set up to each tile's end.
ir::PrimFunc select_marked(const SelectSpec& spec);

/// (x, out, blocks, n), n not 0: out[i] of n + 1 truth values: whether x[i] differs from the
/// element before it; so does the first, and what lies behind the last. Blocks write kStartsTile of
/// them.
inline constexpr int kStartsItems = 8, kStartsTile = kSelectThreads * kStartsItems;
ir::PrimFunc run_starts(const std::string& type, bool narrow);

}  // namespace weft::operators
