// SPDX-License-Identifier: Apache-2.0
#include "weft/rules/reduce.h"

#include <algorithm>
#include <bit>

#include "weft/base/error.h"
#include "weft/ir/visit.h"

namespace weft::rules {

using ir::IterKind;

namespace {

constexpr std::int64_t kAccumulators = 8;  // loads of one thread that are in flight together
constexpr std::int64_t kMostParts = 4096;
constexpr std::int64_t kFewTerms = 64;  // below: one thread reduces a result
// A second launch costs more than it saves for fewer parts, and joining so few is refused for
// tuples of symbolic extents.
constexpr std::int64_t kLeastParts = 8;
constexpr std::int64_t kEachTerm = 4;  // terms a thread should have before others share them

std::int64_t up_to_power(std::int64_t n) {
  return static_cast<std::int64_t>(
      std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(1, n))));
}
std::int64_t down_to_power(std::int64_t n) {
  return static_cast<std::int64_t>(
      std::bit_floor(static_cast<std::uint64_t>(std::max<std::int64_t>(1, n))));
}
std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// The loop whose neighbours lie nearest to each other; of equals the innermost.
std::size_t nearest(const std::vector<NestLoop>& loops) {
  std::size_t best = loops.size() - 1;
  for (std::size_t i = loops.size(); i-- > 0;) {
    if (loops[i].step != 0 && loops[i].extent > 1 &&
        (loops[best].step == 0 || loops[best].extent <= 1 || loops[i].step < loops[best].step))
      best = i;
  }
  return best;
}

/// A short innermost axis gives threads too little: the longest is cut instead.
std::size_t cut_axis(const std::vector<NestLoop>& loops, const Facts& facts) {
  const std::size_t near = nearest(loops);
  if (loops[near].extent >= facts.lanes) return near;
  std::size_t best = near;
  for (std::size_t i = 0; i < loops.size(); ++i) {
    if (loops[i].extent > loops[best].extent) best = i;
  }
  return best;
}

void set_scopes(Schedule& sch, BlockRef block, std::size_t writes, const char* scope) {
  for (std::size_t w = 0; w < writes; ++w)
    sch.set_scope(block, static_cast<std::int64_t>(w), scope);
}

void unroll_each(Schedule& sch, const std::vector<LoopRef>& loops) {
  for (const LoopRef& l : loops) sch.unroll(l);
}

/// The loops around a block below `top`, of one kind.
std::vector<LoopRef> below(Schedule& sch, BlockRef block, const LoopRef& top, IterKind kind) {
  const std::vector<LoopRef> all = sch.get_loops(block);
  const auto from = std::find(all.begin(), all.end(), top);
  std::vector<LoopRef> out;
  for (const LoopRef& l : loops_of(sch, block, kind)) {
    if (std::find(from, all.end(), l) != all.end() && !(l == top)) out.push_back(l);
  }
  return out;
}

}  // namespace

std::optional<ReduceDecisions> match_reduce(const Nest& nest, const Facts& facts) {
  if (nest.reduction.empty() || nest.mixed || !nest.streams || !nest.node->init ||
      !ir::match_reduction(nest.node))
    return std::nullopt;
  for (const ir::IterVar& v : nest.node->iters) {
    if (v.kind != IterKind::spatial && v.kind != IterKind::reduce) return std::nullopt;
  }
  ReduceDecisions d;
  d.term = cut_axis(nest.reduction, facts);
  d.result = nest.spatial.empty() ? 0 : nearest(nest.spatial);
  const NestLoop& k = nest.reduction[d.term];
  NestLoop s;
  if (!nest.spatial.empty()) s = nest.spatial[d.result];
  const std::int64_t wide = facts.group(), terms = k.extent, results = nest.results;
  d.columns = results >= 16 && s.step > 0 && k.step > 0 && s.step < k.step;
  if (d.columns) {
    const bool alone = nest.terms <= kFewTerms && results >= wide * facts.processors / 2;
    d.beside = std::min(alone ? wide : facts.lanes, up_to_power(s.extent));
    d.sharing = alone ? 1 : std::min(wide / d.beside, down_to_power(terms));
  } else {
    const std::int64_t enough = up_to_power(ceil_div(terms, kEachTerm));
    const bool many = results >= 4 * facts.groups() * (wide / facts.lanes);
    d.sharing = std::clamp<std::int64_t>(enough, 1, many ? std::min(wide, facts.lanes) : wide);
    d.beside = std::min(wide / d.sharing, up_to_power(s.extent));
  }
  d.accumulators = std::clamp<std::int64_t>(down_to_power(terms / d.sharing), 1, kAccumulators);
  const std::int64_t groups = ceil_div(results, d.beside);
  const std::int64_t share = d.sharing * d.accumulators;
  if (groups < facts.groups() / 4)
    d.parts = down_to_power(std::clamp<std::int64_t>(
        std::min(facts.groups() / groups, terms / (4 * share)), 1, kMostParts));
  if (d.parts < kLeastParts) d.parts = 1;
  return d;
}

