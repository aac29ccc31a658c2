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
