// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "weft/base/error.h"
#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/ir/parse_internal.h"
#include "weft/ir/reducers.h"
#include "weft/ir/regions.h"

namespace weft::ir {

using syntax::Kind;

namespace {

std::string describe(const Value& v) {
  switch (v.kind) {
    case Value::Kind::none: return "None";
    case Value::Kind::integer: return cat("the number ", v.integer);
    case Value::Kind::real: return cat("the number ", v.real);
    case Value::Kind::string: return "a string";
    case Value::Kind::expr: return cat("a value of type ", to_string(v.expr->dtype));
    case Value::Kind::buffer: return cat("the buffer \"", v.buffer->name, "\"");
    case Value::Kind::dtype: return cat("the type ", to_string(v.dtype));
    case Value::Kind::tuple: return "a tuple";
    case Value::Kind::function: return cat("the function \"", v.text, "\"");
  }
  return "";
}

bool fits(std::int64_t v, bool huge, DType t) {
  if (t.is_bool()) return !huge && (v == 0 || v == 1);
  if (huge) return t.is_uint() && t.bits == 64;
  if (t.is_uint()) return v >= 0 && (t.bits == 64 || v < (1ll << t.bits));
  return t.bits == 64 || (v >= -(1ll << (t.bits - 1)) && v < (1ll << (t.bits - 1)));
}

}  // namespace

// ---- conversions

Expr Builder::to_expr(const Node& at, const Value& v, DType want) {
  DType t = want.element();
  switch (v.kind) {
    case Value::Kind::expr: return v.expr;
    case Value::Kind::integer:
      if (t.is_handle()) t = dtypes::int64;
      if (t.is_float()) return make_float(static_cast<double>(v.integer), t);
      if (!fits(v.integer, v.huge, t))
        fail(at, "literal",
             cat(v.huge ? cat(static_cast<std::uint64_t>(v.integer)) : cat(v.integer),
                 " does not fit ", to_string(t)));
      return make_int(v.integer, t);
    case Value::Kind::real:
      if (t.is_handle()) t = dtypes::float32;
      if (!t.is_float())
        fail(at, "literal", cat(v.real, " is no ", to_string(t)),
             "convert the other side with T.Cast");
      return make_float(v.real, t);
    case Value::Kind::string: return make_string(v.text);
    case Value::Kind::buffer:
      fail(at, "value", cat("the buffer \"", v.buffer->name, "\" is used without indices"),
           cat("write ", v.buffer->name, "[", v.buffer->ndim() ? "i" : "()", "]"));
    default: fail(at, "value", cat("expected a value, found ", describe(v)));
  }
}

Expr Builder::condition(const Node& n) {
  Expr e = expr(n);
  if (!e->dtype.is_bool())
    fail(n, "types", cat("expected a condition, found a value of type ", to_string(e->dtype)),
         "compare it with something");
  return e;
}

std::int64_t Builder::constant(const Node& n, std::string_view what) {
  Value v = eval(n);
  std::int64_t out;
  if (v.kind == Value::Kind::integer && !v.huge) return v.integer;
  if (v.kind == Value::Kind::expr && is_const_int(v.expr, &out)) return out;
  fail(n, "constant", cat(what, " must be a constant integer, found ", describe(v)));
}

std::string Builder::text(const Node& n, std::string_view what) {
  Value v = eval(n);
  if (v.kind != Value::Kind::string)
    fail(n, "string", cat(what, " must be a string, found ", describe(v)));
  return v.text;
}

bool Builder::flag(const Node& n) {
  Value v = eval(n);
  std::int64_t out;
  if (v.kind == Value::Kind::expr && is_const_int(v.expr, &out)) return out != 0;
  fail(n, "constant", cat("expected True or False, found ", describe(v)));
}

DType Builder::dtype(const Node& n) {
  Value v = eval(n);
  if (v.kind == Value::Kind::dtype) return v.dtype;
  if (v.kind != Value::Kind::string)
    fail(n, "dtype", cat("expected a type such as \"float32\", found ", describe(v)));
  DType t;
  if (!try_parse_dtype(v.text, t)) {
    fail(n, "dtype", cat("\"", v.text, "\" is no type"),
         did_you_mean(v.text, {"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
                               "uint64", "float8_e4m3fn", "float8_e5m2", "float16", "bfloat16",
                               "float32", "float64", "bool", "handle"}));
  }
  return t;
}

Json Builder::json(const Node& n) {
  switch (n.kind) {
    case Kind::dict: {
      Json::Object out;
      for (std::size_t i = 0; i + 1 < n.kids.size(); i += 2) {
        std::string key = text(*n.kids[i], "a key");
        if (std::any_of(out.begin(), out.end(),
                        [&](const Json::Member& m) { return m.first == key; }))
          fail(*n.kids[i], "redefined", cat("the key \"", key, "\" appears twice"));
        out.emplace_back(std::move(key), json(*n.kids[i + 1]));
      }
      return Json(std::move(out));
    }
    case Kind::list:
    case Kind::tuple: {
      Json::Array out;
      for (const auto& kid : n.kids) out.push_back(json(*kid));
      return Json(std::move(out));
    }
    default: break;
  }
  Value v = eval(n);
  switch (v.kind) {
    case Value::Kind::none: return Json();
    case Value::Kind::integer: return Json(v.integer);
    case Value::Kind::real: return Json(v.real);
    case Value::Kind::string: return Json(v.text);
    case Value::Kind::dtype: return Json(to_string(v.dtype));
    case Value::Kind::tuple: {
      Json::Array out;
      for (const Value& item : v.items) {
        if (item.kind != Value::Kind::integer)
          fail(n, "annotation", cat("an annotation cannot hold ", describe(item)));
        out.push_back(Json(item.integer));
      }
      return Json(std::move(out));
    }
    case Value::Kind::expr:
      if (const auto* i = as<IntImmNode>(v.expr))
        return i->dtype.is_bool() ? Json(i->value != 0) : Json(i->value);
      if (const auto* f = as<FloatImmNode>(v.expr)) return Json(f->value);
      if (const auto* s = as<StringImmNode>(v.expr)) return Json(s->value);
      [[fallthrough]];
    default: fail(n, "annotation", cat("an annotation holds constants, found ", describe(v)));
  }
}

Annotations Builder::annotations(const Node& n) {
  if (n.kind != Kind::dict) fail(n, "annotation", "annotations must be a dictionary");
  return json(n).as_object();
}

// ---- names

Value Builder::captured(const Node& n, const std::string& name) {
  if (capture_) {
    if (std::optional<Captured> c = capture_(name)) {
      if (const auto* i = std::get_if<std::int64_t>(&*c)) return Value::number(*i);
      if (const auto* d = std::get_if<double>(&*c)) return Value::number(*d);
      if (const auto* b = std::get_if<bool>(&*c)) return Value::of(make_bool(*b));
      if (const auto* s = std::get_if<std::string>(&*c)) return Value::words(*s);
      if (const auto* e = std::get_if<Expr>(&*c)) return Value::of(*e);
      const PrimFunc& f = std::get<PrimFunc>(*c);
      if (function_names_.insert(name).second) captured_functions_.emplace_back(name, f);
      return Value::function(name);
    }
  }
  std::vector<std::string> known = known_names();
  known.insert(known.end(), function_names_.begin(), function_names_.end());
  std::string help = did_you_mean(name, known);
  if (help.empty() && prefixes_.contains(name.substr(0, name.find('.'))))
    help = "see the reference of the script for the names after \"T.\"";
  fail(n, "name", cat("\"", name, "\" is not defined here"), std::move(help));
}

Value Builder::attribute(const Node& n) {
  std::string script = script_name(n);
  if (!script.empty()) {
    DType t;
    if (script == "boolean") return Value::of(dtypes::boolean);
    if (try_parse_dtype(script, t)) return Value::of(t);
    fail(n, "name", cat("\"T.", script, "\" is no value"),
         "call it, or write a type such as T.int64");
  }
  std::string full = dotted(n);
  std::string head = full.substr(0, full.find('.'));
  if (!full.empty() && (head == "cls" || class_names_.count(head)) && function_names_.count(n.text))
    return Value::function(n.text);
  if (!full.empty() && !find(head)) return captured(n, full);
  Value base = eval(*n.kids[0]);
  if (base.kind == Value::Kind::buffer) {
    auto list = [&](const Exprs& es) {
      Value v;
      v.kind = Value::Kind::tuple;
      for (const Expr& e : es)
        v.items.push_back(is_const_int(e) && e->dtype == dtypes::int64
                              ? Value::number(as<IntImmNode>(e)->value)
                              : Value::of(e));
      return v;
    };
    if (n.text == "shape") return list(base.buffer->shape);
    if (n.text == "strides") return list(strides_of(base.buffer));
    if (n.text == "dtype") return Value::of(base.buffer->dtype);
    if (n.text == "elem_offset" && base.buffer->elem_offset)
      return Value::of(base.buffer->elem_offset);
    fail(n, "name", cat("a buffer has no attribute \"", n.text, "\""),
         "it has shape, strides, dtype and elem_offset");
  }
  if (base.kind == Value::Kind::expr && n.text == "dtype") return Value::of(base.expr->dtype);
  fail(n, "name", cat(describe(base), " has no attribute \"", n.text, "\""));
}

// ---- evaluation

Value Builder::eval(const Node& n) {
  switch (n.kind) {
    case Kind::integer: {
      Value v = Value::number(n.integer);
      v.huge = n.huge;
      return v;
    }
    case Kind::real: return Value::number(n.real);
    case Kind::string: return Value::words(n.text);
    case Kind::constant: return n.text == "None" ? Value{} : Value::of(make_bool(n.text == "True"));
    case Kind::name:
      if (const Value* v = find(n.text)) return *v;
      if (function_names_.count(n.text)) return Value::function(n.text);
      return captured(n, n.text);
    case Kind::attribute: return attribute(n);
    case Kind::call: return call(n);
    case Kind::subscript: return subscript(n);
    case Kind::tuple:
    case Kind::list: {
      Value v;
      v.kind = Value::Kind::tuple;
      for (const auto& kid : n.kids) v.items.push_back(eval(*kid));
      return v;
    }
    case Kind::unary: {
      Value v = eval(*n.kids[0]);
      if (n.text == "not") {
        Expr e = to_expr(*n.kids[0], v);
        if (!e->dtype.is_bool())
          fail(n, "types", cat("\"not\" needs a condition, found ", describe(v)));
        return Value::of(make_ref<const NotNode>(std::move(e)));
      }
      if (n.text == "+") return v;
      if (n.text == "~") {
        Expr e = to_expr(*n.kids[0], v);
        return Value::of(guard(n, [&] { return ir::call("bitwise_not", {e}); }));
      }
      if (v.kind == Value::Kind::real) return Value::number(-v.real);
      if (v.kind == Value::Kind::integer) {
        Value out =
            Value::number(static_cast<std::int64_t>(-static_cast<std::uint64_t>(v.integer)));
        if (v.huge && static_cast<std::uint64_t>(v.integer) != 1ull << 63)
          fail(n, "literal",
               cat("-", static_cast<std::uint64_t>(v.integer), " does not fit 64 bits"));
        return out;
      }
      Expr e = to_expr(*n.kids[0], v);
      if (const auto* f = as<FloatImmNode>(e)) return Value::of(make_float(-f->value, f->dtype));
      if (const auto* i = as<IntImmNode>(e); i && !i->dtype.is_bool())
        return Value::of(
            make_int(static_cast<std::int64_t>(-static_cast<std::uint64_t>(i->value)), i->dtype));
      if (e->dtype.is_bool() || e->dtype.is_handle())
        fail(n, "types", cat("\"-\" needs a number, found ", describe(v)));
      return Value::of(raw_binary(n, ExprKind::mul, e, make_const(-1, e->dtype)));
    }
    case Kind::binary: return binary(n, n.text, eval(*n.kids[0]), eval(*n.kids[1]));
    case Kind::compare: return compare(n);
    case Kind::logic: {
      Expr a = condition(*n.kids[0]), b = condition(*n.kids[1]);
      return Value::of(raw_binary(n, n.text == "and" ? ExprKind::and_ : ExprKind::or_, std::move(a),
                                  std::move(b)));
    }
    case Kind::ternary: {
      Expr c = condition(*n.kids[0]);
      auto [a, b] = matched(n, eval(*n.kids[1]), eval(*n.kids[2]));
      DType t = a->dtype;
      return Value::of(call_typed(t, "if_then_else", {c, a, b}));
    }
    case Kind::slice: fail(n, "place", "a slice has no meaning here");
    case Kind::dict: fail(n, "place", "a dictionary has no meaning here");
    case Kind::lambda: fail(n, "place", "a lambda has no meaning here");
  }
  fail(n, "syntax", "this has no meaning");
}

std::pair<Expr, Expr> Builder::matched(const Node& at, const Value& a, const Value& b) {
  bool wa = a.weak(), wb = b.weak();
  Expr x, y;
  if (wa && wb && a.kind != b.kind) {
    x = to_expr(at, a, dtypes::float32), y = to_expr(at, b, dtypes::float32);
  } else {
    if (!wa) x = to_expr(at, a);
    if (!wb) y = to_expr(at, b);
    if (!x) x = to_expr(at, a, y ? y->dtype : dtypes::handle);
    if (!y) y = to_expr(at, b, x->dtype);
  }
  if (x->dtype != y->dtype) {  // widen, broadcast, or refuse, by the builders' rules
    Expr both = guard(at, [&] {
      return ir::call("if_then_else",
                      {call_typed(dtypes::boolean, "likely", {make_bool(true)}), x, y});
    });
    const auto* c = as<CallNode>(both);
    x = c->args[1], y = c->args[2];
  }
  return {x, y};
}

Expr Builder::raw_binary(const Node& at, ExprKind kind, Expr a, Expr b) {
  DType t = a->dtype;
  bool logic = kind == ExprKind::and_ || kind == ExprKind::or_;
  bool integers = kind == ExprKind::floordiv || kind == ExprKind::floormod || kind == ExprKind::mod;
  if (t != b->dtype || t.is_handle() || (logic && !t.is_bool()) || (integers && t.is_float())) {
    return guard(at, [&] { return make_binary(kind, a, b); });
  }
  DType result = kind >= ExprKind::eq ? dtypes::boolean.with_lanes(t.lanes) : t;
  return make_ref<const BinaryNode>(kind, result, std::move(a), std::move(b));
}

Value Builder::binary(const Node& at, std::string_view op, Value a, Value b) {
  if (a.weak() && b.weak()) {
    if (a.kind == Value::Kind::integer && b.kind == Value::Kind::integer && !a.huge && !b.huge) {
      std::int64_t x = a.integer, y = b.integer, out = 0;
      bool overflow = false;
      if (op == "+") overflow = __builtin_add_overflow(x, y, &out);
      else if (op == "-") overflow = __builtin_sub_overflow(x, y, &out);
      else if (op == "*") overflow = __builtin_mul_overflow(x, y, &out);
      else if (op == "//" || op == "%" || op == "/") {
        if (y == 0) fail(at, "literal", cat(x, " ", op, " 0 has no value"));
        if (y == -1 && x == INT64_MIN) overflow = true;
        else if (op == "/") return Value::number(static_cast<double>(x) / static_cast<double>(y));
        else {
          std::int64_t q = x / y;
          if (x % y != 0 && (x % y < 0) != (y < 0)) --q;
          out = op == "//" ? q : x - q * y;
        }
      } else if (op == "<<" || op == ">>") {
        if (y < 0 || y > 63) fail(at, "literal", cat("a shift by ", y));
        out = op == "<<" ? static_cast<std::int64_t>(static_cast<std::uint64_t>(x) << y) : x >> y;
      } else {
        out = op == "&" ? x & y : op == "|" ? x | y : x ^ y;
      }
      if (overflow) fail(at, "literal", cat(x, " ", op, " ", y, " needs more than 64 bits"));
      return Value::number(out);
    }
    double x = a.kind == Value::Kind::real ? a.real : static_cast<double>(a.integer),
           y = b.kind == Value::Kind::real ? b.real : static_cast<double>(b.integer);
    if (op == "+") return Value::number(x + y);
    if (op == "-") return Value::number(x - y);
    if (op == "*") return Value::number(x * y);
    if (op == "/") return Value::number(x / y);
    if (op == "//") return Value::number(std::floor(x / y));
    fail(at, "types", cat("\"", op, "\" is for integers"));
  }
  // A literal takes the other side's type; two typed sides keep theirs.
  Expr x, y;
  if (!a.weak()) x = to_expr(*at.kids[0], a);
  if (!b.weak()) y = to_expr(*at.kids[1], b);
  if (!x) x = to_expr(*at.kids[0], a, y->dtype);
  if (!y) y = to_expr(*at.kids[1], b, x->dtype);
  if (op == "<<" || op == ">>" || op == "&" || op == "|" || op == "^") {
    const char* name = op == "<<"   ? "shift_left"
                       : op == ">>" ? "shift_right"
                       : op == "&"  ? "bitwise_and"
                       : op == "|"  ? "bitwise_or"
                                    : "bitwise_xor";
    return Value::of(guard(at, [&] { return ir::call(name, {x, y}); }));
  }
  ExprKind kind = op == "+"    ? ExprKind::add
                  : op == "-"  ? ExprKind::sub
                  : op == "*"  ? ExprKind::mul
                  : op == "/"  ? ExprKind::div
                  : op == "//" ? ExprKind::floordiv
                               : ExprKind::floormod;
  if (kind == ExprKind::div && !x->dtype.is_float() && !y->dtype.is_float()) {
    fail(at, "types",
         cat("\"/\" between ", to_string(x->dtype), " and ", to_string(y->dtype), " is ambiguous"),
         "write // (rounds down) or T.truncdiv (rounds toward zero)");
  }
  return Value::of(raw_binary(at, kind, std::move(x), std::move(y)));
}

Value Builder::compare(const Node& n) {
  Expr out;
  std::vector<Value> values;
  for (const auto& kid : n.kids) values.push_back(eval(*kid));
  for (std::size_t i = 0; i < n.names.size(); ++i) {
    const std::string& op = n.names[i];
    auto [a, b] = matched(n, values[i], values[i + 1]);
    ExprKind kind = op == "=="   ? ExprKind::eq
                    : op == "!=" ? ExprKind::ne
                    : op == "<"  ? ExprKind::lt
                    : op == "<=" ? ExprKind::le
                    : op == ">"  ? ExprKind::gt
                                 : ExprKind::ge;
    bool literals = values[i].weak() && values[i + 1].weak();
    Expr e = literals ? guard(n, [&, x = a, y = b] { return make_binary(kind, x, y); })
                      : raw_binary(n, kind, a, b);
    out = out ? raw_binary(n, ExprKind::and_, out, e) : e;
  }
  return Value::of(out);
}

// ---- subscripts, regions

Exprs Builder::indices(const Node& n) {
  Exprs out;
  if (n.kids.size() == 2 && n.kids[1]->kind == Kind::tuple) {  // A[()], A[(i, j)]
    for (const auto& kid : n.kids[1]->kids) out.push_back(expr(*kid, dtypes::int64));
    return out;
  }
  for (std::size_t i = 1; i < n.kids.size(); ++i) {
    const Node& k = *n.kids[i];
    if (k.kind == Kind::slice) {  // lo:hi of constant length is a vector
      if (!k.kids[0] || !k.kids[1])
        fail(k, "slice", "a slice of an element access needs both ends");
      Range r = range(k, eval(*k.kids[0]), eval(*k.kids[1]));
      std::int64_t lanes;
      if (!is_const_int(r.extent, &lanes) || lanes < 1 || lanes > 4096)
        fail(
            k, "slice",
            cat("a vector access needs a constant length from 1 to 4096, found ", print(r.extent)));
      out.push_back(ramp(r.min, make_int(1, r.min->dtype), static_cast<int>(lanes)));
    } else {
      out.push_back(expr(k, dtypes::int64));
    }
    if (!out.back()->dtype.is_integral())
      fail(k, "types", cat("an index must be an integer, found ", to_string(out.back()->dtype)));
  }
  return out;
}

Value Builder::subscript(const Node& n) {
  Value base = eval(*n.kids[0]);
  if (base.kind == Value::Kind::buffer) {
    Exprs at = indices(n);
    if (at.size() != base.buffer->ndim()) {
      fail(n, "rank",
           cat("\"", base.buffer->name, "\" has ", base.buffer->ndim(), " dimensions, but ",
               at.size(), " indices are given"));
    }
    for (std::size_t i = 0; i + 1 < at.size(); ++i) {
      if (at[i]->dtype.lanes > 1)
        fail(n, "slice", cat("only the last index of \"", base.buffer->name, "\" may be a vector"));
    }
    return Value::of(load(base.buffer, std::move(at)));
  }
  if (base.kind == Value::Kind::tuple && n.kids.size() == 2) {
    std::int64_t i = constant(*n.kids[1], "an index of a tuple");
    auto size = static_cast<std::int64_t>(base.items.size());
    if (i < 0) i += size;
    if (i < 0 || i >= size) fail(n, "index", cat("index ", i, " is outside a tuple of ", size));
    return base.items[static_cast<std::size_t>(i)];
  }
  fail(n, "value", cat(describe(base), " has no elements"));
}

Range Builder::range(const Node& at, const Value& lo, const Value& hi) {
  if (lo.kind == Value::Kind::real || hi.kind == Value::Kind::real)
    fail(at, "types", "a range needs integers");
  if (lo.weak() && hi.weak()) {
    std::int64_t extent;
    if (lo.huge || hi.huge || __builtin_sub_overflow(hi.integer, lo.integer, &extent))
      fail(at, "literal", "this range needs more than 64 bits");
    return {make_int(lo.integer), make_int(extent)};
  }
  Expr b = hi.weak() ? nullptr : to_expr(at, hi);
  Expr a = to_expr(at, lo, b ? b->dtype : dtypes::int64);
  if (!b) b = to_expr(at, hi, a->dtype);
  if (!a->dtype.is_integral() || !b->dtype.is_integral() || a->dtype.lanes > 1 ||
      b->dtype.lanes > 1) {
    fail(at, "types",
         cat("a range needs integers, found ", to_string(a->dtype), " and ", to_string(b->dtype)));
  }
  if (a->dtype != b->dtype) {
    if (a->dtype.bits < b->dtype.bits) a = cast(b->dtype, a);
    else b = cast(a->dtype, b);
  }
  if (is_const_int_value(a, 0)) return {a, b};
  const auto* sum = as<BinaryNode>(b);
  if (sum && sum->kind == ExprKind::add && same_expr(sum->a, a)) return {a, sum->b};
  Expr extent = linear_difference(b, a);
  return {a, extent->dtype == a->dtype ? extent : cast(a->dtype, extent)};
}

BufferRegion Builder::region(const Node& n) {
  if (n.kind != Kind::subscript) {
    Value v = eval(n);
    if (v.kind == Value::Kind::buffer) return full_region(v.buffer);
    fail(n, "region", cat("expected a region such as A[i, 0:16], found ", describe(v)));
  }
  Value base = eval(*n.kids[0]);
  if (base.kind != Value::Kind::buffer)
    fail(n, "region", cat("expected a region of a buffer, found ", describe(base)));
  BufferRegion out{base.buffer, {}};
  bool empty = n.kids.size() == 2 && n.kids[1]->kind == Kind::tuple && n.kids[1]->kids.empty();
  std::size_t rank = empty ? 0 : n.kids.size() - 1;
  if (rank != base.buffer->ndim())
    fail(n, "rank",
         cat("\"", base.buffer->name, "\" has ", base.buffer->ndim(), " dimensions, but ", rank,
             " ranges are given"));
  for (std::size_t i = 1; i <= rank; ++i) {
    const Node& k = *n.kids[i];
    if (k.kind != Kind::slice) {
      Expr e = expr(k, dtypes::int64);
      if (!e->dtype.is_integral())
        fail(k, "types", cat("an index must be an integer, found ", to_string(e->dtype)));
      out.region.push_back({e, make_int(1, e->dtype.element())});
      continue;
    }
    const Expr& whole = base.buffer->shape[i - 1];
    Value lo = k.kids[0] ? eval(*k.kids[0]) : Value::number(std::int64_t{0});
    Value hi = k.kids[1] ? eval(*k.kids[1]) : Value::of(whole);
    out.region.push_back(range(k, lo, hi));
  }
  return out;
}

Exprs Builder::tuple(const Node& n) {
  Exprs out;
  if (n.kind == Kind::tuple || n.kind == Kind::list) {
    for (const auto& kid : n.kids) out.push_back(expr(*kid));
    return out;
  }
  Value v = eval(n);
  if (v.kind == Value::Kind::tuple) {
    for (const Value& item : v.items) out.push_back(to_expr(n, item));
  } else {
    out.push_back(to_expr(n, v));
  }
  return out;
}

Reducer Builder::reducer(const Node& n, const std::vector<DType>& types) {
  if (n.kind == Kind::string) {
    Reducer r = standard_reducer(n.text, types);
    std::vector<std::string> known(standard_reducers().begin(), standard_reducers().end());
    if (!r)
      fail(n, "reducer", cat("\"", n.text, "\" is no reducer of ", types.size(), " values"),
           cat("known are ", join(known)));
    return r;
  }
  if (n.kind != Kind::call || script_name(*n.kids[0]) != "comm_reducer")
    fail(n, "reducer", "expected the name of a reducer or T.comm_reducer(lambda …, [identity …])");
  Args a = args(n, {"fcombine", "identity", "name"}, 2);
  const Node& f = *a.get(0, "fcombine");
  Exprs identity = tuple(*a.get(1, "identity"));
  if (f.kind != Kind::lambda || f.names.size() != 2 * identity.size() || identity.empty()) {
    fail(f, "reducer",
         cat("a reducer of ", identity.size(), " values needs a lambda of ", 2 * identity.size(),
             " parameters"));
  }
  std::vector<Var> lhs, rhs;
  std::size_t mark = scope_.size();
  for (std::size_t i = 0; i < f.names.size(); ++i) {
    Var v = make_var(f.names[i], identity[i % identity.size()]->dtype);
    (i < identity.size() ? lhs : rhs).push_back(v);
    define(f.names[i], Value::of(Expr(v)));
  }
  Exprs result = tuple(*f.kids[0]);
  scope_.resize(mark);
  if (result.size() != identity.size())
    fail(f, "reducer",
         cat("the lambda gives ", result.size(), " values, but there are ", identity.size(),
             " identities"));
  const Node* name = a.get(2, "name");
  return make_reducer(name ? text(*name, "name") : "", std::move(lhs), std::move(rhs),
                      std::move(result), std::move(identity));
}

}  // namespace weft::ir
