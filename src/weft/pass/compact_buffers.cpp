// SPDX-License-Identifier: Apache-2.0
#include "weft/pass/compact_buffers.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "weft/arith/analyzer.h"
#include "weft/base/error.h"
#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/ir/roles.h"
#include "weft/ir/visit.h"

namespace weft::pass {

using namespace ir;
using arith::Analyzer;

namespace {

/// Least bound of an extent that is taken for the range of a 32-bit symbol.
constexpr std::int64_t kMostBound = std::int64_t{1} << 24;

/// Inclusive; null: unbounded.
struct Interval {
  Expr min, max;
};

struct RegionLoop {
  Var var;
  Range range;
  std::string axis;     // "" unless bound
  bool common = false;  // the variable is that of all loops over the axis
};

/// The box of one allocation, dimension by dimension; absent until the first access.
struct Box {
  Buffer buffer;
  /// Axes, private to the buffer, whose loops all accesses stand under although the allocation does
  /// not: each point has its own box there, which may move with the point.
  std::optional<std::set<std::string>> points;
  std::size_t depth = 0;  // loops outside the allocation
  std::vector<Interval> dims;
  bool seen = false, whole = false;  // whole: some access is opaque
};

void split_conjunction(const Expr& e, Exprs& out) {
  const auto* b = as<BinaryNode>(e);
  if (b && b->kind == ExprKind::and_) {
    split_conjunction(b->a, out);
    split_conjunction(b->b, out);
  } else if (const auto* c = as<CallNode>(e); c && c->op == "likely") {
    split_conjunction(c->args[0], out);
  } else {
    out.push_back(e);
  }
}

bool has_load(const Expr& e) {
  bool found = false;
  for_each_expr(e, [&](const Expr& x) { found = found || x->kind == ExprKind::load; });
  return found;
}

/// Widest values of an expression when some loops run, with guards as linear facts.
class Relaxer {
 public:
  Relaxer(const std::vector<RegionLoop>& loops, const Exprs& guards, const Analyzer& analyzer)
      : loops_(loops), guards_(guards), analyzer_(analyzer) {
    for (const RegionLoop& l : loops_) {
      vars_.push_back(l.var);
      set_.insert(l.var.get());
    }
  }

  Interval run(const Expr& index) const {
    if (const auto* r = as<RampNode>(index)) {
      Interval base = run(r->base), step = run(r->stride * (r->dtype.lanes - 1));
      if (!base.min || !step.min || !uses_none(step.min) || !uses_none(step.max)) return {};
      return {base.min + min(step.min, make_int(0)), base.max + max(step.max, make_int(0))};
    }
    if (const auto* b = as<BroadcastNode>(index)) return run(b->value);
    if (!index->dtype.is_scalar() || has_load(index)) return {};
    if (!uses_any(index, set_)) return {index, index};
    auto linear = arith::detect_linear(index, vars_);
    Interval out = linear && uses_none(linear->base) ? linear_interval(*linear) : general(index);
    if (out.min && !uses_none(out.min)) out.min = nullptr;
    if (out.max && !uses_none(out.max)) out.max = nullptr;
    return out.min && out.max ? out : Interval{};
  }

 private:
  bool uses_none(const Expr& e) const { return !uses_any(e, set_); }
  Expr lowest(std::size_t i, std::int64_t c) const { return extreme(i, c < 0) * c; }
  Expr highest(std::size_t i, std::int64_t c) const { return extreme(i, c > 0) * c; }
  Expr extreme(std::size_t i, bool high) const {
    const Range& r = loops_[i].range;
    return high ? r.min + r.extent - 1 : r.min;
  }

