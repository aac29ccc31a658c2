// SPDX-License-Identifier: Apache-2.0
#include "weft/rules/product_tile.h"

#include <algorithm>

#include "weft/base/text.h"
#include "weft/ir/build.h"
#include "weft/ir/reduction_pattern.h"
#include "weft/rules/product_choice.h"
#include "weft/schedule/tree.h"

namespace weft::rules {

namespace {

using schedule::IndexMap;
using Loops = std::vector<LoopRef>;

std::string list(const std::string& prefix, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += cat(prefix, i, ", ");
  return out;
}
/// Tile, warp, line of the warp, lane, neighbour.
std::string digits(const std::string& x, const TileSide& s) {
  return cat(x, " // ", s.size(), ", ", x, " % ", s.size(), " // ", s.warp(), ", ", x, " % ",
             s.warp(), " // ", s.line(), ", ", x, " % ", s.line(), " // ", s.near, ", ", x, " % ",
             s.near);
}

/// The loops of a block inside of `outer`.
Loops inside(Schedule& sch, BlockRef block, const LoopRef& outer) {
  const Loops all = sch.get_loops(block);
  return {std::find(all.begin(), all.end(), outer) + 1, all.end()};
}

class Steps {
 public:
  Steps(Schedule& sch, const PaddedProduct& blocks, const ProductTile& tile)
      : sch_(sch), blocks_(blocks), t_(tile) {}

  void take() {
    sch_.set_scope(blocks_.product, 0, "local");
    const auto iters = schedule::find_block(sch_.mod(), blocks_.product)->realize()->block->iters;
    batches_ = iters.size() - 3;
    const bool constant = std::all_of(iters.begin(), iters.end() - 1, [](const ir::IterVar& v) {
      return ir::is_const_int(v.dom.extent);
    });
    const std::string b = list("b", batches_);
    const Loops loops = sch_.transform_block_layout(
        blocks_.product, IndexMap::parse(cat("lambda ", b, "i, j, k: (", b, digits("i", t_.rows),
                                             ", ", digits("j", t_.columns), ", k // ", t_.depth,
                                             ", k % ", t_.depth, ")")));
    const auto at = loops.begin() + static_cast<std::ptrdiff_t>(batches_);
    Loops grid(loops.begin(), at);
    const Loops r(at, at + 5), c(at + 5, at + 10);
    step_ = at[10], term_ = at[11];
    grid.insert(grid.end(), {r[0], c[0]});
    const Loops threads{r[1], c[1], r[3], c[3]}, own{r[2], r[4], c[2], c[4]};
    Loops order = grid;
    order.insert(order.end(), threads.begin(), threads.end());
    const bool threads_multiply = t_.instruction.empty();
    order.push_back(step_);
    if (threads_multiply) order.push_back(term_);
    order.insert(order.end(), own.begin(), own.end());
    if (!threads_multiply) order.push_back(term_);
    sch_.reorder(order);
    const LoopRef thread = sch_.fuse(threads);
    sch_.bind(thread, "threadIdx.x");
    sch_.reverse_compute_at(blocks_.store, c[0]);
    for (std::size_t side = 0; side < 2; ++side) fetch(side);
    if (blocks_.places) tabulate();
    if (threads_multiply) {
      sch_.unroll(term_);
      for (const LoopRef& l : own) sch_.unroll(l);
    } else {
      sch_.annotate(own[0], "instruction", t_.instruction);
    }
    const BlockRef first = sch_.decompose_reduction(blocks_.product, step_);
    for (const LoopRef& l : inside(sch_, first, thread)) sch_.unroll(l);
    pipeline();
    store(c[0]);
    if (constant) {
      sch_.bind(sch_.fuse(grid), "blockIdx.x");
      return;
    }
    // Positions of a block are no quotients by extents that are known at run time only.
    sch_.bind(c[0], "blockIdx.x");
    sch_.bind(r[0], "blockIdx.y");
    if (batches_ == 0) return;
    grid.resize(batches_);
    sch_.bind(batches_ > 1 ? sch_.fuse(grid) : grid[0], "blockIdx.z");
  }

