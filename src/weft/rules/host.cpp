// SPDX-License-Identifier: Apache-2.0
#include "weft/rules/host.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "weft/base/integers.h"
#include "weft/base/text.h"
#include "weft/ir/build.h"
#include "weft/ir/visit.h"
#include "weft/rules/grid.h"
#include "weft/rules/host_product.h"
#include "weft/rules/nest.h"
#include "weft/schedule/tree.h"

namespace weft::rules {

using namespace ir;

namespace {

// Vectors of partial sums of a row: as many additions are in flight as a unit of four cycles takes.
constexpr std::int64_t kRowVectors = 4;

constexpr std::string_view kWords[] = {"", "host_map", "host_rows", "host_tile", "host_product"};
enum class Way { none, map, rows, tile, product };

/// Rules that fit, the best first.
std::vector<Way> ways_of(const Nest& nest, const TargetInfo& machine) {
  if (nest.mixed || nest.node->writes.size() != 1) return {};
  const std::int64_t lanes = host_lanes(nest, machine);
  if (lanes < 2) return {};
  const NestLoop* last = nest.spatial.empty() ? nullptr : &nest.spatial.back();
  const bool along = last && last->constant && last->extent >= lanes;
  if (nest.reduction.empty())
    return along && last->every ? std::vector{Way::map} : std::vector<Way>{};
  // Steps below take the loops of results to be the outer ones.
  for (std::size_t i = 0; i < nest.node->iters.size(); ++i)
    if ((nest.node->iters[i].kind == IterKind::spatial) != (i < nest.spatial.size())) return {};
  const auto pattern = match_reduction(nest.node);
  if (!pattern || pattern->updates.size() != 1) return {};
  std::vector<Way> out;
  if (match_host_product(nest, machine)) out.push_back(Way::product);
  const NestLoop& term = nest.reduction.back();
  if (along && last->every && last->step == 1) out.push_back(Way::tile);
  if (term.constant && term.step == 1 && term.extent >= 2 * lanes) out.push_back(Way::rows);
  return out;
}

/// A function with vectors of its own gets none from the compiler.
void schedule_map(Schedule& sch, const Nest& nest, const TargetInfo& machine) {
  const std::int64_t lanes = machine.limit(limits::kVectorBytes, 16) / nest.widest_bytes;
  const NestLoop& last = nest.spatial.back();
  const std::int64_t wide = lanes * std::clamp<std::int64_t>(last.extent / lanes, 1, kRowVectors);
  sch.vectorize(last.extent == wide ? last.loop
                                    : sch.split(last.loop, {std::nullopt, factor(wide)})[1]);
}

/// Joins `width` partial results of a block pairwise: vectors of half the width each time, where
/// one after the other would wait for itself. Returns the blocks in their order.
std::vector<BlockRef> halves_of(Schedule& sch, const BlockRef& block, std::int64_t width) {
  std::vector<BlockRef> out;
  for (; width > 2 && width % 2 == 0; width /= 2) {
    const LoopRef lane = loops_of(sch, block, IterKind::reduce)[0];
    out.push_back(sch.rfactor(sch.split(lane, {std::nullopt, factor(width / 2)})[1], 0));
  }
  return out;
}

/// Such a block has its vector innermost and its terms side by side.
void schedule_half(Schedule& sch, const BlockRef& half) {
  const std::vector<LoopRef> all = sch.get_loops(half);
  const LoopRef vector = all[all.size() - 2], pair = all.back();
  sch.reorder({pair, vector});
  const BlockRef init = sch.decompose_reduction(half, pair);
  sch.unroll(pair);
  sch.vectorize(vector);
  sch.vectorize(sch.get_loops(init).back());
}

/// Partial sums in the lanes of some vectors, which are joined when the row has ended.
void schedule_rows(Schedule& sch, const Nest& nest, const TargetInfo& machine) {
  const BlockRef block = nest.block;
  const LoopRef k = nest.reduction.back().loop;
  const std::int64_t lanes = host_lanes(nest, machine);
  const std::int64_t wide =
      lanes * std::clamp<std::int64_t>(nest.reduction.back().extent / (2 * lanes), 1, kRowVectors);
  if (nest.reduction.back().extent % wide) sch.pad_reduction(k, wide);
  const LoopRef lane = sch.split(k, {std::nullopt, factor(wide)})[1];
  const BlockRef partial = sch.rfactor(lane, 0);
  const std::vector<BlockRef> halves = halves_of(sch, block, wide);
  std::vector<LoopRef> spatial = loops_of(sch, block, IterKind::spatial);
  if (spatial.empty()) spatial.push_back(sch.add_unit_loop(sch.get_loops(block)[0]));
  for (auto half = halves.rbegin(); half != halves.rend(); ++half) {
    sch.compute_at(*half, spatial.back());
    sch.set_scope(*half, 0, "local");
  }
  sch.compute_at(partial, spatial.back());
  sch.set_scope(partial, 0, "local");
  const std::vector<LoopRef> steps = loops_of(sch, partial, IterKind::reduce);
  const std::vector<LoopRef> all = sch.get_loops(partial);
  const LoopRef vector = all[spatial.size()];
  std::vector<LoopRef> order = steps;
  order.push_back(vector);
  sch.reorder(order);
  const BlockRef init = sch.decompose_reduction(partial, order[0]);
  sch.vectorize(vector);
  sch.vectorize(sch.get_loops(init).back());
  for (const BlockRef& half : halves) schedule_half(sch, half);
}

/// A few vectors of results stay in registers while the terms pass.
void schedule_tile(Schedule& sch, const Nest& nest, const TargetInfo& machine) {
  const BlockRef block = nest.block;
  const std::size_t last = nest.spatial.size() - 1;
  const std::int64_t lanes = host_lanes(nest, machine), extent = nest.spatial[last].extent;
  const std::int64_t columns = lanes * std::clamp<std::int64_t>(extent / lanes, 1, kRowVectors);
  const BlockRef store = sch.cache_write(block, 0, "local");
  const std::vector<LoopRef> loops = sch.get_loops(block);
  const auto wide = sch.split(loops[last], {std::nullopt, factor(columns)});
  std::vector<LoopRef> order(loops.begin() + static_cast<std::ptrdiff_t>(last) + 1, loops.end());
  const LoopRef first_term = order[0];
  order.push_back(wide[1]);
  sch.reorder(order);
  sch.reverse_compute_at(store, wide[0], true);
  const BlockRef init = sch.decompose_reduction(block, first_term);
  for (const BlockRef& b : {block, store, init}) sch.vectorize(sch.get_loops(b).back());
  if (nest.results > kHostParallelWork / nest.terms) sch.parallel(last ? loops[0] : wide[0]);
}

bool schedule_nest(Schedule& sch, BlockRef block, const TargetInfo& machine, const Sizes& sizes,
                   std::vector<std::string>* applied) {
  attempt([&] { cut_into_digits(sch, block); });
  const Nest nest = read_nest(sch, block, sizes);
  const std::string name = nest.node->name;
  std::string refused;
  for (const Way way : ways_of(nest, machine)) {
    const Schedule before = sch;
    const std::string_view word = kWords[static_cast<std::size_t>(way)];
    std::string why;
    const bool done = attempt(
        [&] {
          const Nest now = read_nest(sch, block, sizes);
          if (way == Way::map) schedule_map(sch, now, machine);
          else if (way == Way::rows) schedule_rows(sch, now, machine);
          else if (way == Way::tile) schedule_tile(sch, now, machine);
          else schedule_host_product(sch, now, *match_host_product(now, machine));
        },
        &why);
    if (done) {
      applied->push_back(cat(name, ": ", word, refused));
      return true;
    }
    sch = before;
    refused += cat("; ", word, " was refused: ", why);
  }
  return false;
}

}  // namespace

bool is_plain(const PrimFunc& f) {
  const auto* root = as<BlockRealizeNode>(f->body);
  if (!root || !root->block->annotations.empty()) return false;
  for (const Stmt& s : schedule::statements(root->block->body)) {
    Stmt at = s;
    std::vector<const ForNode*> loops;
    while (const auto* l = as<ForNode>(at)) {
      if (l->for_kind != ForKind::serial || !l->annotations.empty()) return false;
      loops.push_back(l);
      at = l->body;
    }
    const auto* realize = as<BlockRealizeNode>(at);
    if (!realize || !realize->block->annotations.empty() ||
        (realize->predicate && !is_const_int_value(realize->predicate, 1)) ||
        realize->iter_values.size() != loops.size())
      return false;
    for (std::size_t i = 0; i < loops.size(); ++i)
      if (realize->iter_values[i].get() != loops[i]->var.get()) return false;
  }
  return true;
}

PrimFunc schedule_for_host(const PrimFunc& f, const TargetInfo& machine) {
  if (!is_plain(f)) return f;
  Schedule sch(f);
  sch.set_detail(false);
  const Sizes sizes = sizes_of(f);
  std::vector<std::string> applied;
  const BlockRef root = sch.get_block(as<BlockRealizeNode>(f->body)->block->name);
  const std::vector<BlockRef> blocks = sch.get_child_blocks(root);
  const bool reduces = std::any_of(blocks.begin(), blocks.end(), [&](BlockRef b) {
    return !read_nest(sch, b, sizes).reduction.empty();
  });
  if (!reduces) return f;
  for (const BlockRef& b : blocks) schedule_nest(sch, b, machine, sizes, &applied);
  if (applied.empty()) return f;
  auto out = edit(sch.func());
  out->attrs = with_annotation(out->attrs, kAppliedRules, join(applied, "; "));
  return out;
}

}  // namespace weft::rules