  Interval linear_interval(const arith::Linear& e) const {
    Expr low = e.base, high = e.base;
    for (std::size_t i = 0; i < vars_.size(); ++i) {
      if (e.coeffs[i] == 0) continue;
      low = low + lowest(i, e.coeffs[i]);
      high = high + highest(i, e.coeffs[i]);
    }
    // Ranges of inner loops may mention outer relaxed ones: eliminate what is left.
    Interval out{again(low).min, again(high).max};
    for (const Expr& guard : guards_) tighten(e, guard, out);
    return out;
  }

  Interval again(const Expr& e) const {
    return uses_none(e) ? Interval{analyzer_.simplify(e), analyzer_.simplify(e)} : general(e);
  }

  /// guard: d < bound or d <= bound with d = base_d + sum d_v v. Where the index repeats the
  /// guard's combination m times, index <= (index without it) + m * (bound - base_d).
  void tighten(const arith::Linear& e, const Expr& guard, Interval& out) const {
    const auto* c = as<BinaryNode>(guard);
    if (!c || !is_compare(c->kind) || c->kind == ExprKind::ne) return;
    if (c->a->dtype.is_bool() || !c->a->dtype.is_integral()) return;
    bool upper = c->kind == ExprKind::lt || c->kind == ExprKind::le || c->kind == ExprKind::eq;
    bool lower = c->kind == ExprKind::gt || c->kind == ExprKind::ge || c->kind == ExprKind::eq;
    std::int64_t slack = c->kind == ExprKind::lt ? -1 : c->kind == ExprKind::gt ? 1 : 0;
    auto d = arith::detect_linear(c->a - c->b, vars_);
    if (!d || !uses_none(d->base)) return;
    std::int64_t m = 0;
    for (std::size_t i = 0; i < vars_.size(); ++i) {
      if (d->coeffs[i] == 0) continue;
      if (e.coeffs[i] % d->coeffs[i] != 0) return;
      std::int64_t ratio = e.coeffs[i] / d->coeffs[i];
      if (ratio == 0 || (m != 0 && ratio != m)) return;
      m = ratio;
    }
    if (m == 0) return;
    Expr low = e.base, high = e.base;
    for (std::size_t i = 0; i < vars_.size(); ++i) {
      if (e.coeffs[i] == 0 || d->coeffs[i] != 0) continue;
      low = low + lowest(i, e.coeffs[i]);
      high = high + highest(i, e.coeffs[i]);
    }
    Expr edge = (make_int(slack) - d->base) * m;  // m * (bound of the combination - base)
    if (m > 0 ? upper : lower) offer(again(high + edge).max, out.max, false);
    if (m > 0 ? lower : upper) offer(again(low + edge).min, out.min, true);
  }

  /// Replaces `held` by `candidate` when that is provably tighter.
  void offer(const Expr& candidate, Expr& held, bool is_min) const {
    if (!candidate || !uses_none(candidate)) return;
    if (!held || analyzer_.prove(is_min ? ge(candidate, held) : le(candidate, held)))
      held = analyzer_.simplify(candidate);
  }

  Interval general(const Expr& index) const {
    // Loops whose ranges use other relaxed loops are eliminated innermost first, one by one.
    bool dependent = false;
    for (const RegionLoop& l : loops_)
      dependent |= !uses_none(l.range.min) || !uses_none(l.range.extent);
    Interval out{index, index};
    if (dependent) {
      for (std::size_t i = loops_.size(); i-- > 0;) {
        arith::DomainMap one{{loops_[i].var.get(), loops_[i].range}};
        if (out.min) out.min = arith::symbolic_interval(out.min, one, analyzer_).min;
        if (out.max) out.max = arith::symbolic_interval(out.max, one, analyzer_).max;
      }
    } else {
      arith::DomainMap domain;
      for (const RegionLoop& l : loops_) domain[l.var.get()] = l.range;
      arith::SymbolicInterval got = arith::symbolic_interval(index, domain, analyzer_);
      out = {got.min, got.max};
    }
    for (const Expr& guard : guards_) {  // `index < bound` literally
      const auto* c = as<BinaryNode>(guard);
      if (!c || !uses_none(c->b) || !same_expr(c->a, index)) continue;
      if (c->kind == ExprKind::lt) offer(c->b - 1, out.max, false);
      if (c->kind == ExprKind::le) offer(c->b, out.max, false);
      if (c->kind == ExprKind::ge) offer(c->b, out.min, true);
      if (c->kind == ExprKind::gt) offer(c->b + 1, out.min, true);
    }
    const Interval q = quotient(index);
    offer(q.min, out.min, true);
    offer(q.max, out.max, false);
    return out;
  }

