// SPDX-License-Identifier: Apache-2.0
#include "weft/pass/simplify.h"

#include <bit>

#include "weft/arith/analyzer.h"
#include "weft/ir/build.h"
#include "weft/ir/intrinsics.h"
#include "weft/ir/visit.h"
#include "weft/pass/with_body.h"

namespace weft::pass {

using namespace ir;

namespace {

bool is_empty(const Stmt& s) {
  if (!s) return true;
  if (const auto* q = as<SeqNode>(s)) return q->stmts.empty();
  return false;
}

class RemoveNoOp final : public Rewriter {
 public:
  using Rewriter::rewrite;
  Stmt rewrite(const Stmt& old) override {
    Stmt s = Rewriter::rewrite(old);
    if (!s) return s;
    switch (s->kind) {
      case StmtKind::for_: {
        const auto* t = as<ForNode>(s);
        std::int64_t n = 0;
        bool constant = is_const_int(t->extent, &n);
        if (is_empty(t->body) || (constant && n <= 0)) return seq({});
        // A bound loop of extent 1 stays: it is what makes its statements a kernel.
        if (constant && n == 1 && t->for_kind != ForKind::bound) {
          return substitute(t->body, {{t->var.get(), cast(t->var->dtype, t->min)}});
        }
        return s;
      }
      case StmtKind::if_: {
        const auto* t = as<IfNode>(s);
        if (const auto* c = as<IntImmNode>(t->condition)) {
          Stmt taken = c->value ? t->then_case : t->else_case;
          return taken ? taken : seq({});
        }
        if (is_empty(t->then_case) && is_empty(t->else_case)) return seq({});
        return s;
      }
      case StmtKind::evaluate: {
        const Expr& e = as<EvaluateNode>(s)->value;
        return is_pure(e) ? seq({}) : s;
      }
      case StmtKind::allocate: return is_empty(as<AllocateNode>(s)->body) ? seq({}) : s;
      case StmtKind::let: return is_empty(as<LetStmtNode>(s)->body) ? seq({}) : s;
      default: return s;
    }
  }
};

class LowerDivision final : public Rewriter {
 public:
  using Rewriter::rewrite;
  Expr rewrite(const Expr& old) override {
    Expr e = Rewriter::rewrite(old);
    if (!e || (e->kind != ExprKind::floordiv && e->kind != ExprKind::floormod)) return e;
    const auto* b = as<BinaryNode>(e);
    bool divides = e->kind == ExprKind::floordiv;
    std::int64_t n = 0;
    bool constant = is_const_int(b->b, &n) && n > 0;
    if (e->dtype.is_uint() ||
        (nonnegative(b->a) && (constant || analyzer_.value_bounds(b->b).min > 0))) {
      if (constant && std::has_single_bit(static_cast<std::uint64_t>(n)) && divides)
        return shift(b->a, n);
      return make_binary(divides ? ExprKind::div : ExprKind::mod, b->a, b->b);
    }
    if (constant && b->dtype.is_scalar() && std::has_single_bit(static_cast<std::uint64_t>(n))) {
      return divides ? shift(b->a, n) : call("bitwise_and", {b->a, make_int(n - 1, b->a->dtype)});
    }
    return e;
  }

 protected:
  Stmt rewrite_for(const Stmt& s) override {
    const auto* t = as<ForNode>(s);
    const arith::Analyzer::Scope inside(analyzer_);
    analyzer_.bind(t->var, {t->min, t->extent});
    return Rewriter::rewrite_for(s);
  }
  Stmt rewrite_default(const Stmt& s) override {
    if (const auto* launch = as<LaunchNode>(s)) {
      const arith::Analyzer::Scope inside(analyzer_);
      for (const LaunchAxis& axis : launch->axes)
        analyzer_.bind(axis.var, {make_int(0), axis.extent});
      return Rewriter::rewrite_default(s);
    }
    return Rewriter::rewrite_default(s);
  }

 private:
  bool nonnegative(const Expr& e) const {
    return e->dtype.is_scalar() && analyzer_.value_bounds(e).min >= 0;
  }
  static Expr shift(const Expr& a, std::int64_t n) {
    return call("shift_right",
                {a, make_int(std::countr_zero(static_cast<std::uint64_t>(n)), a->dtype)});
  }

  arith::Analyzer analyzer_;
};

}  // namespace

PrimFunc simplify(const PrimFunc& f) {
  // Removing unit loops and guards makes constants that simplify further.
  Stmt body = RemoveNoOp().rewrite(arith::simplify(f->body));
  return with_body(f, RemoveNoOp().rewrite(arith::simplify(body)));
}

PrimFunc lower_division(const PrimFunc& f) {
  return with_body(f, LowerDivision().rewrite(f->body));
}

}  // namespace weft::pass
