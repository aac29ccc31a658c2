// SPDX-License-Identifier: Apache-2.0
#include "weft/ir/reducers.h"

#include "weft/ir/build.h"
#include "weft/ir/compare.h"

namespace weft::ir {

const std::vector<std::string_view>& standard_reducers() {
  static const std::vector<std::string_view> names = {"sum", "prod",   "min",
                                                      "max", "argmin", "argmax"};
  return names;
}

Reducer make_reducer(std::string name, std::vector<Var> lhs, std::vector<Var> rhs, Exprs result,
                     Exprs identity) {
  auto r = make_ref<ReducerNode>();
  r->name = std::move(name);
  r->lhs = std::move(lhs);
  r->rhs = std::move(rhs);
  r->result = std::move(result);
  r->identity = std::move(identity);
  return r;
}

Reducer standard_reducer(std::string_view name, const std::vector<DType>& types) {
  auto one = [&](ExprKind kind, Expr identity) {
    Var x = make_var("x", types[0]), y = make_var("y", types[0]);
    return make_reducer(std::string(name), {x}, {y}, {make_binary(kind, x, y)},
                        {std::move(identity)});
  };
  if (types.size() == 1 && types[0].is_scalar() && !types[0].is_handle()) {
    if (name == "sum") return one(ExprKind::add, make_zero(types[0]));
    if (name == "prod") return one(ExprKind::mul, make_const(1, types[0]));
    if (name == "min") return one(ExprKind::min, max_value(types[0]));
    if (name == "max") return one(ExprKind::max, min_value(types[0]));
  }
  if (types.size() == 2 && (name == "argmin" || name == "argmax") && types[0].is_int() &&
      types[0].is_scalar() && types[1].is_scalar()) {
    // (index, value); the identity's index is the largest, so that any real index wins a tie with
    // it.
    bool least = name == "argmin";
    Var xi = make_var("xi", types[0]), xv = make_var("xv", types[1]), yi = make_var("yi", types[0]),
        yv = make_var("yv", types[1]);
    Expr better = make_binary(least ? ExprKind::lt : ExprKind::gt, xv, yv);
    Expr take_x = logical_or(better, logical_and(eq(xv, yv), lt(xi, yi)));
    return make_reducer(std::string(name), {xi, xv}, {yi, yv},
                        {select(take_x, xi, yi), select(take_x, xv, yv)},
                        {max_value(types[0]), least ? max_value(types[1]) : min_value(types[1])});
  }
  return nullptr;
}

bool same_reducer(const Reducer& a, const Reducer& b) {
  if (a == b) return true;
  if (!a || !b || a->name != b->name || a->lhs.size() != b->lhs.size()) return false;
  // Compared through collectives of nothing else, so that variables correspond by position.
  auto wrap = [](const Reducer& r) {
    Buffer none = make_buffer("r", dtypes::float32, {});
    return Stmt(make_ref<const CollectiveNode>(CollectiveKind::reduce, std::vector<std::string>{},
                                               BufferRegion{none, {}}, BufferRegion{none, {}}, r,
                                               Expr()));
  };
  return structural_equal(wrap(a), wrap(b), FreeVars::by_position);
}

}  // namespace weft::ir
