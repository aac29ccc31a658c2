// SPDX-License-Identifier: Apache-2.0
#include "weft/pass/hoist_guards.h"

#include <algorithm>
#include <unordered_set>

#include "weft/arith/analyzer.h"
#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/ir/conjuncts.h"
#include "weft/ir/visit.h"

namespace weft::pass {

using namespace ir;

namespace {

/// Statements that all copies of one function may add.
constexpr std::int64_t kMostStatements = 2048;

/// A comparison of integers as `value < 0`; null for others, and where data or calls decide.
Expr below_zero(const Expr& e) {
  const auto* b = is_compare(e->kind) ? as<BinaryNode>(e) : nullptr;
  if (!b || !b->a->dtype.is_int() || !b->a->dtype.is_scalar()) return nullptr;
  bool plain = true;
  for_each_expr(e, [&](const Expr& x) {
    plain = plain && x->kind != ExprKind::load && x->kind != ExprKind::call &&
            x->kind != ExprKind::let && x->kind != ExprKind::select;
  });
  if (!plain) return nullptr;
  switch (e->kind) {
    case ExprKind::lt: return b->a - b->b;
    case ExprKind::le: return b->a - b->b - 1;
    case ExprKind::gt: return b->b - b->a;
    case ExprKind::ge: return b->b - b->a - 1;
    default: return nullptr;
  }
}

/// Statements that one run of `s` is written out as.
std::int64_t weight(const Stmt& s) {
  if (!s) return 0;
  if (const auto* list = as<SeqNode>(s)) {
    std::int64_t total = 0;
    for (const Stmt& child : list->stmts)
      total = std::min(kMostStatements + 1, total + weight(child));
    return total;
  }
  if (const auto* loop = as<ForNode>(s)) {
    std::int64_t n = 1;
    if (loop->for_kind == ForKind::unrolled && !is_const_int(loop->extent, &n)) n = 1;
    return std::min(kMostStatements + 1,
                    1 + std::clamp<std::int64_t>(n, 1, kMostStatements) * weight(loop->body));
  }
  if (const auto* i = as<IfNode>(s)) return 1 + weight(i->then_case) + weight(i->else_case);
  if (const auto* l = as<LetStmtNode>(s)) return 1 + weight(l->body);
  if (const auto* a = as<AllocateNode>(s)) return 1 + weight(a->body);
  if (const auto* w = as<WhileNode>(s)) return 1 + weight(w->body);
  return 1;
}

/// Guards inside one loop: each conjunct, and its worst case over the loops between.
class FindGuards final : public Visitor {
 public:
  struct Guard {
    Expr conjunct, worst;
  };
  std::vector<Guard> found;

  using Visitor::visit;
  void visit(const Stmt& s) override {
    if (!s) return;
    if (const auto* i = as<IfNode>(s)) consider(i->condition);
    if (const auto* l = as<LetStmtNode>(s)) values_.insert(l->var.get());
    if (s->kind == StmtKind::while_ || s->kind == StmtKind::launch ||
        s->kind == StmtKind::block_realize)
      return;
    Visitor::visit(s);
  }
  void visit(const Expr& e) override {
    if (const auto* l = as<LetNode>(e)) values_.insert(l->var.get());
    Visitor::visit(e);
  }

 protected:
  void visit_for(const ForNode* s) override {
    if (s->for_kind == ForKind::bound) return;
    loops_.push_back(s);
    visit(s->body);
    loops_.pop_back();
  }
  void visit_call(const CallNode* c) override {
    if (c->op == "if_then_else") consider(c->args[0]);
    Visitor::visit_call(c);
  }

 private:
  void consider(const Expr& condition) {
    if (loops_.empty()) return;  // it stands in the body already
    for (const Expr& part : conjuncts(condition)) {
      for (const Guard& g : found) {
        if (same_expr(g.conjunct, part)) return;
      }
      if (Expr worst = worst_case(part)) found.push_back({part, std::move(worst)});
    }
  }

