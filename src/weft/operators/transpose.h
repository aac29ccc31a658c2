// SPDX-License-Identifier: Apache-2.0
#pragma once
// Copies between layouts whose fastest axes differ, through tiles in shared memory, so that both
// sides are read and written in whole lines.

#include <cstdint>
#include <string>

#include "weft/ir/node.h"

namespace weft::operators {

/// Elements of a tile. Its lines are one longer than it has columns, so that neighbours of a column
/// lie in different banks.
inline constexpr std::int64_t kTransposeTile = 4096;

struct TransposeSpec {
  std::string type = "uint32";     // of the elements, which are only moved
  bool narrow = true;              // positions fit 32 bits
  std::int64_t lanes = 1;          // neighbours that are read and written at once
  std::int64_t tile_columns = 64;  // a power of two from 16 to 256; rows: what is left of the tile
  bool backwards = false;          // neighbours along columns of x lie one before the other
  int batch_axes = 1;
  std::int64_t tile_rows() const { return kTransposeTile / tile_columns; }
  std::int64_t shared_elements() const { return tile_rows() * (tile_columns + 1); }
};

/// main(out, x, blocks_r, blocks_c, batches, rows, columns, row_in, row_out, then of each axis of
/// batches its extent and steps in x and out): out[b..., c, r] = x[b..., r, c]. Steps count vectors
/// of `lanes`.
ir::PrimFunc transpose_program(const TransposeSpec& spec);

}  // namespace weft::operators
