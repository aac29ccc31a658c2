// SPDX-License-Identifier: Apache-2.0
#include "weft/pass/hoist_conditions.h"

#include <utility>
#include <vector>

#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/ir/intrinsics.h"
#include "weft/ir/visit.h"

namespace weft::pass {

using namespace ir;

namespace {

/// Reads no memory and calls nothing: its value is that of its variables.
bool is_plain(const Expr& e) {
  bool plain = true;
  for_each_expr(e, [&](const Expr& x) {
    plain = plain && x->kind != ExprKind::load && x->kind != ExprKind::call;
  });
  return plain;
}

bool pure(const CallNode* c) {
  const Intrinsic* known = find_intrinsic(c->op);
  return known && known->effect == IntrinsicEffect::pure;
}

/// Whether the loads of a value can be made at another element: of single elements of memory, and
/// nothing else decides whether they are made.
bool reads_anywhere(const Expr& e) {
  bool can = true;
  for_each_expr(e, [&](const Expr& x) {
    if (const auto* l = as<LoadNode>(x))
      can = can && l->indices.size() == 1 && l->dtype.is_scalar() && l->buffer->scope == "global";
    if (const auto* c = as<CallNode>(x)) can = can && c->op != "if_then_else" && pure(c);
  });
  return can;
}

/// Choices between values whose loads are all made, at element 0 where they would not be: before
/// the statement, since languages evaluate one arm of a choice alone.
class ReadAhead final : public Rewriter {
 protected:
  Stmt rewrite_for(const Stmt& s) override {
    return as<ForNode>(s)->for_kind == ForKind::vectorized ? s : Rewriter::rewrite_for(s);
  }
  Stmt rewrite_store(const Stmt& s) override {
    stored_ = true;
    const Stmt out = Rewriter::rewrite_store(s);
    stored_ = false;
    return after(std::exchange(reads_, {}), out);
  }
  Stmt rewrite_default(const Stmt& s) override {
    const auto* l = as<LetStmtNode>(s);
    if (!l) return Rewriter::rewrite_default(s);
    stored_ = true;
    const Expr value = rewrite(l->value);
    stored_ = false;
    const Reads reads = std::exchange(reads_, {});
    return after(reads, let_stmt(l->var, value, rewrite(l->body)));
  }
  Expr rewrite_call(const Expr& e) override {
    const auto* c = as<CallNode>(e);
    if (!stored_ || c->op != "if_then_else" || !is_plain(c->args[0]) || !reads_anywhere(c->args[1]))
      return Rewriter::rewrite_call(e);
    holds_ = c->args[0];
    const Expr value = rewrite(c->args[1]);
    holds_ = {};
    return select(c->args[0], value, rewrite(c->args[2]));
  }
  Expr rewrite_load(const Expr& e) override {
    if (!holds_) return Rewriter::rewrite_load(e);
    for (const auto& [var, read] : reads_) {
      if (same_expr(read.given, e) && same_expr(read.holds, holds_)) return var;
    }
    const auto* l = as<LoadNode>(e);
    const Expr& at = l->indices[0];
    reads_.push_back({make_var("ahead", e->dtype),
                      {e, holds_, load(l->buffer, {select(holds_, at, make_zero(at->dtype))})}});
    return reads_.back().first;
  }

 private:
  struct Read {
    Expr given, holds, made;
  };
  using Reads = std::vector<std::pair<Var, Read>>;
  static Stmt after(const Reads& reads, Stmt s) {
    for (std::size_t i = reads.size(); i-- > 0;)
      s = let_stmt(reads[i].first, reads[i].second.made, std::move(s));
    return s;
  }
  bool stored_ = false;  // inside a value that a statement stores or names
  Expr holds_;
  Reads reads_;
};

class Hoist final : public Rewriter {
 protected:
  Stmt rewrite_for(const Stmt& s) override {
    Stmt inner = Rewriter::rewrite_for(s);
    const auto* loop = as<ForNode>(inner);
    if (loop && find_annotation(loop->annotations, kReadsAhead)) {
      inner = make_for(loop->var, loop->min, loop->extent, ReadAhead().rewrite(loop->body),
                       loop->for_kind, loop->axis, loop->annotations);
      loop = as<ForNode>(inner);
    }
    const bool own =
        loop && (loop->for_kind == ForKind::serial || loop->for_kind == ForKind::unrolled);
    const auto* asks = own ? as<IfNode>(loop->body) : nullptr;
    if (!asks || asks->else_case || !is_plain(asks->condition) ||
        uses_var(asks->condition, loop->var.get()))
      return inner;
    return if_then(asks->condition, make_for(loop->var, loop->min, loop->extent, asks->then_case,
                                             loop->for_kind, loop->axis, loop->annotations));
  }
};

}  // namespace

PrimFunc hoist_conditions(const PrimFunc& f) {
  Hoist hoist;
  const Stmt body = hoist.rewrite(f->body);
  if (body == f->body) return f;
  auto out = edit(f);
  out->body = body;
  return out;
}

}  // namespace weft::pass
