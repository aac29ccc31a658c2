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

/// So many vectors side by side: a compiler makes a power of two of other numbers.
std::int64_t vectors_of(std::int64_t most) {
  return static_cast<std::int64_t>(
      std::bit_floor(static_cast<std::uint64_t>(std::clamp<std::int64_t>(most, 1, kRowVectors))));
}

constexpr std::string_view kWords[] = {"", "host_map", "host_rows", "host_tile", "host_product"};
enum class Way { none, map, rows, tile, product };

/// Results that lie side by side wherever they are read, those that are stored so first.
std::optional<std::size_t> columns_of(const Nest& nest, const TargetInfo& machine) {
  for (std::size_t k = nest.spatial.size(); k-- > 0;) {
    const NestLoop& l = nest.spatial[k];
    if (l.constant && l.extent >= host_lanes(nest, machine) && l.every && l.step == 1) return k;
  }
  return std::nullopt;
}

/// The sum along which elements lie side by side.
std::optional<std::size_t> terms_of(const Nest& nest, const TargetInfo& machine) {
  for (std::size_t k = nest.reduction.size(); k-- > 0;) {
    const NestLoop& l = nest.reduction[k];
    if (l.constant && l.step == 1 && l.extent >= 2 * host_lanes(nest, machine)) return k;
  }
  return std::nullopt;
}

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
  if (columns_of(nest, machine)) out.push_back(Way::tile);
  if (terms_of(nest, machine)) out.push_back(Way::rows);
  return out;
}

/// A function with vectors of its own gets none from the compiler.
void schedule_map(Schedule& sch, const Nest& nest, const TargetInfo& machine) {
  const std::int64_t lanes = machine.limit(limits::kVectorBytes, 16) / nest.widest_bytes;
  const NestLoop& last = nest.spatial.back();
  const std::int64_t wide = lanes * vectors_of(last.extent / lanes);
  if (last.extent == wide) return sch.vectorize(last.loop);
  // The last vector repeats elements of the one before it, unless that hides from readers what is
  // written.
  const auto cut = [&](Schedule& s, const char* tail) {
    return s.split(last.loop, {std::nullopt, factor(wide)}, true, false, tail)[1];
  };
  const bool repeats = last.extent % wide && sch.get_consumers(nest.block).empty() && attempt([&] {
                         Schedule trial = sch;
                         trial.vectorize(cut(trial, "shift_inwards"));
                       });
  sch.vectorize(cut(sch, repeats ? "shift_inwards" : "guard"));
}

/// Whether a block calls functions of numbers, which vectors of the compiler's own do not have.
bool calls_functions(const BlockNode* node) {
  bool found = false;
  for_each_expr(node->body, [&](const Expr& e) {
    const auto* c = as<CallNode>(e);
    found = found || (c && c->op != "if_then_else" && c->op != "likely" && c->dtype.is_float());
  });
  return found;
}

/// Whether a block reads each element of a buffer where it writes its own, one for one.
bool reads_in_place(const BlockNode* node, const BufferNode* buffer) {
  bool in_place = true;
  for_each_expr(node->body, [&](const Expr& e) {
    const auto* l = as<LoadNode>(e);
    if (!l || l->buffer.get() != buffer) return;
    in_place = in_place && l->indices.size() == node->iters.size();
    for (std::size_t i = 0; in_place && i < l->indices.size(); ++i)
      in_place = l->indices[i].get() == node->iters[i].var.get() ||
                 (l->indices[i]->kind == ExprKind::int_imm &&
                  is_const_int_value(node->iters[i].dom.extent, 1));
  });
  return in_place;
}