  /// Of a quotient by a number, beside terms that stand still: guards may bound what is divided, as
  /// where one loop over both axes of a halo has a rest.
  Interval quotient(const Expr& index) const {
    const auto* b = as<BinaryNode>(index);
    if (!b) return {};
    if (b->kind == ExprKind::add) {
      const bool left = uses_none(b->b);
      if (!left && !uses_none(b->a)) return {};
      const Interval q = quotient(left ? b->a : b->b);
      const Expr& still = left ? b->b : b->a;
      return q.min ? Interval{q.min + still, q.max + still} : Interval{};
    }
    std::int64_t divisor = 0;
    if (b->kind != ExprKind::floordiv || !is_const_int(b->b, &divisor) || divisor <= 0) return {};
    const Interval divided = run(b->a);
    if (!divided.min) return {};
    return {floordiv(divided.min, b->b), floordiv(divided.max, b->b)};
  }

  const std::vector<RegionLoop>& loops_;
  const Exprs& guards_;
  const Analyzer& analyzer_;
  std::vector<Var> vars_;
  std::unordered_set<const VarNode*> set_;
};

class Collector final : public Visitor {
 public:
  /// `before`: what a first walk has found, for the points of its boxes.
  explicit Collector(const TargetInfo& machine, const Collector* before = nullptr)
      : machine_(machine), before_(before) {}
  std::unordered_map<const BufferNode*, Box> boxes;
  Analyzer analyzer;

  /// One variable for all loops over an axis that have one constant range (kernels may differ);
  /// null unless they run from 0.
  Var point(const ForNode* loop) {
    std::int64_t extent = 0;
    if (loop->for_kind != ForKind::bound || !is_const_int_value(loop->min, 0) ||
        !is_const_int(loop->extent, &extent))
      return nullptr;
    Var& var = axes_[{loop->axis, extent}];
    if (!var) {
      var = make_var(loop->axis, loop->var->dtype);
      analyzer.bind(var, {loop->min, loop->extent});
    }
    return var->dtype == loop->var->dtype ? var : nullptr;
  }

  /// Whether the expression differs between the points of an axis: those of a virtual axis share
  /// one allocation, which has one shape.
  bool uses_point(const Expr& e) const {
    bool out = false;
    for_each_expr(e, [&](const Expr& x) {
      for (const auto& [axis, var] : axes_) out = out || x.get() == var.get();
    });
    return out;
  }

  using Visitor::visit;
  void visit(const Expr& e) override {
    if (const auto* s = as<SelectNode>(e)) {
      visit(s->condition);
      guarded(s->condition, [&] { visit(s->a); });
      guarded(logical_not(s->condition), [&] { visit(s->b); });
    } else if (const auto* l = as<LetNode>(e)) {
      visit(l->value);
      lets_[l->var.get()] = substitute(l->value, lets_);
      visit(l->body);
    } else {
      Visitor::visit(e);
    }
  }

  void visit(const Stmt& s) override {
    if (const auto* l = as<LetStmtNode>(s)) {
      visit(l->value);
      lets_[l->var.get()] = substitute(l->value, lets_);
      visit(l->body);
    } else if (const auto* c = as<CollectiveNode>(s)) {
      touch(c->dst.buffer.get(), c->dst.region);
      touch(c->src.buffer.get(), c->src.region);
    } else {
      Visitor::visit(s);
    }
  }

