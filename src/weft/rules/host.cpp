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
#include "weft/rules/nest.h"
#include "weft/schedule/tree.h"

namespace weft::rules {

using namespace ir;

namespace {

// Vectors of partial sums of a row: as many additions are in flight as a unit of four cycles takes.
constexpr std::int64_t kRowVectors = 4;
// A tile of a product: vectors of columns, rows, and tiles whose packed operand stays in the second
// cache.
constexpr std::int64_t kColumnVectors = 2, kRegisterRows = 6, kPanel = 4;
// Operations from which on a second thread is worth waking.
constexpr std::int64_t kParallelWork = std::int64_t{1} << 21, kPieces = 8;

constexpr std::string_view kWords[] = {"", "host_map", "host_rows", "host_tile", "host_product"};
enum class Way { none, map, rows, tile, product };

Way way_of(const Nest& nest, const TargetInfo& machine) {
  if (nest.mixed || nest.node->writes.size() != 1) return Way::none;
  const std::int64_t lanes = machine.limit(limits::kVectorBytes, 16) / nest.widest_bytes;
  if (lanes < 2) return Way::none;
  const NestLoop* last = nest.spatial.empty() ? nullptr : &nest.spatial.back();
  const bool along = last && last->constant && last->extent >= lanes;
  if (nest.reduction.empty()) return along && last->every ? Way::map : Way::none;
  // Steps below take the loops of results to be the outer ones.
  for (std::size_t i = 0; i < nest.node->iters.size(); ++i)
    if ((nest.node->iters[i].kind == IterKind::spatial) != (i < nest.spatial.size()))
      return Way::none;
  const auto pattern = match_reduction(nest.node);
  if (!pattern || pattern->updates.size() != 1) return Way::none;
  const NestLoop& term = nest.reduction.back();
  const bool pair = nest.node->reads.size() == 2 && nest.spatial.size() > 1 && !nest.streams;
  if (along && pair && nest.spatial[nest.spatial.size() - 2].extent > 1) return Way::product;
  if (along && last->every && last->step == 1) return Way::tile;
  if (term.constant && term.step == 1 && term.extent >= 2 * lanes) return Way::rows;
  return Way::none;
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
  const std::int64_t lanes = machine.limit(limits::kVectorBytes, 16) / nest.widest_bytes;
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

/// The operand that runs along the last axis, copied in panels as wide as a tile; absent where none
/// has that form.
std::optional<BlockRef> pack_operand(Schedule& sch, const Nest& nest, std::size_t axes,
                                     std::int64_t columns) {
  std::string names, inside, lead;
  for (std::size_t i = 0; i < axes; ++i) names += cat(i ? ", x" : "x", i);
  const std::size_t last = nest.spatial.size() - 1;
  for (std::size_t i = nest.spatial.size(); i < axes; ++i) inside += cat("x", i, ", ");
  for (std::size_t i = 0; i + 2 < nest.spatial.size(); ++i) lead += cat("x", i, ", ");
  for (const std::string& before : {std::string(), lead}) {
    const std::string map = cat("lambda ", names, ": (", before, "x", last, " // ", columns, ", ",
                                inside, "x", last, " % ", columns, ")");
    for (std::int64_t read = 0; read < 2; ++read) {
      std::optional<BlockRef> out;
      attempt([&] {
        out = sch.reindex_cache_read(nest.block, read, "global", schedule::IndexMap::parse(map));
      });
      if (out) return out;
    }
    if (lead.empty()) break;
  }
  return std::nullopt;
}

void unroll_and_vectorize(Schedule& sch, const LoopRef& rows, const LoopRef& lanes) {
  if (rows.var) sch.unroll(rows);
  sch.vectorize(lanes);
}

/// Results of some rows and of a few vectors of columns stay in registers while the terms pass; the
/// operand along the columns of a product is packed, so that its vectors are neighbours.
void schedule_tile(Schedule& sch, const Nest& nest, const TargetInfo& machine, bool pack) {
  const BlockRef block = nest.block;
  const std::size_t axes = nest.node->iters.size(), last = nest.spatial.size() - 1;
  const std::int64_t lanes = machine.limit(limits::kVectorBytes, 16) / nest.widest_bytes;
  const std::int64_t extent = nest.spatial[last].extent;
  const std::int64_t columns =
      lanes * std::clamp<std::int64_t>(extent / lanes, 1, pack ? kColumnVectors : kRowVectors);
  const std::int64_t missing = (columns - extent % columns) % columns;
  BlockRef store;
  if (missing && pack) {
    std::vector<std::int64_t> padding(axes, 0);
    padding[last] = missing;
    store = sch.pad_einsum(block, padding).back();
    sch.set_scope(block, 0, "local");
  } else {
    store = sch.cache_write(block, 0, "local");
  }
  std::optional<BlockRef> packed;
  if (pack) packed = pack_operand(sch, nest, axes, columns);
  const std::vector<LoopRef> loops = sch.get_loops(block);
  const auto wide = sch.split(loops[last], {std::nullopt, factor(kPanel), factor(columns)});
  const std::int64_t height = last > 0 ? nest.spatial[last - 1].extent : 1;
  const std::int64_t rows = pack && height > 1 ? std::min(height, kRegisterRows) : 1;
  std::vector<LoopRef> order,
      terms(loops.begin() + static_cast<std::ptrdiff_t>(last) + 1, loops.end());
  for (std::size_t i = 0; i + 1 < last; ++i) order.push_back(loops[i]);
  const std::size_t leading = order.size();
  order.push_back(wide[0]);
  LoopRef high, row;
  if (last > 0) {
    const auto cut = rows > 1 ? sch.split(loops[last - 1], {std::nullopt, factor(rows)})
                              : std::vector<LoopRef>{loops[last - 1]};
    high = cut[0];
    order.push_back(high);
    if (rows > 1) row = cut[1];
  }
  order.push_back(wide[1]);
  order.insert(order.end(), terms.begin(), terms.end());
  if (row.var) order.push_back(row);
  order.push_back(wide[2]);
  sch.reorder(order);
  if (packed) {
    sch.compute_at(*packed, wide[0]);
    const std::vector<LoopRef> all = sch.get_loops(*packed);
    const std::vector<LoopRef> own(all.begin() + static_cast<std::ptrdiff_t>(leading) + 1,
                                   all.end());
    if (own.size() > terms.size()) {
      const LoopRef across = own[own.size() - 1 - terms.size()];
      const auto cut = sch.split(across, {std::nullopt, factor(columns)});
      std::vector<LoopRef> inner{cut[0]};
      inner.insert(inner.end(), own.end() - static_cast<std::ptrdiff_t>(terms.size()), own.end());
      inner.push_back(cut[1]);
      sch.reorder(inner);
      sch.vectorize(cut[1]);
    }
  }
  sch.reverse_compute_at(store, wide[1], true);
  const std::vector<LoopRef> stored = sch.get_loops(store);
  const BlockRef init = sch.decompose_reduction(block, terms[0]);
  const std::vector<LoopRef> first = sch.get_loops(init);
  unroll_and_vectorize(sch, row, wide[2]);
  auto outer = [&](const std::vector<LoopRef>& all) {
    return row.var ? all[all.size() - 2] : LoopRef{};
  };
  unroll_and_vectorize(sch, outer(stored), stored.back());
  unroll_and_vectorize(sch, outer(first), first.back());
  if (nest.results > kParallelWork / nest.terms) {
    const bool panels = ceil_div(extent, columns * kPanel) >= kPieces;
    sch.parallel(leading ? order[0] : panels || !high.var ? wide[0] : high);
  }
}

bool schedule_nest(Schedule& sch, BlockRef block, const TargetInfo& machine, const Sizes& sizes,
                   std::vector<std::string>* applied) {
  const Nest nest = read_nest(sch, block, sizes);
  const std::string name = nest.node->name;
  std::vector<Way> ways{way_of(nest, machine)};
  if (ways[0] == Way::product && nest.spatial.back().every) ways.push_back(Way::tile);
  if (ways[0] == Way::none) return false;
  std::string refused;
  for (const Way way : ways) {
    const Schedule before = sch;
    const std::string_view word = kWords[static_cast<std::size_t>(way)];
    std::string why;
    const bool done = attempt(
        [&] {
          const Nest now = read_nest(sch, block, sizes);
          if (way == Way::map) schedule_map(sch, now, machine);
          else if (way == Way::rows) schedule_rows(sch, now, machine);
          else schedule_tile(sch, now, machine, way == Way::product);
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
