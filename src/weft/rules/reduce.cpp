// SPDX-License-Identifier: Apache-2.0
#include "weft/rules/reduce.h"

#include <algorithm>
#include <bit>

#include "weft/base/error.h"
#include "weft/base/integers.h"
#include "weft/ir/visit.h"
#include "weft/pass/hoist_conditions.h"

namespace weft::rules {

using ir::IterKind;

namespace {

constexpr std::int64_t kAccumulators = 8;     // loads of one thread that are in flight together
constexpr std::int64_t kManyThreads = 512;    // of a group where there are few groups
constexpr std::int64_t kBusyThreads = 512;    // of a processor: below, its memory is not busy
constexpr std::int64_t kMostResultLanes = 8;  // of a vector, whose lanes have results of their own
constexpr std::int64_t kFewColumns = 16;      // below: threads lie along the terms
constexpr std::int64_t kMostParts = 4096;
constexpr std::int64_t kFewTerms = 64;  // below: one thread reduces a result
// A second launch costs more than it saves for fewer parts, and joining so few is refused for
// tuples of symbolic extents.
constexpr std::int64_t kLeastParts = 8;
constexpr std::int64_t kManyBytes = 32 << 20;  // reading so many takes longer than a second launch
// Threads of a processor that keep its memory busy with a result each: a H200 reads 150 x 100003
// elements of up to 4 bytes faster so, of 8 bytes slower.
constexpr std::int64_t kAloneThreads = 512;
constexpr std::int64_t kEachTerm = 4;  // terms a thread should have before others share them

std::int64_t up_to_power(std::int64_t n) {
  return static_cast<std::int64_t>(
      std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(1, n))));
}
std::int64_t down_to_power(std::int64_t n) {
  return static_cast<std::int64_t>(
      std::bit_floor(static_cast<std::uint64_t>(std::max<std::int64_t>(1, n))));
}

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
  if (loops[near].extent >= facts.lanes()) return near;
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

/// The loop around a block below `top` that walks along dimension 0 of what the block writes: the
/// one that rfactor made.
LoopRef first_dimension(Schedule& sch, BlockRef block, const LoopRef& top) {
  const auto path = schedule::find_block(sch.mod(), block);
  const ir::BlockRealizeNode* realize = path->realize();
  const ir::Expr& at = realize->block->writes[0].region[0].min;
  for (const LoopRef& l : below(sch, block, top, IterKind::spatial)) {
    for (std::size_t i = 0; i < realize->iter_values.size(); ++i) {
      if (ir::uses_var(at, realize->block->iters[i].var.get()) &&
          ir::uses_var(realize->iter_values[i], l.var.get()))
        return l;
    }
  }
  return {};
}

bool neighbours(const NestLoop& l) { return l.step == 1 && l.every; }

/// Elements that a thread reads at once along `loops`, and the loop: one of few iterations that the
/// program has, beside others, or a cut of the one at `cut`.
void choose_vector(ReduceDecisions& d, const std::vector<NestLoop>& loops, std::size_t cut,
                   std::int64_t most) {
  if (neighbours(loops[cut]) && loops[cut].multiple % most == 0 && loops[cut].extent > most)
    d.vector = most;
}

/// Whether some operand moves with the terms and is the same for all results, as in a product.
bool shares_operands(const Nest& nest) {
  auto uses = [&](const ir::LoadNode* l, IterKind kind) {
    return std::any_of(nest.node->iters.begin(), nest.node->iters.end(), [&](const ir::IterVar& v) {
      return v.kind == kind &&
             std::any_of(l->indices.begin(), l->indices.end(),
                         [&](const auto& e) { return ir::uses_var(e, v.var.get()); });
    });
  };
  bool out = false;
  ir::for_each_expr(nest.node->body, [&](const ir::Expr& e) {
    const auto* l = ir::as<ir::LoadNode>(e);
    out = out || (l && uses(l, IterKind::reduce) && !uses(l, IterKind::spatial));
  });
  return out;
}

