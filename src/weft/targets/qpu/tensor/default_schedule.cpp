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
#include "weft/targets/qpu/tensor/place.h"
#include "weft/targets/qpu/tensor/trial.h"

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
  Placement reading;
  reading.lane = forced, reading.may_collapse = false;
  std::optional<LoopRef> at = place(sch, *reader, qpus, reading);
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
      Placement version;
      version.lane = i == 0 ? result : term;
      place(sch, nest, qpus, version);
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
      place(sch, all[i], qpus, fastest_placement(all[i], machine, qpus));
      return true;
    });
  }
  return sch.func();
}

}  // namespace weft::qpu::tensor
