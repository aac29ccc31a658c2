// SPDX-License-Identifier: Apache-2.0
#pragma once
// What is set among the places of an array: their positions, or the elements of another array
// there. Marks are truth values, or follow from neighbours: where the runs of equal elements begin.
// A block counts its tile, the counts are scanned, and the block writes its elements behind those
// of the tiles before it, in order.

#include <string>

#include "weft/ir/node.h"

namespace weft::operators {

struct SelectSpec {
  /// The type of x, of whose n elements those are set that differ from the one before, the first
  /// and the place behind the last, as far as there are marks; "": marks are an array.
  std::string runs;
  std::string
      element;   // what is moved: x of runs, else as an unsigned word; "": positions, of 64 bits
  int rank = 1;  // of the array of marks; positions are split into coordinates
  bool narrow = true;
};
inline constexpr int kSelectThreads = 256, kSelectItems = 16,
                     kSelectTile = kSelectThreads * kSelectItems;

/// (mask or x of runs, counts, blocks, marks, [n]): how many are set in each tile.
ir::PrimFunc select_count(const SelectSpec& spec);
/// Elements: (mask, ends, x, out, blocks, marks), of runs (x, ends, out, blocks, marks, n).
/// Positions: (mask or x, ends, out0.., blocks, marks, [n], then the extents of the marks), one
/// result for each axis. ends: how many are set up to each tile's end.
ir::PrimFunc select_marked(const SelectSpec& spec);

/// (x, out, blocks, n), n not 0: out[i] of n + 1 truth values: the marks of x's runs. Blocks write
/// kStartsTile of them.
inline constexpr int kStartsItems = 8, kStartsTile = kSelectThreads * kStartsItems;
ir::PrimFunc run_starts(const std::string& type, bool narrow);

}  // namespace weft::operators