 protected:
  void visit_for(const ForNode* s) override {
    visit(s->min);
    visit(s->extent);
    Range range{substitute(s->min, lets_), substitute(s->extent, lets_)};
    const Analyzer::Scope inside(analyzer);
    analyzer.bind(s->var, range);
    Var common = point(s);
    if (common) lets_[s->var.get()] = common;
    loops_.push_back(
        {common ? common : s->var, range, s->for_kind == ForKind::bound ? s->axis : "", !!common});
    visit(s->body);
    loops_.pop_back();
  }

  void visit_if(const IfNode* s) override {
    visit(s->condition);
    guarded(s->condition, [&] { visit(s->then_case); });
    if (s->else_case) guarded(logical_not(s->condition), [&] { visit(s->else_case); });
  }

  void visit_call(const CallNode* e) override {
    if (e->op == "if_then_else") {
      visit(e->args[0]);
      guarded(e->args[0], [&] { visit(e->args[1]); });
      guarded(logical_not(e->args[0]), [&] { visit(e->args[2]); });
      return;
    }
    const bool reaches = role_addresses(e->op) > 0;  // from an address on
    if ((e->op == "address_of" && !in_opaque_) || reaches) {
      for_each_expr(Expr(e), [&](const Expr& x) {
        const auto* l = as<LoadNode>(x);
        if (!l) return;
        if (auto found = boxes.find(l->buffer.get()); found != boxes.end())
          found->second.whole = true;
      });
    }
    Visitor::visit_call(e);
  }

  void visit_load(const LoadNode* e) override {
    Visitor::visit_load(e);
    touch(e->buffer.get(), e->indices);
  }

  void visit_store(const StoreNode* s) override {
    Visitor::visit_store(s);
    touch(s->buffer.get(), s->indices);
  }

  void visit_allocate(const AllocateNode* s) override {
    Box box;
    box.buffer = s->buffer;
    box.depth = loops_.size();
    box.dims.resize(s->buffer->ndim());
    boxes[s->buffer.get()] = std::move(box);
    visit(s->body);
  }

  void visit_block_realize(const BlockRealizeNode* s) override {  // opaque: the regions speak
    for (const BufferRegion& r : s->block->reads) touch(r.buffer.get(), r.region);
    for (const BufferRegion& r : s->block->writes) touch(r.buffer.get(), r.region);
    for (const MatchBuffer& m : s->block->match_buffers)
      touch(m.source.buffer.get(), m.source.region);
    bool before = std::exchange(in_opaque_, true);
    visit(s->block->body);
    in_opaque_ = before;
  }

 private:
  template <typename F>
  void guarded(const Expr& condition, F&& inner) {
    std::size_t mark = guards_.size();
    split_conjunction(substitute(condition, lets_), guards_);
    Analyzer::Constraint scope(analyzer, condition);
    inner();
    guards_.resize(mark);
  }

  void touch(const BufferNode* buffer, const Exprs& indices) {
    std::vector<Range> region;
    for (const Expr& i : indices) region.push_back({i, nullptr});
    touch(buffer, region);
  }

  void touch(const BufferNode* buffer, const std::vector<Range>& region) {
    auto found = boxes.find(buffer);
    if (found == boxes.end()) return;
    Box& box = found->second;
    const MemoryInfo* row = machine_.memory(buffer->scope);
    std::vector<RegionLoop> inside;
    std::set<std::string> under;
    for (std::size_t i = 0; i < loops_.size(); ++i) {
      const std::string& axis = loops_[i].axis;
      const bool own = !axis.empty() && row && row->is_private_to(axis);
      if (i >= box.depth && own) under.insert(axis);
      if (i >= box.depth && own && loops_[i].common && moves(buffer, axis)) continue;
      if (i >= box.depth || (!axis.empty() && !own)) inside.push_back(loops_[i]);
    }
    if (!box.points) box.points = under;
    std::erase_if(*box.points, [&](const std::string& axis) { return !under.count(axis); });
    Relaxer relaxer(inside, guards_, analyzer);
    for (std::size_t d = 0; d < region.size(); ++d) {
      Expr low = substitute(region[d].min, lets_);
      Interval now = relaxer.run(low);
      if (region[d].extent)
        now.max = relaxer.run(low + substitute(region[d].extent, lets_) - 1).max;
      merge(box.dims[d], now, box.seen);
    }
    box.seen = true;
  }

