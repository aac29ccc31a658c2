// SPDX-License-Identifier: Apache-2.0
#include "weft/pass/vectorize_loops.h"

#include <algorithm>
#include <optional>

#include "weft/arith/analyzer.h"
#include "weft/base/error.h"
#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/ir/intrinsics.h"
#include "weft/ir/visit.h"
#include "weft/pass/with_body.h"

namespace weft::pass {

using namespace ir;
using arith::Analyzer;

namespace {

constexpr std::int64_t kMostNeighbours = 4;

/// Why a loop cannot become vectors; private to this pass and always caught in it.
struct Obstacle {
  std::string reason;
};

Expr widen(const Expr& e, int lanes) { return e->dtype.is_scalar() ? broadcast(e, lanes) : e; }

/// A value whose loads are made only in the lanes of a mask: others would leave their buffers.
class Masked final : public Rewriter {
 public:
  explicit Masked(const Expr& mask) : mask_(mask) {}
  /// Of a value of all lanes, or of each.
  Expr value(const Expr& e) { return e->dtype.is_scalar() ? one(e, e) : rewrite(e); }
  using Rewriter::rewrite;
  Expr rewrite(const Expr& e) override {
    const auto* c = as<CallNode>(e);
    if (c && c->op == "masked_load")
      return call("masked_load", {c->args[0], logical_and(c->args[1], mask_), c->args[2]});
    const Intrinsic* row = c ? find_intrinsic(c->op) : nullptr;
    if (c && (!row || row->effect != IntrinsicEffect::pure))
      throw Obstacle{"a lazy condition differs between lanes"};
    if (const auto* all = as<BroadcastNode>(e)) return one(all->value, e);
    return Rewriter::rewrite(e);
  }

 protected:
  Expr rewrite_load(const Expr& e) override {
    const auto* l = as<LoadNode>(e);
    const Expr& at = l->indices[0];
    const auto* r = as<RampNode>(at);
    // What is looked up to find the place would be looked up in every lane.
    if (at->dtype.is_scalar() || (r && !is_pure(at)))
      throw Obstacle{"a lazy condition differs between lanes"};
    if (r && is_const_int_value(r->stride, 1)) {
      const DType type = e->dtype;
      return call("masked_load", {e, mask_, broadcast(make_zero(type.element()), type.lanes)});
    }
    return load(l->buffer, {select(mask_, rewrite(at), make_zero_of(at))});
  }

 private:
  /// A scalar of which `otherwise` is the vector: one element that no lane may ask for.
  Expr one(const Expr& scalar, const Expr& otherwise) {
    if (const auto* l = as<LoadNode>(scalar); l && is_pure(l->indices[0])) {
      const Expr at = broadcast(l->indices[0], mask_->dtype.lanes);
      return load(l->buffer, {select(mask_, at, make_zero_of(at))});
    }
    if (!is_pure(scalar)) throw Obstacle{"a lazy condition differs between lanes"};
    return otherwise;
  }
  static Expr make_zero_of(const Expr& lanes) {
    return broadcast(make_zero(lanes->dtype.element()), lanes->dtype.lanes);
  }
  const Expr mask_;
};

/// Expressions with the loop variable replaced by lanes. Scalars stay scalars where lanes agree.
class Lanes {
 public:
  Lanes(const Var& var, int lanes, const Analyzer& analyzer, bool masks = false)
      : var_(var), lanes_(lanes), analyzer_(analyzer), masks_(masks) {}

