// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/qpu/tensor/default_schedule.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <unordered_set>

#include "weft/arith/analyzer.h"
#include "weft/ir/build.h"
#include "weft/ir/visit.h"
#include "weft/schedule/schedule.h"
#include "weft/stages/blocks.h"
#include "weft/stages/conditions.h"
#include "weft/stages/linear.h"
#include "weft/stages/update.h"
#include "weft/targets/qpu/tensor/lane_choice.h"
#include "weft/targets/qpu/tensor/nest.h"

namespace weft::qpu::tensor {

using namespace ir;
using schedule::Schedule;
using stages::linear_in;

namespace {
constexpr std::int64_t kSpread = 512;  // terms of a sum that are worth a stage of their own
}  // namespace

void nests(const Stmt& s, std::vector<Nest>& out) {
  if (const auto* list = as<SeqNode>(s)) {
    for (const Stmt& child : list->stmts) nests(child, out);
    return;
  }
  Nest nest;
  std::optional<stages::Leaf> leaf = stages::single_leaf(s);
  auto iters = leaf ? stages::iterators_of_loops(*leaf) : std::nullopt;
  for (std::size_t k = 0; iters && k < leaf->loops.size(); ++k) {
    Loop l;
    l.node = leaf->loops[k];
    l.ref = LoopRef{l.node->var};
    l.iter = (*iters)[k];
    is_const_int(l.node->extent, &l.extent);
    const bool good = l.node->for_kind != ForKind::bound &&
                      (l.iter->kind == IterKind::spatial || l.iter->kind == IterKind::reduce);
    if (!good) iters.reset();
    nest.loops.push_back(l);
  }
  if (iters) nest.block = leaf->block;
  out.push_back(std::move(nest));
}

std::vector<Nest> nests_of(const PrimFunc& f) {
  std::vector<Nest> out;
  if (const auto* root = as<BlockRealizeNode>(f->body)) nests(root->block->body, out);
  return out;
}

bool joins(const Nest& nest) {
  const std::optional<stages::Update> update = stages::find_update(nest.block);
  // A constant term may be folded away, and no sum be left.
  return update && update->init && !update->condition && update->combine != stages::Combine::none &&
         !update->reads_own &&
         (stages::has_loads(update->value) || !used_vars(update->value).empty());
}

namespace {

/// All accesses run over whole arrays in the order of the loops.
bool collapses(const Nest& nest) {
  const Block& block = nest.block;
  Exprs vars;
  for (const Loop& l : nest.loops) vars.push_back(l.iter->var);
  bool good = nest.loops.size() > 1;
  arith::Analyzer analyzer;
  auto whole = [&](const Buffer& b, const Exprs& indices) {
    if (!b->strides.empty() || indices.size() != vars.size()) return false;
    for (std::size_t d = 0; d < indices.size(); ++d) {
      if (indices[d].get() != vars[d].get()) return false;
      if (!analyzer.prove_equal(cast(dtypes::int64, b->shape[d]),
                                cast(dtypes::int64, nest.loops[d].node->extent)))
        return false;
    }
    return true;
  };
  for_each_stmt(block->body, [&](const Stmt& s) {
    if (const auto* t = as<StoreNode>(s)) good = good && whole(t->buffer, t->indices);
  });
  for_each_expr(block->body, [&](const Expr& e) {
    if (const auto* l = as<LoadNode>(e)) good = good && whole(l->buffer, l->indices);
  });
  return good;
}

/// Runs a step of several primitives; one that is refused, or gives up, is undone as a whole.
template <typename F>
bool attempt(Schedule& sch, const F& f) {
  Schedule before = sch;
  try {
    if (f()) return true;
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::schedule) throw;
  }
  sch = before;
  return false;
}

/// A sum whose lanes lie along columns.
struct Tiled {
  const Loop *row, *lane;
  std::vector<LoopRef> outer, inner;  // loops of other results; of the sum
};

bool cut_tiles(Schedule& sch, const Tiled& sum, const TilePlan& plan) {
  const std::vector<LoopRef> r = plan.tall > 0 ? sch.split(sum.row->ref, {plan.tall, plan.rows})
                                               : sch.split(sum.row->ref, {std::nullopt, plan.rows});
  const std::vector<LoopRef> c = sch.split(sum.lane->ref, {std::nullopt, kLanes});
  if (plan.across > 0) {
    const std::vector<LoopRef> down = sch.split(r[0], {std::nullopt, plan.down});
    const std::vector<LoopRef> across = sch.split(c[0], {std::nullopt, plan.across});
    std::vector<LoopRef> order = {down[1], across[1], down[0], across[0], r[1], c[1]};
    order.insert(order.end(), sum.inner.begin(), sum.inner.end());
    sch.reorder(order);
    sch.bind(sch.fuse({down[1], across[1]}), "qpu");
    sch.bind(c[1], "lane");
    return true;
  }
  std::vector<LoopRef> outer = sum.outer;
  outer.push_back(r[0]);
  outer.push_back(c[0]);
  std::vector<LoopRef> order = outer;
  order.push_back(r[1]);
  order.push_back(c[1]);
  order.insert(order.end(), sum.inner.begin(), sum.inner.end());
  sch.reorder(order);
  const LoopRef tiles = sch.fuse(outer);
  const std::vector<LoopRef> parts = sch.split(tiles, {std::nullopt, plan.qpus});
  sch.reorder({parts[1], parts[0]});
  sch.bind(parts[1], "qpu");
  sch.bind(c[1], "lane");
  return true;
}

/// Tiles of rows by 16 columns, divided among the QPUs along the rows of tiles, so that a tile's
/// words stay in the cache for all tiles beside it.
bool place_tiles(Schedule& sch, const Nest& nest, const Loop& lane, std::int64_t qpus) {
  constexpr std::size_t kTries = 8;
  if (lane.iter->kind != IterKind::spatial || !joins(nest)) return false;
  const Loop* row = row_loop(nest, lane);
  if (!row) return false;
  const Loop* steps = step_loop(nest, *row);
  if (!steps) return false;
  Tiled sum{row, &lane, {}, {}};
  std::int64_t others = 1, depth = 1;
  bool known = lane.extent > 0;
  for (const Loop& l : nest.loops) {
    if (l.iter->kind == IterKind::reduce) {
      depth *= l.extent > 0 ? l.extent : kUnknownDepth;
      if (l.node != steps->node) sum.inner.push_back(l.ref);
    } else if (l.node != row->node && l.node != lane.node && l.extent != 1) {
      sum.outer.push_back(l.ref);
      known = known && l.extent > 0;
      others *= std::max<std::int64_t>(l.extent, 1);
    }
  }
  sum.inner.push_back(steps->ref);
  std::vector<TilePlan> plans = plan_tiles(*row, lane, others, known, depth, qpus);
  plans.resize(std::min(plans.size(), kTries));
  return std::any_of(plans.begin(), plans.end(), [&](const TilePlan& plan) {
    return attempt(sch, [&] { return cut_tiles(sch, sum, plan); });
  });
}

/// How many QPUs share chunks of 16 lanes one by one, instead of whole rows of them; 0: rows. Each
/// then has one chunk of every few rows, so that no turn divides a number. A QPU that has a row
/// keeps what all chunks of it read, so it must be worth it: a sixth fewer chunks for the busiest
/// one. A few chunks without sums take no longer than starting more QPUs.
std::int64_t shares_chunks(std::int64_t rows, std::int64_t chunks, std::int64_t qpus, bool sums) {
  if (chunks < 2 || chunks > qpus || (rows < qpus && !sums)) return 0;
  const std::int64_t among = qpus / chunks;  // QPUs that have the same chunk
  const std::int64_t by_row = (rows + qpus - 1) / qpus * chunks;
  const std::int64_t by_chunk = (rows + among - 1) / among;
  return 6 * by_chunk <= 5 * by_row ? among * chunks : 0;
}

/// Each QPU takes one chunk of every `qpus / chunks`-th row.
LoopRef share_chunks(Schedule& sch, std::vector<LoopRef> rows, const Loop& lane,
                     std::int64_t chunks, const std::vector<Loop>& sums, std::int64_t qpus) {
  std::vector<LoopRef> order = rows;
  order.push_back(lane.ref);
  for (const Loop& l : sums) order.push_back(l.ref);
  sch.reorder(order);
  const LoopRef row = rows.size() > 1 ? sch.fuse(rows) : rows[0];
  const std::vector<LoopRef> turns = sch.split(row, {std::nullopt, qpus / chunks});
  const std::vector<LoopRef> parts = sch.split(lane.ref, {std::nullopt, kLanes});
  sch.reorder({turns[1], parts[0], turns[0], parts[1]});
  sch.bind(sch.fuse({turns[1], parts[0]}), "qpu");
  sch.bind(parts[1], "lane");
  return parts[1];
}

/// Lanes along the loop number `forced` of the nest, or along the cheapest when it is absent. The
/// loop of the lanes, where there is one.
std::optional<LoopRef> place(Schedule& sch, const Nest& nest, std::int64_t qpus,
                             std::optional<std::size_t> forced = std::nullopt,
                             bool may_collapse = true) {
  if (!nest.block || nest.loops.empty()) return std::nullopt;
  std::vector<Loop> spatial, reduce;
  for (const Loop& l : nest.loops) {
    if (is_const_int_value(l.node->extent, 0)) return std::nullopt;
    (l.iter->kind == IterKind::spatial ? spatial : reduce).push_back(l);
  }
  const Loop* lane = forced ? lane_loop(nest, forced) : fastest_lane(nest, qpus);
  if (!lane || lane->extent == 1) return std::nullopt;  // one point after the other
  if (place_tiles(sch, nest, *lane, qpus)) return std::nullopt;
  if (may_collapse && reduce.empty() && collapses(nest)) {
    std::vector<LoopRef> all;
    for (const Loop& l : spatial) all.push_back(l.ref);
    LoopRef whole = sch.fuse(all);
    std::vector<LoopRef> parts = sch.split(whole, {std::nullopt, qpus, kLanes});
    sch.reorder({parts[1], parts[0], parts[2]});
    sch.bind(parts[1], "qpu");
    sch.bind(parts[2], "lane");
    return parts[2];
  }
  bool lane_spatial = lane->iter->kind == IterKind::spatial;
  std::vector<LoopRef> outer, order;
  std::int64_t product = 1;
  bool known = true;
  for (const Loop& l : spatial) {
    if (l.node == lane->node) continue;
    if (l.extent == 1) {
      if (!lane_spatial) order.push_back(l.ref);  // no loop of results may lie inside a joined sum
      continue;
    }
    outer.push_back(l.ref);
    known = known && l.extent > 0;
    product *= std::max<std::int64_t>(l.extent, 1);
  }
  std::int64_t chunks = lane->extent > 0 ? (lane->extent + kLanes - 1) / kLanes : 0;
  bool by_chunk = lane_spatial && (outer.empty() || (known && product < qpus && chunks > product));
  if (by_chunk) {
    std::vector<LoopRef> parts = sch.split(lane->ref, {std::nullopt, qpus, kLanes});
    order.push_back(parts[1]);
    for (const LoopRef& l : outer) order.push_back(l);
    order.push_back(parts[0]);
    order.push_back(parts[2]);
    for (const Loop& l : reduce) order.push_back(l.ref);
    sch.reorder(order);
    sch.bind(parts[1], "qpu");
    sch.bind(parts[2], "lane");
    return parts[2];
  }
  std::optional<LoopRef> qpu;
  if (const std::int64_t n = shares_chunks(product, chunks, qpus, !reduce.empty());
      n > 0 && lane_spatial && known) {
    LoopRef lanes;
    if (attempt(sch, [&] {
          lanes = share_chunks(sch, outer, *lane, chunks, reduce, n);
          return true;
        }))
      return lanes;
  }
  if (!outer.empty()) {
    // Fusing wants neighbours.
    std::vector<LoopRef> first = outer;
    if (lane_spatial) first.push_back(lane->ref);
    for (const Loop& l : reduce) first.push_back(l.ref);
    if (first.size() > 1) sch.reorder(first);
    LoopRef rows = outer.size() > 1 ? sch.fuse(outer) : outer[0];
    std::int64_t n = known ? std::min(product, qpus) : qpus;
    std::vector<LoopRef> parts = sch.split(rows, {std::nullopt, n});
    qpu = parts[1];
    order.insert(order.begin(), {parts[1], parts[0]});
  }
  std::vector<LoopRef> parts = sch.split(lane->ref, {std::nullopt, kLanes});
  if (lane_spatial) order.insert(order.end(), parts.begin(), parts.end());
  for (const Loop& l : reduce)
    if (l.node != lane->node) order.push_back(l.ref);
  if (!lane_spatial) order.insert(order.end(), parts.begin(), parts.end());
  sch.reorder(order);
  if (qpu) sch.bind(*qpu, "qpu");
  sch.bind(parts[1], "lane");
  return parts[1];
}

/// A sum of few terms whose results one elementwise nest alone reads: each result stays in a
/// register of the lane that finishes it.
bool place_with_reader(Schedule& sch, const std::vector<Nest>& all, std::size_t producer,
                       std::int64_t qpus) {
  const Nest& sum = all[producer];
  if (!sum.block || !joins(sum) || sum.block->writes.size() != 1) return false;
  const Buffer& buffer = sum.block->writes[0].buffer;
  const Nest* reader = nullptr;
  for (const Nest& n : all) {
    if (&n == &sum) continue;
    if (!n.block) return false;
    for (const BufferRegion& r : n.block->reads) {
      if (!(r.buffer == buffer)) continue;
      if (reader && reader != &n) return false;
      reader = &n;
    }
  }
  if (!reader || reader < &sum) return false;
  std::vector<const Loop*> points;
  for (const Loop& l : sum.loops)
    if (l.iter->kind == IterKind::spatial) points.push_back(&l);
  if (points.size() != reader->loops.size()) return false;
  bool same = true;
  for_each_expr(reader->block->body, [&](const Expr& e) {
    const auto* l = as<LoadNode>(e);
    if (!l || !(l->buffer == buffer)) return;
    same = same && l->indices.size() == reader->loops.size();
    for (std::size_t d = 0; same && d < l->indices.size(); ++d)
      same = l->indices[d].get() == reader->loops[d].iter->var.get();
  });
  const auto* store = as<StoreNode>(sum.block->body);
  same = same && store && store->indices.size() == points.size();
  for (std::size_t d = 0; same && d < points.size(); ++d)
    same = store->indices[d].get() == points[d]->iter->var.get() &&
           points[d]->extent == reader->loops[d].extent && points[d]->extent > 0 &&
           reader->loops[d].iter->kind == IterKind::spatial;
  if (!same) return false;
  const Loop* lane = lane_loop(sum);
  if (!lane || lane->iter->kind != IterKind::spatial || row_loop(sum, *lane)) return false;
  std::size_t forced = 0;
  while (points[forced]->node != lane->node) ++forced;
  BlockRef producer_block = sch.get_block(sum.block->name);
  sch.set_scope(producer_block, 0, "local");
  std::optional<LoopRef> at = place(sch, *reader, qpus, forced, false);
  if (!at) return false;
  sch.compute_at(producer_block, *at);
  return true;
}

/// A reduction to fewer points than there are QPUs is divided among them: partial results of a part
/// of the loop each, joined by a second stage.
bool spread(Schedule& sch, const Nest& nest, std::int64_t qpus) {
  if (!nest.block || !joins(nest)) return false;
  std::int64_t points = 1, sums = 0;
  const Loop* longest = nullptr;
  for (const Loop& l : nest.loops) {
    if (l.extent <= 0) return false;
    if (l.iter->kind == IterKind::spatial) {
      points *= l.extent;
      continue;
    }
    ++sums;
    if (!longest || l.extent > longest->extent) longest = &l;
  }
  if (!longest || longest->extent < kSpread || points * 2 > qpus) return false;
  std::int64_t parts = qpus / points;
  std::int64_t even = parts;
  while (even > 1 && longest->extent % even) --even;
  if (parts < 2) return false;
  if (2 * even <= parts && points == 1 && sums == 1) {
    // Whole vectors to each part, fewer to the last: the lanes are placed here, while the guard is
    // that of one division.
    const std::int64_t vectors = (longest->extent + kLanes - 1) / kLanes;
    const std::int64_t terms = (vectors + parts - 1) / parts * kLanes;
    const LoopRef part = sch.split(longest->ref, {std::nullopt, terms})[0];
    const std::vector<LoopRef> loops = sch.get_loops(sch.rfactor(part, 0));
    sch.bind(sch.split(loops.back(), {std::nullopt, kLanes})[1], "lane");
    sch.bind(loops[loops.size() - 2], "qpu");
    return true;
  }
  parts = even;
  if (parts < 2) return false;
  std::vector<LoopRef> divided = sch.split(longest->ref, {parts, std::nullopt});
  sch.rfactor(divided[0], 0);
  return true;
}

/// When strides are known at run time only, whether results or terms lie side by side is too: the
/// function holds both versions and the host chooses. Null where there is no such choice.
PrimFunc two_versions(const PrimFunc& f, const Nest& nest,
                      const std::shared_ptr<const TargetInfo>& machine, std::int64_t qpus) {
  if (!joins(nest)) return nullptr;
  std::optional<std::size_t> result, term;
  bool known = true;
  for (std::size_t i = 0; i < nest.loops.size(); ++i) {
    (nest.loops[i].iter->kind == IterKind::spatial ? result : term) = i;
    known = known && nest.loops[i].extent > 0;
  }
  if (known || !result || !term) return nullptr;
  std::unordered_set<const VarNode*> given;
  for (const Param& p : f->params) given.insert(p.var.get());
  const Loop& loop = nest.loops[*result];
  Expr chosen = ge(cast(dtypes::int64, loop.node->extent), make_int(kLanes));
  bool good = true;
  auto side_by_side = [&](const Buffer& b, const Exprs& indices, bool write) {
    auto l = linear_in(flat_index(b, indices), loop.iter->var.get());
    if (!l) {
      good = false;
      return;
    }
    Expr step = arith::to_expr(l->coeff, dtypes::int64);
    for (const VarNode* v : used_vars(step)) good = good && given.count(v);
    Expr fits = eq(step, make_int(1));
    chosen = logical_and(chosen, write ? fits : logical_or(fits, eq(step, make_int(0))));
  };
  const Block& block = nest.block;
  for_each_stmt(block->body, [&](const Stmt& s) {
    if (const auto* t = as<StoreNode>(s)) side_by_side(t->buffer, t->indices, true);
  });
  for_each_expr(block->body, [&](const Expr& e) {
    if (const auto* l = as<LoadNode>(e)) side_by_side(l->buffer, l->indices, false);
  });
  for (const VarNode* v : used_vars(loop.node->extent)) good = good && given.count(v);
  if (!good) return nullptr;
  PrimFunc versions[2];
  for (int i = 0; i < 2; ++i) {
    Schedule sch(f, machine);
    sch.set_detail(false);
    bool done = attempt(sch, [&] {
      place(sch, nest, qpus, i == 0 ? result : term);
      return true;
    });
    if (!done) return nullptr;
    auto version = edit(sch.func());
    if (i == 1) version->body = deep_copy(version->body);  // what it binds is fresh
    versions[i] = version;
  }
  const auto* first = as<BlockRealizeNode>(versions[0]->body);
  const auto* second = as<BlockRealizeNode>(versions[1]->body);
  if (!first || !second || versions[0]->params.size() != versions[1]->params.size()) return nullptr;
  for (std::size_t i = 0; i < versions[0]->params.size(); ++i) {
    if (versions[0]->params[i].var.get() != versions[1]->params[i].var.get() ||
        versions[0]->params[i].buffer.get() != versions[1]->params[i].buffer.get())
      return nullptr;
  }
  auto root = edit(first->block);
  for (const Buffer& b : second->block->alloc_buffers) root->alloc_buffers.push_back(b);
  root->body = if_then(chosen, first->block->body, second->block->body);
  auto out = edit(versions[0]);
  out->body = block_realize(first->iter_values, first->predicate, Block(root));
  return out;
}

/// vectorized -> lane, parallel -> qpu, where the extents fit; others become serial loops of them.
/// An axis is bound once in a nest: loops around or inside one that has it stay serial.
class BindMarked final : public Rewriter {
 public:
  explicit BindMarked(std::int64_t qpus) : qpus_(qpus) {}

