// SPDX-License-Identifier: Apache-2.0
#pragma once
// fuse_reduction_epilogue.

#include "weft/schedule/describe.h"

namespace weft::schedule {

struct FuseReductionEpilogue {
  static constexpr std::string_view kName = "fuse_reduction_epilogue";
  static constexpr std::string_view kDoc =
      "Folds an elementwise block that joins a reduction's result with another value by the "
      "reduction's own operator (D = C + bias after a sum, D = max(C, 0) after a maximum) into the "
      "reduction: it starts from that value and accumulates in the block's output. Example: "
      "`sch.fuse_reduction_epilogue(matmul, bias_add)`.";
  using Result = Done;
  BlockRef reduction_block;
  BlockRef epilogue_block;
  static void fields(auto&& f) {
    f("reduction_block", &FuseReductionEpilogue::reduction_block, "a reduction with an init");
    f("epilogue_block", &FuseReductionEpilogue::epilogue_block, "the only reader of its result");
  }
  Verdict transform(const State&, Outcome<Result>&) const;
};

}  // namespace weft::schedule
