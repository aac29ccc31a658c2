// SPDX-License-Identifier: Apache-2.0
#include "weft/pass/assert_bounds.h"

#include <optional>
#include <utility>

#include "weft/arith/analyzer.h"
#include "weft/base/text.h"
#include "weft/ir/build.h"
#include "weft/ir/text.h"
#include "weft/ir/visit.h"

namespace weft::pass {

using namespace ir;
using arith::Analyzer;

namespace {

/// Its value stays the same while statements run.
bool is_fixed(const Expr& e) {
  bool fixed = true;
  for_each_expr(e, [&](const Expr& x) {
    fixed = fixed && x->kind != ExprKind::load && x->kind != ExprKind::call;
  });
  return fixed;
}

/// The assertions of one expression, in the order in which it is evaluated: the place of an index
/// stands before the element that the index chooses.
class CheckedPlaces final : public Visitor {
 public:
  explicit CheckedPlaces(Analyzer& analyzer) : analyzer_(analyzer) {}

  using Visitor::visit;
  void visit(const Expr& e) override {
    if (const auto* l = as<LetNode>(e)) {
      visit(l->value);
      return visit(substitute(l->body, {{l->var.get(), l->value}}));
    }
    if (e->kind == ExprKind::and_ || e->kind == ExprKind::or_) {
      const auto* b = as<BinaryNode>(e);
      visit(b->a);
      return visit_under(e->kind == ExprKind::and_ ? b->a : logical_not(b->a), b->b);
    }
    Visitor::visit(e);
  }

  void check(const Buffer& b, const Exprs& indices, const std::string& access) {
    for (std::size_t i = 0; i < indices.size() && i < b->ndim(); ++i) {
      if (!indices[i]->dtype.is_scalar()) continue;
      const Expr index = cast(dtypes::int64, indices[i]), n = cast(dtypes::int64, b->shape[i]);
      if (analyzer_.prove(ge(index, make_int(0))) && analyzer_.prove(lt(index, n))) continue;
      // One comparison: below 0 is a large number without sign.
      out_.push_back(assert_stmt(lt(cast(dtypes::uint64, index), cast(dtypes::uint64, n)),
                                 cat("index ", i, " of ", access, " is outside of \"", b->name,
                                     "\", whose extent is ", print(b->shape[i]))));
    }
  }

  std::vector<Stmt> take() { return std::exchange(out_, {}); }

 protected:
  void visit_call(const CallNode* e) override {
    if (e->op == "address_of" || e->op == "masked_load") return;
    if (e->op != "if_then_else") return Visitor::visit_call(e);
    visit(e->args[0]);
    visit_under(e->args[0], e->args[1]);
    visit_under(logical_not(e->args[0]), e->args[2]);
  }

  void visit_load(const LoadNode* e) override {
    Visitor::visit_load(e);
    check(e->buffer, e->indices, print(Expr(e)));
  }

 private:
  /// What is evaluated only where `condition` holds.
  void visit_under(const Expr& condition, const Expr& e) {
    std::vector<Stmt> before = take();
    const Analyzer::Constraint holds(analyzer_, condition);
    visit(e);
    if (!out_.empty()) before.push_back(if_then(condition, seq(take())));
    out_ = std::move(before);
  }

  Analyzer& analyzer_;
  std::vector<Stmt> out_;
};

class AssertBounds final : public Rewriter {
 public:
  using Rewriter::rewrite;
  Stmt rewrite(const Stmt& s) override {
    if (!s) return s;
    CheckedPlaces accesses(analyzer_);
    switch (s->kind) {
      case StmtKind::store: {
        const auto* t = as<StoreNode>(s);
        accesses.visit(t->value);
        for (const Expr& i : t->indices) accesses.visit(i);
        accesses.check(t->buffer, t->indices, print(load(t->buffer, t->indices)));
        return behind(accesses, s);
      }
      case StmtKind::evaluate:
        accesses.visit(as<EvaluateNode>(s)->value);
        return behind(accesses, s);
      case StmtKind::assert_:
        accesses.visit(as<AssertNode>(s)->condition);
        return behind(accesses, s);
      case StmtKind::if_: accesses.visit(as<IfNode>(s)->condition); break;
      case StmtKind::let: accesses.visit(as<LetStmtNode>(s)->value); break;
      case StmtKind::for_:
        if (find_annotation(as<ForNode>(s)->annotations, "instruction")) return s;
        accesses.visit(as<ForNode>(s)->min);
        accesses.visit(as<ForNode>(s)->extent);
        break;
      case StmtKind::while_: {
        const auto* t = as<WhileNode>(s);
        accesses.visit(t->condition);
        const std::vector<Stmt> first = accesses.take();
        Stmt body = rewrite(t->body);
        if (first.empty())
          return body == t->body ? s : make_ref<const WhileNode>(t->condition, body);
        std::vector<Stmt> again{body}, all = first;
        again.insert(again.end(), first.begin(), first.end());
        all.push_back(make_ref<const WhileNode>(t->condition, seq(std::move(again))));
        return seq(std::move(all));
      }
      default: break;
    }
    const Analyzer::Scope inside(analyzer_);
    return behind(accesses, Rewriter::rewrite(s));
  }

 protected:
  Stmt rewrite_for(const Stmt& s) override {
    const auto* t = as<ForNode>(s);
    if (is_fixed(t->min) && is_fixed(t->extent)) analyzer_.bind(t->var, {t->min, t->extent});
    return Rewriter::rewrite_for(s);
  }

  Stmt rewrite_if(const Stmt& s) override {
    const auto* t = as<IfNode>(s);
    const bool fixed = is_fixed(t->condition);
    const auto branch = [&](const Expr& condition, const Stmt& body) {
      if (!body) return body;
      std::optional<Analyzer::Constraint> holds;
      if (fixed) holds.emplace(analyzer_, condition);
      return rewrite(body);
    };
    Stmt yes = branch(t->condition, t->then_case);
    Stmt no = branch(logical_not(t->condition), t->else_case);
    return yes == t->then_case && no == t->else_case ? s : if_then(t->condition, yes, no);
  }

  Stmt rewrite_default(const Stmt& s) override {
    if (const auto* t = as<LetStmtNode>(s);
        t && is_fixed(t->value) && t->value->dtype.is_integral())
      analyzer_.bind(t->var, t->value);
    return Rewriter::rewrite_default(s);
  }

 private:
  static Stmt behind(CheckedPlaces& accesses, Stmt s) {
    std::vector<Stmt> all = accesses.take();
    if (all.empty()) return s;
    all.push_back(std::move(s));
    return seq(std::move(all));
  }

  Analyzer analyzer_;
};

}  // namespace

PrimFunc assert_bounds(const PrimFunc& f) {
  AssertBounds pass;
  const Stmt body = pass.rewrite(f->body);
  if (body == f->body) return f;
  auto out = edit(f);
  out->body = body;
  return out;
}

}  // namespace weft::pass
