// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rows that fit the registers of a group (softmax, norms and their gradients): blocks that reduce a
// row and blocks that map it share one loop over rows. A row's elements stay in its threads'
// registers between them, what is reduced lies in shared memory.

#include <optional>
#include <vector>

#include "weft/rules/nest.h"

namespace weft::rules {

/// How a row of constant length is shared among threads.
struct RowTile {
  std::int64_t lanes = 1;    // neighbours that a thread moves at once
  std::int64_t threads = 1;  // of a row
  std::int64_t moves = 1;    // of a thread
  std::int64_t beside = 1;   // rows of a group
  std::int64_t width() const { return lanes * threads * moves; }
};
/// Absent where a group of so many threads cannot hold the row in registers, in so many arrays.
std::optional<RowTile> row_tile(std::int64_t columns, std::int64_t lanes, std::int64_t most_threads,
                                std::int64_t arrays);

struct RowDecisions {
  std::vector<BlockRef> blocks;  // of the whole body, in order; the last one writes the results
  std::vector<bool> reduces;
  std::size_t outer = 0;  // loops around the columns
  RowTile tile;
  bool whole = false;  // rows are as long as the tile is wide
};

/// `blocks`: the nests of a body, one block each. Absent where they are no passes over rows.
std::optional<RowDecisions> match_row(const Schedule& sch, const std::vector<BlockRef>& blocks,
                                      const Facts& facts);
/// False, with some steps applied, where a pass needs other rows than its own.
bool schedule_row(Schedule& sch, const RowDecisions& decisions);

}  // namespace weft::rules
