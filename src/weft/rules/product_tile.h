// SPDX-License-Identifier: Apache-2.0
#pragma once
// The steps of a product by threads, any extents: padded tiles of both operands come through shared
// memory some steps ahead of their use, a thread keeps its results in registers and reads its
// operands of a term in vectors.

#include "weft/rules/nest.h"

namespace weft::rules {

/// One side of a tile of results: a group has `warps` side by side, a warp `lanes` threads, a
/// thread `each` results. `near` of these are neighbours, the next ones lie a warp's neighbours
/// apart, so that a warp reads whole lines of shared memory.
struct TileSide {
  std::int64_t warps = 1, lanes = 8, each = 8, near = 4;
  std::int64_t line() const { return lanes * near; }
  std::int64_t lines() const { return each / near; }
  std::int64_t warp() const { return line() * lines(); }
  std::int64_t size() const { return warp() * warps; }
};

struct ProductTile {
  TileSide rows{2, 8}, columns{4, 4};
  std::int64_t depth = 16;
  std::int64_t ahead = 0;           // steps that tiles are fetched before their use
  std::int64_t vector[2] = {1, 1};  // elements of each operand that a thread fetches at once
  bool vector_out = false;          // neighbours are stored at once
  /// Warps multiply tiles of shared memory by it, by the name of a nest of rows, columns,
  /// neighbours and terms; "": threads do, each in registers.
  std::string instruction = {};
  std::int64_t threads() const { return rows.lanes * columns.lanes * rows.warps * columns.warps; }
};

/// The blocks of a padded product. `product` sums, over its last iterator, products of elements of
/// two tiles [batch..., k, m] and [batch..., k, n] into [batch..., m, n], from 0; all extents are
/// multiples of the tile's. `copies` write the tiles, with zeros beyond the operands, `store` reads
/// the results that count. `places`: what both copies read, for each term; absent in most.
/// `batches`: those along which each operand moves.
struct PaddedProduct {
  BlockRef product, copies[2], store;
  std::vector<std::size_t> batches[2];
  std::optional<BlockRef> places;
};

/// The nest as it is, with any extents: iterators batch..., m, n, k, loads at plain iterators.
std::optional<ProductTile> match_product_tile(const Nest& nest, const Facts& facts);
/// Pads the nest, then as below. `finish`: as that of schedule_gemm_registers.
bool schedule_product(Schedule& sch, const Nest& nest, const ProductTile& tile,
                      std::optional<BlockRef> finish);
void schedule_product_tile(Schedule& sch, const PaddedProduct& blocks, const ProductTile& tile);

}  // namespace weft::rules