  bool moves(const BufferNode* buffer, const std::string& axis) const {
    if (!before_) return false;
    const Box& box = before_->boxes.at(buffer);
    return !box.whole && box.points && box.points->count(axis);
  }

  void merge(Interval& into, const Interval& now, bool seen) const {
    if (!seen) {
      into = now;
      return;
    }
    if (!into.min || !into.max || !now.min || !now.max) {
      into = {};
      return;
    }
    into.min = lesser(into.min, now.min);
    into.max = greater(into.max, now.max);
  }
  Expr lesser(const Expr& a, const Expr& b) const {
    if (analyzer.prove(le(a, b))) return a;
    return analyzer.prove(le(b, a)) ? b : analyzer.simplify(min(a, b));
  }
  Expr greater(const Expr& a, const Expr& b) const {
    if (analyzer.prove(ge(a, b))) return a;
    return analyzer.prove(ge(b, a)) ? b : analyzer.simplify(max(a, b));
  }

  const TargetInfo& machine_;
  const Collector* before_;
  std::map<std::pair<std::string, std::int64_t>, Var> axes_;
  std::vector<RegionLoop> loops_;
  Exprs guards_;
  VarMap lets_;
  bool in_opaque_ = false;
};

struct Compacted {
  Buffer buffer;
  Exprs mins;
};

Exprs aligned_strides(const Exprs& shape, const Json& rows) {
  Exprs strides(shape.size());
  Expr step = make_int(1);
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = step;
    for (const Json& row : rows.as_array()) {
      if (row.at(0).as_int() != static_cast<std::int64_t>(i)) continue;
      Expr factor = make_int(row.at(1).as_int()), offset = make_int(row.at(2).as_int());
      strides[i] = strides[i] + floormod(factor + offset - floormod(strides[i], factor), factor);
    }
    step = strides[i] * shape[i];
  }
  return strides;
}

class Apply final : public Rewriter {
 public:
  Apply(Collector& facts, bool varying_shapes) : facts_(facts), varying_shapes_(varying_shapes) {}

  Buffer rewrite_buffer(const Buffer& b) override {
    auto found = done_.find(b.get());
    return found == done_.end() ? b : found->second.buffer;
  }

  BufferRegion rewrite_region(const BufferRegion& region) override {
    BufferRegion out = Rewriter::rewrite_region(region);
    if (auto found = done_.find(region.buffer.get()); found != done_.end()) {
      for (std::size_t i = 0; i < out.region.size(); ++i) {
        out.region[i].min = facts_.analyzer.simplify(out.region[i].min -
                                                     substitute(found->second.mins[i], points_));
      }
    }
    return out;
  }

 protected:
  Stmt rewrite_for(const Stmt& s) override {
    const auto* t = as<ForNode>(s);
    Var common = facts_.point(t);
    if (!common) return Rewriter::rewrite_for(s);
    const VarMap outer = points_;  // loops over one axis may stand inside each other
    points_[common.get()] = t->var;
    Stmt out = Rewriter::rewrite_for(s);
    points_ = outer;
    return out;
  }

  Expr rewrite_load(const Expr& e) override {
    const auto* l = as<LoadNode>(e);
    auto found = done_.find(l->buffer.get());
    if (found == done_.end()) return Rewriter::rewrite_load(e);
    return load(found->second.buffer, shift(l->indices, found->second.mins));
  }

