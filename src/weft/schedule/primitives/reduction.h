// SPDX-License-Identifier: Apache-2.0
#pragma once
// Steps that take reductions apart: decompose_reduction, rfactor.

#include "weft/schedule/describe.h"

namespace weft::schedule {

struct DecomposeReduction {
  static constexpr std::string_view kName = "decompose_reduction";
  static constexpr std::string_view kDoc =
      "Moves a reduction's initialisation into a block of its own (\"X_init\"), directly before a loop; the rest becomes "
      "\"X_update\". Returns the init block.";
  using Result = BlockRef;
  BlockRef block;
  LoopRef loop;
  static void fields(auto&& f) {
    f("block", &DecomposeReduction::block, "the reduction");
    f("loop", &DecomposeReduction::loop, "the loop before which the initialisation runs");
  }
  Verdict transform(const State&, Outcome<Result>&) const;
};

}  // namespace weft::schedule
