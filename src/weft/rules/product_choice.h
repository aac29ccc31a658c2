// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tiles of products by threads and the choice among them: what a block computes, how its threads
// share it, and into how many parts the summed extent is cut.

#include <span>
#include <vector>

#include "weft/rules/product_tile.h"

namespace weft::rules {

/// How tiles of operands are read: so many of them in vectors of 16 bytes, or both element by
/// element along the sum.
enum class TileReads : std::uint8_t { no_vectors, one_in_vectors, both_in_vectors, along_sum };

/// A block computes rows x columns, `depth` summands at a time; a thread each_m x each_n of it. A
/// warp of 32 threads is lanes_m x (32 / lanes_m), the block warps_m x warps_n of them.
struct RatedTile {
  std::int64_t rows, columns, depth, each_m, each_n, lanes_m, warps_m, warps_n;
  std::int64_t blocks_per_sm;  // blocks that a processor needs to be busy
  double rate[4];              // of the multiply-adds per clock of a busy processor: by TileReads
  /// A warp multiplies by an instruction: lanes_m is 8, a thread has each 8th row and pairs of each
  /// 8th column.
  bool instruction = false;

  std::int64_t threads() const { return 32 * warps_m * warps_n; }
  /// Elements in shared memory for one step of the summed extent.
  std::int64_t step_size() const {
    return instruction ? (depth + 4) * (rows + columns) : depth * (rows + columns + 8);
  }
  /// For elements of so many bytes. A thread's neighbours lie together as far as 16 bytes hold
  /// them, so that it reads shared memory in vectors; `spread`: each lies a warp's threads apart.
  ProductTile tile(std::int64_t element_bytes, bool spread = false) const;
};

/// The tile with threads of a warp along columns as far as its warps allow: what they store one by
/// one lies together then.
RatedTile along_columns(RatedTile tile);

/// All tiles for elements of so many bytes; `instruction`: those of float64 where the device has an
/// instruction for its products.
std::span<const RatedTile> rated_tiles(std::int64_t element_bytes, bool instruction = false);

/// The extents of a product: `batch` products m x k by k x n.
struct ProductSize {
  std::int64_t batch, m, n, k;
};
struct TileChoice {
  std::size_t tile = 0;     // index into rated_tiles()
  std::int64_t parts = 1;   // of the summed extent
  std::int64_t stages = 1;  // versions of the tiles in shared memory
  double clocks = 0;        // of a processor, expected
};
/// The tile and parts of least expected time on this machine. `whole`: one part.
TileChoice choose_tile(const Facts& facts, std::int64_t element_bytes, const ProductSize& size,
                       TileReads reads, bool instruction = false, bool whole = false);
/// All choices, those of least expected time first.
std::vector<TileChoice> tile_options(const Facts& facts, std::int64_t element_bytes,
                                     const ProductSize& size, TileReads reads,
                                     bool instruction = false);
/// Versions of the tiles that fit: one more than copies in flight.
std::int64_t stages_of(const Facts& facts, const RatedTile& tile, std::int64_t element_bytes);

}  // namespace weft::rules