  Expr expr(const Expr& e) {
    if (!varies(e)) return e;
    switch (e->kind) {
      case ExprKind::var: {
        if (e.get() == var_.get())
          return ramp(make_int(0, e->dtype), make_int(1, e->dtype), lanes_);
        return lets_.at(as<VarNode>(e));
      }
      case ExprKind::cast: {
        Expr v = expr(as<CastNode>(e)->value);
        if (const auto* r = as<RampNode>(v); r && e->dtype.is_int()) {
          return ramp(cast(e->dtype, r->base), cast(e->dtype, r->stride), lanes_);
        }
        return cast(e->dtype.with_lanes(v->dtype.lanes), v);
      }
      case ExprKind::not_: return logical_not(expr(as<NotNode>(e)->a));
      case ExprKind::select: {
        const auto* s = as<SelectNode>(e);
        Expr c = expr(s->condition), a = expr(s->a), b = expr(s->b);
        if (c->dtype.is_scalar() && a->dtype.is_scalar() && b->dtype.is_scalar())
          return select(c, a, b);
        return select(c->dtype.is_scalar() ? c : c, widen(a, lanes_), widen(b, lanes_));
      }
      case ExprKind::call: return call_expr(as<CallNode>(e));
      case ExprKind::load: {
        const auto* l = as<LoadNode>(e);
        if (l->dtype.lanes != 1)
          throw Obstacle{cat("\"", l->buffer->name, "\" is already accessed as vectors")};
        Exprs at;
        for (const Expr& i : l->indices) at.push_back(expr(i));
        if (at.size() > 1) throw Obstacle{cat("\"", l->buffer->name, "\" is not flat")};
        return load(l->buffer, at);
      }
      case ExprKind::let: {
        const auto* l = as<LetNode>(e);
        return expr(substitute(l->body, {{l->var.get(), l->value}}));
      }
      default: {
        if (is_binary(e->kind)) return binary(as<BinaryNode>(e));
        throw Obstacle{"an expression is already a vector"};
      }
    }
  }

  Stmt stmt(const Stmt& s) {
    switch (s->kind) {
      case StmtKind::store: {
        const auto* t = as<StoreNode>(s);
        Expr value = expr(t->value);
        if (t->indices.size() != 1) throw Obstacle{cat("\"", t->buffer->name, "\" is not flat")};
        Expr at = expr(t->indices[0]);
        if (at->dtype.is_scalar()) {
          if (value->dtype.is_scalar() && !reads(t->value, t->buffer))
            return store(t->buffer, value, {at});
          throw Obstacle{cat("all lanes write one element of \"", t->buffer->name, "\"")};
        }
        return store(t->buffer, widen(value, lanes_), {at});
      }
      case StmtKind::seq: {
        std::vector<Stmt> out;
        for (const Stmt& child : as<SeqNode>(s)->stmts) out.push_back(stmt(child));
        return seq(std::move(out));
      }
      case StmtKind::for_: {
        const auto* t = as<ForNode>(s);
        if (varies(t->min) || varies(t->extent))
          throw Obstacle{cat("the range of loop \"", t->var->name, "\" differs between lanes")};
        if (find_annotation(t->annotations, kNeighbours)) {
          if (Stmt joined = neighbours(t)) return joined;
        }
        return make_for(t->var, t->min, t->extent, stmt(t->body), t->for_kind, t->axis,
                        t->annotations);
      }
      case StmtKind::if_: {
        const auto* t = as<IfNode>(s);
        Expr c = expr(t->condition);
        if (!c->dtype.is_scalar()) throw Obstacle{"a condition differs between lanes"};
        return if_then(c, stmt(t->then_case), t->else_case ? stmt(t->else_case) : nullptr);
      }
      case StmtKind::let: {
        const auto* t = as<LetStmtNode>(s);
        Expr value = expr(t->value);
        if (value->dtype.is_scalar()) return let_stmt(t->var, value, stmt(t->body));
        Var wide = make_var(t->var->name, value->dtype);
        lets_[t->var.get()] = wide;
        return let_stmt(wide, value, stmt(t->body));
      }
      case StmtKind::evaluate:
        if (!varies(as<EvaluateNode>(s)->value)) return s;
        throw Obstacle{"a call differs between lanes"};
      case StmtKind::allocate:
        throw Obstacle{cat("\"", as<AllocateNode>(s)->buffer->name, "\" is allocated inside")};
      default: throw Obstacle{"it holds a statement that has no vector form"};
    }
  }

