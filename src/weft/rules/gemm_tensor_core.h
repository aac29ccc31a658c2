// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products of 16-bit operands on machines whose warp groups multiply tiles of shared memory while
// another warp copies the next ones: tiles, a ring of slots, specialize_warps.

#include <optional>

#include "weft/rules/nest.h"

namespace weft::rules {

struct GemmDecisions {
  std::int64_t rows = 128, columns = 256;  // of a tile
  std::int64_t slots = 4;                  // steps of 64 terms that are copied ahead
  std::int64_t parts = 1;                  // of the sum; a second kernel joins them
  std::int64_t blocks = 0;                 // that take one tile after another; 0: one for each
};

/// The tile of least expected time. `steps` of 64 terms; `divisible`: whether parts of the sum can
/// be joined afterwards.
GemmDecisions choose_gemm(std::int64_t processors, std::int64_t batches, std::int64_t m,
                          std::int64_t n, std::int64_t steps, bool divisible);

/// The loops of a product: over rows (of the operand that is read first), columns and the sum; the
/// others are of batches.
struct GemmLoops {
  LoopRef m, n, k;
  std::vector<LoopRef> batch;
};
struct GemmMatch {
  GemmLoops loops;
  std::int64_t step = 64;  // terms that one wait covers
  GemmDecisions decisions;
};
std::optional<GemmMatch> match_gemm_tensor_core(const Nest& nest, const Facts& facts);
void schedule_gemm_tensor_core(Schedule& sch, BlockRef product, const GemmMatch& match);

}  // namespace weft::rules