 protected:
  Stmt rewrite_for(const Stmt& s) override {
    const auto* outside = as<ForNode>(s);
    const std::string wanted = axis_of(*outside);
    const bool taken = !wanted.empty() && bound_.count(wanted) > 0;
    if (!wanted.empty() && !taken) bound_.insert(wanted);
    Stmt inner = Rewriter::rewrite_for(s);
    if (!wanted.empty() && !taken) bound_.erase(wanted);
    const auto* t = as<ForNode>(inner);
    const bool lanes = t->for_kind == ForKind::vectorized;
    if (!lanes && t->for_kind != ForKind::parallel) return inner;
    if (taken || holds(t->body, wanted) || is_const_int_value(t->extent, 0))
      return make_for(t->var, t->min, t->extent, t->body, ForKind::serial, "", t->annotations);
    std::int64_t most = lanes ? kLanes : qpus_, n = 0;
    const std::string& axis = wanted;
    if (is_const_int(t->extent, &n) && n <= most)
      return make_for(t->var, t->min, t->extent, t->body, ForKind::bound, axis, t->annotations);
    Var outer = make_var(t->var->name + "_o"), point = make_var(t->var->name + "_p");
    Expr index = t->min + Expr(outer) * make_int(most) + Expr(point);
    Expr trips = floordiv(t->extent + make_int(most - 1), make_int(most));
    Stmt body = substitute(t->body, {{t->var.get(), cast(t->var->dtype, index)}});
    bool divides = is_const_int(t->extent, &n) && n % most == 0;
    if (!divides) body = guard(body, lt(index, t->min + t->extent));
    Stmt bound = make_for(point, make_int(0), make_int(most), body, ForKind::bound, axis);
    return make_for(outer, make_int(0), trips, bound);
  }