 private:
  /// A loop over a few neighbours inside of the lanes, as one statement: products that are added to
  /// the lane's sum (`dot`), or elements that are stored side by side (`vector_interleave`). Null:
  /// it is neither.
  Stmt neighbours(const ForNode* t) {
    std::int64_t n = 0;
    const auto* s = as<StoreNode>(t->body);
    if (!s || s->indices.size() != 1 || !is_const_int_value(t->min, 0) ||
        !is_const_int(t->extent, &n) || n < 2 || n > kMostNeighbours)
      return nullptr;
    Analyzer inside;
    inside.bind(t->var, {t->min, t->extent});
    inside.bind(var_, {make_int(0, var_->dtype), make_int(lanes_, var_->dtype)});
    const auto at = [&](const Expr& e, std::int64_t lane, std::int64_t neighbour) {
      return inside.simplify(substitute(e, {{var_.get(), make_int(lane, var_->dtype)},
                                            {t->var.get(), make_int(neighbour, t->var->dtype)}}));
    };
    // Elements `lane_step` apart for a lane, `step` for a neighbour, whatever lane and neighbour.
    const auto moves = [&](const Expr& e, std::int64_t lane_step, std::int64_t step) {
      if (e->dtype.lanes != 1) return false;
      const Expr linear = at(e, 0, 0) +
                          Expr(cast(e->dtype, Expr(var_))) * make_int(lane_step, e->dtype) +
                          Expr(cast(e->dtype, Expr(t->var))) * make_int(step, e->dtype);
      return inside.prove_equal(e, linear);
    };
    const auto vector = [&](const LoadNode* l, std::int64_t lanes) {
      const Expr first = at(l->indices[0], 0, 0);
      return load(l->buffer, {ramp(first, make_int(1, first->dtype), static_cast<int>(lanes))});
    };
    const Expr& to = s->indices[0];
    if (moves(to, n, 1)) {
      if (reads(s->value, s->buffer)) return nullptr;
      Exprs rows;
      for (std::int64_t k = 0; k < n; ++k)
        rows.push_back(widen(
            expr(substitute(s->value, {{t->var.get(), make_int(k, t->var->dtype)}})), lanes_));
      const Expr first = at(to, 0, 0);
      return store(s->buffer, call("vector_interleave", rows),
                   {ramp(first, make_int(1, first->dtype), lanes_ * static_cast<int>(n))});
    }
    const auto* sum = s->value->kind == ExprKind::add ? as<BinaryNode>(s->value) : nullptr;
    const auto* before = sum ? as<LoadNode>(sum->a) : nullptr;
    const auto* product = sum && sum->b->kind == ExprKind::mul ? as<BinaryNode>(sum->b) : nullptr;
    if (!before || before->buffer != s->buffer || before->indices.size() != 1 || !product ||
        !inside.prove_equal(before->indices[0], to) || !moves(to, 1, 0))
      return nullptr;
    const auto operand = [](const Expr& e) {
      const auto* c = as<CastNode>(e);
      const auto* l = c ? as<LoadNode>(c->value) : nullptr;
      return l && l->indices.size() == 1 ? l : nullptr;
    };
    const LoadNode *a = operand(product->a), *b = operand(product->b);
    if (!a || !b) return nullptr;
    if (!moves(b->indices[0], n, 1)) std::swap(a, b);
    if (!moves(b->indices[0], n, 1) || !moves(a->indices[0], 0, 1)) return nullptr;
    const Expr sums = vector(before, lanes_), x = vector(a, n), y = vector(b, lanes_ * n);
    if (!is_dot(*sums, *x, *y)) return nullptr;
    return store(s->buffer, call("dot", {sums, x, y}), {as<LoadNode>(sums)->indices[0]});
  }

  bool varies(const Expr& e) const {
    bool found = false;
    for_each_expr(e, [&](const Expr& x) {
      const auto* v = as<VarNode>(x);
      found = found || (v && (v == var_.get() || lets_.count(v)));
    });
    return found;
  }
  static bool reads(const Expr& e, const Buffer& b) {
    bool found = false;
    for_each_expr(e, [&](const Expr& x) {
      if (const auto* l = as<LoadNode>(x)) found = found || l->buffer == b;
    });
    return found;
  }

