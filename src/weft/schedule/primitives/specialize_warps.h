// SPDX-License-Identifier: Apache-2.0
#pragma once
// The step that gives the warps of a pipelined matrix product different work: specialize_warps.

#include "weft/schedule/describe.h"

namespace weft::schedule {

/// Columns of a tile of so many rows that leave registers for the sums of a thread; promoted sums
/// take two sets.
constexpr std::int64_t most_warp_columns(std::int64_t rows, bool promoted) {
  if (promoted) return rows > 128 ? 112 : 192;
  return rows > 128 ? 192 : 256;
}

/// Whether blocks can copy equal parts of a tile of so many rows: whole pieces of 8 rows, 1024
/// bytes, in which shared memory is swizzled.
constexpr bool cluster_shares(std::int64_t rows, std::int64_t blocks) {
  return rows % (8 * blocks) == 0;
}

struct SpecializeWarps {
  static constexpr std::string_view kName = "specialize_warps";
  static constexpr std::string_view kDoc =
      "Makes a warp-specialized program of a pipelined matrix product. The loop runs over the sum "
      "in steps of 64; under it, blocks copy tiles of two 16-bit operands to shared memory and one "
      "block multiplies them into float32 in local memory; one block after the loop writes the "
      "tile, with any function of its elements. The loops around it are bound to blockIdx. One "
      "warp group then starts bulk copies into a ring of as many slots as "
      "\"software_pipeline_stage\" has stages; the others, one for each 64 rows, multiply. Full "
      "and empty barriers keep them in step. Returns the blocks of the two.";
  using Result = std::vector<BlockRef>;
  LoopRef loop;
  IntRef blocks;
  IntRef group_rows = 1;
  std::vector<std::int64_t> registers = {40, 232};
  IntRef cluster = 1;
  IntRef promote = 0;
  IntRef cluster_columns = 1;
  static void fields(auto&& f) {
    f("loop", &SpecializeWarps::loop, "the pipelined loop");
    f("blocks", &SpecializeWarps::blocks,
      "blocks of the launch, which take one tile after another; 0: a block for each tile",
      Field::optional);
    f("group_rows", &SpecializeWarps::group_rows,
      "rows of tiles that follow one another, so that the cache keeps what they share",
      Field::optional);
    f("registers", &SpecializeWarps::registers,
      "registers of a thread that copies and of one that multiplies, where two warp groups "
      "multiply",
      Field::optional);
    f("cluster", &SpecializeWarps::cluster,
      "blocks of a cluster one below another, 1, 2, 4 or 8: they compute their tiles at the same "
      "time, and each copies its part of the second operand's tile to all of them",
      Field::optional);
    f("promote", &SpecializeWarps::promote,
      "steps whose products are added up by the tile instructions, which cut off what a float32 "
      "does not hold, before their sum is added to the tile's, rounded to nearest; 0: all steps",
      Field::optional);
    f("cluster_columns", &SpecializeWarps::cluster_columns,
      "blocks of a cluster beside one another, 1, 2, 4 or 8, at most 8 of both together: each "
      "copies its part of the first operand's tile to all of them",
      Field::optional);
  }
  Verdict transform(const State&, Outcome<Result>&) const;
};

}  // namespace weft::schedule
