// SPDX-License-Identifier: Apache-2.0
#include "weft/ir/conjuncts.h"

#include "weft/ir/build.h"

namespace weft::ir {

Exprs conjuncts(const Expr& e) {
  if (const auto* call = as<CallNode>(e); call && call->op == "likely")
    return conjuncts(call->args[0]);
  if (is_const_int_value(e, 1)) return {};
  if (e->kind != ExprKind::and_) return {e};
  const auto* both = as<BinaryNode>(e);
  Exprs out = conjuncts(both->a), more = conjuncts(both->b);
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

}  // namespace weft::ir