  Expr call_expr(const CallNode* c) {
    const Intrinsic* row = find_intrinsic(c->op);
    if (c->op == "if_then_else") {
      Expr condition = expr(c->args[0]);
      Expr a = expr(c->args[1]), b = expr(c->args[2]);
      if (condition->dtype.is_scalar()) {
        if (a->dtype.is_scalar() && b->dtype.is_scalar()) return if_then_else(condition, a, b);
        return if_then_else(condition, widen(a, lanes_), widen(b, lanes_));
      }
      if (is_pure(c->args[1]) && is_pure(c->args[2]))
        return select(condition, widen(a, lanes_), widen(b, lanes_));
      if (!masks_) throw Obstacle{"a lazy condition differs between lanes"};
      const Expr otherwise = is_pure(b) ? b : Masked(logical_not(condition)).value(b);
      return select(condition, widen(Masked(condition).value(a), lanes_), widen(otherwise, lanes_));
    }
    bool simple = row && row->effect == IntrinsicEffect::pure &&
                  (row->type != IntrinsicType::special || c->op == "fma" || c->op == "likely" ||
                   c->op == "reinterpret");
    if (!simple) throw Obstacle{cat("\"", c->op, "\" has no vector form")};
    Exprs args;
    for (const Expr& a : c->args) args.push_back(widen(expr(a), lanes_));
    if (c->op == "likely") return args[0];
    return call_typed(c->dtype.with_lanes(lanes_), c->op, std::move(args));
  }

  Expr binary(const BinaryNode* e) {
    Expr a = expr(e->a), b = expr(e->b);
    const auto* ra = as<RampNode>(a);
    const auto* rb = as<RampNode>(b);
    bool sa = a->dtype.is_scalar(), sb = b->dtype.is_scalar();
    if (sa && sb) return make_binary(e->kind, a, b);
    switch (e->kind) {
      case ExprKind::add:
        if (ra && sb) return ramp(ra->base + b, ra->stride, lanes_);
        if (rb && sa) return ramp(a + rb->base, rb->stride, lanes_);
        if (ra && rb) return ramp(ra->base + rb->base, ra->stride + rb->stride, lanes_);
        break;
      case ExprKind::sub:
        if (ra && sb) return ramp(ra->base - b, ra->stride, lanes_);
        if (rb && sa)
          return ramp(a - rb->base, make_int(0, rb->stride->dtype) - rb->stride, lanes_);
        break;
      case ExprKind::mul:
        if (ra && sb) return ramp(ra->base * b, ra->stride * b, lanes_);
        if (rb && sa) return ramp(a * rb->base, a * rb->stride, lanes_);
        break;
      case ExprKind::floordiv:
      case ExprKind::floormod:
      case ExprKind::div:
      case ExprKind::mod:
        if (ra && sb) {  // all lanes in one block of the divisor?
          ExprKind divide = e->kind == ExprKind::floordiv || e->kind == ExprKind::floormod
                                ? ExprKind::floordiv
                                : ExprKind::div;
          Expr first = make_binary(divide, ra->base, b);
          Expr last = make_binary(divide, ra->base + ra->stride * (lanes_ - 1), b);
          if (analyzer_.prove_equal(first, last)) {
            if (e->kind == divide) return first;
            return ramp(make_binary(e->kind, ra->base, b), ra->stride, lanes_);
          }
        }
        break;
      case ExprKind::lt:
      case ExprKind::le:
      case ExprKind::gt:
      case ExprKind::ge:
        if ((ra && sb) || (rb && sa)) {  // same answer in every lane?
          const RampNode* r = ra ? ra : rb;
          Expr low = r->base, high = r->base + r->stride * (lanes_ - 1);
          Expr first = ra ? make_binary(e->kind, low, b) : make_binary(e->kind, a, low);
          Expr last = ra ? make_binary(e->kind, high, b) : make_binary(e->kind, a, high);
          if (agree(r, ra ? b : a, e->kind, ra != nullptr)) return first;
          (void)last;
        }
        break;
      default: break;
    }
    return make_binary(e->kind, widen(a, lanes_), widen(b, lanes_));
  }

