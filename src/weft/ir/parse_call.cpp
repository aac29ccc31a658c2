// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "weft/base/error.h"
#include "weft/ir/atomic.h"
#include "weft/ir/build.h"
#include "weft/ir/intrinsics.h"
#include "weft/ir/parse_internal.h"
#include "weft/ir/roles.h"

namespace weft::ir {

using syntax::Kind;

namespace {

/// The largest finite number of a type: what T.max_value says, where a reducer starts from
/// infinity.
double largest_finite(DType t) {
  if (t.bits == 64) return std::numeric_limits<double>::max();
  if (t.bits == 32) return std::numeric_limits<float>::max();
  if (t.is_float8()) return t.code == TypeCode::float8_e5m2 ? 57344.0 : 448.0;
  return t.is_bfloat() ? bfloat_to_float(0x7f7f) : 65504.0;
}

/// Other spellings of what the script can say.
std::string canonical(const std::string& name) {
  static const std::map<std::string, std::string> aliases = {
      {"cast", "Cast"},
      {"select", "Select"},
      {"Ramp", "ramp"},
      {"Broadcast", "broadcast"},
      {"Let", "let"},
      {"Min", "min"},
      {"Max", "max"},
      {"FloorDiv", "floordiv"},
      {"FloorMod", "floormod"},
      {"Div", "truncdiv"},
      {"Mod", "truncmod"},
      {"And", "and_"},
      {"Or", "or_"},
      {"Not", "not_"},
      {"boolean", "bool"},
      {"power", "pow"},
      {"fabs", "abs"},
      {"tvm_storage_sync", "sync"},
      {"nearbyint", "round"},
      {"Add", "add"},
      {"Sub", "sub"},
      {"Mul", "mul"},
      {"EQ", "eq"},
      {"NE", "ne"},
      {"LT", "lt"},
      {"LE", "le"},
      {"GT", "gt"},
      {"GE", "ge"},
  };
  auto found = aliases.find(name);
  return found == aliases.end() ? name : found->second;
}

const std::map<std::string, ExprKind>& binary_names() {
  static const std::map<std::string, ExprKind> names = {{"min", ExprKind::min},
                                                        {"max", ExprKind::max},
                                                        {"truncdiv", ExprKind::div},
                                                        {"truncmod", ExprKind::mod},
                                                        {"floordiv", ExprKind::floordiv},
                                                        {"floormod", ExprKind::floormod},
                                                        {"add", ExprKind::add},
                                                        {"sub", ExprKind::sub},
                                                        {"mul", ExprKind::mul},
                                                        {"eq", ExprKind::eq},
                                                        {"ne", ExprKind::ne},
                                                        {"lt", ExprKind::lt},
                                                        {"le", ExprKind::le},
                                                        {"gt", ExprKind::gt},
                                                        {"ge", ExprKind::ge},
                                                        {"and_", ExprKind::and_},
                                                        {"or_", ExprKind::or_}};
  return names;
}

std::vector<std::string> vocabulary() {
  std::vector<std::string> out = {
      "Cast",          "Select",      "ramp",      "broadcast", "let",     "not_",    "call",
      "infinity",      "min_value",   "max_value", "float16",   "float32", "float64", "bfloat16",
      "float8_e4m3fn", "float8_e5m2", "int8",      "int16",     "int32",   "int64",   "uint8",
      "uint16",        "uint32",      "uint64",    "bool"};
  for (const Intrinsic& row : intrinsics()) out.emplace_back(row.name);
  for (const auto& [name, kind] : binary_names()) out.push_back(name);
  return out;
}

bool is_statement_name(const std::string& name) {
  static const std::set<std::string> names = {
      "block",      "init",         "where",          "reads",    "writes",      "block_attr",
      "func_attr",  "alloc_buffer", "match_buffer",   "allocate", "serial",      "parallel",
      "vectorized", "unroll",       "thread_binding", "grid",     "range",       "launch",
      "async_",     "wait",         "collective",     "Assert",   "evaluate",    "Buffer",
      "prim_func",  "execution",    "launch_thread",  "attr",     "decl_buffer", "atomic_add",
      "atomic_max"};
  return names.count(name) || name.starts_with("axis.");
}

}  // namespace

Builder::Args Builder::args(const Node& call, std::initializer_list<std::string_view> names,
                            std::size_t at_least) {
  Args out;
  out.call = &call;
  std::string callee = dotted(*call.kids[0]);
  for (std::size_t i = 1; i < call.kids.size(); ++i) {
    const std::string& key = call.names[i - 1];
    if (key.empty()) {
      if (!out.named.empty())
        fail(*call.kids[i], "argument",
             cat("a positional argument of ", callee, " follows a named one"));
      out.positional.push_back(call.kids[i].get());
      continue;
    }
    std::vector<std::string> known(names.begin(), names.end());
    auto found = std::find(known.begin(), known.end(), key);
    if (found == known.end())
      fail(*call.kids[i], "argument", cat(callee, " has no argument \"", key, "\""),
           known.empty() ? "" : cat("it knows ", join(known)));
    bool twice = static_cast<std::size_t>(found - known.begin()) < out.positional.size();
    for (const auto& [name, node] : out.named) twice = twice || name == key;
    if (twice)
      fail(*call.kids[i], "argument", cat("argument \"", key, "\" of ", callee, " is given twice"));
    out.named.emplace_back(key, call.kids[i].get());
  }
  if (out.positional.size() > names.size())
    fail(call, "arity",
         cat(callee, " takes at most ", names.size(), " arguments, found ", out.positional.size()));
  std::size_t index = 0;
  for (std::string_view name : names) {
    if (index < at_least && !out.get(index, name))
      fail(call, "arity", cat(callee, " needs the argument \"", name, "\""));
    ++index;
  }
  return out;
}

Value Builder::call(const Node& n) {
  const Node& callee = *n.kids[0];
  std::string script = script_name(callee);
  if (!script.empty()) return script_call(n, canonical(script));
  if (callee.kind == Kind::name && callee.text == "float" && !find("float")) {
    Args a = args(n, {"value"}, 1);
    Value v = eval(*a.get(0, "value"));
    if (v.kind == Value::Kind::string && v.text == "inf")
      return Value::number(std::numeric_limits<double>::infinity());
    if (v.kind == Value::Kind::string && v.text == "-inf")
      return Value::number(-std::numeric_limits<double>::infinity());
    if (v.kind == Value::Kind::string && v.text == "nan")
      return Value::number(std::numeric_limits<double>::quiet_NaN());
    if (v.kind == Value::Kind::integer) return Value::number(static_cast<double>(v.integer));
    if (v.kind == Value::Kind::real) return v;
    fail(n, "types", "float() here converts constants only", "write T.float32(x)");
  }
  if (callee.kind == Kind::attribute && callee.text == "astype") {
    Args a = args(n, {"dtype"}, 1);
    Expr e = expr(*callee.kids[0]);
    DType t = dtype(*a.get(0, "dtype"));
    return Value::of(guard(n, [&] { return cast(t.with_lanes(e->dtype.lanes), e); }));
  }
  Value f = eval(callee);
  if (f.kind == Value::Kind::function) return function_call(n, f.text, 0);
  fail(n, "value", "this cannot be called", "functions of the module and T.… can");
}

/// Arguments from `first_arg` on; a buffer stands for the address of its first element.
Value Builder::function_call(const Node& n, const std::string& name, std::size_t first_arg) {
  Exprs list;
  DType type = dtypes::int32;
  for (std::size_t i = 1 + first_arg; i < n.kids.size(); ++i) {
    const std::string& key = n.names[i - 1];
    if (key == "dtype") {
      type = dtype(*n.kids[i]);
      continue;
    }
    if (!key.empty())
      fail(*n.kids[i], "argument", cat("a call of \"", name, "\" has no argument \"", key, "\""));
    Value v = eval(*n.kids[i]);
    if (v.kind == Value::Kind::buffer) {
      Exprs zeros(v.buffer->ndim(), make_int(0));
      list.push_back(ir::call("address_of", {load(v.buffer, zeros)}));
    } else {
      list.push_back(to_expr(*n.kids[i], v));
    }
  }
  return Value::of(call_typed(type, name, std::move(list)));
}

/// T.float32(0), T.int32(n), T.float32("inf").
Value Builder::typed(const Node& n, DType t) {
  if (n.kids.size() == 1)
    fail(n, "place",
         cat("T.", to_string(t), "() declares a variable and stands alone on the right of \"=\""));
  Args a = args(n, {"value"}, 1);
  const Node& arg = *a.get(0, "value");
  Value v = eval(arg);
  if (v.kind == Value::Kind::string) {
    double inf = std::numeric_limits<double>::infinity();
    if (!t.is_float() || (v.text != "inf" && v.text != "-inf" && v.text != "nan"))
      fail(arg, "literal", cat("\"", v.text, "\" is no ", to_string(t)));
    return Value::of(make_float(v.text == "inf"    ? inf
                                : v.text == "-inf" ? -inf
                                                   : std::numeric_limits<double>::quiet_NaN(),
                                t));
  }
  if (v.kind == Value::Kind::real && !t.is_float())
    fail(arg, "literal", cat(v.real, " is no ", to_string(t)));
  if (v.weak()) {
    Expr e = to_expr(arg, v, t);
    return Value::of(t.lanes > 1 ? ir::broadcast(e, t.lanes) : e);
  }
  Expr e = to_expr(arg, v);
  return Value::of(guard(n, [&] { return cast(t, e); }));
}

Value Builder::script_call(const Node& n, const std::string& name) {
  DType t;
  if (try_parse_dtype(name, t)) return typed(n, t);
  // Older script states the type of a result: T.if_then_else(c, a, b, dtype="float32").
  const bool stated = n.kids.size() > 1 && n.names.back() == "dtype" &&
                      (name == "if_then_else" || name == "Select" || binary_names().contains(name));
  const std::size_t given = n.kids.size() - 1 - (stated ? 1 : 0);
  auto arity = [&](std::size_t count) {
    if (given != count)
      fail(n, "arity", cat("T.", name, " takes ", count, " arguments, found ", given));
  };
  auto pair_of = [&](const Node& x, const Node& y) {
    Value a = eval(x), b = eval(y);
    if (!stated) return matched(n, a, b);
    DType type = dtype(*n.kids.back());
    auto out = a.weak() && b.weak() ? std::pair(to_expr(x, a, type), to_expr(y, b, type))
                                    : matched(n, a, b);
    if (out.first->dtype != type)
      fail(*n.kids.back(), "types",
           cat("T.", name, " gives ", to_string(out.first->dtype), ", not ", to_string(type)));
    return out;
  };
  auto arg = [&](std::size_t i) -> const Node& { return *n.kids[i + 1]; };

  if (auto found = binary_names().find(name); found != binary_names().end()) {
    arity(2);
    auto [a, b] = pair_of(arg(0), arg(1));
    if (a->dtype.is_handle()) fail(n, "types", cat("T.", name, " needs numbers"));
    return Value::of(raw_binary(n, found->second, a, b));
  }
  if (name == "not_") {
    arity(1);
    return Value::of(make_ref<const NotNode>(condition(arg(0))));
  }
  if (name == "Cast") {
    arity(2);
    Value first = eval(arg(0));
    bool type_first = first.kind == Value::Kind::string || first.kind == Value::Kind::dtype;
    t = dtype(arg(type_first ? 0 : 1));
    Expr e = type_first ? expr(arg(1)) : to_expr(arg(0), first);
    if (e->dtype.lanes == 1 && t.lanes > 1)
      fail(n, "types",
           cat("a cast from ", to_string(e->dtype), " to ", to_string(t),
               " changes the number of lanes"));
    if (e->dtype.lanes > 1 && t.lanes == 1) t = t.with_lanes(e->dtype.lanes);
    if (e->dtype.lanes != t.lanes || e->dtype.is_handle() || t.is_handle())
      fail(n, "types", cat("cannot cast ", to_string(e->dtype), " to ", to_string(t)));
    return Value::of(make_ref<const CastNode>(t, std::move(e)));
  }
  if (name == "Select" || name == "if_then_else") {
    arity(3);
    Expr c = condition(arg(0));
    auto [a, b] = pair_of(arg(1), arg(2));
    if (c->dtype.lanes > 1 && c->dtype.lanes != a->dtype.lanes) {
      if (a->dtype.lanes != 1)
        fail(n, "types",
             cat("T.", name, " has a condition of ", static_cast<int>(c->dtype.lanes),
                 " lanes and values of ", static_cast<int>(a->dtype.lanes)));
      a = ir::broadcast(a, c->dtype.lanes), b = ir::broadcast(b, c->dtype.lanes);
    }
    if (name == "Select") return Value::of(make_ref<const SelectNode>(c, a, b));
    DType type = a->dtype;
    return Value::of(call_typed(type, name, {c, a, b}));
  }
  if (name == "ramp" || name == "broadcast") {
    arity(name == "ramp" ? 3 : 2);
    std::int64_t lanes = constant(arg(n.kids.size() - 2), "the number of lanes");
    if (lanes < 2 || lanes > 4096)
      fail(arg(n.kids.size() - 2), "lanes", cat("a vector has 2 to 4096 lanes, not ", lanes));
    if (name == "broadcast") {
      Expr e = expr(arg(0));
      if (e->dtype.lanes != 1)
        fail(n, "types", cat("T.broadcast needs a scalar, found ", to_string(e->dtype)));
      return Value::of(make_ref<const BroadcastNode>(e, static_cast<int>(lanes)));
    }
    auto [base, stride] = matched(n, eval(arg(0)), eval(arg(1)));
    if (!base->dtype.is_integral() || base->dtype.lanes != 1)
      fail(n, "types", cat("T.ramp needs scalar integers, found ", to_string(base->dtype)));
    return Value::of(make_ref<const RampNode>(base, stride, static_cast<int>(lanes)));
  }
  if (name == "let") {
    arity(2);
    Expr value = expr(arg(0));
    const Node& f = arg(1);
    if (f.kind != Kind::lambda || f.names.size() != 1)
      fail(f, "value", "T.let needs a lambda of one parameter");
    Var v = make_var(f.names[0], value->dtype);
    define(f.names[0], Value::of(Expr(v)));
    Expr body = expr(*f.kids[0]);
    scope_.pop_back();
    return Value::of(ir::let(v, value, body));
  }
  if (name == "infinity" || name == "min_value" || name == "max_value") {
    arity(1);
    t = dtype(arg(0));
    if (t.is_handle() || t.is_complex() || (name == "infinity" && !t.is_float()))
      fail(n, "types", cat("T.", name, " has no value of type ", to_string(t)));
    if (t.is_float() && name != "infinity") {
      double largest = largest_finite(t);
      return Value::of(make_float(name == "min_value" ? -largest : largest, t));
    }
    return Value::of(name == "min_value" ? min_value(t) : max_value(t));
  }
  if (name == "call") {
    if (n.kids.size() < 2) fail(n, "arity", "T.call needs the name of a function");
    return function_call(n, text(arg(0), "the name of a function"), 1);
  }

  const Intrinsic* row = is_atomic(name) ? nullptr : find_intrinsic(name);
  if (!row) {
    if (is_statement_name(name))
      fail(n, "place", cat("T.", name, " is no expression"), "it is a statement of its own");
    fail(*n.kids[0], "name", cat("\"T.", name, "\" is unknown"), did_you_mean(name, vocabulary()));
  }
  std::vector<Value> values;
  std::vector<const Node*> nodes;
  bool has_type = false;
  for (std::size_t i = 0; i + 1 < n.kids.size(); ++i) {
    const std::string& key = n.names[i];
    if (key == "dtype") {
      t = dtype(arg(i));
      has_type = true;
      continue;
    }
    if (!key.empty()) fail(arg(i), "argument", cat("T.", name, " has no argument \"", key, "\""));
    if (arg(i).kind == Kind::subscript && name == "address_of") {
      values.push_back(subscript(arg(i)));
    } else {
      values.push_back(eval(arg(i)));
    }
    nodes.push_back(&arg(i));
  }
  if (name == "reinterpret" && !has_type && values.size() == 2) {  // T.reinterpret("float32", x)
    t = dtype(*nodes[0]);
    has_type = true;
    values.erase(values.begin());
    nodes.erase(nodes.begin());
  }
  if (row->arity >= 0 && static_cast<int>(values.size()) != row->arity) {
    fail(n, "arity", cat("T.", name, " takes ", row->arity, " arguments, found ", values.size()));
  }
  // Literals take the type of a typed neighbour where the intrinsic wants equal types.
  DType neighbour = dtypes::handle;
  bool equal = row->type == IntrinsicType::float_binary || row->type == IntrinsicType::int_binary ||
               name == "fma";
  if (row->type == IntrinsicType::float_unary || row->type == IntrinsicType::predicate ||
      row->type == IntrinsicType::float_binary || name == "fma")
    neighbour = dtypes::float32;
  if (equal) {
    for (const Value& v : values) {
      if (v.kind == Value::Kind::expr) neighbour = v.expr->dtype;
    }
  }
  Exprs list;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i].kind == Value::Kind::buffer &&
        (row->effect != IntrinsicEffect::pure || name == "address_of")) {
      Expr first = load(values[i].buffer, Exprs(values[i].buffer->ndim(), make_int(0)));
      list.push_back(name == "address_of" ? first : ir::call("address_of", {first}));
    } else if (static_cast<int>(i) < (name == "prefetch" ? 1 : role_addresses(name)) &&
               values[i].kind == Value::Kind::expr && as<LoadNode>(values[i].expr)) {
      list.push_back(ir::call("address_of", {values[i].expr}));
    } else {
      list.push_back(to_expr(*nodes[i], values[i], neighbour));
    }
  }
  if (has_type) return Value::of(call_typed(t, name, std::move(list)));
  return Value::of(guard(n, [&] { return ir::call(name, list); }));
}

}  // namespace weft::ir