  Expr worst_case(const Expr& conjunct) const {
    const Expr value = below_zero(conjunct);
    if (!value || uses_any(value, values_)) return nullptr;
    std::vector<Var> inner;
    for (const ForNode* loop : loops_) inner.push_back(loop->var);
    const auto linear = arith::detect_linear(value, inner);
    if (!linear) return nullptr;
    Expr most = linear->base;
    for (std::size_t i = 0; i < inner.size(); ++i) {
      const std::int64_t coeff = linear->coeffs[i];
      if (coeff == 0) continue;
      const ForNode* loop = loops_[i];
      const Expr end = coeff > 0 ? loop->min + loop->extent - 1 : loop->min;
      for (const Var& v : inner) {
        if (uses_var(end, v.get())) return nullptr;
      }
      if (uses_any(end, values_)) return nullptr;
      most = most + end * coeff;
    }
    for (const Var& v : inner) {
      if (uses_var(most, v.get())) return nullptr;
    }
    return most;
  }

  std::vector<const ForNode*> loops_;
  std::unordered_set<const VarNode*> values_;  // of lets inside
};

/// A statement with conjuncts taken as true.
class Assume final : public Rewriter {
 public:
  explicit Assume(const std::vector<FindGuards::Guard>& guards) : guards_(guards) {}
  using Rewriter::rewrite;

 protected:
  Stmt rewrite_if(const Stmt& s) override {
    const auto* t = as<IfNode>(s);
    const Expr condition = without(t->condition);
    if (is_const_int_value(condition, 1)) return rewrite(t->then_case);
    return if_then(rewrite(condition), rewrite(t->then_case),
                   t->else_case ? rewrite(t->else_case) : nullptr);
  }
  Expr rewrite_call(const Expr& e) override {
    const auto* c = as<CallNode>(e);
    if (c->op != "if_then_else") return Rewriter::rewrite_call(e);
    const Expr condition = without(c->args[0]);
    if (is_const_int_value(condition, 1)) return rewrite(c->args[1]);
    return if_then_else(rewrite(condition), rewrite(c->args[1]), rewrite(c->args[2]));
  }

 private:
  Expr without(const Expr& condition) const {
    Expr out = make_bool(true);
    bool changed = false;
    for (const Expr& part : conjuncts(condition)) {
      const bool known =
          std::any_of(guards_.begin(), guards_.end(),
                      [&](const FindGuards::Guard& g) { return same_expr(g.conjunct, part); });
      changed |= known;
      if (!known) out = is_const_int_value(out, 1) ? part : logical_and(out, part);
    }
    return changed ? out : condition;
  }
  const std::vector<FindGuards::Guard>& guards_;
};

/// Conditions without which nothing of `s` runs.
void needed_by(const Stmt& s, Exprs& out) {
  if (const auto* i = as<IfNode>(s); i && !i->else_case) {
    for (const Expr& part : conjuncts(i->condition)) out.push_back(part);
    needed_by(i->then_case, out);
  } else if (const auto* loop = as<ForNode>(s)) {
    Exprs below;
    needed_by(loop->body, below);
    for (const Expr& e : below) {
      if (!uses_var(e, loop->var.get())) out.push_back(e);
    }
  }
}

class HoistGuards final : public Rewriter {
 protected:
  Stmt rewrite_for(const Stmt& s) override {
    const Stmt clipped = clip(s);
    const auto* t = as<ForNode>(clipped);
    if (!t) return clipped;
    const arith::Analyzer::Scope inside(analyzer_);
    analyzer_.bind(t->var, Range{t->min, t->extent});
    if (t->for_kind != ForKind::serial && t->for_kind != ForKind::parallel)
      return Rewriter::rewrite_for(clipped);
    const Stmt body = parted(t);
    if (body == t->body) return clipped;
    return make_for(t->var, t->min, t->extent, body, t->for_kind, t->axis, t->annotations);
  }
  Stmt rewrite_default(const Stmt& s) override {
    return s->kind == StmtKind::launch ? s : Rewriter::rewrite_default(s);
  }

