// SPDX-License-Identifier: Apache-2.0
#pragma once
// Steps about padding: decompose_padding, pad_einsum.

#include "weft/schedule/describe.h"

namespace weft::schedule {

struct DecomposePadding {
  static constexpr std::string_view kName = "decompose_padding";
  static constexpr std::string_view kDoc =
      "Parts a block of the form B[...] = if_then_else(inside, A[...], constant) at a loop: a nest "
      "that fills B with the constant, then one that copies only what is inside. Returns the "
      "filling block. Example: `fill = sch.decompose_padding(pad, sch.get_loops(pad)[0])`.";
  using Result = BlockRef;
  BlockRef block;
  LoopRef loop;
  static void fields(auto&& f) {
    f("block", &DecomposePadding::block, "the padding block; its iterators are its loops");
    f("loop", &DecomposePadding::loop, "the loop before which the filling nest stands");
  }
  Verdict transform(const State&, Outcome<Result>&) const;
};

struct PadEinsum {
  static constexpr std::string_view kName = "pad_einsum";
  static constexpr std::string_view kDoc =
      "Lengthens the iterators of a reduction: operands are copied into buffers padded with "
      "zeros, the result is made in a longer buffer of which the part that counts is copied out. "
      "Iterators of results of any reduction, those that are summed of sums of products. "
      "Returns the copying blocks, operands first. Example: `sch.pad_einsum(matmul, [0, 7, 7])`; "
      "for "
      "tiles of any extents, `sch.pad_einsum(matmul, [64, 64, 16], multiples=True)`.";
  using Result = std::vector<BlockRef>;
  BlockRef block;
  std::vector<std::int64_t> padding;
  bool multiples = false;
  static void fields(auto&& f) {
    f("block", &PadEinsum::block,
      "a reduction of one value; C[...] = C[...] + products of loads at iterators");
    f("padding", &PadEinsum::padding, "for each iterator the number of values to add");
    f("multiples", &PadEinsum::multiples,
      "the numbers are what the iterators' extents, which may be symbols, become multiples of",
      Field::optional);
  }
  Verdict transform(const State&, Outcome<Result>&) const;
};

}  // namespace weft::schedule