/// Stages of a chain become one: an element-wise block that others read in place, where that
/// computes no function twice. Whether any did.
bool join_maps(Schedule& sch, const BlockRef& root) {
  bool joined = false;
  std::vector<BlockRef> blocks = sch.get_child_blocks(root);
  for (auto b = blocks.rbegin(); b != blocks.rend(); ++b) {
    const BlockNode* node = schedule::find_block(sch.mod(), *b)->realize()->block.get();
    const std::vector<BlockRef> consumers = sch.get_consumers(*b);
    if (node->init || node->writes.size() != 1 || consumers.empty() ||
        (consumers.size() > 1 && calls_functions(node)))
      continue;
    const bool fit = std::all_of(consumers.begin(), consumers.end(), [&](const BlockRef& c) {
      const BlockNode* reader = schedule::find_block(sch.mod(), c)->realize()->block.get();
      return !reader->init && reads_in_place(reader, node->writes[0].buffer.get());
    });
    if (fit && attempt([&] { sch.compute_inline(*b); })) joined = true;
  }
  return joined;
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
  std::size_t which = *terms_of(nest, machine);
  const NestLoop& terms = nest.reduction[which];
  LoopRef k = terms.loop;
  const std::int64_t lanes = host_lanes(nest, machine);
  const std::int64_t wide = lanes * vectors_of(terms.extent / (2 * lanes));
  // A whole array, or a plane of one, is one row.
  std::int64_t joined = terms.extent;
  std::size_t outermost = which;
  std::vector<LoopRef> run{k};
  while (outermost > 0 && nest.reduction[outermost].moves.size() == 1 &&
         nest.reduction[outermost - 1].constant && nest.reduction[outermost - 1].step == joined) {
    joined *= nest.reduction[--outermost].extent;
    run.insert(run.begin(), nest.reduction[outermost].loop);
  }
  if (run.size() > 1 && joined % wide == 0) {
    k = sch.fuse(run);
    which = outermost;
  } else if (terms.extent % wide) {
    sch.pad_reduction(k, wide);
  }
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
  std::rotate(order.begin() + static_cast<std::ptrdiff_t>(which),
              order.begin() + static_cast<std::ptrdiff_t>(which) + 1, order.end());
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
  const std::size_t results = nest.spatial.size(), column = *columns_of(nest, machine);
  const std::int64_t lanes = host_lanes(nest, machine), extent = nest.spatial[column].extent;
  const std::int64_t width = lanes * vectors_of(extent / lanes);
  const BlockRef store = sch.cache_write(block, 0, "local");
  lay_out_results(sch, block, column, column);
  const std::vector<LoopRef> loops = sch.get_loops(block);
  // Lanes beyond the end add zeros that nobody stores.
  const bool whole =
      extent % width == 0 || !attempt([&] {
        Schedule trial = sch;
        trial.split(loops[column], {std::nullopt, factor(width)}, true, false, "round_up");
      });
  const auto wide = sch.split(loops[column], {std::nullopt, factor(width)}, true, false,
                              whole ? "guard" : "round_up");
  std::vector<LoopRef> order;
  for (std::size_t i = 0; i < results; ++i)
    if (i != column) order.push_back(loops[i]);
  order.push_back(wide[0]);
  order.insert(order.end(), loops.begin() + static_cast<std::ptrdiff_t>(results), loops.end());
  order.push_back(wide[1]);
  sch.reorder(order);
  sch.reverse_compute_at(store, wide[0], true);
  const BlockRef init = sch.decompose_reduction(block, loops[results]);
  for (const BlockRef& b : {block, init}) sch.vectorize(sch.get_loops(b).back());
  const std::vector<LoopRef> stored = sch.get_loops(store);
  if (column + 1 == results) sch.vectorize(stored.back());
  else
    for (std::size_t i = results; i < stored.size(); ++i) sch.unroll(stored[i]);
  if (nest.results > kHostParallelWork / nest.terms) sch.parallel(order[0]);
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
  if (!refused.empty()) applied->push_back(cat(name, ": none", refused));
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
  const bool joined = join_maps(sch, root);
  const std::vector<BlockRef> blocks = sch.get_child_blocks(root);
  const bool scheduled = std::any_of(blocks.begin(), blocks.end(), [&](BlockRef b) {
    const Nest nest = read_nest(sch, b, sizes);
    return !nest.reduction.empty() || calls_functions(nest.node);
  });
  if (joined) applied.push_back("stages of maps were joined");
  if (scheduled)
    for (const BlockRef& b : blocks) schedule_nest(sch, b, machine, sizes, &applied);
  if (applied.empty()) return f;
  auto out = edit(sch.func());
  out->attrs = with_annotation(out->attrs, kAppliedRules, join(applied, "; "));
  return out;
}

}  // namespace weft::rules
