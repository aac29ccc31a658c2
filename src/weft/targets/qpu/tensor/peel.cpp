// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/qpu/tensor/peel.h"

#include <vector>

#include "weft/arith/analyzer.h"
#include "weft/ir/build.h"
#include "weft/ir/visit.h"
#include "weft/stages/conditions.h"
#include "weft/stages/linear.h"

namespace weft::qpu::tensor {

using namespace ir;
using stages::has_loads;
using stages::linear_in;
using stages::slack;

namespace {
constexpr int kPeeled = 80;  // statements of a loop body that may be written twice

/// The same where the number of full steps is known: the rest is mostly one step, with numbers
/// for what depends on it.
Stmt known_steps(const ForNode* loop, const IfNode* guard, std::int64_t full, std::int64_t all) {
  const DType type = loop->var->dtype;
  std::vector<Stmt> out;
  auto steps = [&](const Stmt& body, std::int64_t first, std::int64_t end) {
    if (first == end) return;
    if (end - first == 1) {
      const Stmt step = deep_copy(substitute(body, {{loop->var.get(), make_int(first, type)}}));
      return out.push_back(arith::simplify(step));
    }
    Var v = make_var(loop->var->name, type);
    const Expr at = first ? Expr(v) + make_int(first, type) : Expr(v);
    out.push_back(make_for(v, make_int(0, type), make_int(end - first, type),
                           deep_copy(substitute(body, {{loop->var.get(), at}})), loop->for_kind, "",
                           loop->annotations));
  };
  steps(guard->then_case, 0, full);
  steps(loop->body, full, all);
  return seq(std::move(out));
}
}  // namespace

Stmt peel(const ForNode* loop, const LaunchAxis& lane, bool* only_last) {
  const auto* guard = as<IfNode>(loop->body);
  if (!guard || guard->else_case || !is_const_int_value(loop->min, 0) ||
      is_const_int_value(loop->extent, 1))
    return nullptr;
  int size = 0;  // the body is written twice
  for_each_stmt(guard->then_case, [&](const Stmt&) { ++size; });
  if (size > kPeeled) return nullptr;
  Expr full;  // first step that is not full
  for (const Expr& c : conjuncts(guard->condition)) {
    Expr room = slack(c);
    if (!room || has_loads(room)) return nullptr;
    auto by_lane = linear_in(room, lane.var.get());
    auto by_step = linear_in(room, loop->var.get());
    if (!by_lane || !by_lane->coeff.is_constant() || by_lane->coeff.constant > 0 || !by_step ||
        !by_step->coeff.is_constant() || by_step->coeff.constant >= 0)
      return nullptr;
    std::int64_t step = -by_step->coeff.constant;
    // room at the last lane, step 0: all lanes take part while step * v < it.
    Expr last = substitute(arith::to_expr(by_step->base, dtypes::int64),
                           {{lane.var.get(), lane.extent - make_int(1)}});
    Expr steps = floordiv(last + make_int(step - 1), make_int(step));
    full = full ? ir::min(full, steps) : steps;
  }
  Expr n = cast(dtypes::int64, loop->extent);
  full = arith::simplify(ir::max(make_int(0), ir::min(full, n)));
  std::int64_t steps = 0, all = 0;
  if (is_const_int(full, &steps) && is_const_int(loop->extent, &all)) {
    if (only_last) *only_last = steps == all - 1;
    return known_steps(loop, guard, steps, all);
  }
  Var count = make_var(loop->var->name + "_full");
  Stmt body = substitute(guard->then_case, {});
  Stmt first = make_for(loop->var, make_int(0, loop->var->dtype), cast(loop->var->dtype, count),
                        body, loop->for_kind, "", loop->annotations);
  Var v = make_var(loop->var->name, loop->var->dtype);
  Expr moved = Expr(v) + cast(v->dtype, count);
  Stmt rest = deep_copy(substitute(loop->body, {{loop->var.get(), moved}}));
  Stmt second = make_for(v, make_int(0, v->dtype), cast(v->dtype, n - Expr(count)), rest);
  return let_stmt(count, full, seq({first, second}));
}

}  // namespace weft::qpu::tensor
