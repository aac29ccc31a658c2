// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reductions of one value or of several (argmax, sum with sum of squares): threads along the axis
// whose elements are neighbours, several partial results a thread, several results a group, and
// two kernels where few results would leave processors idle.

#include <optional>

#include "weft/rules/nest.h"

namespace weft::rules {

struct ReduceDecisions {
  std::size_t result = 0;         // which spatial loop runs across `beside`
  std::size_t term = 0;           // which reduction loop is cut
  bool columns = false;           // neighbouring threads keep neighbouring results
  std::int64_t sharing = 1;       // threads that share one result
  std::int64_t beside = 1;        // results of one group
  std::int64_t accumulators = 1;  // steps of one thread at a time: partial results, or loads
  /// Neighbouring elements that a thread reads at once: results where `columns`, else terms. `own`:
  /// a loop of the program runs through them; else the loop along which they lie is cut.
  std::int64_t vector = 1;
  bool own = false;
  std::size_t own_loop = 0;
  std::int64_t parts = 1;  // groups that share one result; their results a second kernel joins
};

/// Absent where the block is no reduction that steps can share among threads.
/// `lanes`: a loop of so many results is a vector, however few the elements are.
std::optional<ReduceDecisions> match_reduce(const Nest& nest, const Facts& facts,
                                            std::int64_t lanes = 0);
/// The decisions as questions; answers that leave a thread without work are made smaller.
void open_reduce(ReduceDecisions& decisions, const Nest& nest, const Facts& facts,
                 const Questions& questions);
/// `finish`: an element-wise block that alone reads the results; it is computed where they are
/// finished, if steps allow. Whether it is.
bool schedule_reduce(Schedule& sch, const Nest& nest, const ReduceDecisions& decisions,
                     const Facts& facts, const Sizes& sizes, std::optional<BlockRef> finish = {});

}  // namespace weft::rules
