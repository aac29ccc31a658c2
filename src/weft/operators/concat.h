// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rows of several arrays side by side in one launch. Elements are only moved, as words.

#include <string>

#include "weft/ir/node.h"

namespace weft::operators {

struct ConcatSpec {
  int bytes = 4;  // of a word
  int parts = 2;
  bool one_row = false;
  bool narrow = true;
};
inline constexpr int kConcatThreads = 256, kConcatItems = 4,
                     kConcatTile = kConcatThreads * kConcatItems, kMostConcatParts = 8;

/// (out, part0.., blocks, count, width, step, then of each part the place behind it in a row and
/// its rows' step; of narrow ones factor and shift, which divide by the width): row r of out begins
/// at r * step and takes the rows r of all parts, `width` words. count: words of all rows.
ir::PrimFunc concat_rows(const ConcatSpec& spec);

}  // namespace weft::operators
