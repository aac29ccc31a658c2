// SPDX-License-Identifier: Apache-2.0
#include "weft/rules/row.h"

#include <algorithm>
#include <bit>
#include <unordered_set>

#include "weft/arith/analyzer.h"
#include "weft/base/integers.h"
#include "weft/base/text.h"
#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/ir/place.h"
#include "weft/ir/visit.h"
#include "weft/schedule/tree.h"

namespace weft::rules {

using namespace ir;

namespace {

constexpr std::int64_t kRowLanes = 8, kLeastThreads = 4;

const BlockRealizeNode* realize_of(const Schedule& sch, BlockRef b) {
  return schedule::find_block(sch.mod(), b)->realize();
}
bool reduces(const BlockNode& block) {
  return std::any_of(block.iters.begin(), block.iters.end(),
                     [](const IterVar& v) { return v.kind != IterKind::spatial; });
}

/// The loops of one block: outer ones of results, and one of constant extent along the row.
bool is_pass(const BlockRealizeNode& realize, const std::vector<const ForNode*>& loops) {
  if (loops.empty()) return false;
  const VarNode* column = loops.back()->var.get();
  const bool joins = reduces(*realize.block);
  if (joins && (!realize.block->init || !match_reduction(realize.block.get()))) return false;
  bool found = false;
  for (std::size_t i = 0; i < realize.iter_values.size(); ++i) {
    const IterVar& iter = realize.block->iters[i];
    const bool along = uses_var(realize.iter_values[i], column);
    if (along && realize.iter_values[i].get() != column) return false;
    if (along ? iter.kind != (joins ? IterKind::reduce : IterKind::spatial)
              : iter.kind != IterKind::spatial)
      return false;
    found = found || along;
  }
  return found;
}

/// Whether what the block reads and writes of parameters stands still along the row, or lies in
/// whole vectors of `lanes` neighbours.
bool in_vectors(const Schedule& sch, BlockRef b,
                const std::unordered_set<const BufferNode*>& outside, std::int64_t lanes) {
  const auto path = schedule::find_block(sch.mod(), b);
  const BlockRealizeNode* realize = path->realize();
  const Var& column = path->loops().back()->var;
  VarMap iters, next;
  const Var vector = make_var("vector", column->dtype);
  for (std::size_t lane : {std::size_t{0}, std::size_t{1}}) {
    VarMap& map = lane ? next : iters;
    const Expr at = Expr(vector) * lanes + static_cast<std::int64_t>(lane);
    for (std::size_t i = 0; i < realize->iter_values.size(); ++i)
      map[realize->block->iters[i].var.get()] =
          substitute(realize->iter_values[i], {{column.get(), at}});
  }
  arith::Analyzer analyzer;
  const std::int64_t vectors = estimate(path->loops().back()->extent, {}) / lanes;
  analyzer.bind(vector, Range{make_int(0, vector->dtype), make_int(vectors, vector->dtype)});
  bool all = true;
  auto check = [&](const Buffer& buffer, const Exprs& indices) {
    if (!all || !outside.count(buffer.get()) || lanes == 1) return;
    Expr first, second;
    const Exprs strides = strides_of(buffer);
    for (std::size_t i = 0; i < indices.size(); ++i) {
      const Expr index = as_place(indices[i]), step = cast(index->dtype, strides[i]);
      const Expr a = substitute(index, iters) * step, c = substitute(index, next) * step;
      first = first ? first + a : a;
      second = second ? second + c : c;
    }
    if (!first) return;
    first = analyzer.simplify(first);
    const Expr apart = analyzer.simplify(second - first);
    if (is_const_int_value(apart, 0)) return;
    const arith::Modular m = analyzer.modular(first);
    all = is_const_int_value(apart, 1) && m.coeff % lanes == 0 && m.base % lanes == 0;
  };
  for_each_expr(realize->block->body, [&](const Expr& e) {
    if (const auto* l = as<LoadNode>(e)) check(l->buffer, l->indices);
  });
  for_each_stmt(realize->block->body, [&](const Stmt& s) {
    if (const auto* t = as<StoreNode>(s)) check(t->buffer, t->indices);
  });
  return all;
}

/// Whether the block reads what other passes have mapped only at its own place of the row: a thread
/// keeps its elements to itself.
bool reads_own_places(const Schedule& sch, BlockRef b,
                      const std::unordered_set<const BufferNode*>& mapped) {
  const auto path = schedule::find_block(sch.mod(), b);
  const BlockRealizeNode* realize = path->realize();
  const VarNode* column = path->loops().back()->var.get();
  VarMap iters;
  for (std::size_t i = 0; i < realize->iter_values.size(); ++i)
    iters[realize->block->iters[i].var.get()] = realize->iter_values[i];
  bool own = true;
  auto check = [&](const Buffer& buffer, const Exprs& indices) {
    if (mapped.count(buffer.get()))
      own = own && !indices.empty() && substitute(indices.back(), iters).get() == column;
  };
  for_each_expr(realize->block->body, [&](const Expr& e) {
    if (const auto* l = as<LoadNode>(e)) check(l->buffer, l->indices);
  });
  for_each_stmt(realize->block->body, [&](const Stmt& s) {
    if (const auto* t = as<StoreNode>(s)) check(t->buffer, t->indices);
  });
  return own;
}

}  // namespace

std::optional<RowTile> row_tile(std::int64_t columns, std::int64_t lanes, std::int64_t most_threads,
                                std::int64_t arrays) {
  if (columns < 1) return std::nullopt;
  constexpr std::int64_t kGroup = 256;
  struct Share {
    std::int64_t each, threads;  // elements of a thread, threads of a row at most
    std::int64_t held;           // elements of all arrays in a thread's registers at most
  };
  // A processor should hold several rows, so that one is loaded while another is reduced. Rows of
  // narrow elements have few bytes for each thread: fewer threads take more elements each.
  constexpr Share kNarrow[] = {
      {8, kGroup, 192}, {16, kGroup, 192}, {32, kGroup, 192}, {64, kGroup, 192}};
  constexpr Share kAny[] = {{8, 512, 64}, {16, 1024, 64}};
  std::vector<Share> shares;
  if (lanes == kRowLanes) shares.assign(std::begin(kNarrow), std::end(kNarrow));
  shares.insert(shares.end(), std::begin(kAny), std::end(kAny));
  for (const Share& s : shares) {
    if (s.each * arrays > s.held) continue;
    RowTile out;
    out.threads = std::max<std::int64_t>(
        kLeastThreads, static_cast<std::int64_t>(
                           std::bit_ceil(static_cast<std::uint64_t>(ceil_div(columns, s.each)))));
    if (out.threads > std::min(s.threads, most_threads)) continue;
    out.lanes = lanes;
    out.moves = ceil_div(columns, out.threads * lanes);
    out.beside = std::max<std::int64_t>(1, std::min(kGroup, most_threads) / out.threads);
    return out;
  }
  return std::nullopt;
}

std::optional<RowDecisions> match_row(const Schedule& sch, const std::vector<BlockRef>& blocks,
                                      const Facts& facts) {
  RowDecisions d;
  std::unordered_set<const BufferNode*> outside;
  for (const Param& p : sch.func()->params) {
    if (p.buffer) outside.insert(p.buffer.get());
  }
  std::unordered_set<const BufferNode*> mapped;
  std::int64_t columns = 0, rows = 0, widest = 1;
  for (BlockRef b : blocks) {
    const auto path = schedule::find_block(sch.mod(), b);
    const std::vector<const ForNode*> loops = path->loops();
    if (!is_pass(*path->realize(), loops)) return std::nullopt;
    std::int64_t extent = 0;
    if (!is_const_int(loops.back()->extent, &extent)) return std::nullopt;
    if (!d.blocks.empty() && (extent != columns || loops.size() != d.outer + 1))
      return std::nullopt;
    columns = extent;
    d.outer = loops.size() - 1;
    if (d.outer == 0) rows = 1;
    else if (!is_const_int(loops[d.outer - 1]->extent, &rows)) rows = 0;
    d.blocks.push_back(b);
    d.reduces.push_back(reduces(*path->realize()->block));
    for (const BufferRegion& w : path->realize()->block->writes) {
      if (!d.reduces.back() && !outside.count(w.buffer.get())) mapped.insert(w.buffer.get());
    }
    if (!reads_own_places(sch, b, mapped)) return std::nullopt;
    for (const auto* regions : {&path->realize()->block->reads, &path->realize()->block->writes}) {
      for (const BufferRegion& r : *regions) {
        if (outside.count(r.buffer.get()))
          widest = std::max<std::int64_t>(widest, r.buffer->dtype.total_bytes());
      }
    }
  }
  // A row that is not mapped after it was reduced is read once anyhow.
  const auto first = std::find(d.reduces.begin(), d.reduces.end(), true);
  if (first == d.reduces.end() || d.reduces.back()) return std::nullopt;
  std::int64_t lanes =
      std::max<std::int64_t>(1, std::min(kRowLanes, facts.vector_bytes() / widest));
  const bool vectors = columns % lanes == 0 &&
                       std::all_of(blocks.begin(), blocks.end(),
                                   [&](BlockRef b) { return in_vectors(sch, b, outside, lanes); });
  const auto tile = row_tile(columns, vectors ? lanes : 1, facts.threads(),
                             static_cast<std::int64_t>(mapped.size()));
  if (!tile) return std::nullopt;
  d.tile = *tile;
  if (rows > 0)
    d.tile.beside = std::min(
        d.tile.beside, static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(rows))));
  // Elements of a thread are moved together where that maps rows one to one; else they lie apart.
  d.whole = columns == tile->width();
  constexpr std::int64_t kBytes = 8;
  if (!d.whole && columns * kBytes > kPrivateBytes * 2) return std::nullopt;
  return d;
}