 private:
  /// The axis that a loop has or wants; "": none.
  static std::string axis_of(const ForNode& loop) {
    switch (loop.for_kind) {
      case ForKind::vectorized: return "lane";
      case ForKind::parallel: return "qpu";
      case ForKind::bound: return loop.axis;
      default: return "";
    }
  }
  static bool holds(const Stmt& body, const std::string& axis) {
    bool out = false;
    for_each_stmt(body, [&](const Stmt& s) {
      const auto* loop = as<ForNode>(s);
      out = out || (loop && loop->for_kind == ForKind::bound && loop->axis == axis);
    });
    return out;
  }
  /// The condition joins the predicates of the blocks below.
  static Stmt guard(const Stmt& s, const Expr& condition) {
    class Adder final : public Rewriter {
     public:
      Expr condition;

     protected:
      Stmt rewrite_block_realize(const Stmt& t) override {
        const auto* r = as<BlockRealizeNode>(t);
        return block_realize(r->iter_values, logical_and(r->predicate, condition), r->block);
      }
      // What it looks at is there only where the condition holds.
      Stmt rewrite_if(const Stmt& t) override { return if_then(condition, t); }
    } adder;
    adder.condition = condition;
    return adder.rewrite(s);
  }
  std::int64_t qpus_;
  std::unordered_set<std::string> bound_;  // by loops around the one at hand
};

/// What a block allocates is each point's own: registers, as far as there are any.
PrimFunc own_registers(const PrimFunc& f) {
  constexpr std::int64_t kMost = 16;  // words
  BufferMap registers;
  for_each_stmt(f->body, [&](const Stmt& s) {
    const auto* r = as<BlockRealizeNode>(s);
    if (!r || r->iter_values.empty()) return;
    bool leaf = true;
    for_each_stmt(r->block->body, [&](const Stmt& inner) {
      leaf = leaf && inner->kind != StmtKind::block_realize;
    });
    for (const Buffer& b : r->block->alloc_buffers) {
      std::int64_t words = 1;
      for (const Expr& e : b->shape) {
        std::int64_t n = 0;
        words *= is_const_int(e, &n) ? n : kMost + 1;
      }
      if (!leaf || b->scope != "global" || words > kMost) continue;
      auto own = edit(b);
      own->scope = "local";
      registers[b.get()] = Buffer(own);
    }
  });
  if (registers.empty()) return f;
  auto out = edit(f);
  out->body = replace_buffers(f->body, registers);
  return out;
}

}  // namespace