 private:
  void fetch(std::size_t side) {
    const BlockRef copy = blocks_.copies[side];
    const TileSide& s = side == 0 ? t_.rows : t_.columns;
    sch_.set_scope(copy, 0, "shared");
    if (t_.instruction.empty()) take_terms(side, s);
    sch_.compute_at(copy, step_);
    // Lines four elements longer: transposed writes fall on different banks, vectors stay aligned.
    sch_.storage_align(copy, 0, static_cast<std::int64_t>(blocks_.batches[side].size()), 8, 4);
    share(copy, t_.vector[side]);
  }
  /// A thread's elements of a term, in vectors.
  void take_terms(std::size_t side, const TileSide& s) {
    const auto iters = schedule::find_block(sch_.mod(), blocks_.product)->realize()->block->iters;
    std::string own;
    // Iterators of one value are no part of the access.
    auto use = [&](std::size_t iter, const std::string& name) {
      if (!ir::is_const_int_value(iters[iter].dom.extent, 1))
        own += cat(own.empty() ? "" : ", ", name);
    };
    for (std::size_t b : blocks_.batches[side]) use(b, cat("b", b));
    use(batches_ + 10, "k"), use(batches_ + 11, "l");
    for (std::size_t i : {0, 1, 3, 2, 4})
      use(batches_ + side * 5 + i, cat(side == 0 ? "r" : "c", i));
    const BlockRef fragment = sch_.reindex_cache_read(
        blocks_.product, static_cast<std::int64_t>(side), "local",
        IndexMap::parse(cat("lambda ", list("b", batches_), list("r", 5), list("c", 5), "k, l: (",
                            own, own.find(',') == std::string::npos ? ",)" : ")")));
    sch_.compute_at(fragment, term_);
    Loops mine = inside(sch_, fragment, term_);
    if (s.near > 1) sch_.vectorize(mine.back()), mine.pop_back();
    for (const LoopRef& l : mine) sch_.unroll(l);
  }
  void share(BlockRef copy, std::int64_t vector) {
    const Loops axes = inside(sch_, copy, step_);
    const auto cut = sch_.split(axes.size() > 1 ? sch_.fuse(axes) : axes[0],
                                {std::nullopt, factor(t_.threads()), factor(vector)});
    sch_.bind(cut[1], "threadIdx.x");
    sch_.unroll(cut[0]);
    if (vector > 1) sch_.vectorize(cut[2]);
  }
  void tabulate() {
    sch_.set_scope(*blocks_.places, 0, "shared");
    sch_.set_scope(*blocks_.places, 1, "shared");
    sch_.compute_at(*blocks_.places, step_);
    share(*blocks_.places, 1);
  }

  void pipeline() {
    if (t_.ahead == 0) return;
    Json stages = Json::array(), copies = Json::array();
    const std::int64_t first = blocks_.places ? 1 : 0;
    if (blocks_.places) stages.push_back(std::int64_t{0});
    for (std::int64_t stage : {first, first, first + t_.ahead}) stages.push_back(stage);
    copies.push_back(first);
    sch_.annotate(step_, "software_pipeline_stage", std::move(stages));
    sch_.annotate(step_, "software_pipeline_async_stages", std::move(copies));
  }

  /// Each thread stores its own results.
  void store(const LoopRef& outer) {
    const Loops mine = inside(sch_, blocks_.store, outer);
    auto cut = [&](const LoopRef& l, const TileSide& s, bool near) {
      schedule::Factors f{factor(s.warps), factor(s.lines()), factor(s.lanes)};
      if (near) f.push_back(factor(s.near));
      return sch_.split(l, f);
    };
    const Loops i = cut(mine[0], t_.rows, true);
    Loops j = cut(mine[1], t_.columns, mine.size() == 2);
    if (mine.size() > 2) j.push_back(mine[2]);
    sch_.reorder({i[0], j[0], i[2], j[2], i[1], i[3], j[1], j[3]});
    sch_.bind(sch_.fuse({i[0], j[0], i[2], j[2]}), "threadIdx.x");
    for (const LoopRef& l : {i[1], i[3], j[1]}) sch_.unroll(l);
    if (t_.vector_out) sch_.vectorize(j[3]);
    else sch_.unroll(j[3]);
    const TileSide &r = t_.rows, &c = t_.columns;
    const std::string b = list("b", batches_);
    sch_.transform_layout(
        blocks_.product, {"write", 0, ""},
        IndexMap::parse(cat("lambda ", b, "i, j: (", b, "i // ", r.size(), ", j // ", c.size(),
                            ", i % ", r.size(), " // ", r.warp(), ", j % ", c.size(), " // ",
                            c.warp(), ", i % ", r.line(), " // ", r.near, ", j % ", c.line(),
                            " // ", c.near, ", i % ", r.warp(), " // ", r.line(), ", i % ", r.near,
                            ", j % ", c.warp(), " // ", c.line(), ", j % ", c.near, ")")));
  }