bool schedule_row(Schedule& sch, const RowDecisions& d) {
  const BlockRef last = d.blocks.back();
  std::vector<LoopRef> outer = sch.get_loops(last);
  outer.pop_back();
  if (outer.empty()) outer.push_back(sch.add_unit_loop(sch.get_loops(last)[0]));
  const std::vector<LoopRef> cut = sch.split(outer.back(), {std::nullopt, factor(d.tile.beside)});
  for (std::size_t i = d.blocks.size() - 1; i-- > 0;) sch.compute_at(d.blocks[i], cut[1]);
  // A pass that another needs more than its own row of has more loops now.
  for (BlockRef b : d.blocks) {
    if (sch.get_loops(b).size() != outer.size() + 2) return false;
  }
  const std::unordered_set<const BufferNode*> inside = [&] {
    std::unordered_set<const BufferNode*> out;
    for (const Buffer& b : as<BlockRealizeNode>(sch.func()->body)->block->alloc_buffers)
      out.insert(b.get());
    return out;
  }();
  for (std::size_t i = 0; i < d.blocks.size(); ++i) {
    const BlockRef b = d.blocks[i];
    const std::vector<LoopRef> parts =
        sch.split(sch.get_loops(b).back(),
                  {factor(d.tile.moves), factor(d.tile.threads), factor(d.tile.lanes)});
    sch.reorder({parts[1], parts[0], parts[2]});
    sch.bind(parts[1], "threadIdx.x");
    sch.unroll(parts[0]);
    if (d.reduces[i] || d.tile.lanes == 1) sch.unroll(parts[2]);
    else sch.vectorize(parts[2]);
    const auto writes = realize_of(sch, b)->block->writes;
    for (std::size_t w = 0; w < writes.size(); ++w) {
      if (!inside.count(writes[w].buffer.get())) continue;
      const auto at = static_cast<std::int64_t>(w);
      sch.set_scope(b, at, d.reduces[i] ? "shared" : "local");
      if (d.reduces[i] || !d.whole) continue;
      // A thread's own elements lie together.
      schedule::IndexMap map;
      for (std::size_t k = 0; k < writes[w].buffer->shape.size(); ++k)
        map.inputs.push_back(make_var(cat("i", k), writes[w].region[k].min->dtype));
      map.outputs.assign(map.inputs.begin(), map.inputs.end() - 1);
      const Expr column = map.inputs.back();
      const Expr move = make_int(d.tile.lanes, column->dtype);
      const Expr threads = make_int(d.tile.threads, column->dtype);
      map.outputs.push_back(div(column, make_int(d.tile.lanes * d.tile.threads, column->dtype)));
      map.outputs.push_back(make_binary(ExprKind::mod, div(column, move), threads));
      map.outputs.push_back(make_binary(ExprKind::mod, column, move));
      sch.transform_layout(b, {"write", at, ""}, map);
    }
  }
  std::vector<LoopRef> grid = outer;
  grid.back() = cut[0];
  sch.bind(grid.size() > 1 ? sch.fuse(grid) : grid[0], "blockIdx.x");
  sch.bind(cut[1], "threadIdx.y");
  return true;
}

}  // namespace weft::rules
