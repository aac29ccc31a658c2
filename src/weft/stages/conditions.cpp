// SPDX-License-Identifier: Apache-2.0
#include "weft/stages/conditions.h"

#include "weft/arith/sum.h"
#include "weft/ir/build.h"
#include "weft/ir/visit.h"

namespace weft::stages {

using namespace ir;

Expr join_conditions(const std::vector<Expr>& list) {
  Expr out = make_bool(true);
  for (const Expr& e : list) out = logical_and(out, e);
  return out;
}

Expr slack(const Expr& e) {
  const auto* b = as<BinaryNode>(e);
  if (!b || !is_compare(b->kind) || !arith::is_index_type(b->a->dtype)) return nullptr;
  switch (b->kind) {
    case ExprKind::lt: return b->b - b->a;
    case ExprKind::le: return b->b - b->a + 1;
    case ExprKind::gt: return b->a - b->b;
    case ExprKind::ge: return b->a - b->b + 1;
    default: return nullptr;
  }
}

bool has_loads(const Expr& e) {
  bool found = false;
  for_each_expr(e, [&](const Expr& x) { found = found || x->kind == ExprKind::load; });
  return found;
}

}  // namespace weft::stages