 private:
  /// The loop without iterations in which a condition on everything inside cannot hold.
  Stmt clip(const Stmt& s) const {
    const auto* t = as<ForNode>(s);
    std::int64_t first = 0, extent = 0;
    if (t->for_kind == ForKind::bound || !is_const_int(t->min, &first) ||
        !is_const_int(t->extent, &extent) || extent <= 1)
      return s;
    Exprs needed;
    needed_by(t->body, needed);
    std::int64_t end = first + extent;
    for (const Expr& condition : needed) {
      const Expr value = below_zero(condition);
      if (!value) continue;
      const auto linear = arith::detect_linear(value, {t->var});
      if (!linear || linear->coeffs[0] < 1) continue;
      const std::int64_t least = analyzer_.bounds(linear->base).min, step = linear->coeffs[0];
      if (least == arith::Bounds::kMin || least < -(std::int64_t{1} << 40)) continue;
      end = std::min(end, least >= 0 ? first : (-least + step - 1) / step);  // step * v < -least
    }
    if (end <= first) return seq({});
    if (end == first + extent) return s;
    return make_for(t->var, t->min, make_int(end - first, t->extent->dtype), t->body, t->for_kind,
                    t->axis, t->annotations);
  }

  /// The loop's body behind the worst cases of its guards.
  Stmt parted(const ForNode* t) {
    FindGuards guards;
    guards.visit(t->body);
    std::vector<FindGuards::Guard> hoisted;
    Expr all;
    for (FindGuards::Guard& g : guards.found) {
      const arith::Bounds bounds = analyzer_.bounds(g.worst);
      if (!uses_var(g.worst, t->var.get())) continue;  // a loop outside decides it
      if (bounds.min != arith::Bounds::kMin && bounds.min >= 0) continue;  // never
      const Expr holds = lt(g.worst, make_zero(g.worst->dtype));
      hoisted.push_back(g);
      if (analyzer_.prove(holds)) continue;
      all = all ? logical_and(all, holds) : holds;
    }
    const std::int64_t copied = weight(t->body);
    if (hoisted.empty() || (all && added_ + copied > kMostStatements)) return rewrite(t->body);
    const Stmt whole = Assume(hoisted).rewrite(t->body);
    if (!all) return rewrite(whole);
    added_ += copied;
    const Stmt then_case = rewrite(whole);
    const Stmt tail = deep_copy(t->body);
    Stmt else_case;
    if (const Expr only = only_tail(t, all)) {
      else_case = rewrite(substitute(tail, {{t->var.get(), only}}));
    } else {
      const arith::Analyzer::Constraint outside(analyzer_, logical_not(all));
      else_case = rewrite(tail);
    }
    return if_then(analyzer_.simplify(all), then_case, else_case);
  }

  /// The one value of the loop's variable for which the conditions do not hold; null when there may
  /// be others.
  Expr only_tail(const ForNode* t, const Expr& all) const {
    std::int64_t extent = 0;
    if (!is_const_int(t->extent, &extent)) return nullptr;
    const Expr last = t->min + make_int(extent - 1, t->var->dtype);
    if (extent == 1) return last;
    arith::Analyzer before;
    before.bind(t->var, Range{t->min, make_int(extent - 1, t->extent->dtype)});
    return before.prove(all) ? last : nullptr;
  }

  arith::Analyzer analyzer_;
  std::int64_t added_ = 0;
};

}  // namespace

PrimFunc hoist_guards(const PrimFunc& f) {
  Stmt body = HoistGuards().rewrite(f->body);
  if (body == f->body) return f;
  auto out = edit(f);
  out->body = std::move(body);
  return out;
}

}  // namespace weft::pass
