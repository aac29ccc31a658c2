// SPDX-License-Identifier: Apache-2.0
#include "weft/base/error.h"
#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/ir/intrinsics.h"
#include "weft/ir/print_internal.h"
#include "weft/ir/reducers.h"

namespace weft::ir {

namespace {

struct Spelling {
  std::string_view text;
  Printer::Level level;
};

/// Infix spelling, or an empty text when the kind is written as a call.
Spelling spelling(ExprKind kind, DType operand) {
  switch (kind) {
    case ExprKind::add: return {" + ", Printer::kAdd};
    case ExprKind::sub: return {" - ", Printer::kAdd};
    case ExprKind::mul: return {" * ", Printer::kMul};
    case ExprKind::div: return {operand.is_float() ? " / " : "", Printer::kMul};
    case ExprKind::floordiv: return {" // ", Printer::kMul};
    case ExprKind::floormod: return {" % ", Printer::kMul};
    case ExprKind::eq: return {" == ", Printer::kCompare};
    case ExprKind::ne: return {" != ", Printer::kCompare};
    case ExprKind::lt: return {" < ", Printer::kCompare};
    case ExprKind::le: return {" <= ", Printer::kCompare};
    case ExprKind::gt: return {" > ", Printer::kCompare};
    case ExprKind::ge: return {" >= ", Printer::kCompare};
    case ExprKind::and_: return {" and ", Printer::kAnd};
    case ExprKind::or_: return {" or ", Printer::kOr};
    default: return {"", Printer::kPostfix};
  }
}

bool is_literal(const Expr& e) {
  return e->kind == ExprKind::int_imm || e->kind == ExprKind::float_imm;
}

Printer::Level tighter(Printer::Level level) { return static_cast<Printer::Level>(level + 1); }

}  // namespace

std::string script_type(DType t) { return cat("T.", to_string(t)); }

std::string float_literal(double value, DType t) {
  std::string text = shortest(value);
  if (text == "nan" || text == "inf" || text == "-inf")
    return cat(script_type(t), "(\"", text, "\")");
  // Of a whole number's text an integer would be read, of at most 64 bits.
  constexpr std::size_t kDigits = 18;
  const bool whole = text.find_first_not_of("-0123456789") == std::string::npos;
  if (text == "-0" || (whole && text.size() > kDigits)) text += ".0";
  return cat(script_type(t), "(", text, ")");
}

std::string python_literal(const Json& value) {
  if (value.is_null()) return "None";
  if (value.is_bool()) return value.as_bool() ? "True" : "False";
  if (value.is_int()) return std::to_string(value.as_int());
  if (value.is_string()) return json_quote(value.as_string());
  if (value.is_array()) {
    std::vector<std::string> parts;
    for (const Json& item : value.as_array()) parts.push_back(python_literal(item));
    return cat("[", join(parts), "]");
  }
  if (value.is_object()) {
    std::vector<std::string> parts;
    for (const auto& [key, item] : value.as_object())
      parts.push_back(cat(json_quote(key), ": ", python_literal(item)));
    return cat("{", join(parts), "}");
  }
  std::string text = shortest(value.as_double());
  if (text == "nan" || text == "inf" || text == "-inf") return cat("float(\"", text, "\")");
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

void Printer::exprs(const Exprs& list, DType expected) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i) put(", ");
    expr(list[i], kTernary, expected);
  }
}

void Printer::tuple(const Exprs& list) {
  put("(");
  exprs(list);
  put(list.size() == 1 ? ",)" : ")");
}

void Printer::expr(const Expr& e, Level level, DType expected) {
  if (!e) return put("None");
  begin_mark(e.get());
  expr_body(e, level, expected);
  end_mark(e.get());
}

