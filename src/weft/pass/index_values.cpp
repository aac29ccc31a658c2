// SPDX-License-Identifier: Apache-2.0
#include "weft/pass/index_values.h"

#include <algorithm>

#include "weft/base/text.h"
#include "weft/ir/build.h"
#include "weft/ir/text.h"
#include "weft/ir/visit.h"

namespace weft::pass {

using namespace ir;

namespace {

using Value = IndexValues::Value;

constexpr std::int64_t kSymbol = 19;  // a legal value of every extent known only at run time

bool whole(const Expr& e) { return e->dtype.is_integral() || e->dtype.is_bool(); }

Value fold(ExprKind kind, std::int64_t u, std::int64_t v) {
  auto floored = [&] { return u / v - ((u % v != 0) && ((u < 0) != (v < 0)) ? 1 : 0); };
  switch (kind) {
    case ExprKind::add: return u + v;
    case ExprKind::sub: return u - v;
    case ExprKind::mul: return u * v;
    case ExprKind::div: return v ? Value(u / v) : Value();
    case ExprKind::mod: return v ? Value(u % v) : Value();
    case ExprKind::floordiv: return v ? Value(floored()) : Value();
    case ExprKind::floormod: return v ? Value(u - floored() * v) : Value();
    case ExprKind::min: return std::min(u, v);
    case ExprKind::max: return std::max(u, v);
    case ExprKind::eq: return u == v;
    case ExprKind::ne: return u != v;
    case ExprKind::lt: return u < v;
    case ExprKind::le: return u <= v;
    case ExprKind::gt: return u > v;
    case ExprKind::ge: return u >= v;
    case ExprKind::and_: return u && v;
    default: return u || v;
  }
}

}  // namespace

IndexValues::Value IndexValues::of(const Expr& e, int lane) const {
  switch (e->kind) {
    case ExprKind::int_imm: return as<IntImmNode>(e)->value;
    case ExprKind::var: {
      auto found = vars_.find(as<VarNode>(e));
      if (found != vars_.end()) return found->second;
      return e->dtype.is_int() ? Value(kSymbol) : Value();
    }
    case ExprKind::cast:
      return whole(e) && whole(as<CastNode>(e)->value) ? of(as<CastNode>(e)->value, lane) : Value();
    case ExprKind::not_: {
      Value v = of(as<NotNode>(e)->a, lane);
      return v ? Value(*v == 0) : v;
    }
    case ExprKind::ramp: {
      Value base = of(as<RampNode>(e)->base), step = of(as<RampNode>(e)->stride);
      return base && step ? Value(*base + *step * lane) : Value();
    }
    case ExprKind::broadcast: return of(as<BroadcastNode>(e)->value);
    case ExprKind::select: {
      const auto* s = as<SelectNode>(e);
      Value c = of(s->condition, lane);
      return c ? of(*c ? s->a : s->b, lane) : Value();
    }
    case ExprKind::call: {
      const auto* c = as<CallNode>(e);
      if (c->op == "likely") return of(c->args[0], lane);
      if (c->op != "if_then_else") return {};
      Value k = of(c->args[0], lane);
      return k ? of(c->args[*k ? 1 : 2], lane) : Value();
    }
    default: break;
  }
  if (!is_binary(e->kind)) return {};
  const auto* b = as<BinaryNode>(e);
  if (!whole(b->a)) return {};
  Value x = of(b->a, lane);
  if (x && e->kind == ExprKind::and_ && !*x) return 0;
  if (x && e->kind == ExprKind::or_ && *x) return 1;
  Value y = of(b->b, lane);
  if (!x || !y) return {};
  return fold(e->kind, *x, *y);
}

bool reads_memory(const Expr& e) {
  bool found = false;
  for_each_expr(e, [&](const Expr& x) { found = found || x->kind == ExprKind::load; });
  return found;
}

std::string access_text(const Buffer& b, const Exprs& indices) {
  std::string out;
  for (const Expr& i : indices) out += cat(out.empty() ? "" : ", ", print(i));
  return cat(b->name, "[", out, "]");
}

}  // namespace weft::pass
