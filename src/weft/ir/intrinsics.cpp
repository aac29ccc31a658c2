// SPDX-License-Identifier: Apache-2.0
#include "weft/ir/intrinsics.h"

#include <unordered_map>

#include "weft/ir/visit.h"

namespace weft::ir {

const std::vector<Intrinsic>& intrinsics() {
  static const std::vector<Intrinsic> table = {
#define INTRINSIC(name, arity, type, effect, meaning) \
  {#name, arity, IntrinsicType::type, IntrinsicEffect::effect, meaning},
#include "weft/ir/intrinsics.def"
#undef INTRINSIC
  };
  return table;
}

const Intrinsic* find_intrinsic(std::string_view name) {
  static const auto* index = [] {
    auto* map = new std::unordered_map<std::string_view, const Intrinsic*>;
    for (const Intrinsic& row : intrinsics()) map->emplace(row.name, &row);
    return map;
  }();
  auto found = index->find(name);
  return found == index->end() ? nullptr : found->second;
}

bool is_dot(const ExprNode& sums, const ExprNode& a, const ExprNode& b) {
  const DType c = sums.dtype, x = a.dtype, y = b.dtype;
  if (a.kind != ExprKind::load || b.kind != ExprKind::load || c.lanes < 2 || x.lanes < 2 ||
      y.lanes != c.lanes * x.lanes)
    return false;
  if (x.is_integral() && y.is_integral())
    return c.is_integral() && x.bits == y.bits && c.bits >= 2 * x.bits;
  return c == dtypes::float32.with_lanes(c.lanes) && x.element() == y.element() && x.is_float() &&
         x.bits == 16;
}

bool is_pure(const Expr& e) {
  bool pure = true;
  for_each_expr(e, [&](const Expr& x) {
    if (x->kind == ExprKind::load) pure = false;
    if (const auto* c = as<CallNode>(x)) {
      const Intrinsic* row = find_intrinsic(c->op);
      if (!row || row->effect != IntrinsicEffect::pure) pure = false;
    }
  });
  return pure;
}

}  // namespace weft::ir