  Schedule& sch_;
  const PaddedProduct& blocks_;
  const ProductTile& t_;
  std::size_t batches_ = 0;
  LoopRef step_, term_;
};

/// What an operand of a sum of products loads; null: not at plain iterators.
const ir::LoadNode* operand_of(const ir::Expr& e) {
  const ir::Expr inner = e->kind == ir::ExprKind::cast ? ir::as<ir::CastNode>(e)->value : e;
  const auto* l = ir::as<ir::LoadNode>(inner);
  const bool plain = l && std::all_of(l->indices.begin(), l->indices.end(),
                                      [](const ir::Expr& i) { return ir::as<ir::VarNode>(i); });
  return plain ? l : nullptr;
}
/// The axis of a load that an iterator is the index of; npos: none.
std::size_t axis_of(const ir::LoadNode* l, const ir::IterVar& v) {
  for (std::size_t i = 0; i < l->indices.size(); ++i)
    if (l->indices[i].get() == v.var.get()) return i;
  return std::string::npos;
}

/// The two operands of a product, and its iterators.
struct Operands {
  const ir::LoadNode* load[2] = {};
  std::size_t batches = 0;
  const ir::IterVar& side(const Nest& nest, std::size_t i) const {
    return nest.node->iters[batches + i];
  }
};
std::optional<Operands> operands_of(const Nest& nest) {
  if (nest.mixed || nest.streams || nest.reduction.size() != 1 || nest.spatial.size() < 2 ||
      nest.node->iters.size() != nest.spatial.size() + 1 ||
      nest.node->iters.back().kind != ir::IterKind::reduce || !nest.node->init)
    return std::nullopt;
  const auto pattern = ir::match_reduction(nest.node);
  if (!pattern || pattern->updates.size() != 1 ||
      pattern->reducer->result[0]->kind != ir::ExprKind::add ||
      pattern->rest[0]->kind != ir::ExprKind::mul)
    return std::nullopt;
  const auto* both = ir::as<ir::BinaryNode>(pattern->rest[0]);
  Operands out;
  out.load[0] = operand_of(both->a), out.load[1] = operand_of(both->b);
  if (!out.load[0] || !out.load[1] || out.load[0]->buffer == out.load[1]->buffer)
    return std::nullopt;
  out.batches = nest.spatial.size() - 2;
  auto has = [&](std::size_t side, std::size_t i) {
    return axis_of(out.load[side], out.side(nest, i)) != std::string::npos;
  };
  const bool rows_first = has(0, 0) && !has(0, 1) && has(1, 1) && !has(1, 0);
  return rows_first && has(0, 2) && has(1, 2) ? std::optional(out) : std::nullopt;
}

}  // namespace

void schedule_product_tile(Schedule& sch, const PaddedProduct& blocks, const ProductTile& tile) {
  Steps(sch, blocks, tile).take();
}

std::optional<ProductTile> match_product_tile(const Nest& nest, const Facts& facts) {
  const auto operands = operands_of(nest);
  if (!operands) return std::nullopt;
  const NestLoop &m = nest.spatial[operands->batches], &n = nest.spatial[operands->batches + 1];
  constexpr std::int64_t kLeastSide = 16, kLeastTerms = 8;  // below: a tile is mostly padding
  if (std::min(m.extent, n.extent) < kLeastSide || nest.terms < kLeastTerms) return std::nullopt;
  const std::int64_t bytes = nest.widest_bytes;
  std::int64_t vector[2] = {1, 1};
  int in_vectors = 0, along_sum = 0;
  for (std::size_t side = 0; side < 2; ++side) {
    const NestLoop& loop = side == 0 ? m : n;
    const ir::LoadNode* l = operands->load[side];
    const std::size_t last = l->indices.size() - 1;
    const std::int64_t lanes = facts.vector_bytes() / l->dtype.bytes();
    along_sum += axis_of(l, operands->side(nest, 2)) == last;
    if (axis_of(l, operands->side(nest, side)) != last || lanes <= 1 || loop.multiple % lanes != 0)
      continue;
    vector[side] = lanes, ++in_vectors;
  }
  const TileChoice choice = choose_tile(
      facts, bytes, {nest.results / (m.extent * n.extent), m.extent, n.extent, nest.terms},
      along_sum == 2 ? TileReads::along_sum : static_cast<TileReads>(in_vectors), false, true);
  if (choice.clocks == 0) return std::nullopt;  // none fits
  std::optional<ProductTile> out = rated_tiles(bytes)[choice.tile].tile(bytes);
  const std::int64_t near = std::clamp<std::int64_t>(16 / bytes, 1, 4);
  out->ahead = choice.stages - 1;
  for (std::size_t side = 0; side < 2; ++side) out->vector[side] = std::min(vector[side], near);
  out->vector_out = n.multiple % near == 0 && near > 1;
  return out;
}

namespace {
bool take_product(Schedule& sch, const Nest& nest, const ProductTile& tile,
                  std::optional<BlockRef> finish) {
  const auto operands = operands_of(nest);
  const std::size_t batches = operands->batches;
  std::vector<std::int64_t> padding(batches, 1);
  padding.insert(padding.end(), {tile.rows.size(), tile.columns.size(), tile.depth});
  PaddedProduct p;
  p.product = nest.block;
  std::string layout[2];
  for (std::size_t side = 0; side < 2; ++side) {
    const ir::LoadNode* l = operands->load[side];
    for (std::size_t b = 0; b < batches; ++b)
      if (axis_of(l, nest.node->iters[b]) != std::string::npos) p.batches[side].push_back(b);
    std::string to;
    for (std::size_t b : p.batches[side]) to += cat("x", axis_of(l, nest.node->iters[b]), ", ");
    std::string from = list("x", l->indices.size());
    from.resize(from.size() - 2);
    layout[side] = cat("lambda ", from, ": (", to, "x", axis_of(l, operands->side(nest, 2)), ", x",
                       axis_of(l, operands->side(nest, side)), ")");
  }
  const ir::Buffer whole[2] = {operands->load[0]->buffer, operands->load[1]->buffer};
  const std::vector<BlockRef> made = sch.pad_einsum(nest.block, padding, true);
  const auto reads = schedule::find_block(sch.mod(), nest.block)->realize()->block->reads;
  std::size_t next = 0;  // of the blocks that padding made
  for (std::size_t side = 0; side < 2; ++side) {
    // An operand that needs no padding has no copy yet.
    const auto same = std::find_if(reads.begin(), reads.end(),
                                   [&](const auto& r) { return r.buffer == whole[side]; });
    p.copies[side] = same == reads.end()
                         ? made.at(next++)
                         : sch.cache_read(nest.block, same - reads.begin(), "shared", {nest.block});
    sch.transform_layout(p.copies[side], {"write", 0, ""}, IndexMap::parse(layout[side]));
  }
  const bool cropped = next < made.size();
  bool inside = false;
  if (finish && cropped) inside = attempt([&] { sch.compute_inline(made.back()); });
  else inside = finish.has_value();
  if (inside) p.store = *finish;
  else p.store = cropped ? made.back() : sch.cache_write(nest.block, 0, "global");
  schedule_product_tile(sch, p, tile);
  return inside;
}
}  // namespace

bool schedule_product(Schedule& sch, const Nest& nest, const ProductTile& tile,
                      std::optional<BlockRef> finish) {
  const Schedule before = sch;
  bool inside = false;
  if (finish && attempt([&] { inside = take_product(sch, nest, tile, finish); })) return inside;
  sch = before;
  return take_product(sch, nest, tile, std::nullopt);
}

}  // namespace weft::rules