/// A loop of as many iterations as a vector has elements is the vector itself.
bool own_vector(const std::vector<NestLoop>& loops, std::int64_t most, std::size_t* at) {
  for (std::size_t i = 0; i < loops.size() && loops.size() > 1; ++i) {
    *at = i;
    if (loops[i].constant && loops[i].extent == most && neighbours(loops[i])) return true;
  }
  return false;
}

}  // namespace

std::optional<ReduceDecisions> match_reduce(const Nest& nest, const Facts& facts,
                                            std::int64_t lanes) {
  if (nest.reduction.empty() || nest.mixed || !nest.streams || !nest.node->init ||
      !ir::match_reduction(nest.node))
    return std::nullopt;
  for (const ir::IterVar& v : nest.node->iters) {
    if (v.kind != IterKind::spatial && v.kind != IterKind::reduce) return std::nullopt;
  }
  ReduceDecisions d;
  std::int64_t most = std::min(kMostResultLanes, facts.vector_bytes() / nest.widest_bytes);
  // Vectors only where every processor still has threads enough.
  if (nest.results <
      facts.group() * facts.processors() * most / std::max<std::int64_t>(1, nest.terms))
    most = 1;
  if (lanes > 1) most = lanes;
  std::vector<NestLoop> kept = nest.spatial, gone = nest.reduction;
  bool own_result = false;
  if (most > 1 && own_vector(kept, most, &d.own_loop)) {
    d.own = own_result = true;
    kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(d.own_loop));
  } else if (most > 1 && own_vector(gone, most, &d.own_loop)) {
    d.own = true;
    gone.erase(gone.begin() + static_cast<std::ptrdiff_t>(d.own_loop));
  }
  d.term = cut_axis(gone, facts);
  d.result = kept.empty() ? 0 : nearest(kept);
  const NestLoop& k = gone[d.term];
  NestLoop s;
  if (!kept.empty()) s = kept[d.result];
  const std::int64_t wide = facts.group();
  std::int64_t terms = k.extent, results = nest.results;
  d.columns = own_result ||
              (!d.own && results >= kFewColumns && s.step > 0 && k.step > 0 && s.step < k.step);
  if (d.own) d.vector = most;
  else if (most > 1 && d.columns) choose_vector(d, kept, d.result, most);
  else if (most > 1) choose_vector(d, gone, d.term, most);
  if (!d.own && d.vector > 1) (d.columns ? s.extent : terms) /= d.vector;
  if (d.columns) results /= d.vector;
  if (d.columns) {
    const std::int64_t enough = kAloneThreads * (nest.widest_bytes > 4 ? 2 : 1);
    const bool alone =
        results >= (nest.terms <= kFewTerms ? wide / 2 : enough) * facts.processors();
    d.beside = std::min(alone ? wide : facts.lanes(), up_to_power(s.extent));
    d.sharing = alone ? 1 : std::min(wide / d.beside, down_to_power(terms));
  } else {
    const std::int64_t enough = up_to_power(ceil_div(terms, kEachTerm));
    const bool many = results >= 4 * facts.groups() * (wide / facts.lanes());
    d.sharing = std::clamp<std::int64_t>(enough, 1, many ? std::min(wide, facts.lanes()) : wide);
    d.beside = std::min(wide / d.sharing, up_to_power(s.extent));
  }
  const std::int64_t least = d.vector > 1 ? 2 : 1;
  d.accumulators =
      std::clamp<std::int64_t>(down_to_power(terms / d.sharing), 1,
                               std::max(least, kAccumulators / (d.columns ? d.vector : least)));
  const std::int64_t groups = ceil_div(results, d.beside);
  // A product with few groups: each thread has as many loads in flight as its sums leave registers
  // for.
  if (d.columns && d.vector > 1 && groups < facts.groups() && shares_operands(nest)) {
    const std::int64_t loads = nest.node->writes.size() > 2 ? kAccumulators / 2 : kAccumulators;
    d.accumulators =
        std::max(d.accumulators,
                 std::min(loads, down_to_power(std::max<std::int64_t>(1, terms / d.sharing))));
  }
  const std::int64_t share = d.sharing * d.accumulators;
  if (groups < facts.groups() / 4)
    d.parts = down_to_power(std::clamp<std::int64_t>(
        std::min(facts.groups() / groups, terms / (4 * share)), 1, kMostParts));
  // Columns that do not fill the machine evenly: 138 groups on 132 processors take twice as long.
  const bool large = nest.results * nest.terms >= kManyBytes / nest.widest_bytes;
  // Of few terms the parts' results are a large share of what is read: `argmin` of 43 x 126838
  // float64 in two launches took 1.6 times as long as PyTorch's one (H200).
  if (d.parts == 1 && d.columns && large && nest.terms >= 2 * kFewTerms && groups < facts.groups())
    d.parts = std::clamp<std::int64_t>(
        std::min(up_to_power(ceil_div(facts.groups(), groups)), down_to_power(terms / (2 * share))),
        1, kMostParts);
  if (d.parts < (large && d.columns ? 2 : kLeastParts)) d.parts = 1;
  if (d.columns && d.parts == 1 && d.sharing > 1) {
    while (2 * d.sharing * d.beside <= std::min(kManyThreads, facts.threads()) &&
           groups * d.sharing * d.beside < kBusyThreads * facts.processors() &&
           terms >= 2 * d.sharing * d.accumulators)
      d.sharing *= 2;
    // Short elements one at a time need more loads for as many bytes.
    if (d.vector == 1 && nest.widest_bytes <= 4 && nest.node->writes.size() == 1 &&
        terms >= 4 * d.sharing * kAccumulators)
      d.accumulators = 2 * kAccumulators;
  }
  return d;
}

