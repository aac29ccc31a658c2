// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sums whose elements are used for several results (products, convolutions), by threads that each
// keep a tile of results in registers and fetch tiles of the operands into shared memory together.

#include <optional>
#include <vector>

#include "weft/rules/nest.h"

namespace weft::rules {

struct RegisterTile {
  std::vector<std::int64_t> threads, each;  // for each spatial loop: threads beside, results of one
  std::vector<std::int64_t> terms;          // for each reduction loop: of one tile
  std::int64_t vector = 1;                  // elements that a thread fetches at once
  std::int64_t ahead = 0;                   // tiles that are fetched before their use
  bool shared = true, unroll = true;
};

/// `remainders`: where powers of two do not divide the extents, tiles of other divisors, or ones
/// that reach beyond the extents, under a condition in every multiplication; otherwise absent
/// there.
std::optional<RegisterTile> match_gemm_registers(const Nest& nest, const Facts& facts,
                                                 bool remainders = false);
/// The decisions as questions.
void open_gemm_registers(RegisterTile& tile, const Nest& nest, const Facts& facts,
                         const Questions& questions);
/// `finish`: an element-wise block that alone reads the results; it is computed where they are
/// finished, if steps allow. Whether it is.
bool schedule_gemm_registers(Schedule& sch, const Nest& nest, const RegisterTile& tile,
                             const Facts& facts, std::optional<BlockRef> finish);

}  // namespace weft::rules
