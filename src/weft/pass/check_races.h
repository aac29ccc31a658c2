// SPDX-License-Identifier: Apache-2.0
#pragma once
// Finds races on memory that the points of a group share, by running a group: every point's
// addresses are computed with concrete indices, barrier by barrier, and each element's readers and
// writers are compared. It knows nothing of how barriers were placed. Several points writing the
// same value to one element is legal and counted. Loops that hold a barrier are sampled (first,
// second, third and last iteration); all others run in full. Groups 0 and last are run.

#include <cstdint>
#include <string>
#include <vector>

#include "weft/ir/node.h"
#include "weft/pass/machine.h"

namespace weft::pass {

struct Race {
  std::string kernel, buffer;
  std::int64_t element = 0;
  std::int64_t first = 0, second = 0;  // points, numbered within the group
  std::string what;  // "write/write", "read/write", "barrier under a condition that differs"
};

struct RaceReport {
  std::vector<Race> races;             // at most one per kernel and buffer
  std::int64_t accesses = 0;           // examined
  std::int64_t same_value_writes = 0;  // legal: several points wrote one value
  std::vector<std::string> unchecked;  // what could not be decided, and why
  bool clean() const { return races.empty(); }
  std::string text() const;
};

/// Runs on a function with Launch statements and flat memory.
RaceReport check_races(const ir::PrimFunc& f, const Machine& machine,
                       std::int64_t max_accesses = 50'000'000);

}  // namespace weft::pass