void open_reduce(ReduceDecisions& d, const Nest& nest, const Facts& facts,
                 const Questions& questions) {
  if (!d.own && d.vector > 1) questions.ask("vector", d.vector, {1});
  const std::int64_t terms = up_to_power(nest.terms), results = up_to_power(nest.results);
  questions.ask("sharing", d.sharing, powers_up_to(std::min(facts.threads(), terms)));
  questions.ask("beside", d.beside, powers_up_to(std::min(facts.threads() / d.sharing, results)));
  d.beside = std::min(d.beside, std::max<std::int64_t>(1, facts.threads() / d.sharing));
  const std::int64_t rest = std::max<std::int64_t>(1, terms / d.sharing);
  questions.ask("accumulators", d.accumulators, powers_up_to(std::min<std::int64_t>(16, rest)));
  std::vector<std::int64_t> parts{1};
  for (std::int64_t n = kLeastParts; n <= std::min(kMostParts, rest / d.accumulators); n *= 2)
    parts.push_back(n);
  questions.ask("parts", d.parts, parts);
}

namespace {

/// The loops of a reduction, cut as decided; absent ones have no variable.
struct Pieces {
  std::vector<LoopRef> outer;  // of results
  LoopRef result, part, thread, slot, vector, step;
  std::vector<LoopRef> others;  // of terms
};

Pieces cut_loops(Schedule& sch, const Nest& nest, const ReduceDecisions& d) {
  Pieces out;
  std::vector<NestLoop> kept = nest.spatial, gone = nest.reduction;
  if (d.own) {
    std::vector<NestLoop>& from = d.columns ? kept : gone;
    out.vector = from[d.own_loop].loop;
    from.erase(from.begin() + static_cast<std::ptrdiff_t>(d.own_loop));
  }
  const LoopRef k = gone[d.term].loop;
  for (std::size_t i = 0; i < gone.size(); ++i) {
    if (i != d.term) out.others.push_back(gone[i].loop);
  }
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (i != d.result) out.outer.push_back(kept[i].loop);
  }
  out.result = kept.empty() ? sch.add_unit_loop(sch.get_loops(nest.block)[0]) : kept[d.result].loop;
  const bool cuts = d.vector > 1 && !d.own;
  if (cuts && d.columns) {
    const std::vector<LoopRef> cut = sch.split(out.result, {std::nullopt, factor(d.vector)});
    out.result = cut[0];
    out.vector = cut[1];
  }
  // The reduction's loop in pieces: steps, parts of groups, slots of one thread, threads, vectors.
  const std::int64_t terms_at_once = cuts && !d.columns ? d.vector : 1;
  sch.pad_reduction(k, d.parts * d.sharing * d.accumulators * terms_at_once);
  schedule::Factors factors{std::nullopt};
  for (std::int64_t n : {d.parts, d.accumulators, d.sharing, terms_at_once}) {
    if (n > 1) factors.push_back(factor(n));
  }
  const std::vector<LoopRef> cut = sch.split(k, factors);
  std::size_t next = 1;
  out.step = cut[0];
  if (d.parts > 1) out.part = cut[next++];
  if (d.accumulators > 1) out.slot = cut[next++];
  if (d.sharing > 1) out.thread = cut[next++];
  if (terms_at_once > 1) out.vector = cut[next++];
  std::vector<LoopRef> order = out.outer;
  for (const LoopRef& l : {out.result, out.part, out.vector, out.thread, out.slot}) {
    if (l.var) order.push_back(l);
  }
  order.insert(order.end(), out.others.begin(), out.others.end());
  order.push_back(out.step);
  if (order.size() > 1) sch.reorder(order);
  return out;
}

