// SPDX-License-Identifier: Apache-2.0
#pragma once
// Steps that dissolve a block into its neighbours: compute_inline, reverse_compute_inline.

#include "weft/schedule/describe.h"

namespace weft::schedule {

struct ComputeInline {
  static constexpr std::string_view kName = "compute_inline";
  static constexpr std::string_view kDoc =
      "Writes a block's expression where its result is read, and removes the block and its buffer.";
  using Result = Done;
  BlockRef block;
  static void fields(auto&& f) { f("block", &ComputeInline::block, "an element-wise producer"); }
  Verdict transform(const State&, Outcome<Result>&) const;
};

struct ReverseComputeInline {
  static constexpr std::string_view kName = "reverse_compute_inline";
  static constexpr std::string_view kDoc =
      "Lets a block's only producer compute and store the block's result, and removes the block "
      "and the buffer between them.";
  using Result = Done;
  BlockRef block;
  static void fields(auto&& f) {
    f("block", &ReverseComputeInline::block, "an element-wise consumer");
  }
  Verdict transform(const State&, Outcome<Result>&) const;
};

}  // namespace weft::schedule