void Printer::expr_body(const Expr& e, Level level, DType expected) {
  switch (e->kind) {
    case ExprKind::var: put(name_of(e.get(), as<VarNode>(e)->name)); break;
    case ExprKind::int_imm: {
      const auto* i = as<IntImmNode>(e);
      std::string text = i->dtype.is_uint() ? std::to_string(static_cast<std::uint64_t>(i->value))
                                            : std::to_string(i->value);
      if (i->dtype.is_bool()) put(i->value ? "True" : "False");
      else if (i->dtype == expected) put(text);
      else put(cat(script_type(i->dtype), "(", text, ")"));
      break;
    }
    case ExprKind::float_imm: put(float_literal(as<FloatImmNode>(e)->value, e->dtype)); break;
    case ExprKind::string_imm: put(json_quote(as<StringImmNode>(e)->value)); break;
    case ExprKind::cast:
      put(cat("T.Cast(\"", to_string(e->dtype), "\", "));
      expr(as<CastNode>(e)->value, kTernary);
      put(")");
      break;
    case ExprKind::not_:
      if (level > kNot) put("(");
      put("not ");
      expr(as<NotNode>(e)->a, kNot);
      if (level > kNot) put(")");
      break;
    case ExprKind::select: {
      const auto* s = as<SelectNode>(e);
      put("T.Select(");
      expr(s->condition, kTernary);
      put(", ");
      exprs({s->a, s->b}, is_literal(s->a) && is_literal(s->b) ? dtypes::int64 : s->a->dtype);
      put(")");
      break;
    }
    case ExprKind::call: call(as<CallNode>(e)); break;
    case ExprKind::load: {
      const auto* l = as<LoadNode>(e);
      put(name_of(l->buffer.get(), l->buffer->name));
      put("[");
      if (l->indices.empty()) put("()");
      exprs(l->indices);
      put("]");
      break;
    }
    case ExprKind::ramp: {
      const auto* r = as<RampNode>(e);
      put("T.ramp(");
      bool typed = is_literal(r->base);
      expr(r->base, kTernary);
      put(", ");
      expr(r->stride, kTernary, typed ? dtypes::int64 : r->base->dtype);
      put(cat(", ", static_cast<int>(e->dtype.lanes), ")"));
      break;
    }
    case ExprKind::broadcast:
      put("T.broadcast(");
      expr(as<BroadcastNode>(e)->value, kTernary);
      put(cat(", ", static_cast<int>(e->dtype.lanes), ")"));
      break;
    case ExprKind::let: {
      const auto* l = as<LetNode>(e);
      put("T.let(");
      expr(l->value, kTernary);
      std::size_t mark = open();
      put(cat(", lambda ", define(l->var.get(), l->var->name), ": "));
      expr(l->body, kTernary);
      close(mark);
      put(")");
      break;
    }
    case ExprKind::reduce: reduce(as<ReduceNode>(e)); break;
    default: binary(as<BinaryNode>(e), e->kind, level);
  }
}

void Printer::binary(const BinaryNode* e, ExprKind kind, Level level) {
  // A literal without a type takes the other operand's; two literals keep theirs in the text.
  DType none = dtypes::handle;
  bool both = is_literal(e->a) && is_literal(e->b);
  DType for_a = both ? none : e->b->dtype, for_b = both ? none : e->a->dtype;
  Spelling s = spelling(kind, e->a->dtype);
  if (s.text.empty()) {
    put(kind == ExprKind::min   ? "T.min("
        : kind == ExprKind::max ? "T.max("
        : kind == ExprKind::div ? "T.truncdiv("
                                : "T.truncmod(");
    expr(e->a, kTernary, for_a);
    put(", ");
    expr(e->b, kTernary, for_b);
    put(")");
    return;
  }
  bool brackets = level > s.level;
  if (brackets) put("(");
  expr(e->a, s.level == kCompare ? kAdd : s.level, for_a);
  put(s.text);
  expr(e->b, tighter(s.level), for_b);
  if (brackets) put(")");
}

void Printer::call(const CallNode* e) {
  const Intrinsic* row = find_intrinsic(e->op);
  if (!row) {
    put(cat("T.call(", json_quote(e->op)));
    for (const Expr& a : e->args) {
      put(", ");
      expr(a, kTernary);
    }
    if (e->dtype != dtypes::int32) put(cat(", dtype=\"", to_string(e->dtype), "\""));
    return put(")");
  }
  put(cat("T.", e->op, "("));
  // Literals adapt to a typed neighbour in the parser, so next to one of another type they are
  // printed typed.
  DType expected = dtypes::int64;
  for (const Expr& a : e->args) {
    if (!is_literal(a) && a->dtype.element().is_integral() && a->dtype.element() != dtypes::int64)
      expected = dtypes::handle;
    if (!is_literal(a) && a->dtype.is_float()) expected = dtypes::handle;
  }
  if (e->op == "vector_extract" || row->effect == IntrinsicEffect::effect) expected = dtypes::int64;
  if (e->op == "if_then_else" && e->args.size() == 3) {
    const Expr &a = e->args[1], &b = e->args[2];
    expr(e->args[0], kTernary);
    put(", ");
    exprs({a, b}, is_literal(a) && is_literal(b) ? dtypes::int64
                  : is_literal(a)                ? b->dtype
                                                 : a->dtype);
  } else {
    exprs(e->args, expected);
  }
  DType implied = dtypes::handle;
  bool known = false;
  try {
    implied = ir::call(e->op, e->args)->dtype;
    known = true;
  } catch (const Error&) {
  }
  if (!known || implied != e->dtype) {
    if (!e->args.empty()) put(", ");
    put(cat("dtype=\"", to_string(e->dtype), "\""));
  }
  put(")");
}

