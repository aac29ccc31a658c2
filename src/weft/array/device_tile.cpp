// SPDX-License-Identifier: Apache-2.0
#include "weft/array/device_tile.h"

#include <algorithm>

namespace weft::device {

namespace {

// rows, columns, depth, each_m, each_n, lanes_m, warps_m, warps_n, resident, rate: of 4096 x 4096 x
// 4096 on an NVIDIA H200 (bench/gpu/tiles.cpp), whose processors could do 128 a clock at 1.9 GHz.
constexpr Tile kWords[] = {
    {128, 128, 16, 8, 8, 8, 2, 4, 2, 0.75},  //
    {64, 128, 16, 8, 8, 8, 1, 4, 3, 0.74},   //
    {128, 64, 16, 8, 8, 4, 4, 1, 3, 0.745},  //
    {64, 64, 32, 8, 4, 4, 2, 2, 4, 0.62},    //
    {32, 128, 16, 4, 8, 8, 1, 4, 4, 0.58},   //
    {128, 32, 16, 8, 4, 4, 4, 1, 4, 0.58},   //
    {32, 32, 32, 4, 2, 4, 2, 2, 6, 0.34},    //
};
// Twice the registers and shared memory for each element.
constexpr Tile kDoubles[] = {
    {64, 64, 16, 8, 4, 4, 2, 2, 4, 0.62},  //
    {32, 128, 8, 4, 8, 8, 1, 4, 4, 0.56},  //
    {128, 32, 8, 8, 4, 4, 4, 1, 4, 0.56},  //
    {32, 32, 16, 4, 2, 4, 2, 2, 6, 0.35},  //
};

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// What a launch and the sum over parts cost, in clocks of a processor.
constexpr double kLaunch = 9000, kBytesPerClock = 3.3;

double expected_clocks(const Grid& grid, const Tile& t, std::int64_t element_bytes,
                       std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k,
                       std::int64_t parts) {
  const double processors = static_cast<double>(grid.processors);
  const std::int64_t blocks = ceil_div(m, t.rows) * ceil_div(n, t.columns) * batch * parts;
  const std::int64_t each = ceil_div(blocks, grid.processors);  // of the busiest processor
  const std::int64_t steps = ceil_div(ceil_div(k, parts), t.depth);
  // Filling the pipeline costs about a step; a processor does 128 multiply-adds a
  // clock, half as many of eight bytes.
  const double block = static_cast<double>(t.rows * t.columns * t.depth * (steps + 1)) /
                       (element_bytes > 4 ? 64 : 128) / t.rate;
  const std::int64_t rest = each % t.resident;
  // A processor with fewer blocks than it needs waits for memory and barriers.
  const double busy = 0.60 + 0.45 * static_cast<double>(rest) / static_cast<double>(t.resident);
  double clocks = static_cast<double>(each - rest) * block;
  if (rest > 0) clocks += static_cast<double>(rest) * block / busy;
  if (parts > 1) {
    const double bytes = static_cast<double>((parts + 1) * batch * m * n * element_bytes);
    clocks += kLaunch + bytes / (processors * kBytesPerClock);
  }
  return clocks;
}

}  // namespace

std::span<const Tile> tiles(std::int64_t element_bytes) {
  if (element_bytes > 4) return kDoubles;
  return kWords;
}

std::int64_t stages_of(const Grid& grid, const Tile& tile, std::int64_t element_bytes) {
  // Without a queue for copies one version beside the one in use is enough. A third of a
  // processor's shared memory leaves room for other blocks.
  const std::int64_t bytes = tile.step_size() * element_bytes, most = grid.queue.empty() ? 2 : 3;
  return std::clamp<std::int64_t>((grid.shared_bytes - 1024) / bytes, 0, most);
}

TileChoice choose_tile(const Grid& grid, std::int64_t element_bytes, std::int64_t batch,
                       std::int64_t m, std::int64_t n, std::int64_t k) {
  std::span<const Tile> all = tiles(element_bytes);
  TileChoice best{all.size() - 1, 1, 1};
  best.stages = std::max<std::int64_t>(1, stages_of(grid, all.back(), element_bytes));
  double least = -1;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Tile& t = all[i];
    const std::int64_t stages = stages_of(grid, t, element_bytes);
    if (t.threads() > grid.threads || stages < 1) continue;
    const std::int64_t blocks = ceil_div(m, t.rows) * ceil_div(n, t.columns) * batch;
    const std::int64_t room = std::max<std::int64_t>(1, grid.processors * t.resident / blocks);
    const std::int64_t most =
        std::clamp<std::int64_t>(k / (4 * t.depth), 1, std::min<std::int64_t>(room, 512));
    for (std::int64_t parts = 1;; parts = std::min(parts * 2, most)) {
      const double clocks = expected_clocks(grid, t, element_bytes, batch, m, n, k, parts);
      if (least < 0 || clocks < least) {
        least = clocks;
        best = {i, parts, stages};
      }
      if (parts == most) break;
    }
  }
  return best;
}

}  // namespace weft::device
