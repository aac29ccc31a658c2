// SPDX-License-Identifier: Apache-2.0
#pragma once
// Steps that say how a loop runs: parallel, vectorize, unroll, bind.

#include "weft/schedule/describe.h"

namespace weft::schedule {

struct Parallel {
  static constexpr std::string_view kName = "parallel";
  static constexpr std::string_view kDoc = "Runs the iterations of a loop on several processors.";
  using Result = Done;
  LoopRef loop;
  static void fields(auto&& f) { f("loop", &Parallel::loop, "the loop"); }
  Verdict transform(const State&, Outcome<Result>&) const;
};

struct Vectorize {
  static constexpr std::string_view kName = "vectorize";
  static constexpr std::string_view kDoc =
      "Runs the iterations of a loop as the lanes of vector instructions.";
  using Result = Done;
  LoopRef loop;
  static void fields(auto&& f) { f("loop", &Vectorize::loop, "the loop"); }
  Verdict transform(const State&, Outcome<Result>&) const;
};

struct Unroll {
  static constexpr std::string_view kName = "unroll";
  static constexpr std::string_view kDoc =
      "Writes the iterations of a loop out one after the other.";
  using Result = Done;
  LoopRef loop;
  static void fields(auto&& f) { f("loop", &Unroll::loop, "the loop"); }
  Verdict transform(const State&, Outcome<Result>&) const;
};

struct Bind {
  static constexpr std::string_view kName = "bind";
  static constexpr std::string_view kDoc =
      "Gives the iterations of a loop to the points of a machine's axis.";
  using Result = Done;
  LoopRef loop;
  std::string thread_axis;
  static void fields(auto&& f) {
    f("loop", &Bind::loop, "the loop");
    f("thread_axis", &Bind::thread_axis, "name of the axis, such as \"blockIdx.x\"");
  }
  Verdict transform(const State&, Outcome<Result>&) const;
};

}  // namespace weft::schedule