PrimFunc default_schedule(const PrimFunc& given, const TargetInfo& info) {
  const PrimFunc f = own_registers(given);
  const std::int64_t qpus = info.axis("qpu")->limit;
  bool bound = false, marked = false;
  for_each_stmt(f->body, [&](const Stmt& s) {
    const auto* loop = as<ForNode>(s);
    if (!loop) return;
    bound = bound || loop->for_kind == ForKind::bound;
    marked = marked || loop->for_kind == ForKind::vectorized || loop->for_kind == ForKind::parallel;
  });
  if (marked) {
    auto out = edit(f);
    out->body = BindMarked(qpus).rewrite(f->body);
    return out;
  }
  if (bound) return f;
  const auto* root = as<BlockRealizeNode>(f->body);
  if (!root) return f;
  auto machine = std::make_shared<TargetInfo>(info);
  machine->merge(*schedule_target_info());
  std::vector<Nest> all = nests_of(f);
  if (all.size() == 1 && all[0].block) {
    if (PrimFunc both = two_versions(f, all[0], machine, qpus)) return both;
  }
  Schedule sch(f, machine);
  sch.set_detail(false);
  PrimFunc now = f;  // keeps the nodes below alive
  auto rows = [&] {
    for (std::size_t i = all.size(); i-- > 0;) {
      if (!attempt(sch, [&] { return place_rows(sch, all, i, qpus); })) continue;
      now = sch.func();
      all = nests_of(now);
      i = std::min(i, all.size());
    }
  };
  rows();
  bool changed = false;
  for (const Nest& nest : all)
    changed = attempt(sch, [&] { return spread(sch, nest, qpus); }) || changed;
  if (changed) {  // what divided sums leave may be rows again
    now = sch.func();
    all = nests_of(now);
    rows();
  }
  std::unordered_set<const BlockNode*> placed;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!all[i].block || placed.count(all[i].block.get())) continue;
    const bool joined = attempt(sch, [&] { return place_with_reader(sch, all, i, qpus); });
    if (joined) {
      const Buffer& buffer = all[i].block->writes[0].buffer;
      for (const Nest& n : all)
        for (const BufferRegion& r : n.block->reads)
          if (r.buffer == buffer && n.block != all[i].block) placed.insert(n.block.get());
      continue;
    }
    attempt(sch, [&] {
      place(sch, all[i], qpus);
      return true;
    });
  }
  return sch.func();
}

}  // namespace weft::qpu::tensor
