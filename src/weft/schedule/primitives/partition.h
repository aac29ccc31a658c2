// SPDX-License-Identifier: Apache-2.0
#pragma once
// Steps that cut the range of a loop or join loops that follow each other: loop_partition, merge.
// Split's tail "peel" cuts with the same function.

#include "weft/schedule/describe.h"

namespace weft::schedule {

struct LoopPartition {
  static constexpr std::string_view kName = "loop_partition";
  static constexpr std::string_view kDoc =
      "Cuts the range of a loop into consecutive loops of the given lengths; a length of None, or "
      "a last loop of its own, takes what is left. Blocks of later parts are copies named NAME_p1, "
      "NAME_p2 and so on; a part that cannot hold the first step of a reduction only accumulates. "
      "Example: `first, rest = sch.loop_partition(i, [8, None])`.";
  using Result = std::vector<LoopRef>;
  LoopRef loop;
  Factors factors;
  static void fields(auto&& f) {
    f("loop", &LoopPartition::loop, "the loop to cut; its extent is constant");
    f("factors", &LoopPartition::factors, "lengths of the parts in order; one may be None");
  }
  Verdict transform(const State&, Outcome<Result>&) const;
};

struct Merge {
  static constexpr std::string_view kName = "merge";
  static constexpr std::string_view kDoc =
      "Joins loops of equal extent that directly follow each other into one, whose body runs "
      "theirs "
      "in order. Legal where every iteration takes from the others only what the same iteration "
      "made. Example: `i = sch.merge(i_of_a, i_of_b)`, then the same for the loops inside.";
  using Result = LoopRef;
  std::vector<LoopRef> loops;
  static void fields(auto&& f) {
    f("loops", &Merge::loops, "the loops in program order", Field::variadic);
  }
  Verdict transform(const State&, Outcome<Result>&) const;
};

/// Iterations [begin, begin + extent) of the path's loop as a loop over `var`. With a suffix the
/// blocks are copies of that name; an init that cannot run there is left out.
ir::Stmt loop_part(const Path& path, const ir::Var& var, const ir::Expr& begin,
                   const ir::Expr& extent, const std::string& suffix);

}  // namespace weft::schedule