  /// For base + stride*lane (stride 1) against x: both in units of the lane count, so no block is
  /// cut.
  bool agree(const RampNode* r, const Expr& x, ExprKind kind, bool ramp_left) const {
    if (!is_const_int_value(r->stride, 1)) return false;
    bool strict = ramp_left ? (kind == ExprKind::lt || kind == ExprKind::ge)
                            : (kind == ExprKind::gt || kind == ExprKind::le);
    if (!strict) return false;  // r < x  <=>  r's block < x's block only for < and >=
    arith::Modular m = analyzer_.modular(r->base - x);
    return (m.coeff == 0 || m.coeff % lanes_ == 0) && m.base % lanes_ == 0;
  }

  const Var& var_;
  int lanes_;
  const Analyzer& analyzer_;
  bool masks_;  // loads under conditions that differ between lanes are masked
  std::unordered_map<const VarNode*, Expr> lets_;
};

/// Choices by one condition, decided.
class TakeArm final : public Rewriter {
 public:
  TakeArm(Expr condition, bool taken) : condition_(std::move(condition)), taken_(taken) {}
  using Rewriter::rewrite;
  Expr rewrite(const Expr& e) override {
    const auto* c = as<CallNode>(e);
    if (c && c->op == "if_then_else" && same_expr(c->args[0], condition_))
      return rewrite(c->args[taken_ ? 1 : 2]);
    return Rewriter::rewrite(e);
  }
  Stmt rewrite(const Stmt& s) override {
    const auto* i = as<IfNode>(s);
    if (!i || !same_expr(i->condition, condition_)) return Rewriter::rewrite(s);
    if (taken_) return rewrite(i->then_case);
    return i->else_case ? rewrite(i->else_case) : seq({});
  }

 private:
  Expr condition_;
  bool taken_;
};

class Vectorize final : public Rewriter {
 public:
  Vectorize(int max_lanes, int max_bytes, bool masked)
      : max_lanes_(max_lanes), max_bytes_(max_bytes), masked_(masked) {}

 protected:
  Stmt rewrite_for(const Stmt& s) override {
    const auto* t = as<ForNode>(s);
    const Analyzer::Scope inside(analyzer_);
    analyzer_.bind(t->var, {t->min, t->extent});
    Stmt inner = Rewriter::rewrite_for(s);
    t = as<ForNode>(inner);
    if (t->for_kind == ForKind::unrolled) return whole_steps(t, inner);
    if (t->for_kind != ForKind::vectorized) return inner;
    std::int64_t n = 0;
    try {
      if (!is_const_int(t->extent, &n)) throw Obstacle{"its extent is not constant"};
      if (n == 1) return substitute(t->body, {{t->var.get(), t->min}});
      if (n <= 0) return inner;
      if (const int most = most_lanes(t->body, n); n > most) {
        if (n % most != 0)
          throw Obstacle{cat("its extent ", n, " is above ", most, " lanes and does not divide")};
        const std::int64_t parts = n / most;
        Var outer = make_var(t->var->name + "_o", t->var->dtype);
        analyzer_.bind(outer, {make_int(0), make_int(parts)});
        const Var inner_var = make_var(t->var->name, t->var->dtype);
        const Expr zero = make_int(0, t->var->dtype);
        analyzer_.bind(inner_var, {zero, make_int(most, t->var->dtype)});
        const Expr start = t->min + Expr(outer) * most;
        const Stmt part = substitute(t->body, {{t->var.get(), start + Expr(inner_var)}});
        const Stmt loop = make_for(inner_var, zero, make_int(most, t->var->dtype), part);
        Stmt body = guarded_lanes(as<ForNode>(loop), zero, most);
        if (!body) body = lanes(inner_var, zero, most, part);
        const bool few = max_bytes_ > 0 && parts <= kUnrolledParts;
        return make_for(outer, make_int(0), make_int(parts), body,
                        few ? ForKind::unrolled : ForKind::serial);
      }
      if (Stmt parted = guarded_lanes(t, t->min, static_cast<int>(n))) return parted;
      return lanes(t->var, t->min, static_cast<int>(n), t->body);
    } catch (const Obstacle& why) {
      return make_for(t->var, t->min, t->extent, t->body, ForKind::serial, "",
                      with_annotation(t->annotations, "scalarised", why.reason));
    }
  }

