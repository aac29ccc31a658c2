// SPDX-License-Identifier: Apache-2.0
#pragma once
// Steps that move a block to another loop: compute_at (a producer to its consumers),
// reverse_compute_at (a consumer to its producers).

#include "weft/schedule/describe.h"

namespace weft::schedule {

struct ComputeAt {
  static constexpr std::string_view kName = "compute_at";
  static constexpr std::string_view kDoc =
      "Moves a producer under a loop that all its consumers stand in, and computes there what they "
      "need in one iteration.";
  using Result = Done;
  BlockRef block;
  LoopRef loop;
  bool preserve_unit_loops = false;
  std::int64_t index = -1;
  static void fields(auto&& f) {
    f("block", &ComputeAt::block, "the producer");
    f("loop", &ComputeAt::loop, "the loop it moves into");
    f("preserve_unit_loops", &ComputeAt::preserve_unit_loops, "keep loops of extent 1",
      Field::optional);
    f("index", &ComputeAt::index, "slot among the loop's statements; -1: last legal one, -2: first",
      Field::optional);
  }
  Verdict transform(const State&, Outcome<Result>&) const;
};

struct ReverseComputeAt {
  static constexpr std::string_view kName = "reverse_compute_at";
  static constexpr std::string_view kDoc =
      "Moves a consumer under a loop that its producers stand in (others may stand before the "
      "loop), "
      "and computes there what one "
      "iteration makes possible.";
  using Result = Done;
  BlockRef block;
  LoopRef loop;
  bool preserve_unit_loops = false;
  std::int64_t index = -1;
  static void fields(auto&& f) {
    f("block", &ReverseComputeAt::block, "the consumer");
    f("loop", &ReverseComputeAt::loop, "the loop it moves into");
    f("preserve_unit_loops", &ReverseComputeAt::preserve_unit_loops, "keep loops of extent 1",
      Field::optional);
    f("index", &ReverseComputeAt::index,
      "slot among the loop's statements; -1: last legal one, -2: first", Field::optional);
  }
  Verdict transform(const State&, Outcome<Result>&) const;
};

}  // namespace weft::schedule
