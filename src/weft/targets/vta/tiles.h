// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tiles of a stage: how much of each axis is on chip at a time, and in which order tiles come.
// Found by trying what fits (twice where it comes again, so that filling overlaps with using) and
// estimating cycles.

#include "weft/targets/vta/layout.h"
#include "weft/targets/vta/timing.h"

namespace weft::vta {

/// A stage with its lanes and layouts chosen.
struct StageLayout {
  Lanes lanes;
  std::optional<Layout> x, w;
  std::vector<Layout> operands, stores;  // stores: one per segment of the chain (unused if none)
};
/// Throws Error(lower, "vta.accepts.*").
StageLayout lay_out(const Task& s, const Config& c);

struct Tiles {
  std::vector<std::int64_t> outer, tile;  // per axis, in whole elements
  std::vector<std::size_t> order;         // tile loops outermost first; reduced axes last
  double cycles = 0;                      // estimated
  std::int64_t count(std::size_t axis) const { return (outer[axis] + tile[axis] - 1) / tile[axis]; }
};

/// Whether an operand of the chain stays on chip as a whole: few elements that many tiles read,
/// such as a bias. Otherwise each tile that changes it fetches its part.
bool kept_whole(const Operand& o, const Task& s, const Lanes& l, const Config& c);

/// What is not to be chosen.
struct TileConstraints {
  std::vector<std::int64_t> tile;  // per axis, 0: free; empty: all free
  std::int64_t threads = 1;        // some spatial axis must have a multiple of so many tiles
  bool all_orders = false;         // of the tile loops, not those alone that are mostly best
};

/// Best first, by estimated cycles; products at most `most`, other tasks the best one alone unless
/// all orders are wanted. Throws Error(lower, "vta.accepts.capacity") with the sizes when
/// nothing fits.
std::vector<Tiles> rank_tiles(const Task& s, const StageLayout& laid, const Config& c,
                              const TimingParams& timing, const TileConstraints& constraints = {},
                              std::size_t most = 192);
/// The first of them.
Tiles choose_tiles(const Task& s, const StageLayout& laid, const Config& c,
                   const TimingParams& timing, const TileConstraints& constraints = {});

}  // namespace weft::vta
