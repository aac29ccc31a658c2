// SPDX-License-Identifier: Apache-2.0
#include "weft/rules/product_choice.h"

#include <algorithm>

#include "weft/base/integers.h"

namespace weft::rules {

namespace {

// rows, columns, depth, each_m, each_n, lanes_m, warps_m, warps_n, resident, rates: of 2048 x 2048
// x 2048 and 4096 x 4096 x 4096 on an NVIDIA H200 (bench/gpu/tiles.cpp), whose processors could do
// 128 a clock at 1.9 GHz.
constexpr RatedTile kWordTiles[] = {
    {128, 128, 16, 8, 8, 8, 2, 4, 2, {0.745, 0.765, 0.80, 0.745}},  //
    {64, 128, 16, 8, 8, 8, 1, 4, 3, {0.71, 0.783, 0.81, 0.755}},    //
    {128, 64, 16, 8, 8, 4, 4, 1, 3, {0.705, 0.72, 0.82, 0.705}},    //
    {64, 64, 32, 8, 4, 4, 2, 2, 4, {0.62, 0.64, 0.66, 0.62}},       //
    {32, 128, 16, 4, 8, 8, 1, 4, 4, {0.58, 0.61, 0.63, 0.58}},      //
    {128, 32, 16, 8, 4, 4, 4, 1, 4, {0.58, 0.60, 0.62, 0.58}},      //
    {32, 32, 32, 4, 2, 4, 2, 2, 6, {0.34, 0.36, 0.37, 0.34}},       //
    {128, 256, 16, 8, 16, 8, 2, 4, 1, {0.69, 0.76, 0.78, 0.79}},    //
};
// Twice the registers and shared memory for each element.
constexpr RatedTile kDoubleWordTiles[] = {
    {64, 64, 16, 8, 4, 4, 2, 2, 4, {0.62, 0.62, 0.62, 0.62}},  //
    {32, 128, 8, 4, 8, 8, 1, 4, 4, {0.56, 0.56, 0.56, 0.56}},  //
    {128, 32, 8, 8, 4, 4, 4, 1, 4, {0.56, 0.56, 0.56, 0.56}},  //
    {32, 32, 16, 4, 2, 4, 2, 2, 6, {0.35, 0.35, 0.35, 0.35}},  //
};
// float64 by an instruction: the fragments of a step are read at once.
constexpr RatedTile kDoubleTiles[] = {
    {128, 128, 16, 8, 8, 8, 2, 4, 1, {0.70, 0.75, 0.80, 0.70}, true},  //
    {128, 64, 16, 8, 8, 8, 2, 2, 2, {0.65, 0.70, 0.75, 0.65}, true},   //
    {64, 64, 16, 4, 8, 8, 2, 2, 3, {0.55, 0.60, 0.65, 0.55}, true},    //
    {32, 128, 16, 4, 8, 8, 1, 4, 3, {0.45, 0.50, 0.55, 0.45}, true},   //
    {32, 32, 16, 2, 4, 8, 2, 2, 6, {0.30, 0.30, 0.30, 0.30}, true},    //
};

/// What a launch and the sum over parts cost, in clocks of a processor.
constexpr double kLaunch = 7000, kBytesPerClock = 12;
/// Bytes of the parts' sums, which lie in memory until they are added up.
constexpr std::int64_t kMostPartBytes = 256 << 20;

/// Blocks of one part.
std::int64_t blocks_of(const RatedTile& t, const ProductSize& s) {
  return ceil_div(s.m, t.rows) * ceil_div(s.n, t.columns) * s.batch;
}

double expected_clocks(const Facts& facts, const RatedTile& t, std::int64_t element_bytes,
                       const ProductSize& s, std::int64_t parts, TileReads reads) {
  const double processors = static_cast<double>(facts.processors());
  // Of the busiest processor.
  const std::int64_t each = ceil_div(blocks_of(t, s) * parts, facts.processors());
  const std::int64_t steps = ceil_div(ceil_div(s.k, parts), t.depth);
  // A processor does 128 multiply-adds a clock, half as many of eight bytes without an instruction.
  // The first copies and the last stores, which no other block hides, cost a few steps.
  constexpr double kFill = 5;
  const double step = static_cast<double>(t.rows * t.columns * t.depth) /
                      (element_bytes > 4 && !t.instruction ? 64 : 128) /
                      t.rate[static_cast<int>(reads)],
               block = step * static_cast<double>(steps);
  const std::int64_t rest = each % t.blocks_per_sm;
  // A processor with fewer blocks than it needs waits for memory and barriers.
  const double busy =
      0.70 + 0.33 * static_cast<double>(rest) / static_cast<double>(t.blocks_per_sm);
  double clocks = static_cast<double>(each - rest) * block + kFill * step;
  if (rest > 0) clocks += static_cast<double>(rest) * block / busy;
  if (parts > 1) {
    const double bytes = static_cast<double>((parts + 1) * s.batch * s.m * s.n * element_bytes);
    clocks += kLaunch + bytes / (processors * kBytesPerClock);
  }
  return clocks;
}

}  // namespace

RatedTile along_columns(RatedTile tile) {
  while (tile.lanes_m > 2 && tile.warps_n % 2 == 0)
    tile.lanes_m /= 2, tile.warps_n /= 2, tile.warps_m *= 2;
  return tile;
}

std::span<const RatedTile> rated_tiles(std::int64_t element_bytes, bool instruction) {
  if (instruction) return kDoubleTiles;
  if (element_bytes > 4) return kDoubleWordTiles;
  return kWordTiles;
}

ProductTile RatedTile::tile(std::int64_t element_bytes, bool spread) const {
  const std::int64_t near = std::clamp<std::int64_t>(16 / element_bytes, 1, 4);
  ProductTile out;
  // An instruction's sums: one row and two columns of each 8 x 8.
  out.rows = {warps_m, lanes_m, each_m, std::min(instruction ? 1 : near, each_m)};
  out.columns = {warps_n, 32 / lanes_m, each_n, std::min(spread ? 1 : near, each_n)};
  if (instruction) out.instruction = "mma.float64";
  out.depth = depth;
  return out;
}

std::int64_t stages_of(const Facts& facts, const RatedTile& tile, std::int64_t element_bytes) {
  // Without a queue for copies one version beside the one in use is enough. A third of a
  // processor's shared memory leaves room for other blocks.
  const std::int64_t bytes = tile.step_size() * element_bytes, most = facts.copies_ahead() ? 3 : 2;
  return std::clamp<std::int64_t>((facts.shared_bytes() - 1024) / bytes, 0, most);
}

namespace {

/// Calls `consider` with each choice.
template <typename Consider>
void each_choice(const Facts& facts, std::int64_t element_bytes, const ProductSize& size,
                 TileReads reads, bool instruction, bool whole, const Consider& consider) {
  const std::span<const RatedTile> all = rated_tiles(element_bytes, instruction);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const RatedTile& t = all[i];
    const std::int64_t stages = stages_of(facts, t, element_bytes);
    if (t.threads() > facts.threads() || stages < 1) continue;
    const std::int64_t blocks = blocks_of(t, size);
    // Several rounds of blocks leave fewer processors without work at their end than one and a bit.
    constexpr std::int64_t kMostRounds = 4;
    const std::int64_t held =
        kMostPartBytes / std::max<std::int64_t>(1, size.batch * size.m * size.n * element_bytes);
    const std::int64_t places = facts.processors() * t.blocks_per_sm;
    const std::int64_t room = std::clamp<std::int64_t>(
        std::max(places / blocks, std::min(kMostRounds * places / blocks, kMostRounds)), 1,
        std::max<std::int64_t>(1, held));
    const std::int64_t most = whole ? 1
                                    : std::clamp<std::int64_t>(size.k / (4 * t.depth), 1,
                                                               std::min<std::int64_t>(room, 512));
    for (std::int64_t parts = 1;;
         parts = std::min(parts + std::max<std::int64_t>(1, parts / 2), most)) {
      consider(TileChoice{i, parts, stages,
                          expected_clocks(facts, t, element_bytes, size, parts, reads)});
      if (parts == most) break;
    }
  }
}

}  // namespace

TileChoice choose_tile(const Facts& facts, std::int64_t element_bytes, const ProductSize& size,
                       TileReads reads, bool instruction, bool whole) {
  const std::span<const RatedTile> all = rated_tiles(element_bytes, instruction);
  TileChoice best{all.size() - 1, 1, 1};
  best.stages = std::max<std::int64_t>(1, stages_of(facts, all.back(), element_bytes));
  bool any = false;
  each_choice(facts, element_bytes, size, reads, instruction, whole, [&](const TileChoice& c) {
    if (!any || c.clocks < best.clocks) any = true, best = c;
  });
  return best;
}

std::vector<TileChoice> tile_options(const Facts& facts, std::int64_t element_bytes,
                                     const ProductSize& size, TileReads reads, bool instruction) {
  std::vector<TileChoice> out;
  each_choice(facts, element_bytes, size, reads, instruction, false,
              [&](const TileChoice& c) { out.push_back(c); });
  std::stable_sort(out.begin(), out.end(),
                   [](const TileChoice& a, const TileChoice& b) { return a.clocks < b.clocks; });
  return out;
}

}  // namespace weft::rules
