// SPDX-License-Identifier: Apache-2.0
#pragma once
// Steps that make one unit out of a nest: blockize, tensorize.

#include "weft/schedule/describe.h"

namespace weft::schedule {

struct Blockize {
  static constexpr std::string_view kName = "blockize";
  static constexpr std::string_view kDoc =
      "Puts a loop nest around one block into a block of its own, whose iterators count tiles; or "
      "blocks that stand one after the other, with their own loops, into one block whose iterators "
      "are the loops around all of them. Returns the new block.";
  using Result = BlockRef;
  LoopOrBlocks target;
  bool preserve_unit_iters = true;
  static void fields(auto&& f) {
    f("target", &Blockize::target,
      "the outermost loop of the nest, or the blocks in program order");
    f("preserve_unit_iters", &Blockize::preserve_unit_iters, "keep iterators of extent 1",
      Field::optional);
  }
  Verdict transform(const State&, Outcome<Result>&) const;
};

struct Tensorize {
  static constexpr std::string_view kName = "tensorize";
  static constexpr std::string_view kDoc =
      "Replaces a nest that computes an instruction's meaning by the instruction.";
  using Result = Done;
  BlockOrLoop block_or_loop;
  std::string tensor_intrin;
  bool preserve_unit_iters = true;
  static void fields(auto&& f) {
    f("block_or_loop", &Tensorize::block_or_loop, "the nest, or a block that holds it");
    f("tensor_intrin", &Tensorize::tensor_intrin, "name of a registered instruction");
    f("preserve_unit_iters", &Tensorize::preserve_unit_iters, "keep iterators of extent 1",
      Field::optional);
  }
  Verdict transform(const State&, Outcome<Result>&) const;
};

}  // namespace weft::schedule
