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

constexpr std::int64_t kApart = 4, kMostLanes = 8;

/// Whether the innermost of several loops is as long as a vector and some access moves by one.
bool own_vector(const Nest& nest) {
  if (nest.spatial.size() < 2) return false;
  const NestLoop& last = nest.spatial.back();
  return last.constant && last.extent > 1 && last.extent <= kMostLanes && last.step == 1 &&
         std::has_single_bit(static_cast<std::uint64_t>(last.extent));
}

}  // namespace

std::optional<ElementwiseDecisions> match_elementwise(const Nest& nest, const Facts& facts) {
  if (!nest.reduction.empty() || nest.mixed || nest.node->init) return std::nullopt;
  for (const ir::IterVar& v : nest.node->iters) {
    if (v.kind != ir::IterKind::spatial) return std::nullopt;
  }
  ElementwiseDecisions d;
  const std::int64_t busy = facts.group() * facts.processors();
  if (own_vector(nest)) {
    d.own = true;
    d.vector = nest.spatial.back().extent;
  } else if (runs_through_neighbours(nest) && facts.vector_bytes() > nest.widest_bytes &&
             nest.results >= busy) {
    // Vectors only where every processor still has threads enough.
    d.vector = facts.vector_bytes() / nest.widest_bytes;
  } else if (nest.spatial.size() == 1 && nest.results >= kApart * busy) {
    d.apart = kApart;
  }
  d.threads = std::min(facts.group(), d.own ? nest.results / d.vector : nest.results);
  return d;
}

void open_elementwise(ElementwiseDecisions& d, const Nest& nest, const Facts& facts,
                      const Questions& questions) {
  std::vector<std::int64_t> threads;
  for (std::int64_t n = facts.lanes(); n <= std::min(facts.threads(), nest.results); n *= 2)
    threads.push_back(n);
  questions.ask("threads", d.threads, threads);
  if (d.own) return;
  if (runs_through_neighbours(nest))
    questions.ask("vector", d.vector, powers_up_to(facts.vector_bytes() / nest.widest_bytes));
  if (d.vector > 1) d.apart = 1;
  else if (nest.spatial.size() == 1) questions.ask("apart", d.apart, {1, 2, 4, 8});
}

void schedule_elementwise(Schedule& sch, const Nest& nest, const ElementwiseDecisions& d) {
  std::vector<LoopRef> loops;
  for (const NestLoop& l : nest.spatial) loops.push_back(l.loop);
  if (d.own) loops.pop_back();
  LoopRef all;
  if (loops.empty()) {
    const std::vector<LoopRef> around = sch.get_loops(nest.block);
    all = around.empty() ? sch.add_unit_loop(nest.block) : around[0];
  } else {
    all = loops.size() > 1 ? sch.fuse(loops) : loops[0];
  }
  schedule::Factors factors{std::nullopt};
  if (d.apart > 1) factors.push_back(factor(d.apart));
  factors.push_back(factor(d.threads));
  if (d.vector > 1 && !d.own) factors.push_back(factor(d.vector));
  const std::vector<LoopRef> parts = sch.split(all, factors);
  const LoopRef threads = parts[d.apart > 1 ? 2 : 1];
  if (d.apart > 1) sch.reorder({parts[0], threads, parts[1]});
  sch.bind(parts[0], "blockIdx.x");
  sch.bind(threads, "threadIdx.x");
  if (d.apart > 1) sch.vectorize(parts[1]);
  if (d.vector > 1) sch.vectorize(d.own ? nest.spatial.back().loop : parts[2]);
}

}  // namespace weft::rules
