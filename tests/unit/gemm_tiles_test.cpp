// SPDX-License-Identifier: Apache-2.0
// The tile that the rule for products chooses: one that fits, whatever the shape, and no worse by
// its own measure than any other.

#include "weft/rules/gemm_tiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace weft::rules {
namespace {

/// An NVIDIA H200.
GemmMachine card() { return {132, 232448, 1755, 2048, 74, 53, 5.1e6, 0.33, 0.32, 0.3, 1.7, 185e3}; }

/// What a kernel of specialize_warps declares: the ring, what is staged, two tokens a slot.
std::int64_t shared_bytes(const GemmDecisions& d) {
  const std::int64_t ring = d.slots * (d.rows + (d.columns + 63) / 64 * 64) * 128;
  return ring + d.rows / 64 * 2 * 64 * 64 * 2 + d.slots * 16;
}

TEST(GemmTiles, fit_in_shared_memory_for_every_shape) {
  std::mt19937 rng(1);
  const GemmMachine machine = card();
  auto extent = [&] { return static_cast<std::int64_t>(1) << (rng() % 13) | rng() % 4096; };
  for (int i = 0; i < 2000; ++i) {
    GemmShape s;
    s.m = extent(), s.n = extent(), s.k = extent(), s.batches = 1 + rng() % 3;
    s.bytes = 1 + static_cast<int>(rng() % 2), s.divisible = rng() % 2;
    s.b_along_n = rng() % 2, s.column_unit = rng() % 2 ? 64 : 16;
    s.pitch_a = 2 * s.k, s.pitch_b = 2 * s.n;
    const GemmDecisions d = choose_gemm(machine, s);
    ASSERT_LE(shared_bytes(d), machine.shared_bytes) << d.rows << " x " << d.columns;
    ASSERT_TRUE(d.rows == 64 || d.rows == 128 || d.rows == 192);
    ASSERT_TRUE(d.columns % s.column_unit == 0 && d.columns >= 64 &&
                d.columns <= (d.rows == 192 ? 192 : 256));
    ASSERT_TRUE(d.slots >= 2 && d.slots <= 8);
    ASSERT_EQ(d.blocks, gemm_blocks(machine, d.cluster_blocks()));
    const std::int64_t along = d.turned ? s.n : s.m, across = d.turned ? s.m : s.n;
    ASSERT_LE(d.cluster, (along + d.rows - 1) / d.rows);
    ASSERT_LE(d.cluster_columns, (across + d.columns - 1) / d.columns);
    const bool along_sum = d.turned ? !s.a_along_m : !s.b_along_n;
    ASSERT_TRUE(!along_sum || d.columns % (8 * d.cluster) == 0);
    ASSERT_TRUE(d.parts == 1 || s.divisible);
    const double least = gemm_time(machine, s, d);
    for (const std::int64_t rows : {64, 128}) {
      for (const std::int64_t columns : {64, 128, 192, 256}) {
        const GemmDecisions other{rows, columns, gemm_slots(machine, rows, columns), 1,
                                  machine.processors};
        ASSERT_LE(least, gemm_time(machine, s, other));
      }
    }
  }
}

/// What a tuner may try: what is chosen comes first, nothing comes twice, everything fits.
TEST(GemmTiles, options_begin_with_the_choice) {
  std::mt19937 rng(8);
  const GemmMachine machine = card();
  for (int i = 0; i < 60; ++i) {
    GemmShape s;
    s.m = 1 + rng() % 5000, s.n = 1 + rng() % 5000, s.k = 1 + rng() % 5000;
    s.divisible = rng() % 2, s.b_along_n = rng() % 2;
    const std::vector<GemmDecisions> all = gemm_options(machine, s);
    ASSERT_GT(all.size(), 10U);
    ASSERT_EQ(all[0], choose_gemm(machine, s));
    for (std::size_t k = 0; k < all.size(); ++k) {
      ASSERT_LE(shared_bytes(all[k]), machine.shared_bytes);
      ASSERT_GE(all[k].slots, 2);
      ASSERT_EQ(std::count(all.begin(), all.end(), all[k]), 1);
      ASSERT_TRUE(all[k].parts == 1 || s.divisible);
    }
  }
}

/// Five slots of 128 x 192 do not fit beside what the result is staged in.
TEST(GemmTiles, of_1536_cubed_fits) {
  GemmShape s;
  s.m = s.n = s.k = 1536;
  EXPECT_LE(shared_bytes(choose_gemm(card(), s)), card().shared_bytes);
  EXPECT_EQ(gemm_slots(card(), 128, 192), 4);
}

TEST(GemmTiles, wide_ones_where_little_is_summed_and_small_ones_where_tiles_are_few) {
  GemmShape s;
  s.m = s.n = 8192, s.k = 64;
  EXPECT_EQ(choose_gemm(card(), s).columns, 256);
  s.m = s.n = s.k = 512;
  EXPECT_EQ(choose_gemm(card(), s).rows, 64);
  s.m = s.n = 64, s.k = 65536, s.divisible = true;
  EXPECT_GT(choose_gemm(card(), s).parts, 16);
}

TEST(GemmTiles, rows_off_sectors_are_expected_to_take_longer) {
  GemmShape s;
  s.m = s.n = s.k = 4096, s.pitch_a = s.pitch_b = 8192;
  const GemmDecisions d;
  const double aligned = gemm_time(card(), s, d);
  s.pitch_a = s.pitch_b = 8208;
  EXPECT_GT(gemm_time(card(), s, d), 1.1 * aligned);
}

/// Planes that a step copies once bind it less, and so does what memory gives once.
TEST(GemmTiles, what_is_not_copied_again_takes_no_time) {
  GemmShape s;
  s.m = s.n = s.k = 4096, s.pieces = true;
  GemmDecisions d;
  d.columns = 128;
  const double all = gemm_time(card(), s, d);
  s.keeps_pieces = true;
  const double kept = gemm_time(card(), s, d);
  EXPECT_LT(kept, 0.95 * all);
  s.m = 1 << 20, s.n = 64, s.k = 64;
  const double read = gemm_time(card(), s, d);
  s.read_bytes = 1 << 20;
  EXPECT_LT(gemm_time(card(), s, d), 0.95 * read);
}

TEST(GemmTiles, rows_off_sectors_are_shared_in_clusters) {
  GemmShape s;
  s.m = s.n = s.k = 4096, s.pitch_a = s.pitch_b = 8208;
  EXPECT_GT(choose_gemm(card(), s).cluster_blocks(), 1);
  GemmMachine odd = card();
  odd.processors = 1;
  EXPECT_EQ(choose_gemm(odd, s).cluster_blocks(), 1);
}

/// Pairs stand on all processors, larger clusters within groups of 14 to 18.
TEST(GemmTiles, clusters_that_processors_hold) {
  GemmMachine machine = card();
  EXPECT_EQ(gemm_blocks(machine, 1), 132);
  EXPECT_EQ(gemm_blocks(machine, 2), 132);
  EXPECT_EQ(gemm_blocks(machine, 4), 116);
  EXPECT_EQ(gemm_blocks(machine, 8), 104);
  machine.processors = 131;
  EXPECT_EQ(gemm_blocks(machine, 2), 130);
  machine.processors = 4;
  EXPECT_EQ(gemm_blocks(machine, 4), 0);
}

TEST(GemmTiles, blocks_of_a_cluster_ask_for_less) {
  GemmShape s;
  s.m = 1024, s.n = 1536, s.k = 4096, s.pitch_a = s.pitch_b = 8208;  // bound by the cache
  GemmDecisions d{128, 128, 6, 1, 132};
  const double alone = gemm_time(card(), s, d);
  d.cluster = 2, d.cluster_columns = 4;
  const double rows_and_columns = gemm_time(card(), s, d);
  d.cluster = 8, d.cluster_columns = 1;
  EXPECT_LT(rows_and_columns, gemm_time(card(), s, d));
  EXPECT_LT(rows_and_columns, alone);
}

TEST(GemmTiles, of_kernels_without_clusters_have_none) {
  GemmShape s;
  s.m = s.n = s.k = 4096, s.pitch_a = s.pitch_b = 8208, s.most_cluster = 1;
  EXPECT_EQ(choose_gemm(card(), s).cluster_blocks(), 1);
}

/// A convolution of 64 channels to 64: tiles that lie the other way, of 256 places, would be
/// chosen.
TEST(GemmTiles, of_kernels_that_do_not_turn_lie_along_rows) {
  GemmShape s;
  s.m = 100352, s.n = 64, s.k = 576, s.column_unit = 64, s.most_rows = 128, s.most_cluster = 1;
  s.divisible = true;
  EXPECT_TRUE(choose_gemm(card(), s).turned);
  s.turns = false;
  EXPECT_FALSE(choose_gemm(card(), s).turned);
  EXPECT_EQ(choose_gemm(card(), s).columns, 64);
}

}  // namespace
}  // namespace weft::rules
