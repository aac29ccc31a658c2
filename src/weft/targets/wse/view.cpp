// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/wse/view.h"

#include "weft/targets/wse/check_plan.h"

#include <array>
#include <limits>
#include <string_view>

#include "weft/base/error.h"
#include "weft/ir/eval.h"
#include "weft/ir/visit.h"

namespace weft::wse {

namespace {

using namespace ir;

struct Operator {
  std::string_view name;
  ExprKind kind;
};
constexpr std::array kOperators = {
    Operator{"+", ExprKind::add},      Operator{"-", ExprKind::sub},
    Operator{"*", ExprKind::mul},      Operator{"/", ExprKind::div},
    Operator{"rem", ExprKind::mod},    Operator{"//", ExprKind::floordiv},
    Operator{"%", ExprKind::floormod}, Operator{"min", ExprKind::min},
    Operator{"max", ExprKind::max},    Operator{"==", ExprKind::eq},
    Operator{"!=", ExprKind::ne},      Operator{"<", ExprKind::lt},
    Operator{"<=", ExprKind::le},      Operator{">", ExprKind::gt},
    Operator{">=", ExprKind::ge},      Operator{"and", ExprKind::and_},
    Operator{"or", ExprKind::or_},
};
constexpr int kNumber = -1, kVariable = -2, kSelect = -3;

}  // namespace

Json index_to_json(const Expr& e, const std::vector<Var>& vars, std::string* why) {
  if (const auto* n = as<IntImmNode>(e)) return Json(n->value);
  if (const auto* c = as<CastNode>(e); c && c->value->dtype.is_int() && c->dtype.is_int())
    return index_to_json(c->value, vars, why);
  Json out = Json::array();
  auto operands = [&](std::string_view op, std::initializer_list<Expr> list) {
    out.push_back(std::string(op));
    for (const Expr& operand : list) {
      Json j = index_to_json(operand, vars, why);
      if (j.is_null()) return Json();
      out.push_back(std::move(j));
    }
    return out;
  };
  if (const auto* v = as<VarNode>(e)) {
    for (std::size_t k = 0; k < vars.size(); ++k) {
      if (vars[k].get() != v) continue;
      Json variable = Json::object();
      variable["i"] = static_cast<std::int64_t>(k);
      return variable;
    }
    *why = cat("variable ", v->name);
    return {};
  }
  if (const auto* b = as<BinaryNode>(e); b && b->a->dtype.is_int()) {
    for (const Operator& o : kOperators) {
      if (o.kind == e->kind) return operands(o.name, {b->a, b->b});
    }
  }
  if (const auto* b = as<BinaryNode>(e);
      b && (e->kind == ExprKind::and_ || e->kind == ExprKind::or_))
    return operands(e->kind == ExprKind::and_ ? "and" : "or", {b->a, b->b});
  if (const auto* s = as<SelectNode>(e)) return operands("select", {s->condition, s->a, s->b});
  if (const auto* c = as<CallNode>(e); c && c->op == "if_then_else")
    return operands("select", {c->args[0], c->args[1], c->args[2]});
  if (const auto* l = as<LoadNode>(e)) *why = cat("an element of ", l->buffer->name);
  else if (const auto* c = as<CallNode>(e)) *why = cat("a call of ", c->op);
  else *why = "more than its iterators";
  return {};
}

ViewIndex::ViewIndex(const Json& index) {
  add(index);
  stack_.resize(steps_.size());
}

void ViewIndex::add(const Json& j) {
  if (j.is_object()) {
    if (j.at("i").as_int() < 0) damaged_plan("a view's index names a negative variable");
    steps_.push_back({kVariable, j.at("i").as_int()});
  } else if (!j.is_array()) {
    steps_.push_back({kNumber, j.as_int()});
  } else {
    const Json::Array& list = j.as_array();
    if (list.empty()) damaged_plan("a view's index is empty");
    for (std::size_t k = 1; k < list.size(); ++k) add(list[k]);
    const std::string& name = list.at(0).as_string();
    int op = kSelect;
    for (std::size_t k = 0; k < kOperators.size(); ++k) {
      if (kOperators[k].name == name) op = static_cast<int>(k);
    }
    if (op == kSelect && name != "select")
      damaged_plan(cat("a view's index has the operation \"", name, "\""));
    if (list.size() != (op == kSelect ? 4u : 3u))
      damaged_plan(cat("a view's index gives \"", name, "\" ", list.size() - 1, " operands"));
    steps_.push_back({op, 0});
  }
}

std::int64_t ViewIndex::at(std::span<const std::int64_t> point) const {
  std::size_t n = 0;
  for (const Step& s : steps_) {
    if (s.op == kNumber) {
      stack_[n++] = s.value;
    } else if (s.op == kVariable) {
      if (static_cast<std::size_t>(s.value) >= point.size()) return -1;  // in no buffer
      stack_[n++] = point[static_cast<std::size_t>(s.value)];
    } else if (s.op == kSelect) {
      n -= 2;
      stack_[n - 1] = stack_[n - 1] ? stack_[n] : stack_[n + 1];
    } else {
      --n;
      ExprKind kind = kOperators[static_cast<std::size_t>(s.op)].kind;
      if (!eval_int_binary(kind, dtypes::int64, stack_[n - 1], stack_[n], &stack_[n - 1]))
        return -1;
    }
  }
  return stack_[0];
}

}  // namespace weft::wse