  Stmt rewrite_default(const Stmt& s) override {
    if (const auto* launch = as<LaunchNode>(s)) {
      const Analyzer::Scope inside(analyzer_);
      for (const LaunchAxis& axis : launch->axes)
        analyzer_.bind(axis.var, {make_int(0), axis.extent});
      return Rewriter::rewrite_default(s);
    }
    return Rewriter::rewrite_default(s);
  }

 private:
  /// Vectors of one loop that are written side by side, so that what they hold can stay in
  /// registers.
  static constexpr std::int64_t kUnrolledParts = 8;

  /// Lanes of a vector in a loop of n: what max_bytes_ hold of the widest element that is moved or
  /// converted to, where that divides n.
  int most_lanes(const Stmt& body, std::int64_t n) const {
    if (max_bytes_ == 0) return max_lanes_;
    int widest = 1;
    for_each_stmt(body, [&](const Stmt& s) {
      if (const auto* st = as<StoreNode>(s)) widest = std::max(widest, st->buffer->dtype.bytes());
    });
    for_each_expr(body, [&](const Expr& e) {
      const auto* l = as<LoadNode>(e);
      if (l || (e->kind == ExprKind::cast && e->dtype.is_float()))
        widest = std::max(widest, e->dtype.element().bytes());
    });
    const int lanes = std::max(1, max_bytes_ / widest);
    return lanes > 1 && n % lanes == 0 ? std::min(lanes, max_lanes_) : max_lanes_;
  }

  /// Steps side by side that load under a condition which stays false once it is (the end of a
  /// padded reduction): where the last step is inside, none asks, and the loads of all are in
  /// flight together.
  Stmt whole_steps(const ForNode* t, const Stmt& otherwise) const {
    std::int64_t n = 0;
    if (!is_const_int(t->extent, &n) || n < 2) return otherwise;
    std::unordered_set<const VarNode*> inner;
    for_each_stmt(t->body, [&](const Stmt& s) {
      if (const auto* l = as<LetStmtNode>(s)) inner.insert(l->var.get());
      if (const auto* f = as<ForNode>(s)) inner.insert(f->var.get());
    });
    const Expr last = t->min + make_int(n - 1, t->var->dtype);
    Expr found;
    auto consider = [&](const Expr& condition) {
      if (found || !uses_var(condition, t->var.get()) || uses_any(condition, inner)) return;
      bool plain = true;
      for_each_expr(condition, [&](const Expr& x) {
        plain = plain && x->kind != ExprKind::load && x->kind != ExprKind::call &&
                x->kind != ExprKind::let;
      });
      if (plain && stays_false(condition, t->var, last)) found = condition;
    };
    for_each_expr(t->body, [&](const Expr& e) {
      const auto* c = as<CallNode>(e);
      if (c && c->op == "if_then_else") consider(c->args[0]);
    });
    for_each_stmt(t->body, [&](const Stmt& s) {
      if (const auto* i = as<IfNode>(s); i && i->else_case) consider(i->condition);
    });
    if (!found) return otherwise;
    const Stmt plain = make_for(t->var, t->min, t->extent, TakeArm(found, true).rewrite(t->body),
                                t->for_kind, t->axis, t->annotations);
    return if_then(substitute(found, {{t->var.get(), last}}), plain, deep_copy(otherwise));
  }

  Stmt lanes(const Var& var, const Expr& base, int n, const Stmt& body) {
    Stmt shifted =
        is_const_int_value(base, 0) ? body : substitute(body, {{var.get(), base + Expr(var)}});
    if (const Expr shared = shared_condition(var, n, shifted)) {
      const Expr once = Lanes(var, n, analyzer_).expr(shared);
      auto arm = [&](bool taken) {
        return Lanes(var, n, analyzer_, masked_).stmt(TakeArm(shared, taken).rewrite(shifted));
      };
      return if_then(once, arm(true), deep_copy(arm(false)));
    }
    return Lanes(var, n, analyzer_, masked_).stmt(shifted);
  }

