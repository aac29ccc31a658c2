// SPDX-License-Identifier: Apache-2.0
#include "weft/rules/elementwise.h"

#include <algorithm>
#include <bit>

namespace weft::rules {

namespace {

/// Whether the innermost loop runs through neighbours wherever it moves at all, and some access
/// moves.
bool runs_through_neighbours(const Nest& nest) {
  return !nest.spatial.empty() && nest.spatial.back().step == 1 && nest.spatial.back().every;
}

}  // namespace

std::optional<ElementwiseDecisions> match_elementwise(const Nest& nest, const Facts& facts) {
  if (!nest.reduction.empty() || nest.mixed || nest.node->init) return std::nullopt;
  for (const ir::IterVar& v : nest.node->iters) {
    if (v.kind != ir::IterKind::spatial) return std::nullopt;
  }
  ElementwiseDecisions d;
  d.threads = std::min(facts.group(), nest.results);
  // Vectors only where every processor still has threads enough.
  if (runs_through_neighbours(nest) && facts.vector_bytes > nest.widest_bytes &&
      nest.results >= facts.group() * facts.processors)
    d.vector = facts.vector_bytes / nest.widest_bytes;
  return d;
}

void schedule_elementwise(Schedule& sch, const Nest& nest, const ElementwiseDecisions& d) {
  LoopRef all;
  if (nest.spatial.empty()) {
    const std::vector<LoopRef> loops = sch.get_loops(nest.block);
    all = loops.empty() ? sch.add_unit_loop(nest.block) : loops[0];
  } else {
    std::vector<LoopRef> loops;
    for (const NestLoop& l : nest.spatial) loops.push_back(l.loop);
    all = loops.size() > 1 ? sch.fuse(loops) : loops[0];
  }
  schedule::Factors factors{std::nullopt, factor(d.threads)};
  if (d.vector > 1) factors.push_back(factor(d.vector));
  const std::vector<LoopRef> parts = sch.split(all, factors);
  sch.bind(parts[0], "blockIdx.x");
  sch.bind(parts[1], "threadIdx.x");
  if (d.vector > 1) sch.vectorize(parts[2]);
}

}  // namespace weft::rules
