// SPDX-License-Identifier: Apache-2.0
// Which tile, parts and stages a product by threads gets for given facts of a machine, and what
// its expected time follows.

#include "weft/rules/product_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "weft/base/integers.h"

namespace weft::rules {
namespace {

using enum TileReads;

TargetInfo machine(std::int64_t processors = 132, std::int64_t shared = 232448,
                   std::int64_t threads = 1024, bool copies_ahead = true) {
  TargetInfo out = grid_target_info();
  out.set_group(threads, shared);
  out.limits[limits::kProcessors] = processors;
  if (copies_ahead) out.queues.push_back({"copies", true, "group", 0});
  return out;
}

TileChoice choose(const TargetInfo& info, const ProductSize& size, TileReads reads = no_vectors,
                  std::int64_t bytes = 4, bool instruction = false, bool whole = false) {
  return choose_tile(Facts(info), bytes, size, reads, instruction, whole);
}

/// Rows and columns of what is chosen.
std::pair<std::int64_t, std::int64_t> sides(const TargetInfo& info, const ProductSize& size,
                                            TileReads reads = no_vectors, std::int64_t bytes = 4,
                                            bool instruction = false) {
  const RatedTile& t =
      rated_tiles(bytes, instruction)[choose(info, size, reads, bytes, instruction).tile];
  return {t.rows, t.columns};
}
using Sides = std::pair<std::int64_t, std::int64_t>;

/// What a tuner may try: what is chosen comes first, nothing comes twice, everything fits.
TEST(ProductChoice, options_begin_with_the_choice) {
  std::mt19937 rng(9);
  for (int i = 0; i < 60; ++i) {
    const TargetInfo info =
        machine(1 + rng() % 150, 49152 << rng() % 3, 256 << rng() % 3, rng() % 2);
    const ProductSize size{
        1 + static_cast<std::int64_t>(rng() % 3), 1 + static_cast<std::int64_t>(rng() % 900),
        1 + static_cast<std::int64_t>(rng() % 900), 1 + static_cast<std::int64_t>(rng() % 9000)};
    const std::int64_t bytes = rng() % 2 ? 4 : 8;
    const TileReads reads = rng() % 2 ? no_vectors : both_in_vectors;
    const std::vector<TileChoice> all = tile_options(Facts(info), bytes, size, reads);
    const TileChoice taken = choose(info, size, reads, bytes);
    ASSERT_FALSE(all.empty());
    auto same = [](const TileChoice& a, const TileChoice& b) {
      return a.tile == b.tile && a.parts == b.parts && a.stages == b.stages;
    };
    ASSERT_TRUE(same(all[0], taken));
    for (const TileChoice& c : all) {
      ASSERT_LE(rated_tiles(bytes)[c.tile].threads(), Facts(info).threads());
      ASSERT_EQ(std::count_if(all.begin(), all.end(), [&](const auto& o) { return same(o, c); }),
                1);
      ASSERT_GE(c.clocks, taken.clocks);
    }
  }
}

TEST(ProductChoice, rows_of_the_tables_agree_with_themselves) {
  for (const bool instruction : {false, true}) {
    for (const std::int64_t bytes : {2, 4, 8, 16}) {
      for (const RatedTile& t : rated_tiles(bytes, instruction)) {
        EXPECT_EQ(t.rows, t.warps_m * t.lanes_m * t.each_m);
        EXPECT_EQ(t.columns, t.warps_n * (32 / t.lanes_m) * t.each_n);
        EXPECT_EQ(t.instruction, instruction);
        for (const double rate : t.rate) EXPECT_TRUE(rate > 0 && rate < 1);
        const ProductTile out = t.tile(bytes);
        EXPECT_EQ(out.rows.size(), t.rows);
        EXPECT_EQ(out.columns.size(), t.columns);
        EXPECT_EQ(out.depth, t.depth);
        const RatedTile along = along_columns(t);
        EXPECT_EQ(along.warps_m * along.lanes_m, t.warps_m * t.lanes_m);
        EXPECT_EQ(along.warps_n * (32 / along.lanes_m), t.warps_n * (32 / t.lanes_m));
        EXPECT_LE(along.lanes_m, t.lanes_m);
        EXPECT_TRUE(along.lanes_m == 2 || along.warps_n % 2 == 1);
      }
    }
  }
  EXPECT_EQ(rated_tiles(4).size(), 8u);
  EXPECT_EQ(rated_tiles(8).size(), 4u);
  EXPECT_EQ(rated_tiles(8, true).size(), 5u);
}

TEST(ProductChoice, neighbours_of_a_thread_fill_sixteen_bytes) {
  const RatedTile& t = rated_tiles(4)[0];
  EXPECT_EQ(t.tile(2).rows.near, 4);  // four at most
  EXPECT_EQ(t.tile(4).rows.near, 4);
  EXPECT_EQ(t.tile(8).columns.near, 2);
  EXPECT_EQ(t.tile(16).columns.near, 1);
  EXPECT_EQ(t.tile(4, true).columns.near, 1);
  EXPECT_EQ(t.tile(4, true).rows.near, 4);
  const ProductTile by_instruction = rated_tiles(8, true)[0].tile(8);
  EXPECT_EQ(by_instruction.rows.near, 1);
  EXPECT_EQ(by_instruction.columns.near, 2);
}

/// Many rounds of blocks: the rate alone decides.
TEST(ProductChoice, great_products_get_the_tile_of_the_highest_rate) {
  const ProductSize great{1, 16384, 16384, 4096};
  const TargetInfo info = machine();
  for (const bool instruction : {false, true}) {
    for (const std::int64_t bytes : {4, 8}) {
      if (instruction && bytes != 8) continue;
      for (const TileReads reads : {no_vectors, one_in_vectors, both_in_vectors, along_sum}) {
        const std::span<const RatedTile> all = rated_tiles(bytes, instruction);
        const TileChoice got = choose(info, great, reads, bytes, instruction);
        const auto at = static_cast<std::size_t>(reads);
        for (const RatedTile& other : all) EXPECT_GE(all[got.tile].rate[at], other.rate[at]);
        EXPECT_EQ(got.parts, 1);
        EXPECT_EQ(got.stages, 3);
      }
    }
  }
  EXPECT_EQ(sides(info, great, no_vectors), Sides(128, 128));
  EXPECT_EQ(sides(info, great, one_in_vectors), Sides(64, 128));
  EXPECT_EQ(sides(info, great, both_in_vectors), Sides(128, 64));
  EXPECT_EQ(sides(info, great, along_sum), Sides(128, 256));
}

TEST(ProductChoice, tiles_follow_the_shape) {
  const TargetInfo info = machine();
  // A tile that is mostly padding does not pay.
  EXPECT_EQ(sides(info, {1, 32, 65536, 1024}), Sides(32, 128));
  EXPECT_EQ(sides(info, {1, 65536, 32, 1024}), Sides(128, 32));
  EXPECT_EQ(sides(info, {4096, 32, 32, 64}), Sides(32, 32));
  EXPECT_EQ(sides(info, {4096, 32, 32, 64}, no_vectors, 8), Sides(32, 32));
  EXPECT_EQ(sides(info, {1, 65536, 32, 1024}, no_vectors, 8), Sides(128, 32));
  // Few blocks of a short sum: small tiles give more processors work.
  EXPECT_EQ(sides(info, {1, 256, 256, 64}), Sides(32, 32));
}

TEST(ProductChoice, long_sums_of_few_blocks_are_cut) {
  const TargetInfo info = machine();
  const ProductSize narrow{1, 128, 128, 1 << 20};
  const TileChoice got = choose(info, narrow);
  EXPECT_GT(got.parts, 64);
  EXPECT_LE(got.parts, 512);
  EXPECT_EQ(choose(info, narrow, no_vectors, 4, false, true).parts, 1) << "one part was asked for";
  EXPECT_LT(got.clocks, choose(info, narrow, no_vectors, 4, false, true).clocks / 16);
  // Four steps of a part at least, and 256 MiB for the parts' sums.
  std::mt19937 rng(5);
  for (int i = 0; i < 500; ++i) {
    const auto extent = [&] {
      return std::int64_t{1} + static_cast<std::int64_t>(rng() >> (12 + rng() % 19));
    };
    const ProductSize s{1 + static_cast<std::int64_t>(rng() % 3), extent() % 20000 + 1,
                        extent() % 20000 + 1, extent()};
    const std::int64_t bytes = rng() % 2 ? 4 : 8;
    const TileChoice c = choose(info, s, static_cast<TileReads>(rng() % 4), bytes);
    ASSERT_GE(c.parts, 1);
    if (c.parts == 1) continue;
    ASSERT_GE(s.k, 4 * c.parts * rated_tiles(bytes)[c.tile].depth);
    ASSERT_LE(c.parts * s.batch * s.m * s.n * bytes, std::int64_t{256} << 20);
  }
  // One processor needs no more than keep it busy.
  const TileChoice single = choose(machine(1), narrow);
  EXPECT_EQ(single.parts, rated_tiles(4)[single.tile].blocks_per_sm);
}

TEST(ProductChoice, stages_fit_in_shared_memory) {
  const RatedTile& t = rated_tiles(4)[0];  // 128 x 128, 16 deep
  const std::int64_t step = 16 * (128 + 128 + 8) * 4;
  const auto stages = [&](std::int64_t shared, bool ahead) {
    const TargetInfo info = machine(132, shared, 1024, ahead);
    return stages_of(Facts(info), t, 4);
  };
  EXPECT_EQ(stages(3 * step + 1024, true), 3);
  EXPECT_EQ(stages(3 * step + 1023, true), 2);
  EXPECT_EQ(stages(9 * step, true), 3);
  EXPECT_EQ(stages(9 * step, false), 2);
  EXPECT_EQ(stages(2 * step + 1023, false), 1);
  EXPECT_EQ(stages(step + 1023, true), 0);
  EXPECT_EQ(rated_tiles(8, true)[0].step_size(), (16 + 4) * (128 + 128));
  for (const std::int64_t shared : {12288, 16384, 20000, 32768, 49152}) {
    const TargetInfo info = machine(132, shared);
    for (const std::int64_t m : {64, 512, 8192}) {
      const TileChoice c = choose(info, {1, m, m, 4096});
      ASSERT_GT(c.clocks, 0) << shared;
      ASSERT_GE(c.stages, 1);
      ASSERT_LE(1024 + c.stages * rated_tiles(4)[c.tile].step_size() * 4, shared);
    }
  }
  // None fits: no time is expected, the last row is taken with one stage.
  const TileChoice none = choose(machine(132, 2048), {1, 512, 512, 512});
  EXPECT_EQ(none.clocks, 0);
  EXPECT_EQ(none.tile, rated_tiles(4).size() - 1);
  EXPECT_EQ(none.parts, 1);
  EXPECT_EQ(none.stages, 1);
}

TEST(ProductChoice, groups_have_no_more_threads_than_the_machine) {
  const ProductSize great{1, 16384, 16384, 4096};
  for (const std::int64_t threads : {128, 255, 256}) {
    const TileChoice c = choose(machine(132, 232448, threads), great);
    EXPECT_LE(rated_tiles(4)[c.tile].threads(), threads);
  }
  EXPECT_EQ(sides(machine(132, 232448, 256), great), Sides(128, 128));
  EXPECT_EQ(sides(machine(132, 232448, 255), great), Sides(64, 128));
  EXPECT_EQ(choose(machine(132, 232448, 64), great).clocks, 0);
}

/// The model's sentences, calculated here for one shape each.
TEST(ProductChoice, clocks_of_a_processor) {
  const TargetInfo info = machine();
  const double step = 128 * 128 * 16 / (128 * 0.745);
  // 256 blocks: two for the busiest of 132 processors, as many as it needs; 128 steps and five to
  // begin and end.
  EXPECT_NEAR(choose(info, {1, 2048, 2048, 2048}).clocks, 2 * 128 * step + 5 * step, 1);
  // Float64 without an instruction does half as many.
  const double wide = 64 * 64 * 16 / (64 * 0.62);
  const std::int64_t blocks = (4096 / 64) * (4096 / 64), each = ceil_div(blocks, 132);
  EXPECT_EQ(each, 32);
  EXPECT_NEAR(choose(info, {1, 4096, 4096, 4096}, no_vectors, 8).clocks, 32 * 256 * wide + 5 * wide,
              1);
  // With the instruction as many as float32; one block keeps a processor busy.
  const double tile = 128 * 128 * 16 / (128 * 0.70);
  EXPECT_NEAR(choose(info, {1, 16896, 4096, 4096}, no_vectors, 8, true).clocks,
              32 * 256 * tile + 5 * tile, 1);
  // A processor with one block where it needs two is busy for 0.70 + 0.33 / 2 of the time.
  const double lonely = choose(machine(1), {1, 128, 128, 1 << 16}).clocks;
  EXPECT_LT(lonely, 4096 * step / (0.70 + 0.33 / 2) + 5 * step + 1);
  // Parts cost a launch and their sums' way through memory at 12 bytes a clock and processor.
  const ProductSize narrow{1, 128, 128, 1 << 20};
  const TileChoice cut = choose(info, narrow);
  const RatedTile& t = rated_tiles(4)[cut.tile];
  const std::int64_t of_each = ceil_div(128 / t.rows * (128 / t.columns) * cut.parts, 132);
  const double one = static_cast<double>(t.rows * t.columns * t.depth) / (128 * t.rate[0]);
  const double steps = static_cast<double>(ceil_div(ceil_div(narrow.k, cut.parts), t.depth));
  const std::int64_t rest = of_each % t.blocks_per_sm;
  const double busy =
      0.70 + 0.33 * static_cast<double>(rest) / static_cast<double>(t.blocks_per_sm);
  const double sums = static_cast<double>((cut.parts + 1) * 128 * 128 * 4);
  EXPECT_NEAR(
      cut.clocks,
      (static_cast<double>(of_each - rest) + static_cast<double>(rest) / busy) * steps * one +
          5 * one + 7000 + sums / (132 * 12),
      1);
}

TEST(ProductChoice, more_work_takes_longer_and_more_processors_take_no_longer) {
  std::mt19937 rng(3);
  const TargetInfo info = machine(), twice = machine(264);
  for (int i = 0; i < 300; ++i) {
    const auto extent = [&] {
      return std::int64_t{1} + static_cast<std::int64_t>(rng() >> (19 + rng() % 12));
    };
    const ProductSize s{1 + static_cast<std::int64_t>(rng() % 4), extent(), extent(), extent()};
    const auto reads = static_cast<TileReads>(rng() % 4);
    const double clocks = choose(info, s, reads).clocks;
    ASSERT_GT(clocks, 0);
    // Parts are of four whole steps at least, so that a longer sum may be cut a little better.
    ASSERT_LE(clocks, 1.1 * choose(info, {s.batch, s.m, s.n, 2 * s.k}, reads).clocks);
    ASSERT_LE(clocks, choose(info, {s.batch, 2 * s.m, s.n, s.k}, reads).clocks);
    ASSERT_LE(clocks, choose(info, {s.batch, s.m, 2 * s.n, s.k}, reads).clocks);
    ASSERT_LE(clocks, choose(info, {2 * s.batch, s.m, s.n, s.k}, reads).clocks);
    ASSERT_LE(choose(twice, s, reads).clocks, clocks);
    ASSERT_LE(clocks, choose(info, s, reads, 4, false, true).clocks) << "of one part";
    ASSERT_LE(choose(info, s, both_in_vectors).clocks, choose(info, s, no_vectors).clocks);
  }
}

}  // namespace
}  // namespace weft::rules
