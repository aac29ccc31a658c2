// SPDX-License-Identifier: Apache-2.0
#pragma once
// Finds races by running programs with concrete indices. Two uses of one element, at least one a
// write, race when nothing orders them: by two points of a group without a barrier in between, by
// two groups of a kernel, by two iterations of a parallel loop. Several points writing the same
// value is legal and counted; so are atomic additions (ir/atomic.h) to one element.
//
// What is run: the points of the first and the last group together, barrier by barrier; those of
// the groups next to the first along each axis; one point of each of some groups, and some
// iterations of each parallel loop, chosen so that all distances up to 65536 and 4096 occur; what
// depends on loops around it at their first, last, middle and second iterations. Loops that hold a
// barrier are sampled (first, second, third and last iteration), and so are loops in the runs
// across groups, which also run where a comparison with a constant turns. Sizes known only at run
// time are given a value. It knows nothing of how barriers were placed.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/ir/node.h"
#include "weft/machine/target_info.h"

namespace weft::pass {

struct Race {
  std::string kernel, buffer, scope;
  std::int64_t element = 0;            // -1: chosen by data
  std::int64_t first = 0, second = 0;  // points, numbered; -1: several
  std::string what;  // "write/write", "read/write", "barrier under a condition that differs"
  std::string first_use, second_use;  // statement and point
  bool adds = false;                  // an addition to what the element held
};

struct RaceReport {
  std::vector<Race> races;             // at most one per kernel, buffer and kind
  std::int64_t accesses = 0;           // examined
  std::int64_t same_value_writes = 0;  // legal: several points of a group wrote one value
  std::vector<std::string> unchecked;  // what could not be decided, and why
  bool clean() const { return races.empty(); }
  std::string text() const;
};

/// Runs on a function with Launch statements or parallel loops, and flat memory.
RaceReport check_races(const ir::PrimFunc& f, const TargetInfo& machine,
                       std::int64_t max_accesses = 50'000'000);

}  // namespace weft::pass
