// SPDX-License-Identifier: Apache-2.0
#include "weft/pass/init_empty_reductions.h"

#include <algorithm>
#include <unordered_set>

#include "weft/arith/analyzer.h"
#include "weft/ir/build.h"
#include "weft/ir/visit.h"

namespace weft::pass {

using namespace ir;

namespace {

using Vars = std::unordered_set<const VarNode*>;

/// The terms of a conjunction.
void split(const Expr& e, Exprs& out) {
  if (e->kind != ExprKind::and_) {
    out.push_back(e);
    return;
  }
  const auto* both = as<BinaryNode>(e);
  split(both->a, out);
  split(both->b, out);
}

class InitEmpty final : public Rewriter {
 protected:
  Stmt rewrite_for(const Stmt& s) override {
    const auto* t = as<ForNode>(s);
    loops_.push_back({t, {}});
    Stmt out = Rewriter::rewrite_for(s);
    std::vector<Stmt> before = std::move(loops_.back().before);
    loops_.pop_back();
    if (before.empty()) return out;
    before.push_back(std::move(out));
    return seq(std::move(before));
  }

  Stmt rewrite_block_realize(const Stmt& s) override {
    const auto* realize = as<BlockRealizeNode>(s);
    if (realize->block->init) place(realize);
    std::vector<Loop> outer;
    std::swap(outer, loops_);  // bodies touch the outside through iterators only
    Stmt out = Rewriter::rewrite_block_realize(s);
    std::swap(outer, loops_);
    return out;
  }

 private:
  struct Loop {
    const ForNode* node;
    std::vector<Stmt> before;  // what goes in front of it
  };

  bool uses(const Expr& e, std::size_t loop) const {
    return uses_var(e, loops_[loop].node->var.get());
  }

  void place(const BlockRealizeNode* realize) {
    const Block& block = realize->block;
    // The outermost loop of the reduction: what stands around it runs in any case.
    std::size_t top = loops_.size();
    Vars reduced;
    for (std::size_t i = 0; i < block->iters.size(); ++i) {
      if (block->iters[i].kind != IterKind::reduce) continue;
      for (std::size_t k = 0; k < loops_.size(); ++k) {
        if (!uses(realize->iter_values[i], k)) continue;
        top = std::min(top, k);
        reduced.insert(loops_[k].node->var.get());
      }
    }
    if (top == loops_.size()) return;
    arith::Analyzer around;  // facts of the loops inside are none outside
    for (std::size_t k = 0; k < top; ++k)
      around.bind(loops_[k].node->var, {loops_[k].node->min, loops_[k].node->extent});
    Expr empty;
    for (const IterVar& iter : block->iters) {
      if (iter.kind != IterKind::reduce) continue;
      const Expr& n = iter.dom.extent;
      if (around.prove(ge(n, make_int(1, n->dtype)))) continue;
      const Expr none = le(n, make_int(0, n->dtype));
      empty = empty ? logical_or(empty, none) : none;
    }
    if (!empty) return;

    VarMap values;  // the block's iterators at the new place
    Expr guard = make_bool(true);
    std::vector<std::pair<Var, Range>> whole;  // iterators that run over their whole domain
    Vars kept;                                 // loops that are made again
    for (std::size_t i = 0; i < block->iters.size(); ++i) {
      const IterVar& iter = block->iters[i];
      const DType type = iter.var->dtype;
      if (iter.kind == IterKind::reduce) {
        values[iter.var.get()] = iter.dom.min;
        continue;
      }
      // A loop that the reduction shares has no iteration here; then the domain speaks.
      const Expr& value = realize->iter_values[i];
      bool shared = false;
      for (std::size_t k = top; k < loops_.size(); ++k) {
        const bool used = uses(value, k);
        shared |= used && reduced.count(loops_[k].node->var.get()) != 0;
      }
      if (shared) {
        Var again = make_var(iter.var->name, type);
        whole.push_back({again, iter.dom});
        values[iter.var.get()] = again;
        continue;
      }
      for (std::size_t k = top; k < loops_.size(); ++k) {
        if (uses(value, k)) kept.insert(loops_[k].node->var.get());
      }
      values[iter.var.get()] = cast(type, value);
      guard = logical_and(
          guard, logical_and(ge(value, iter.dom.min), lt(value, iter.dom.min + iter.dom.extent)));
    }
    Exprs parts;
    split(realize->predicate, parts);
    for (const Expr& part : parts) {
      bool known = true;
      for (std::size_t k = top; k < loops_.size(); ++k)
        known &= !uses(part, k) || kept.count(loops_[k].node->var.get()) != 0;
      if (known) guard = logical_and(guard, part);
    }
    for (std::size_t k = top; k < loops_.size(); ++k) {
      if (kept.count(loops_[k].node->var.get()))
        around.bind(loops_[k].node->var, {loops_[k].node->min, loops_[k].node->extent});
    }
    guard = around.simplify(guard);
    Stmt body = substitute(block->init, values);
    if (!is_const_int_value(guard, 1)) body = if_then(guard, body);
    for (std::size_t i = whole.size(); i-- > 0;)
      body = make_for(whole[i].first, whole[i].second.min, whole[i].second.extent, body);
    for (std::size_t k = loops_.size(); k-- > top;) {
      const ForNode* loop = loops_[k].node;
      if (kept.count(loop->var.get()) || (loop->for_kind == ForKind::bound))
        body = make_for(loop->var, loop->min, loop->extent, body, loop->for_kind, loop->axis);
    }
    loops_[top].before.push_back(deep_copy(if_then(empty, body)));
  }

  std::vector<Loop> loops_;  // of the innermost block, outermost first
};

}  // namespace

PrimFunc init_empty_reductions(const PrimFunc& f) {
  Stmt body = InitEmpty().rewrite(f->body);
  if (body == f->body) return f;
  auto out = edit(f);
  out->body = std::move(body);
  return out;
}

}  // namespace weft::pass