/// One thread's running values: its loops run through steps, then slots, then the vector, and its
/// first values are stored before them.
void accumulate(Schedule& sch, BlockRef block, const LoopRef& top, const ReduceDecisions& d,
                const LoopRef& slot, const LoopRef& vector) {
  std::vector<LoopRef> steps, lanes, slots;
  for (IterKind kind : {IterKind::reduce, IterKind::spatial}) {
    for (const LoopRef& l : below(sch, block, top, kind)) {
      if (vector.var && l == vector) lanes.push_back(l);
      else if (slot.var && l == slot) slots.push_back(l);
      else (kind == IterKind::reduce ? steps : slots).push_back(l);
    }
  }
  std::vector<LoopRef> all = steps;
  all.insert(all.end(), slots.begin(), slots.end());
  all.insert(all.end(), lanes.begin(), lanes.end());
  if (all.size() > 1) sch.reorder(all);
  if (steps.empty()) return;
  const BlockRef init = sch.decompose_reduction(block, all[0]);
  unroll_each(sch, slots);
  for (const LoopRef& l : slots) sch.annotate(l, pass::kReadsAhead, true);
  if (!lanes.empty() && d.vector > 1) sch.vectorize(lanes[0]);
  unroll_each(sch, below(sch, init, top, IterKind::spatial));
}

/// Moves the block that reads results below the loop of a result; they need not leave the kernel.
bool finish_inside(Schedule& sch, BlockRef block, BlockRef finish, const LoopRef& result,
                   bool shared) {
  const Schedule before = sch;
  const bool moved = attempt([&] {
    const auto* root = ir::as<ir::BlockRealizeNode>(sch.func()->body);
    const auto own = root->block->alloc_buffers;
    const auto writes = schedule::find_block(sch.mod(), block)->realize()->block->writes;
    sch.reverse_compute_at(finish, result);
    for (std::size_t w = 0; w < writes.size(); ++w) {
      if (std::find(own.begin(), own.end(), writes[w].buffer) != own.end())
        sch.set_scope(block, static_cast<std::int64_t>(w), shared ? "shared" : "local");
    }
  });
  if (!moved) sch = before;
  return moved;
}

}  // namespace

