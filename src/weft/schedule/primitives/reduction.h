// SPDX-License-Identifier: Apache-2.0
#pragma once
// Steps on reductions: decompose_reduction, rfactor, pad_reduction.

#include "weft/schedule/describe.h"

namespace weft::schedule {

struct DecomposeReduction {
  static constexpr std::string_view kName = "decompose_reduction";
  static constexpr std::string_view kDoc =
      "Moves a reduction's initialisation into a block of its own (\"X_init\"), directly before a "
      "loop; the rest becomes "
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

struct RFactor {
  static constexpr std::string_view kName = "rfactor";
  static constexpr std::string_view kDoc =
      "Makes a reduction loop spatial: a new block \"X_rf\" reduces the rest into a buffer with "
      "one more axis, and the "
      "block itself then reduces that axis. Returns the new block.";
  using Result = BlockRef;
  LoopRef loop;
  std::int64_t factor_axis = 0;
  static void fields(auto&& f) {
    f("loop", &RFactor::loop, "a loop of the reduction");
    f("factor_axis", &RFactor::factor_axis,
      "where the new axis goes; negative counts from the end");
  }
  Verdict transform(const State&, Outcome<Result>&) const;
};

struct PadReduction {
  static constexpr std::string_view kName = "pad_reduction";
  static constexpr std::string_view kDoc =
      "Rounds the trip count of a reduction loop up to a multiple of a factor. The steps that are "
      "added join the value that changes nothing and read no element, so that a split by the "
      "factor "
      "needs no predicate and rfactor applies to its parts.";
  using Result = Done;
  LoopRef loop;
  IntRef factor;
  static void fields(auto&& f) {
    f("loop", &PadReduction::loop, "the loop of a reduction, bound to one iterator");
    f("factor", &PadReduction::factor, "what the new trip count is a multiple of");
  }
  Verdict transform(const State&, Outcome<Result>&) const;
};

}  // namespace weft::schedule
