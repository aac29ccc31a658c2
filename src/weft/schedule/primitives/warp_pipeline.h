// SPDX-License-Identifier: Apache-2.0
#pragma once
// A pipelined matrix product as specialize_warps sees it, and the program that it makes of one.

#include <cstdint>
#include <vector>

#include "weft/schedule/describe.h"

namespace weft::schedule {

/// One factor of the product: a box of a global buffer in every step.
struct PipelineOperand {
  ir::Buffer global;
  ir::Exprs first;           // the box's first element, in loops of the grid and of the steps
  std::size_t along = 0;     // axis of the result's rows or columns
  std::size_t sum_axis = 0;  // axis that is summed up
  bool rows_along_sum() const { return sum_axis + 1 == first.size(); }
};

/// The tile that a block of threads computes: rows of the operand a, columns of b.
struct WarpPipeline {
  std::vector<const ir::ForNode*> grid;  // loops bound to blockIdx, outermost first
  const ir::ForNode* steps = nullptr;    // each adds up `step` terms
  std::int64_t step = 64;                // rows of 128 bytes
  std::int64_t slots = 0;
  std::int64_t promote = 0;  // steps whose sum is added to the tile's; 0: all at once
  PipelineOperand a, b;
  ir::Buffer sums;
  std::vector<ir::Buffer> gone;  // that belong to a tile: the sums, what is copied
  ir::Exprs origin, extents;     // of the tile in `sums`, and of what is computed of `sums` at all
  std::size_t row = 0, column = 0;  // axes of `sums`
  std::int64_t rows = 0, columns = 0;
  const ir::BlockNode* store = nullptr;  // writes the result
  std::vector<std::size_t> store_axes;   // of each iterator of `store`: the axis of `sums`, or npos
  std::size_t top = 0;                   // of the path: the outermost loop of the grid
  std::int64_t groups() const { return rows / 64; }
  /// The only loop of the grid that the tile's place along an axis depends on; null where there are
  /// none or several.
  const ir::ForNode* loop_of(std::size_t axis) const;
  /// Rows of b's tile in shared memory. Rows along the columns hold 64 of them each.
  std::int64_t ring_columns() const {
    return b.rows_along_sum() ? columns : (columns + 63) / 64 * 64;
  }
  const ir::Buffer& store_buffer() const { return ir::as<ir::StoreNode>(store->body)->buffer; }
};

Verdict find_warp_pipeline(const State& s, const Path& path, WarpPipeline& out);

struct WarpProgramOptions {
  std::int64_t blocks = 0, group_rows = 1, copying = 40, multiplying = 232;
  // Of a cluster: blocks one below another share the tiles of b, those beside one another of a.
  std::int64_t cluster = 1, cluster_columns = 1;
  std::int64_t cluster_blocks() const { return cluster * cluster_columns; }
  /// Blocks that copy to one of them, itself among them.
  std::int64_t cluster_writers() const { return cluster + cluster_columns - 1; }
};
struct WarpProgram {
  ir::Stmt nest;  // bound to blockIdx.x and threadIdx.x
  std::uint64_t producer = 0, consumer = 0;
};
WarpProgram make_warp_program(const WarpPipeline& p, const WarpProgramOptions& options);

}  // namespace weft::schedule
