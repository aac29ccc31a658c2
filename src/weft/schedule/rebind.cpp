// SPDX-License-Identifier: Apache-2.0
#include "weft/schedule/rebind.h"

#include "weft/ir/build.h"

namespace weft::schedule {

using namespace ir;

Rebinder::Rebinder(const std::vector<IterVar>& outer, const VarMap& map, Expr condition)
    : ScopeRewriter(&map), loops_(outer), condition_(std::move(condition)) {
  for (const IterVar& loop : loops_) analyzer_.bind(loop.var, loop.dom);
}

Stmt Rebinder::rewrite_for(const Stmt& s) {
  const auto* loop = static_cast<const ForNode*>(s.get());
  const Range dom{rewrite(loop->min), rewrite(loop->extent)};
  const arith::Analyzer::Scope inside(analyzer_);
  analyzer_.bind(loop->var, dom);
  loops_.push_back({loop->var, dom, IterKind::spatial});
  Stmt body = rewrite(loop->body);
  loops_.pop_back();
  if (body == loop->body && dom.min == loop->min && dom.extent == loop->extent) return s;
  return make_ref<ForNode>(loop->var, dom.min, dom.extent, loop->for_kind, loop->axis,
                           loop->annotations, std::move(body));
}

Stmt Rebinder::rewrite_block_realize(const Stmt& s) {
  const auto* realize = static_cast<const BlockRealizeNode*>(s.get());
  bool changed = false;
  Exprs values = rewrite_all(realize->iter_values, &changed);
  Expr predicate = rewrite(realize->predicate);
  if (predicate != realize->predicate) predicate = analyzer_.simplify(predicate);
  if (condition_) predicate = both(predicate, condition_);
  if (!changed && predicate == realize->predicate) return s;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] != realize->iter_values[i])
      values[i] = simplify_bindings({values[i]}, loops_, predicate, analyzer_)[0];
  }
  auto out = make_ref<BlockRealizeNode>(std::move(values), std::move(predicate), realize->block);
  out->line = realize->line;
  return out;
}

Expr both(const Expr& a, const Expr& b) {
  if (!a || is_const_int_value(a, 1)) return b;
  if (!b || is_const_int_value(b, 1)) return a;
  return logical_and(a, b);
}

Exprs simplify_bindings(const Exprs& values, const std::vector<IterVar>& loops,
                        const Expr& predicate, const arith::Analyzer& analyzer) {
  return arith::simplify_iter_map(values, loops, predicate, analyzer);
}

}  // namespace weft::schedule
