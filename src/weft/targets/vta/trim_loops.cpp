// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/vta/trim_loops.h"

#include "weft/arith/analyzer.h"
#include "weft/ir/build.h"
#include "weft/ir/visit.h"

namespace weft::vta {

using namespace ir;

namespace {

/// The parts of a conjunction.
void parts_of(const Expr& e, Exprs& out) {
  const auto* both = as<BinaryNode>(e);
  const auto* pair = as<CallNode>(e);
  if (both && both->kind == ExprKind::and_) {
    parts_of(both->a, out);
    parts_of(both->b, out);
  } else if (pair && pair->op == "bitwise_and") {
    for (const Expr& part : pair->args) parts_of(part, out);
  } else {
    out.push_back(e);
  }
}

class Trim final : public Rewriter {
 protected:
  Stmt rewrite_for(const Stmt& given) override {
    std::vector<const ForNode*> loops;
    Stmt at = given;
    while (const auto* loop = as<ForNode>(at)) {
      loops.push_back(loop);
      at = loop->body;
    }
    const auto* guard = as<IfNode>(at);
    if (!guard || guard->else_case || !touches_chip(guard->then_case))
      return Rewriter::rewrite_for(given);
    std::vector<Var> vars;
    Exprs extents;
    for (const ForNode* loop : loops) {
      vars.push_back(loop->var);
      extents.push_back(loop->extent);
    }
    Exprs parts;
    parts_of(guard->condition, parts);
    Expr rest;
    bool changed = false;
    for (const Expr& part : parts) {
      if (bound(part, loops, vars, extents)) {
        changed = true;
      } else {
        rest = rest ? logical_and(rest, part) : part;
      }
    }
    if (!changed) return Rewriter::rewrite_for(given);
    Stmt body = rewrite(guard->then_case);
    if (rest) body = if_then(rest, body);
    for (std::size_t i = loops.size(); i-- > 0;)
      body = make_for(loops[i]->var, loops[i]->min, extents[i], body, loops[i]->for_kind,
                      loops[i]->axis, loops[i]->annotations);
    return body;
  }

 private:
  /// v + base < 0 (or <= 0) with one of the loops' variables, each from 0.
  static bool bound(const Expr& e, const std::vector<const ForNode*>& loops,
                    const std::vector<Var>& vars, Exprs& extents) {
    const auto* c = as<BinaryNode>(e);
    if (!c || (c->kind != ExprKind::lt && c->kind != ExprKind::le)) return false;
    if (!c->a->dtype.is_integral() || c->a->dtype.is_bool()) return false;
    std::optional<arith::Linear> l = arith::detect_linear(c->a - c->b, vars);
    if (!l) return false;
    std::optional<std::size_t> one;
    for (std::size_t i = 0; i < vars.size(); ++i) {
      if (l->coeffs[i] == 0) continue;
      if (one || l->coeffs[i] != 1) return false;
      one = i;
    }
    if (!one || loops[*one]->for_kind != ForKind::serial ||
        !is_const_int_value(loops[*one]->min, 0))
      return false;
    Expr room = make_int(c->kind == ExprKind::le ? 1 : 0, l->base->dtype) - l->base;
    extents[*one] = ir::min(extents[*one], cast(extents[*one]->dtype, arith::simplify(room)));
    return true;
  }
};

}  // namespace

bool touches_chip(const Stmt& s) {
  for (const BufferNode* b : used_buffers(s)) {
    if (b->scope.starts_with("vta.")) return true;
  }
  return false;
}

PrimFunc trim_loops(const PrimFunc& f) {
  Stmt body = Trim().rewrite(f->body);
  if (body == f->body) return f;
  auto out = edit(f);
  out->body = body;
  return out;
}

}  // namespace weft::vta