  /// A condition under which elements are loaded, such as that of a padded reduction, and which all
  /// lanes answer alike: asked once, whole vectors can be loaded behind it. Null: there is none.
  Expr shared_condition(const Var& var, int n, const Stmt& body) const {
    std::unordered_set<const VarNode*> inner;
    for_each_stmt(body, [&](const Stmt& s) {
      if (const auto* l = as<LetStmtNode>(s)) inner.insert(l->var.get());
      if (const auto* f = as<ForNode>(s)) inner.insert(f->var.get());
    });
    Expr found;
    for_each_expr(body, [&](const Expr& e) {
      const auto* c = as<CallNode>(e);
      if (found || !c || c->op != "if_then_else" || !uses_var(c->args[1], var.get())) return;
      bool plain = !uses_any(c->args[0], inner), loads = false;
      for_each_expr(c->args[0], [&](const Expr& x) {
        plain = plain && x->kind != ExprKind::load && x->kind != ExprKind::call &&
                x->kind != ExprKind::let;
      });
      for_each_expr(c->args[1], [&](const Expr& x) { loads = loads || x->kind == ExprKind::load; });
      if (plain && loads && agrees(c->args[0], var, make_int(0, var->dtype), n)) found = c->args[0];
    });
    return found;
  }

  /// A loop whose body is guarded by conditions that, once false, stay false (the tail of a split):
  /// vectors where the last lane is inside, one lane after the other elsewhere. Null for others.
  Stmt guarded_lanes(const ForNode* t, const Expr& min, int n) {
    const auto* guard = as<IfNode>(t->body);
    if (!guard || guard->else_case || !uses_var(guard->condition, t->var.get())) return nullptr;
    const Expr last = min + make_int(n - 1, t->var->dtype);
    if (!stays_false(guard->condition, t->var, last)) return nullptr;
    if (agrees(guard->condition, t->var, min, n)) return nullptr;  // the plain way is better
    const Expr whole = substitute(guard->condition, {{t->var.get(), last}});
    const Stmt tail = make_for(t->var, min, make_int(n, t->extent->dtype), t->body);
    return if_then(whole, lanes(t->var, min, n, guard->then_case), deep_copy(tail));
  }

  /// Whether a condition that holds at `last` holds at every earlier value.
  bool stays_false(const Expr& condition, const Var& var, const Expr& last) const {
    const auto* b = as<BinaryNode>(condition);
    if (!uses_var(condition, var.get())) return true;
    if (!b) return false;
    if (b->kind == ExprKind::and_)
      return stays_false(b->a, var, last) && stays_false(b->b, var, last);
    const bool upper = b->kind == ExprKind::lt || b->kind == ExprKind::le;
    if (!upper || uses_var(b->b, var.get())) return false;
    return analyzer_.prove(le(b->a, substitute(b->a, {{var.get(), last}})));
  }

  /// Whether all lanes give one answer.
  bool agrees(const Expr& condition, const Var& var, const Expr& min, int n) const {
    const Expr shifted = is_const_int_value(min, 0)
                             ? condition
                             : substitute(condition, {{var.get(), min + Expr(var)}});
    try {
      return Lanes(var, n, analyzer_).expr(shifted)->dtype.is_scalar();
    } catch (const Obstacle&) {
      return false;
    }
  }

  int max_lanes_, max_bytes_;
  bool masked_;
  Analyzer analyzer_;
};

class KeepLoops final : public Rewriter {
 protected:
  Stmt rewrite_for(const Stmt& s) override {
    Stmt inner = Rewriter::rewrite_for(s);
    const auto* t = as<ForNode>(inner);
    if (t->for_kind != ForKind::vectorized) return inner;
    return make_for(t->var, t->min, t->extent, t->body, ForKind::serial, "",
                    with_annotation(t->annotations, "vectorize", true));
  }
};

}  // namespace

PrimFunc vectorize_loops(const PrimFunc& f, int max_lanes, int max_bytes, bool masked) {
  WEFT_CHECK(max_lanes >= 1, "at least one lane, got ", max_lanes);
  return with_body(f, Vectorize(max_lanes, max_bytes, masked).rewrite(f->body));
}

PrimFunc keep_vector_loops(const PrimFunc& f) { return with_body(f, KeepLoops().rewrite(f->body)); }

}  // namespace weft::pass
