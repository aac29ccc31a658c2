// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/vta/nest.h"

#include <algorithm>

#include "weft/arith/analyzer.h"
#include "weft/arith/sum.h"
#include "weft/ir/build.h"

namespace weft::vta {

using namespace ir;

bool Affine::constant() const {
  return std::all_of(coeff.begin(), coeff.end(), [](std::int64_t c) { return c == 0; });
}

namespace {

class Evaluator {
 public:
  Evaluator(const std::vector<NestLoop>& loops, const Environment& env)
      : loops_(loops), env_(env) {}

  std::optional<Affine> run(const Expr& e) const {
    if (const auto* imm = as<IntImmNode>(e)) return make(imm->value);
    if (const auto* var = as<VarNode>(e)) {
      for (std::size_t i = 0; i < loops_.size(); ++i) {
        if (loops_[i].var != var) continue;
        Affine out = make(loops_[i].min);
        out.coeff[i] = 1;
        return out;
      }
      auto found = env_.find(var);
      if (found == env_.end()) return std::nullopt;
      return make(found->second);
    }
    if (const auto* c = as<CastNode>(e)) return c->dtype.is_float() ? std::nullopt : run(c->value);
    const auto* b = as<BinaryNode>(e);
    if (!b) return std::nullopt;
    std::optional<Affine> x = run(b->a), y = run(b->b);
    if (!x || !y) return std::nullopt;
    switch (e->kind) {
      case ExprKind::add: return combine(*x, *y, 1);
      case ExprKind::sub: return combine(*x, *y, -1);
      case ExprKind::mul:
        if (y->constant()) return scale(*x, y->base);
        if (x->constant()) return scale(*y, x->base);
        return std::nullopt;
      case ExprKind::min:
      case ExprKind::max:
        if (!x->constant() || !y->constant()) return std::nullopt;
        return make(e->kind == ExprKind::min ? std::min(x->base, y->base)
                                             : std::max(x->base, y->base));
      case ExprKind::floordiv:
      case ExprKind::floormod: return divide(*x, *y, e->kind == ExprKind::floordiv);
      default: break;
    }
    if (!x->constant() || !y->constant()) return std::nullopt;
    std::int64_t p = x->base, q = y->base;
    switch (e->kind) {
      case ExprKind::eq: return make(p == q);
      case ExprKind::ne: return make(p != q);
      case ExprKind::lt: return make(p < q);
      case ExprKind::le: return make(p <= q);
      case ExprKind::gt: return make(p > q);
      case ExprKind::ge: return make(p >= q);
      case ExprKind::and_: return make(p && q);
      case ExprKind::or_: return make(p || q);
      default: return std::nullopt;
    }
  }

 private:
  Affine make(std::int64_t base) const {
    return {base, std::vector<std::int64_t>(loops_.size(), 0)};
  }
  Affine combine(Affine a, const Affine& b, std::int64_t sign) const {
    a.base += sign * b.base;
    for (std::size_t i = 0; i < a.coeff.size(); ++i) a.coeff[i] += sign * b.coeff[i];
    return a;
  }
  Affine scale(Affine a, std::int64_t by) const {
    a.base *= by;
    for (std::int64_t& c : a.coeff) c *= by;
    return a;
  }
  /// Exact when what does not divide stays below the divisor.
  std::optional<Affine> divide(const Affine& a, const Affine& by, bool quotient) const {
    if (!by.constant() || by.base <= 0) return std::nullopt;
    std::int64_t d = by.base;
    Affine whole = make(arith::floor_div(a.base, d)),
           rest = make(a.base - arith::floor_div(a.base, d) * d);
    std::int64_t low = rest.base, high = rest.base;
    for (std::size_t i = 0; i < a.coeff.size(); ++i) {
      if (a.coeff[i] % d == 0) {
        whole.coeff[i] = a.coeff[i] / d;
      } else {
        rest.coeff[i] = a.coeff[i];
        (a.coeff[i] > 0 ? high : low) += a.coeff[i] * (loops_[i].extent - 1);
      }
    }
    if (low < 0 || high >= d) return std::nullopt;
    return quotient ? whole : rest;
  }

