// SPDX-License-Identifier: Apache-2.0
#include "weft/pass/lower_cross_thread_reduction.h"

#include <algorithm>
#include <bit>

#include "weft/base/error.h"
#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/ir/visit.h"

namespace weft::pass {

using namespace ir;

namespace {

struct Chain {
  std::vector<const ForNode*> loops;
  const BlockRealizeNode* realize = nullptr;
};

Chain chain_of(const Stmt& s) {
  Chain out;
  const Stmt* at = &s;
  while (const auto* loop = as<ForNode>(*at)) {
    out.loops.push_back(loop);
    at = &loop->body;
  }
  out.realize = as<BlockRealizeNode>(*at);
  return out;
}

bool feeds(const ForNode* loop, const BlockRealizeNode* realize, IterKind kind) {
  for (std::size_t i = 0; i < realize->iter_values.size(); ++i) {
    if (realize->block->iters[i].kind == kind && uses_var(realize->iter_values[i], loop->var.get()))
      return true;
  }
  return false;
}

class LowerCrossThread final : public Rewriter {
 public:
  explicit LowerCrossThread(const Machine& machine) : machine_(machine) {}

 protected:
  Stmt rewrite_for(const Stmt& s) override {
    const auto* loop = as<ForNode>(s);
    Chain chain = chain_of(s);
    if (chain.realize && feeds(loop, chain.realize, IterKind::reduce) && crosses(chain))
      return lower(chain);
    bool points = loop->for_kind == ForKind::bound;
    if (points) enclosing_.push_back(loop);
    Stmt out = Rewriter::rewrite_for(s);
    if (points) enclosing_.pop_back();
    return out;
  }

 private:
  bool crosses(const Chain& chain) const {
    for (const ForNode* l : chain.loops) {
      const AxisRow* row = l->for_kind == ForKind::bound ? machine_.axis(l->axis) : nullptr;
      if (row && row->reduces && feeds(l, chain.realize, IterKind::reduce)) return true;
    }
    return false;
  }

  [[noreturn]] static void refuse(std::string_view reason, const Block& block, std::string why) {
    throw Error(ErrorKind::lower, cat("lower.cross_thread.", reason),
                cat("block \"", block->name, "\" cannot be reduced across points: ", why));
  }

