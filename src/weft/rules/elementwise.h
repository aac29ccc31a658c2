// SPDX-License-Identifier: Apache-2.0
#pragma once
// Blocks whose points are independent: one position for all axes, vectors where neighbours lie
// together, a group of threads for each run of positions.

#include <optional>

#include "weft/rules/nest.h"

namespace weft::rules {

struct ElementwiseDecisions {
  std::int64_t threads = 1;  // of a group
  std::int64_t vector = 1;   // neighbouring points of one thread
  bool own = false;          // the innermost loop runs through exactly these
  std::int64_t apart =
      1;  // points of one thread, a group apart, whose loads are in flight together
};

std::optional<ElementwiseDecisions> match_elementwise(const Nest& nest, const Facts& facts);
/// The decisions as questions.
void open_elementwise(ElementwiseDecisions& decisions, const Nest& nest, const Facts& facts,
                      const Questions& questions);
void schedule_elementwise(Schedule& sch, const Nest& nest, const ElementwiseDecisions& decisions);

}  // namespace weft::rules