void schedule_reduce(Schedule& sch, const Nest& nest, const ReduceDecisions& d, const Facts& facts,
                     const Sizes& sizes) {
  const std::size_t values = nest.node->writes.size();
  LoopRef k = nest.reduction[d.term].loop, s;
  std::vector<LoopRef> outer, others;
  for (std::size_t i = 0; i < nest.reduction.size(); ++i) {
    if (i != d.term) others.push_back(nest.reduction[i].loop);
  }
  for (std::size_t i = 0; i < nest.spatial.size(); ++i) {
    if (i != d.result) outer.push_back(nest.spatial[i].loop);
  }
  if (nest.spatial.empty()) {
    s = sch.add_unit_loop(sch.get_loops(nest.block)[0]);
  } else {
    s = nest.spatial[d.result].loop;
  }
  // The reduction's loop in pieces: steps, parts of groups, slots of one thread, threads.
  sch.pad_reduction(k, d.parts * d.sharing * d.accumulators);
  schedule::Factors factors{std::nullopt};
  for (std::int64_t n : {d.parts, d.accumulators, d.sharing}) {
    if (n > 1) factors.push_back(factor(n));
  }
  const std::vector<LoopRef> cut = sch.split(k, factors);
  std::size_t next = 1;
  LoopRef part, slot, thread;
  if (d.parts > 1) part = cut[next++];
  if (d.accumulators > 1) slot = cut[next++];
  if (d.sharing > 1) thread = cut[next++];
  std::vector<LoopRef> order = outer;
  order.push_back(s);
  for (const LoopRef& l : {part, thread, slot}) {
    if (l.var) order.push_back(l);
  }
  order.insert(order.end(), others.begin(), others.end());
  order.push_back(cut[0]);
  if (order.size() > 1) sch.reorder(order);
  const BlockRef block = nest.block;
  BlockRef partial = block;  // one result of a part
  if (d.parts > 1) {
    partial = sch.rfactor(part, -1);
    set_scopes(sch, partial, values, "global");  // another kernel reads them
  }
  BlockRef shared = partial;  // one result of a thread
  if (d.sharing > 1) shared = sch.rfactor(thread, 0);
  BlockRef own = shared;  // one result of a slot
  if (d.accumulators > 1) own = sch.rfactor(slot, 0);

  // The loops of `partial` as they are now: outer..., the result's, the part's.
  const std::vector<LoopRef> now = sch.get_loops(partial);
  outer.assign(now.begin(), now.begin() + static_cast<std::ptrdiff_t>(outer.size()));
  s = now[outer.size()];
  if (d.parts > 1) part = now[outer.size() + 1];
  const LoopRef top = d.parts > 1 ? part : s;
  LoopRef inner = top;  // the loop of a thread
  std::vector<LoopRef> threads;
  if (d.sharing > 1) {
    threads = below(sch, partial, top, IterKind::reduce);
    sch.compute_at(shared, top);
    inner = below(sch, shared, top, IterKind::spatial).at(0);
    std::vector<LoopRef> nest_order{inner};
    for (const LoopRef& l : below(sch, shared, top, IterKind::reduce)) nest_order.push_back(l);
    if (nest_order.size() > 1) sch.reorder(nest_order);
    set_scopes(sch, shared, values, "local");
    threads.push_back(inner);
  }
  if (d.accumulators > 1) {
    sch.compute_at(own, inner);
    set_scopes(sch, own, values, "local");
    std::vector<LoopRef> slots = below(sch, own, inner, IterKind::spatial),
                         steps = below(sch, own, inner, IterKind::reduce), all = steps;
    all.insert(all.end(), slots.begin(), slots.end());
    if (all.size() > 1) sch.reorder(all);
    const BlockRef init = sch.decompose_reduction(own, all[0]);
    unroll_each(sch, slots);
    unroll_each(sch, below(sch, init, inner, IterKind::spatial));
    unroll_each(sch, below(sch, d.sharing > 1 ? shared : partial, inner, IterKind::reduce));
  }

  // Before results are cut: that the parts are finished is proved of whole loops.
  if (d.parts > 1) {
    const Nest rest = read_nest(sch, block, sizes);
    auto join = match_reduce(rest, facts);
    WEFT_CHECK(join, "the joining block of a reduction is no reduction");
    join->parts = 1;
    schedule_reduce(sch, rest, *join, facts, sizes);
  }

  const std::vector<LoopRef> cut_s = sch.split(s, {std::nullopt, factor(d.beside)});
  std::vector<LoopRef> grid = outer;
  grid.push_back(cut_s[0]);
  if (d.parts > 1) sch.reorder({cut_s[0], part, cut_s[1]});
  sch.bind(grid.size() > 1 ? sch.fuse(grid) : grid[0], "blockIdx.x");
  if (d.parts > 1) sch.bind(part, "blockIdx.y");
  const bool along_x = d.columns || d.sharing == 1;
  sch.bind(cut_s[1], along_x ? "threadIdx.x" : "threadIdx.y");
  for (const LoopRef& l : threads) sch.bind(l, along_x ? "threadIdx.y" : "threadIdx.x");
}

}  // namespace weft::rules