  Stmt lower(const Chain& chain) {
    const Block& block = chain.realize->block;
    const auto* update = as<StoreNode>(block->body);
    const auto* start = as<StoreNode>(block->init);
    if (!start)
      refuse("init", block,
             "its initial value is not one store beside the update; do not decompose it");
    if (!update) refuse("body", block, "its body is not one store");
    const auto* combine = as<BinaryNode>(update->value);
    auto is_self = [&](const Expr& e) {
      const auto* l = as<LoadNode>(e);
      if (!l || !(l->buffer == update->buffer)) return false;
      for (std::size_t i = 0; i < l->indices.size(); ++i) {
        if (!same_expr(l->indices[i], update->indices[i])) return false;
      }
      return true;
    };
    bool left = combine && is_self(combine->a), right = combine && is_self(combine->b);
    ExprKind kind = combine ? combine->kind : ExprKind::var;
    bool known = kind == ExprKind::add || kind == ExprKind::mul || kind == ExprKind::min ||
                 kind == ExprKind::max || kind == ExprKind::and_ || kind == ExprKind::or_;
    if (left == right || !known)
      refuse("reducer", block,
             "its update is not out = combine(out, value) with +, *, min, max, and, or");
    Expr value = left ? combine->b : combine->a;

    const ForNode* across = nullptr;
    std::unordered_set<const VarNode*> reducing;
    for (const ForNode* l : chain.loops) {
      if (feeds(l, chain.realize, IterKind::spatial))
        refuse("order", block,
               cat("spatial loop \"", l->var->name, "\" lies inside a reduction loop"));
      reducing.insert(l->var.get());
      if (l->for_kind != ForKind::bound) continue;
      if (across)
        refuse("axes", block,
               cat("two reduction loops are bound: \"", across->var->name, "\" and \"",
                   l->var->name, "\""));
      across = l;
    }
    std::int64_t n = 0;
    if (!is_const_int(across->extent, &n))
      refuse("extent", block, cat("the extent of \"", across->var->name, "\" is not constant"));

    VarMap map;
    for (std::size_t i = 0; i < block->iters.size(); ++i)
      map[block->iters[i].var.get()] = chain.realize->iter_values[i];
    DType type = update->buffer->dtype;
    // The shares of one row of points; other axes of the group have rows of their own.
    Exprs shape, row_index;
    for (const ForNode* l : enclosing_) {
      const AxisRow* axis = machine_.axis(l->axis);
      if (!axis || !axis->barrier || l->axis == across->axis) continue;
      shape.push_back(l->extent);
      row_index.push_back(Expr(l->var) - l->min);
    }
    shape.push_back(make_int(n));
    Buffer share = make_buffer(update->buffer->name + "_share", type, {make_int(1)}, "local");
    Buffer tree = make_buffer(update->buffer->name + "_tree", type, shape, "shared");
    Expr point = Expr(across->var) - across->min;
    auto at = [&](const Expr& p) {
      Exprs out = row_index;
      out.push_back(p);
      return out;
    };

    Expr everywhere = make_bool(true),
         inside = make_bool(true);  // the predicate, without and with reduction loops
    split_predicate(substitute(chain.realize->predicate, map), reducing, everywhere, inside);
    Stmt accumulate =
        store(share, make_binary(kind, load(share, {make_int(0)}), substitute(value, map)),
              {make_int(0)});
    if (!is_const_int_value(inside, 1)) accumulate = if_then(inside, accumulate);
    for (std::size_t i = chain.loops.size(); i-- > 0;) {
      const ForNode* l = chain.loops[i];
      if (l != across)
        accumulate =
            make_for(l->var, l->min, l->extent, accumulate, l->for_kind, l->axis, l->annotations);
    }
    if (!is_const_int_value(everywhere, 1)) accumulate = if_then(everywhere, accumulate);
    // Each phase is a loop over the points of its own, so that the program also means the same
    // point by point.
    auto phase = [&](Stmt body) {
      Var var = make_var(across->var->name, across->var->dtype);
      return make_for(var, across->min, across->extent,
                      deep_copy(substitute(body, {{across->var.get(), var}})), ForKind::bound,
                      across->axis, across->annotations);
    };
    Exprs target;
    for (const Expr& i : update->indices) target.push_back(substitute(i, map));
    const MemoryRow* row = machine_.memory(update->buffer->scope);
    Expr guard = everywhere;
    if (!row || !row->is_private_to(across->axis))
      guard = logical_and(guard, eq(point, make_int(0)));
    auto guarded = [&](Stmt s) { return is_const_int_value(guard, 1) ? s : if_then(guard, s); };
    if (machine_.axis(across->axis)->joins) {
      Expr own = load(share, {make_int(0)});
      Expr joined = call_typed(type, "instruction", {make_string(join_name(kind)), own});
      return phase(allocate(share, seq({store(share, substitute(start->value, map), {make_int(0)}),
                                        accumulate, store(share, joined, {make_int(0)}),
                                        guarded(store(update->buffer, own, target))})));
    }
    std::vector<Stmt> steps{phase(
        allocate(share, seq({store(share, substitute(start->value, map), {make_int(0)}), accumulate,
                             store(tree, load(share, {make_int(0)}), at(point))})))};
    for (auto half = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(n)) / 2);
         half >= 1; half /= 2) {
      std::int64_t active = std::min(half, n - half);
      steps.push_back(phase(if_then(
          lt(point, make_int(active)),
          store(tree, make_binary(kind, load(tree, at(point)), load(tree, at(point + half))),
                at(point)))));
      n = half;  // what is left to join
    }
    Stmt result = guarded(store(update->buffer, load(tree, at(make_int(0))), target));
    steps.push_back(phase(result));
    return allocate(tree, seq(std::move(steps)));
  }

  static std::string join_name(ExprKind kind) {
    switch (kind) {
      case ExprKind::add: return "reduce.add";
      case ExprKind::mul: return "reduce.mul";
      case ExprKind::min: return "reduce.min";
      case ExprKind::max: return "reduce.max";
      case ExprKind::and_: return "reduce.and";
      default: return "reduce.or";
    }
  }

  static void split_predicate(const Expr& e, const std::unordered_set<const VarNode*>& reducing,
                              Expr& outside, Expr& inside) {
    const auto* b = as<BinaryNode>(e);
    if (b && b->kind == ExprKind::and_) {
      split_predicate(b->a, reducing, outside, inside);
      split_predicate(b->b, reducing, outside, inside);
    } else if (uses_any(e, reducing)) {
      inside = logical_and(inside, e);
    } else {
      outside = logical_and(outside, e);
    }
  }

  const Machine& machine_;
  std::vector<const ForNode*> enclosing_;
};

}  // namespace

PrimFunc lower_cross_thread_reduction(const PrimFunc& f, const Machine& machine) {
  Stmt body = LowerCrossThread(machine).rewrite(f->body);
  if (body == f->body) return f;
  auto out = edit(f);
  out->body = body;
  return out;
}

}  // namespace weft::pass
