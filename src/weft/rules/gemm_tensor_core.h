// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products of 16-bit operands on machines whose warp groups multiply tiles of shared memory while
// another warp copies the next ones: tiles, a ring of slots, specialize_warps.

#include <optional>

#include "weft/rules/gemm_tiles.h"
#include "weft/rules/nest.h"

namespace weft::rules {

/// The loops of a product: over rows (of the operand that is read first), columns and the sum; the
/// others are of batches.
struct GemmLoops {
  LoopRef m, n, k;
  std::optional<LoopRef> pieces;  // the other loop of the sum: over products of pieces
  std::vector<LoopRef> batch;
};
struct GemmMatch {
  GemmLoops loops;
  std::int64_t step = 64;  // terms that one wait covers
  GemmDecisions decisions;
  GemmMachine machine;
  GemmShape shape;
};
/// The loops and sizes of a product alone, without decisions.
std::optional<GemmMatch> read_gemm(const Nest& nest);
std::optional<GemmMatch> match_gemm_tensor_core(const Nest& nest, const Facts& facts);
/// The decisions as questions.
void open_gemm_tensor_core(GemmMatch& match, const Facts& facts, const Questions& questions);
void schedule_gemm_tensor_core(Schedule& sch, BlockRef product, const GemmMatch& match);

}  // namespace weft::rules
