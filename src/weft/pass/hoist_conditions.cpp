// SPDX-License-Identifier: Apache-2.0
#include "weft/pass/hoist_conditions.h"

#include "weft/ir/build.h"
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

class Hoist final : public Rewriter {
 protected:
  Stmt rewrite_for(const Stmt& s) override {
    const Stmt inner = Rewriter::rewrite_for(s);
    const auto* loop = as<ForNode>(inner);
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