bool schedule_reduce(Schedule& sch, const Nest& nest, const ReduceDecisions& d, const Facts& facts,
                     const Sizes& sizes, std::optional<BlockRef> finish) {
  const std::size_t values = nest.node->writes.size();
  const BlockRef block = nest.block;
  Pieces loops = cut_loops(sch, nest, d);
  BlockRef partial = block;  // one result of a part
  if (d.parts > 1) {
    partial = sch.rfactor(loops.part, d.columns ? 0 : -1);
    set_scopes(sch, partial, values, "global");  // another kernel reads them
  }
  BlockRef shared = partial;  // one result of a thread
  if (d.sharing > 1) shared = sch.rfactor(loops.thread, 0);
  BlockRef own = shared;  // one result of a slot, or of a lane
  const bool lanes = d.vector > 1 && !d.columns;
  if (lanes) own = sch.rfactor(loops.vector, 0);
  else if (d.accumulators > 1) own = sch.rfactor(loops.slot, 0);

  // The loops of `partial` as they are now: outer..., the result's, the part's.
  const std::vector<LoopRef> now = sch.get_loops(partial);
  std::vector<LoopRef> outer(now.begin(),
                             now.begin() + static_cast<std::ptrdiff_t>(loops.outer.size()));
  const LoopRef s = now[outer.size()];
  const LoopRef part = d.parts > 1 ? now[outer.size() + 1] : LoopRef{};
  const LoopRef top = d.parts > 1 ? part : s;
  LoopRef inner = top;  // the loop of a thread
  std::vector<LoopRef> threads;
  if (d.sharing > 1) {
    threads = below(sch, partial, top, IterKind::reduce);
    sch.compute_at(shared, top);
    inner = first_dimension(sch, shared, top);
    std::vector<LoopRef> order{inner};
    for (const LoopRef& l : sch.get_loops(shared)) {
      const auto all = below(sch, shared, top, IterKind::spatial),
                 steps = below(sch, shared, top, IterKind::reduce);
      const bool inside = std::find(all.begin(), all.end(), l) != all.end() ||
                          std::find(steps.begin(), steps.end(), l) != steps.end();
      if (inside && !(l == inner)) order.push_back(l);
    }
    if (order.size() > 1) sch.reorder(order);
    set_scopes(sch, shared, values, "local");
    threads.push_back(inner);
    unroll_each(sch, below(sch, partial, top, IterKind::spatial));
  }
  if (!(own == shared)) {
    sch.compute_at(own, inner);
    set_scopes(sch, own, values, "local");
    LoopRef vector, slot = lanes ? loops.slot : first_dimension(sch, own, inner);
    for (const LoopRef& l : below(sch, own, inner, IterKind::spatial)) {
      if (d.vector > 1 && (lanes || !(l == slot))) vector = l;
    }
    if (lanes &&
        loops.slot.var) {  // made anew by compute_at: the last loop of terms but the steps'
      slot = {};
      for (const LoopRef& l : below(sch, own, inner, IterKind::reduce)) {
        std::int64_t n = 0;
        if (!slot.var && ir::is_const_int(schedule::find_loop(sch.mod(), l)->loop()->extent, &n) &&
            n == d.accumulators)
          slot = l;
      }
    }
    accumulate(sch, own, inner, d, slot, vector);
    unroll_each(sch, below(sch, shared, inner, IterKind::reduce));
    unroll_each(sch, below(sch, shared, inner, IterKind::spatial));
  } else if (d.sharing > 1 && d.vector > 1) {
    LoopRef vector;
    for (const LoopRef& l : below(sch, shared, inner, IterKind::spatial)) vector = l;
    accumulate(sch, shared, inner, d, {}, vector);
  }

  // Before results are cut: that the parts are finished is proved of whole loops.
  bool inside = false;
  if (d.parts > 1) {
    sch.get_loops(block);  // so that the trace knows the loops that are read from the tree
    const Nest rest = read_nest(sch, block, sizes);
    // The vector of results stays one.
    auto join = match_reduce(rest, facts, d.columns ? d.vector : 0);
    WEFT_CHECK(join, "the joining block of a reduction is no reduction");
    join->parts = 1;
    inside = schedule_reduce(sch, rest, *join, facts, sizes, finish);
  } else if (finish) {
    inside = finish_inside(sch, block, *finish, s, d.sharing > 1);
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
  return inside;
}

}  // namespace weft::rules
