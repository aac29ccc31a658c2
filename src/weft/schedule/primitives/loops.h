// SPDX-License-Identifier: Apache-2.0
#pragma once
// Steps that reshape loop nests without moving blocks: split, fuse, reorder, add_unit_loop.

#include "weft/schedule/describe.h"

namespace weft::schedule {

struct Split {
  static constexpr std::string_view kName = "split";
  static constexpr std::string_view kDoc =
      "Divides a loop into nested ones. At most one factor may be None and is inferred; when the "
      "factors do not "
      "divide the extent, `tail` says what happens to the last, cut tile. \"guard\": blocks below "
      "get a predicate. \"peel\": the nest runs whole tiles only and a second loop, whose blocks "
      "are "
      "copies named NAME_tail, runs the rest. \"round_up\": the iterators and the intermediate "
      "buffers that the blocks write grow to whole tiles; elements read beyond a buffer's end "
      "count "
      "0. \"shift_inwards\": the last tile starts earlier and repeats elements of the one before. "
      "Example: `outer, inner = sch.split(i, [None, 16], tail=\"peel\")`.";
  using Result = std::vector<LoopRef>;
  LoopRef loop;
  Factors factors;
  bool preserve_unit_iters = true;
  bool disable_predication = false;
  std::string tail = "guard";
  static void fields(auto&& f) {
    f("loop", &Split::loop, "the loop to divide");
    f("factors", &Split::factors, "trip counts, outermost first; one may be None");
    f("preserve_unit_iters", &Split::preserve_unit_iters,
      "keep new loops of extent 1 in the bindings", Field::optional);
    f("disable_predication", &Split::disable_predication,
      "refuse factors that would need a predicate", Field::optional);
    f("tail", &Split::tail,
      "where factors do not divide: \"guard\", \"peel\", \"round_up\" or \"shift_inwards\"",
      Field::optional);
  }
  Verdict transform(const State&, Outcome<Result>&) const;
};

struct Fuse {
  static constexpr std::string_view kName = "fuse";
  static constexpr std::string_view kDoc = "Joins perfectly nested loops into one.";
  using Result = LoopRef;
  std::vector<LoopRef> loops;
  bool preserve_unit_iters = true;
  static void fields(auto&& f) {
    f("loops", &Fuse::loops, "the loops, outermost first, each directly inside the one before",
      Field::variadic);
    f("preserve_unit_iters", &Fuse::preserve_unit_iters, "keep loops of extent 1 in the bindings",
      Field::optional);
  }
  Verdict transform(const State&, Outcome<Result>&) const;
};

struct Reorder {
  static constexpr std::string_view kName = "reorder";
  static constexpr std::string_view kDoc =
      "Puts the named loops of one chain into the given order; the positions they occupy stay the "
      "same.";
  using Result = Done;
  std::vector<LoopRef> loops;
  static void fields(auto&& f) {
    f("loops", &Reorder::loops, "the loops in their new order", Field::variadic);
  }
  Verdict transform(const State&, Outcome<Result>&) const;
};

struct AddUnitLoop {
  static constexpr std::string_view kName = "add_unit_loop";
  static constexpr std::string_view kDoc =
      "Puts a loop of extent 1 directly around a block or loop.";
  using Result = LoopRef;
  BlockOrLoop block_or_loop;
  static void fields(auto&& f) {
    f("block_or_loop", &AddUnitLoop::block_or_loop, "what the new loop surrounds");
  }
  Verdict transform(const State&, Outcome<Result>&) const;
};

}  // namespace weft::schedule