void Printer::reducer(const Reducer& r) {
  std::vector<DType> types;
  for (const Expr& e : r->identity) types.push_back(e->dtype);
  if (Reducer known = standard_reducer(r->name, types); known && same_reducer(known, r))
    return put(json_quote(r->name));
  std::size_t mark = open();
  put("T.comm_reducer(lambda ");
  bool first = true;
  for (const auto* vars : {&r->lhs, &r->rhs}) {
    for (const Var& v : *vars) {
      put(cat(first ? "" : ", ", define(v.get(), v->name)));
      first = false;
    }
  }
  put(": ");
  tuple(r->result);
  close(mark);
  put(", [");
  exprs(r->identity);
  put("]");
  if (!r->name.empty()) put(cat(", name=", json_quote(r->name)));
  put(")");
}

void Printer::reduce(const ReduceNode* e) {
  std::size_t mark = open();
  put("T.reduce(");
  reducer(e->reducer);
  put(", lambda ");
  for (std::size_t i = 0; i < e->axes.size(); ++i)
    put(cat(i ? ", " : "", define(e->axes[i].var.get(), e->axes[i].var->name)));
  put(": ");
  tuple(e->source);
  put(", [");
  for (std::size_t i = 0; i < e->axes.size(); ++i) {
    if (i) put(", ");
    put("(");
    bounds(e->axes[i].dom.min, e->axes[i].dom.extent);
    put(")");
  }
  put("]");
  if (e->condition) {
    put(", where=");
    expr(e->condition, kTernary);
  }
  if (e->component) put(cat(", component=", e->component));
  put(")");
  close(mark);
}

/// min + extent when it has a shorter form than that: "vi + 4" for min "vi + 1", extent 3. Null
/// otherwise.
static Expr short_end(const Expr& lo, const Expr& extent) {
  std::int64_t c, n;
  const auto* b = as<BinaryNode>(lo);
  if (!b || (b->kind != ExprKind::add && b->kind != ExprKind::sub) || !is_const_int(b->b, &c) ||
      !is_const_int(extent, &n) || lo->dtype != extent->dtype)
    return nullptr;
  return b->a + (b->kind == ExprKind::add ? c + n : n - c);
}

/// "lo, hi" so that the parser finds the same extent again: hi is a constant or "lo + extent".
void Printer::bounds(const Expr& lo, const Expr& extent) {
  std::int64_t a, b;
  if (is_const_int(lo, &a) && is_const_int(extent, &b) && lo->dtype == extent->dtype) {
    expr(lo, kTernary);
    put(", ");
    expr(make_int(a + b, lo->dtype), kTernary);
    return;
  }
  expr(lo, kTernary);
  put(", ");
  if (is_const_int(lo, &a) && a == 0) return expr(extent, kTernary);
  if (Expr end = short_end(lo, extent)) return expr(end, kTernary);
  expr(lo, kAdd);
  put(" + ");
  expr(extent, kMul, lo->kind == ExprKind::int_imm ? dtypes::int64 : lo->dtype);
}

void Printer::range(const Range& r, bool point) {
  if (point && is_const_int_value(r.extent, 1) && r.extent->dtype == r.min->dtype)
    return expr(r.min, kTernary);
  std::int64_t a, b;
  bool zero = is_const_int(r.min, &a) && a == 0;
  expr(r.min, kTernary);
  put(":");
  if (is_const_int(r.min, &a) && is_const_int(r.extent, &b) && r.min->dtype == r.extent->dtype)
    return expr(make_int(a + b, r.min->dtype), kTernary);
  if (zero) return expr(r.extent, kTernary);
  if (Expr end = short_end(r.min, r.extent)) return expr(end, kTernary);
  expr(r.min, kAdd);
  put(" + ");
  expr(r.extent, kMul, r.min->kind == ExprKind::int_imm ? dtypes::int64 : r.min->dtype);
}

void Printer::region(const BufferRegion& r) {
  put(name_of(r.buffer.get(), r.buffer->name));
  put("[");
  if (r.region.empty()) put("()");
  for (std::size_t i = 0; i < r.region.size(); ++i) {
    if (i) put(", ");
    range(r.region[i], true);
  }
  put("]");
}

}  // namespace weft::ir
