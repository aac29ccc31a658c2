// SPDX-License-Identifier: Apache-2.0
#pragma once
// shift_factor: instructions that multiply numbers with a sign by numbers without serve products of
// two that have one.

#include "weft/schedule/describe.h"

namespace weft::schedule {

struct ShiftFactor {
  static constexpr std::string_view kName = "shift_factor";
  static constexpr std::string_view kDoc =
      "Makes a factor x of a sum of products x * y of integers unsigned: the block sums (x + h) * "
      "y "
      "over a copy of x, where h is half the range of x's type, and h times the sum of y is taken "
      "from the result. Sums wrap, so this is exact. Returns the blocks that copy x, sum y and "
      "subtract. Example: `copy, sums, rest = sch.shift_factor(matmul, 0)`.";
  using Result = std::vector<BlockRef>;
  BlockRef block;
  std::int64_t read_buffer_index = 0;
  static void fields(auto&& f) {
    f("block", &ShiftFactor::block,
      "a sum from 0: C[...] = C[...] + cast(x[...]) * cast(y[...]), x signed integers");
    f("read_buffer_index", &ShiftFactor::read_buffer_index, "which of the block's reads is x");
  }
  Verdict transform(const State&, Outcome<Result>&) const;
};

}  // namespace weft::schedule