  Stmt rewrite_store(const Stmt& s) override {
    const auto* t = as<StoreNode>(s);
    auto found = done_.find(t->buffer.get());
    if (found == done_.end()) return Rewriter::rewrite_store(s);
    Exprs indices = shift(t->indices, found->second.mins);
    return store(found->second.buffer, rewrite(t->value), std::move(indices));
  }

  Stmt rewrite_allocate(const Stmt& s) override {
    const auto* t = as<AllocateNode>(s);
    const Box& box = facts_.boxes.at(t->buffer.get());
    const Json* align = find_annotation(t->annotations, "dim_align");
    Compacted result = compact(box, align);
    Annotations notes = with_annotation(t->annotations, "dim_align", nullptr);
    bool same = result.buffer == t->buffer;
    if (!same) done_[t->buffer.get()] = result;
    Stmt body = rewrite(t->body);
    return same && body == t->body ? s : allocate(result.buffer, body, notes);
  }

 private:
  Exprs shift(const Exprs& indices, const Exprs& mins) {
    Exprs out;
    for (std::size_t i = 0; i < indices.size(); ++i) {
      Expr at = rewrite(indices[i]);
      out.push_back(is_const_int_value(mins[i], 0)
                        ? at
                        : facts_.analyzer.simplify(at - substitute(mins[i], points_)));
    }
    return out;
  }

  Compacted compact(const Box& box, const Json* align) {
    const Buffer& old = box.buffer;
    Compacted out{old, {}};
    Exprs shape;
    bool changed = false;
    for (std::size_t i = 0; i < old->ndim(); ++i) {
      Expr low = make_int(0), extent = old->shape[i];
      const Interval& dim = box.dims[i];
      bool fixed = box.whole || !box.seen || !old->strides.empty() || !old->spatial_axes.empty();
      if (!fixed && dim.min && dim.max) {
        Expr size = facts_.analyzer.simplify(dim.max - dim.min + 1);
        std::int64_t full = 0, n = 0;
        bool full_known = is_const_int(old->shape[i], &full);
        if (!is_const_int(size, &n)) {
          arith::Bounds b = facts_.analyzer.bounds(size);
          // A bound that only the type of a symbol gives is no size.
          n = b.max < (full_known ? arith::Bounds::kMax : kMostBound) ? b.max : -1;
        }
        const bool varies = varying_shapes_ && !is_const_int(size) && !facts_.uses_point(size);
        if (n >= 0 && (!full_known || n < full || (varies && n == full))) {
          low = facts_.analyzer.simplify(dim.min);
          extent = varies ? size : make_int(std::max<std::int64_t>(n, 1));
          changed = true;
        }
      }
      out.mins.push_back(low);
      shape.push_back(extent);
    }
    if (!changed && !align) return out;
    auto copy = edit(old);
    copy->shape = std::move(shape);
    if (align) copy->strides = aligned_strides(copy->shape, *align);
    out.buffer = copy;
    return out;
  }

  Collector& facts_;
  const bool varying_shapes_;
  std::unordered_map<const BufferNode*, Compacted> done_;
  VarMap points_;  // the common variable of an axis -> that of the loop at hand
};

}  // namespace

PrimFunc compact_buffers(const PrimFunc& f, const TargetInfo& machine, bool varying_shapes) {
  Collector first(machine), collector(machine, &first);
  static_cast<Visitor&>(first).visit(f->body);
  if (first.boxes.empty()) return f;
  // Boxes that move with a point are few: only they are worth a second walk.
  const bool moving = std::any_of(first.boxes.begin(), first.boxes.end(), [](const auto& entry) {
    return entry.second.points && !entry.second.points->empty();
  });
  if (moving) static_cast<Visitor&>(collector).visit(f->body);
  Stmt body = Apply(moving ? collector : first, varying_shapes).rewrite(f->body);
  if (body == f->body) return f;
  auto out = edit(f);
  out->body = body;
  return out;
}

}  // namespace weft::pass