  const std::vector<NestLoop>& loops_;
  const Environment& env_;
};

}  // namespace

std::optional<Affine> affine(const Expr& e, const std::vector<NestLoop>& loops,
                             const Environment& env) {
  return Evaluator(loops, env).run(e);
}

std::optional<std::int64_t> constant(const Expr& e, const Environment& env) {
  static const std::vector<NestLoop> none;
  std::optional<Affine> a = Evaluator(none, env).run(e);
  return a ? std::optional<std::int64_t>(a->base) : std::nullopt;
}

namespace {

/// What a condition without alternative encloses; the condition is added to the nest's guard.
Stmt through_guard(const Stmt& at, Nest& out) {
  const auto* guard = as<IfNode>(at);
  if (!guard || guard->else_case) return at;
  out.guard = out.guard ? logical_and(out.guard, guard->condition) : guard->condition;
  return guard->then_case;
}

/// Descends to what is under the loops: one update, with or without its initial value before it.
bool one_update(Stmt at, Nest& out) {
  if (const auto* seq = as<SeqNode>(at)) {
    if (seq->stmts.size() != 2) return false;
    Stmt first = seq->stmts[0];
    if (const auto* guard = as<IfNode>(first); guard && !guard->else_case) {
      out.init_guard = guard->condition;
      first = guard->then_case;
    }
    out.init = as<StoreNode>(first);
    if (!out.init) return false;
    at = seq->stmts[1];
  }
  at = through_guard(at, out);
  out.update = as<StoreNode>(at);
  if (!out.update) return false;
  return !out.init || out.init->buffer.get() == out.update->buffer.get();
}

}  // namespace

bool is_nest(const Stmt& s) {
  Nest out;
  Stmt at = s;
  while (const auto* loop = as<ForNode>(at)) {
    at = loop->body;
    // A condition between loops is that of a tensorized tile.
    if (Stmt inside = through_guard(at, out); as<ForNode>(inside)) at = inside;
  }
  return one_update(at, out);
}

std::optional<Nest> nest_of(const Stmt& s, const Environment& env) {
  Nest out;
  Stmt at = s;
  while (const auto* loop = as<ForNode>(at)) {
    // A copy for each virtual thread: instructions of their own.
    if (loop->for_kind == ForKind::unrolled) return std::nullopt;
    std::optional<std::int64_t> min = constant(loop->min, env),
                                extent = constant(loop->extent, env);
    if (!min || !extent) return std::nullopt;
    out.loops.push_back({loop->var.get(), *min, *extent});
    at = loop->body;
    Nest inner = out;
    if (Stmt inside = through_guard(at, inner); as<ForNode>(inside)) {
      out.guard = inner.guard;
      at = inside;
    }
  }
  if (!one_update(at, out)) return std::nullopt;
  return out;
}

Expr strip_casts(Expr e) {
  while (const auto* c = as<CastNode>(e)) e = c->value;
  return e;
}

namespace {

/// Whether every value of `from` is one of `to`.
bool keeps_values(DType from, DType to) {
  if (from == to) return true;
  const bool unsigned_from = from.is_uint() || from.is_bool();
  const bool unsigned_to = to.is_uint() || to.is_bool();
  if (from.is_float() || to.is_float() || from.lanes != to.lanes) return false;
  if (unsigned_from) return unsigned_to ? to.bits >= from.bits : to.bits > from.bits;
  return !unsigned_to && to.bits >= from.bits;
}

bool holds(DType type, std::int64_t n) {
  std::int64_t low = 0, high = 0;
  return type.is_integral() && is_const_int(min_value(type), &low) &&
         is_const_int(max_value(type), &high) && low <= n && n <= high;
}

}  // namespace

Expr strip_widening(Expr e) {
  while (const auto* c = as<CastNode>(e)) {
    std::int64_t n = 0;
    const bool same =
        is_const_int(c->value, &n) ? holds(c->dtype, n) : keeps_values(c->value->dtype, c->dtype);
    if (!same) break;
    e = c->value;
  }
  return e;
}

const LoadNode* guarded_load(Expr e, std::vector<Expr>& conditions) {
  while (true) {
    e = strip_widening(e);
    if (const auto* l = as<LoadNode>(e)) return l;
    const auto* call = as<CallNode>(e);
    const auto* choose = as<SelectNode>(e);
    bool lazy = call && call->op == "if_then_else";
    if (!lazy && !choose) return nullptr;
    if (!is_const_int_value(strip_casts(lazy ? call->args[2] : choose->b), 0)) return nullptr;
    conditions.push_back(lazy ? call->args[0] : choose->condition);
    e = lazy ? call->args[1] : choose->a;
  }
}

}  // namespace weft::vta
