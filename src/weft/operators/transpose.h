// SPDX-License-Identifier: Apache-2.0
#pragma once
// Copies between layouts whose fastest axes differ, through tiles in shared memory, so that both
// sides are read and written in whole lines.

#include <cstdint>
#include <string>

#include "weft/ir/node.h"

namespace weft::operators {

inline constexpr std::int64_t kTransposeTile = 64;
/// Elements of a line of the tile: a few more than it has columns, which then lie in different
/// banks.
inline constexpr std::int64_t kTransposeLine = kTransposeTile + 2;

struct TransposeSpec {
  std::string type = "uint32";  // of the elements, which are only moved
  bool narrow = true;           // positions fit 32 bits
  std::int64_t lanes = 1;       // neighbours that are read and written at once
};

/// main(out, x, blocks_r, blocks_c, batches, rows, columns, batch_in, row_in, batch_out, row_out):
/// out[b, c, r] = x[b, r, c]; steps count vectors of `lanes`.
ir::PrimFunc transpose_program(const TransposeSpec& spec);

}  // namespace weft::operators
