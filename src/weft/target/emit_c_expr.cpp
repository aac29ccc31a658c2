// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <utility>

#include "weft/base/error.h"
#include "weft/ir/float_cast.h"
#include "weft/target/emit_c_internal.h"

namespace weft {

std::string c_identifier(std::string_view name) {
  static const std::set<std::string, std::less<>> reserved = {
      "auto",     "break",   "case",      "char",        "const",    "continue",  "default",
      "do",       "double",  "else",      "enum",        "extern",   "float",     "for",
      "goto",     "if",      "inline",    "int",         "long",     "register",  "restrict",
      "return",   "short",   "signed",    "sizeof",      "static",   "struct",    "switch",
      "typedef",  "union",   "unsigned",  "void",        "volatile", "while",     "half",
      "bool",     "true",    "false",     "kernel",      "global",   "local",     "constant",
      "private",  "device",  "thread",    "threadgroup", "main",     "and",       "or",
      "not",      "xor",     "new",       "delete",      "class",    "this",      "template",
      "operator", "vec",     "min",       "max",         "uint",     "uchar",     "ushort",
      "ulong",    "image",   "sampler",   "event",       "pipe",     "exp",       "log",
      "sin",      "cos",     "tan",       "sqrt",        "abs",      "floor",     "ceil",
      "round",    "trunc",   "pow",       "ctx",         "pointers", "scalars",   "asm",
      "typename", "public",  "protected", "virtual",     "friend",   "namespace", "using",
      "try",      "catch",   "throw",     "y0",          "y1",       "j0",        "j1",
      "gamma",    "select",  "step",      "mix",         "sign",     "dot",       "cross",
      "length",   "unix",    "linux",     "NULL",        "NAN",      "INFINITY",  "isnan",
      "isinf",    "signbit", "hypot",     "erf",         "cbrt",     "fabs",      "fmin",
      "fmax",     "fma",     "fmod"};
  std::string out;
  for (char c : name) {
    bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
                (c >= '0' && c <= '9' && !out.empty());
    out.push_back(good ? c : '_');
  }
  if (out.empty() || out == "_") out = "v";
  if (out[0] >= '0' && out[0] <= '9') out = "v" + out;
  if (out.starts_with("__") || out.starts_with("weft_") || reserved.count(out)) out += "_";
  while (out.starts_with("_")) out.erase(0, 1);
  return out.empty() ? "v" : out;
}

namespace emit {

using namespace ir;

std::string short_name(DType t) {
  char code = t.is_int() ? 'i' : t.is_uint() ? 'u' : t.is_bool() ? 'b' : 'f';
  return std::string(1, code) + std::to_string(t.bits);
}

namespace {

/// A divisor for which C's own division is right.
bool plain_divisor(const Expr& e) {
  std::int64_t c = 0;
  const Expr& divisor = e->kind == ExprKind::broadcast ? as<BroadcastNode>(e)->value : e;
  return is_const_int(divisor, &c) && c != 0 && c != -1;
}

DType value_type(DType t) {  // 16-bit floats are computed as float32
  t = t.element();
  return t.is_float() && t.bits == 16 ? dtypes::float32 : t;
}

}  // namespace

std::string Helpers::integer(const std::string& what, DType type) {
  std::string name = cat("weft_", what, "_", short_name(type));
  if (!first(name)) return name;
  std::string t = spelling_.types.at(to_string(type));
  std::string u = spelling_.types.at(to_string(DType{TypeCode::uint_, type.bits, 1}));
  std::string head = cat(spelling_.function_prefix, t, " ", name, "(", t, " a, ", t, " b) { ");
  std::string bits = std::to_string(type.bits);
  bool is_signed = type.is_int();
  std::string body;
  // Division by 0 gives 0, and the quotient by -1 wraps: processors trap there, or give anything.
  const std::string negated = cat("if (b == -1) return (", t, ")(0 - (", u, ")a); ");
  if (what == "div" || what == "floordiv_any") {
    const bool floors = what != "div";
    body =
        cat("if (b == 0) return 0; ", is_signed ? negated : std::string(),
            floors ? cat(t, " q = a / b; return (a % b != 0 && ((a < 0) != (b < 0))) ? q - 1 : q;")
                   : std::string("return a / b;"));
  } else if (what == "mod" || what == "floormod_any") {
    const bool floors = what != "mod";
    body = cat("if (b == 0", is_signed ? " || b == -1" : "", ") return 0; ",
               floors ? cat(t, " r = a % b; return (r != 0 && ((r < 0) != (b < 0))) ? r + b : r;")
                      : std::string("return a % b;"));
  } else if (what == "floordiv") {
    body = cat(t, " q = a / b; return (a % b != 0 && ((a < 0) != (b < 0))) ? q - 1 : q;");
  } else if (what == "floormod") {
    body = cat(t, " r = a % b; return (r != 0 && ((r < 0) != (b < 0))) ? r + b : r;");
  } else if (what == "shift_left") {
    body = cat("return (", u, ")b >= ", bits, " ? 0 : (", t, ")((", u, ")a << b);");
  } else if (what == "shift_right") {
    body = cat("return (", u, ")b >= ", bits, " ? ",
               is_signed ? cat("(", t, ")(a < 0 ? -1 : 0)") : std::string("0"), " : (", t,
               ")(a >> b);");
  } else if (what == "popcount") {
    head = cat(spelling_.function_prefix, t, " ", name, "(", t, " a) { ");
    body = cat(u, " x = (", u, ")a; ", t, " n = 0; while (x) { x &= x - 1; ++n; } return n;");
  } else if (what == "clz") {
    head = cat(spelling_.function_prefix, t, " ", name, "(", t, " a) { ");
    body = cat(u, " x = (", u, ")a; ", t, " n = 0; while (n < ", bits, " && !((x >> (", bits,
               " - 1 - n)) & 1)) ++n; return n;");
  } else if (what == "mulhi") {
    if (type.bits < 64) {
      std::string wide = spelling_.types.at(is_signed ? "int64" : "uint64");
      body = cat("return (", t, ")(((", wide, ")a * (", wide, ")b) >> ", bits, ");");
    } else {
      body = cat(u, " x = (", u, ")a, y = (", u,
                 ")b, xl = x & 0xffffffffu, xh = x >> 32, yl = y & 0xffffffffu, yh = y >> 32; ", u,
                 " m = xh * yl + ((xl * yl) >> 32), c = (m & 0xffffffffu) + xl * yh; ", u,
                 " r = xh * yh + (m >> 32) + (c >> 32); ",
                 is_signed ? "if (a < 0) r -= y; if (b < 0) r -= x; " : "", "return (", t, ")r;");
    }
  } else if (what == "abs") {
    head = cat(spelling_.function_prefix, t, " ", name, "(", t, " a) { ");
    body = "return a < 0 ? -a : a;";
  }
  WEFT_CHECK(!body.empty(), "no helper \"", what, "\"");
  text_ += cat(head, body, " }\n");
  return name;
}

std::string Helpers::minmax(bool is_min, DType type) {
  std::string name = cat("weft_", is_min ? "min" : "max", "_", short_name(type));
  if (!first(name)) return name;
  std::string t = spelling_.types.at(to_string(type));
  std::string nan = type.is_float() ? " || a != a" : "";  // NaN wins
  text_ += cat(spelling_.function_prefix, t, " ", name, "(", t, " a, ", t, " b) { return (a ",
               is_min ? "<" : ">", " b", nan, ") ? a : b; }\n");
  return name;
}

std::string Helpers::floating(const std::string& what, DType type) {
  std::string name = cat("weft_", what, "_", short_name(type));
  if (!first(name)) return name;
  std::string t = spelling_.types.at(to_string(type));
  auto fn = [&](const std::string& op) {
    const auto& row = spelling_.functions.at(op);
    return type.bits == 64 ? row.second : row.first;
  };
  std::string one = type.bits == 64 ? "1.0" : "1.0f";
  std::string body;
  if (what == "sigmoid") body = cat("return ", one, " / (", one, " + ", fn("exp"), "(-a));");
  if (what == "rsqrt") body = cat("return ", one, " / ", fn("sqrt"), "(a);");
  WEFT_CHECK(!body.empty(), "no helper \"", what, "\"");
  text_ += cat(spelling_.function_prefix, t, " ", name, "(", t, " a) { ", body, " }\n");
  return name;
}

std::string Helpers::reinterpret(DType from, DType to) {
  std::string name = cat("weft_", short_name(from), "_as_", short_name(to));
  if (!first(name)) return name;
  const std::string &a = spelling_.types.at(to_string(from)),
                    &b = spelling_.types.at(to_string(to));
  text_ += cat(spelling_.function_prefix, b, " ", name, "(", a, " v) { union { ", a, " a; ", b,
               " b; } x; x.a = v; return x.b; }\n");
  return name;
}

void Helpers::need_half() {
  if (first("half")) text_ += spelling_.half_helpers;
}

void Helpers::need_bfloat() {
  if (!first("bfloat")) return;
  text_ += spelling_.bfloat_helpers;
  if (!spelling_.bfloat_helpers.empty()) return;
  std::string u16 = spelling_.types.at("uint16"), u32 = spelling_.types.at("uint32");
  bool casts = spelling_.vectors == VectorStyle::casts,
       opencl = spelling_.vectors == VectorStyle::load_store;
  auto bits_of = [&](std::string v) {
    return casts    ? cat("as_type<uint>(", v, ")")
           : opencl ? cat("as_uint(", v, ")")
                    : cat("weft_float_bits(", v, ")");
  };
  auto float_of = [&](std::string v) {
    return casts    ? cat("as_type<float>(", v, ")")
           : opencl ? cat("as_float(", v, ")")
                    : cat("weft_bits_float(", v, ")");
  };
  const std::string& p = spelling_.function_prefix;
  if (!casts && !opencl) {
    text_ += cat(p, u32, " weft_float_bits(float v) { union { float f; ", u32,
                 " u; } x; x.f = v; return x.u; }\n");
    text_ += cat(p, "float weft_bits_float(", u32, " v) { union { float f; ", u32,
                 " u; } x; x.u = v; return x.f; }\n");
  }
  text_ += cat(p, "float weft_bfloat_to_float(", u16, " v) { return ",
               float_of(cat("(", u32, ")v << 16")), "; }\n");
  text_ +=
      cat(p, u16, " weft_float_to_bfloat(float v) { ", u32, " b = ", bits_of("v"),
          "; if ((b & 0x7fffffffu) > 0x7f800000u) return (", u16, ")((b >> 16) | 0x40u); return (",
          u16, ")((b + 0x7fffu + ((b >> 16) & 1u)) >> 16); }\n");
}

// ---- names and types

std::string Expressions::fresh(const std::string& hint) {
  std::string base = c_identifier(hint), out = base;
  for (int i = 1; !taken_.insert(out).second; ++i) out = cat(base, "_", i);
  return out;
}

std::string Expressions::name(const void* node, const std::string& hint) {
  auto found = names_.find(node);
  if (found != names_.end()) return found->second;
  return names_[node] = fresh(hint);
}

std::string Expressions::type(DType t) const {
  DType v = value_type(t);
  auto found = spelling_.types.find(to_string(v));
  if (found == spelling_.types.end()) {
    throw Error(ErrorKind::dtype, "emit.dtype",
                cat("target ", spelling_.target, " has no type for ", to_string(t)));
  }
  return found->second;
}

std::string Expressions::storage_type(DType t) const {
  if (t.is_float() && t.bits == 16) return spelling_.types.at("uint16");
  if (t.is_bool()) return spelling_.types.at("uint8");
  return type(t);
}

std::string Expressions::load_value(DType t, const std::string& element) {
  if (t.is_bool()) return cat("(", element, " != 0)");
  if (t.is_float() && t.bits == 16) {
    t.is_bfloat() ? helpers_.need_bfloat() : helpers_.need_half();
    return cat(t.is_bfloat() ? "weft_bfloat_to_float(" : "weft_half_to_float(", element, ")");
  }
  return element;
}

std::string Expressions::store_value(DType t, const std::string& value) {
  if (t.is_float() && t.bits == 16) {
    t.is_bfloat() ? helpers_.need_bfloat() : helpers_.need_half();
    return cat(t.is_bfloat() ? "weft_float_to_bfloat(" : "weft_float_to_half(", value, ")");
  }
  return value;
}

std::string Expressions::rounded(DType t, const std::string& value) {
  t = t.element();
  if (!(t.is_float() && t.bits == 16)) return value;
  return load_value(t, store_value(t, value));
}

std::string Expressions::address_space(const std::string& scope) const {
  if (scope == "global") return spelling_.global;
  if (scope.starts_with("shared")) return spelling_.shared;
  return spelling_.local;
}

std::string Expressions::member(const std::string& vector, int lane, int lanes) const {
  static constexpr char xyzw[] = "xyzw", hex_digits[] = "0123456789abcdef";
  (void)lanes;
  if (packs.count(vector)) return cat(vector, "[", lane, "]");
  if (spelling_.vectors == VectorStyle::load_store) return cat(vector, ".s", hex_digits[lane]);
  return cat(vector, ".", xyzw[lane]);
}

// ---- literals

std::string Expressions::literal(const IntImmNode* e) const {
  DType t = e->dtype;
  if (t.is_bool()) return e->value ? "1" : "0";
  if (t.is_uint()) {
    std::uint64_t v = static_cast<std::uint64_t>(e->value);
    if (t.bits < 64) v &= (1ull << t.bits) - 1;
    return cat(v, t.bits == 64 ? (spelling_.int64_suffix == "L" ? "UL" : "ULL") : "u");
  }
  std::int64_t v = e->value;
  if (v >= -2147483647 && v <= 2147483647) return v < 0 ? cat("(", v, ")") : cat(v);
  if (v == std::numeric_limits<std::int64_t>::min())
    return cat("(-9223372036854775807", spelling_.int64_suffix, " - 1)");
  if (t.bits <= 32) return "(-2147483647 - 1)";
  return v < 0 ? cat("(", v, spelling_.int64_suffix, ")") : cat(v, spelling_.int64_suffix);
}

std::string Expressions::literal(double value, DType t) const {
  bool wide = t.bits == 64;
  std::string ctype = type(t);
  if (std::isnan(value)) return wide ? cat("((", ctype, ")", spelling_.nan, ")") : spelling_.nan;
  if (std::isinf(value)) {
    std::string inf = wide ? cat("((", ctype, ")", spelling_.infinity, ")") : spelling_.infinity;
    return value < 0 ? cat("(-", inf, ")") : inf;
  }
  std::string s = wide ? shortest(value) : shortest(static_cast<float>(value));
  if (s.find_first_of(".e") == std::string::npos) s += ".0";
  if (!wide) s += "f";
  return std::signbit(value) ? cat("(", s, ")") : s;
}

// ---- expressions

std::string Expressions::bare(const Expr& e, const Lane* lane) {
  std::string out = text(e, lane);
  if (out.size() < 2 || out.front() != '(' || out.back() != ')') return out;
  int depth = 0;
  for (std::size_t i = 0; i + 1 < out.size(); ++i) {
    depth += out[i] == '(' ? 1 : out[i] == ')' ? -1 : 0;
    if (depth == 0) return out;
  }
  return out.substr(1, out.size() - 2);
}

std::string Expressions::bare_value(const Expr& e, const Lane* lane) {
  const bool before = std::exchange(of_value_, true);
  std::string out = bare(e, lane);
  of_value_ = before;
  return out;
}

bool Expressions::touches_data(const Expr& e) {
  if (const auto* v = as<VarNode>(e)) return data_vars_.count(v) > 0;
  if (const auto* b = is_binary(e->kind) ? as<BinaryNode>(e) : nullptr)
    return touches_data(b->a) || touches_data(b->b);
  bool found = false;
  for_each_expr(e, [&](const Expr& x) {
    const auto* v = as<VarNode>(x);
    found = found || x->kind == ExprKind::load || (v && data_vars_.count(v));
  });
  return found;
}

std::string Expressions::cast(DType to, DType from, const std::string& value) {
  to = to.element();
  from = from.element();
  if (to.is_bool()) return from.is_bool() ? value : cat("(", value, " != 0)");
  if (to.is_float() && to.bits == 16)
    return rounded(to, value_type(from) == dtypes::float32 ? value : cat("((float)", value, ")"));
  if (value_type(to) == value_type(from)) return value;
  if (const DType carrier = ir::carrier_of_float(to); from.is_float() && carrier != to)
    return cat("((", type(to), ")(", type(carrier), ")", value, ")");
  return cat("((", type(to), ")", value, ")");
}

std::string Expressions::text(const Expr& e, const Lane* lane) {
  switch (e->kind) {
    case ExprKind::var: {
      const auto* v = as<VarNode>(e);
      std::string id = name(v, v->name);
      if (e->dtype.lanes == 1) return id;
      if (whole_vars.count(v)) {
        WEFT_CHECK(lane, "vector variable ", v->name, " outside of a lane");
        return lane->constant ? cat(id, "[", lane->index, "]") : cat(id, "[", lane->name, "]");
      }
      WEFT_CHECK(lane && lane->constant, "vector variable ", v->name, " outside of a lane");
      return cat(id, "_", lane->index);
    }
    case ExprKind::int_imm: return literal(as<IntImmNode>(e));
    case ExprKind::float_imm: return literal(as<FloatImmNode>(e)->value, e->dtype);
    case ExprKind::string_imm: return json_quote(as<StringImmNode>(e)->value);
    case ExprKind::cast: {
      const Expr& v = as<CastNode>(e)->value;
      return cast(e->dtype, v->dtype, text(v, lane));
    }
    case ExprKind::not_: return cat("(!", text(as<NotNode>(e)->a, lane), ")");
    case ExprKind::select: {
      const auto* s = as<SelectNode>(e);
      return cat("(", text(s->condition, lane), " ? ", text(s->a, lane), " : ", text(s->b, lane),
                 ")");
    }
    case ExprKind::call: return call(as<CallNode>(e), lane);
    case ExprKind::load: {
      const auto* l = as<LoadNode>(e);
      if (auto held = vectors.find(e.get()); held != vectors.end()) {
        WEFT_CHECK(lane && lane->constant, "vector of ", l->buffer->name, " outside of a lane");
        const int lanes = e->dtype.lanes;
        const int index = backwards.count(e.get()) ? lanes - 1 - lane->index : lane->index;
        return load_value(l->buffer->dtype.element(), member(held->second, index, lanes));
      }
      if (l->buffer->dtype.lanes != 1) {
        throw Error(ErrorKind::emit, "emit.vector_buffer",
                    cat("buffer \"", l->buffer->name,
                        "\" has vector elements: ", to_string(l->buffer->dtype)));
      }
      const bool before = std::exchange(of_value_, false);
      std::string at = l->indices.empty() ? "0" : bare(l->indices[0], lane);
      of_value_ = before;
      return load_value(l->buffer->dtype,
                        cat(name(l->buffer.get(), l->buffer->name), "[", at, "]"));
    }
    case ExprKind::ramp: {
      const auto* r = as<RampNode>(e);
      WEFT_CHECK(lane, "ramp outside of a lane");
      std::string base = text(r->base);
      if (lane->constant && lane->index == 0) return base;
      Expr scaled = lane->constant ? r->stride * lane->index : nullptr;
      if (scaled)
        return is_const_int_value(scaled, 0) ? base : cat("(", base, " + ", text(scaled), ")");
      if (is_const_int_value(r->stride, 1)) return cat("(", base, " + ", lane->name, ")");
      return cat("(", base, " + ", lane->name, " * ", text(r->stride), ")");
    }
    case ExprKind::broadcast: return text(as<BroadcastNode>(e)->value, nullptr);
    case ExprKind::let: {
      const auto* l = as<LetNode>(e);
      return text(substitute(l->body, {{l->var.get(), l->value}}), lane);
    }
    case ExprKind::reduce:
      throw Error(ErrorKind::emit, "emit.reduce",
                  cat("a te reduction reached the emitter of ", spelling_.target));
    default: return binary(as<BinaryNode>(e), lane);
  }
}

std::string Expressions::binary(const BinaryNode* e, const Lane* lane) {
  std::string a = text(e->a, lane), b = text(e->b, lane);
  DType t = value_type(e->a->dtype);
  auto infix = [&](std::string_view op) { return cat("(", a, " ", op, " ", b, ")"); };
  auto narrow = [&](std::string v) {  // C computes small integers as int: bring them back
    if (e->dtype.is_float()) return rounded(e->dtype, v);
    return (e->dtype.is_integral() && e->dtype.bits < 32) ? cat("((", type(e->dtype), ")", v, ")")
                                                          : v;
  };
  auto wrapped = [&](std::string_view op) {
    // C leaves signed overflow undefined, and computes a product of uint16 as int.
    const bool overflows = (e->dtype.is_int() && e->dtype.bits >= 32) ||
                           (e->kind == ExprKind::mul && e->dtype.is_uint() && e->dtype.bits == 16);
    if (!of_value_ || spelling_.signed_wraps || !overflows ||
        (!touches_data(e->a) && !touches_data(e->b)))
      return narrow(infix(op));
    const std::string wide =
        cat("(", type(e->dtype.bits == 64 ? dtypes::uint64 : dtypes::uint32), ")");
    return cat("((", type(e->dtype), ")(", wide, a, " ", op, " ", wide, b, "))");
  };
  switch (e->kind) {
    case ExprKind::add: return wrapped("+");
    case ExprKind::sub: return wrapped("-");
    case ExprKind::mul: return wrapped("*");
    case ExprKind::div:
    case ExprKind::mod: {
      const bool divides = e->kind == ExprKind::div;
      if (t.is_float() || plain_divisor(e->b)) return narrow(infix(divides ? "/" : "%"));
      return cat(helpers_.integer(divides ? "div" : "mod", t), "(", a, ", ", b, ")");
    }
    case ExprKind::floordiv:
    case ExprKind::floormod: {
      bool divides = e->kind == ExprKind::floordiv;
      const bool plain = plain_divisor(e->b);
      if (t.is_uint() && plain) return infix(divides ? "/" : "%");
      const char* name = t.is_uint() ? (divides ? "div" : "mod")
                         : plain     ? (divides ? "floordiv" : "floormod")
                                     : (divides ? "floordiv_any" : "floormod_any");
      return cat(helpers_.integer(name, t), "(", a, ", ", b, ")");
    }
    case ExprKind::min:
    case ExprKind::max:
      return cat(helpers_.minmax(e->kind == ExprKind::min, t), "(", a, ", ", b, ")");
    case ExprKind::eq: return infix("==");
    case ExprKind::ne: return infix("!=");
    case ExprKind::lt: return infix("<");
    case ExprKind::le: return infix("<=");
    case ExprKind::gt: return infix(">");
    case ExprKind::ge: return infix(">=");
    case ExprKind::and_: return infix("&&");
    default: return infix("||");
  }
}

std::string Expressions::reduce_lanes(const std::string& op, const Expr& vector, int begin,
                                      int count) {
  if (count == 1) {
    Lane lane{true, begin, {}};
    return text(vector, &lane);
  }
  std::string a = reduce_lanes(op, vector, begin, count / 2);
  std::string b = reduce_lanes(op, vector, begin + count / 2, count - count / 2);
  DType t = value_type(vector->dtype);
  if (op == "vector_reduce_add") return rounded(vector->dtype, cat("(", a, " + ", b, ")"));
  return cat(helpers_.minmax(op == "vector_reduce_min", t), "(", a, ", ", b, ")");
}

std::string Expressions::call(const CallNode* e, const Lane* lane) {
  const std::string& op = e->op;
  auto arg = [&](std::size_t i) { return text(e->args.at(i), lane); };
  DType t = value_type(e->dtype);
  if (op == "if_then_else") return cat("(", arg(0), " ? ", arg(1), " : ", arg(2), ")");
  if (op == "likely" || op == "nontemporal") return arg(0);
  if (op == "masked_load") {
    return cat("(", arg(1), " ? ", arg(0), " : ",
               e->dtype.is_float() ? literal(0.0, e->dtype.element()) : std::string("0"), ")");
  }
  if (op.starts_with("vector_reduce"))
    return reduce_lanes(op, e->args[0], 0, e->args[0]->dtype.lanes);
  if (op == "vector_interleave" && lane && lane->constant) {
    const int n = static_cast<int>(e->args.size());
    Lane one{true, lane->index / n, {}};
    return text(e->args[static_cast<std::size_t>(lane->index % n)], &one);
  }
  if (op == "vector_extract" || op == "vector_concat") {
    std::int64_t n = 0;
    bool known = op == "vector_extract" ? is_const_int(e->args[1], &n) : lane && lane->constant;
    if (!known)
      throw Error(ErrorKind::emit, "emit.lane",
                  cat("\"", op, "\" needs a constant lane on ", spelling_.target));
    if (op == "vector_extract") {
      Lane one{true, static_cast<int>(n), {}};
      return text(e->args[0], &one);
    }
    int at = lane->index;
    for (const Expr& part : e->args) {
      if (at < part->dtype.lanes) {
        Lane one{true, at, {}};
        return text(part, &one);
      }
      at -= part->dtype.lanes;
    }
  }
  if (op == "shift_left" || op == "shift_right") {
    std::int64_t n = 0;
    if (is_const_int(e->args[1], &n) && n >= 0 && n < t.bits) {
      if (op == "shift_right") return cat("(", arg(0), " >> ", n, ")");
      std::string u = type(DType{TypeCode::uint_, t.bits, 1});
      return cat("((", type(t), ")((", u, ")", arg(0), " << ", n, "))");
    }
    return cat(helpers_.integer(op, t), "(", arg(0), ", ", arg(1), ")");
  }
  if (op == "bitwise_and") return cat("(", arg(0), " & ", arg(1), ")");
  if (op == "bitwise_or") return cat("(", arg(0), " | ", arg(1), ")");
  if (op == "bitwise_xor") return cat("(", arg(0), " ^ ", arg(1), ")");
  if (op == "bitwise_not") {
    if (t.is_bool()) return cat("(!", arg(0), ")");
    return t.bits < 32 ? cat("((", type(t), ")(~", arg(0), "))") : cat("(~", arg(0), ")");
  }
  if (op == "popcount" || op == "clz") return cat(helpers_.integer(op, t), "(", arg(0), ")");
  if (op == "mulhi") return cat(helpers_.integer(op, t), "(", arg(0), ", ", arg(1), ")");
  if (op == "abs" && !t.is_float()) {
    return t.is_uint() || t.is_bool() ? arg(0) : cat(helpers_.integer(op, t), "(", arg(0), ")");
  }
  if (op == "sigmoid" || (op == "rsqrt" && !spelling_.functions.count("rsqrt"))) {
    return rounded(e->dtype, cat(helpers_.floating(op, t), "(", arg(0), ")"));
  }
  if (op == "isnan" || op == "isinf" || op == "isfinite" || op == "signbit") {
    return cat("(", op, "(", arg(0), ") != 0)");
  }
  if (op == "reinterpret") {
    const DType from = e->args.at(0)->dtype.element(), to = e->dtype.element();
    if (from == to) return arg(0);
    if (to.is_float() && to.bits == 16) return load_value(to, arg(0));
    if (from.is_float() && from.bits == 16)
      return cat("((", type(to), ")", store_value(from, arg(0)), ")");
    if (from.is_integral() && to.is_integral()) return cat("((", type(to), ")", arg(0), ")");
    if (spelling_.vectors == VectorStyle::casts)
      return cat("as_type<", type(to), ">(", arg(0), ")");
    if (spelling_.vectors == VectorStyle::load_store) return cat("as_", type(to), "(", arg(0), ")");
    return cat(helpers_.reinterpret(from, to), "(", arg(0), ")");
  }
  if (op == "address_of") {
    const auto* l = as<LoadNode>(e->args[0]);
    WEFT_CHECK(l && l->indices.size() == 1, "address_of of something else than a flat element");
    const auto* r = as<RampNode>(l->indices[0]);
    return cat("(&", name(l->buffer.get(), l->buffer->name), "[", bare(r ? r->base : l->indices[0]),
               "])");
  }
  if (op == "call_extern" || (op == "instruction" && spelling_.instruction)) {
    const auto* callee = as<StringImmNode>(e->args.at(0));
    WEFT_CHECK(callee, op, " without a name");
    if (op == "instruction") helpers_.define(callee->value, spelling_.instruction(callee->value));
    std::string out = callee->value + "(";
    for (std::size_t i = 1; i < e->args.size(); ++i)
      out += (i > 1 ? ", " : "") + bare(e->args[i], lane);
    return out + ")";
  }
  auto found = spelling_.functions.find(op == "exp2_flush" ? "exp2" : op);
  if (found == spelling_.functions.end()) {
    throw Error(ErrorKind::emit, "emit.intrinsic",
                cat("\"", op, "\" cannot be spelled on ", spelling_.target));
  }
  const std::string& fn = t.bits == 64 ? found->second.second : found->second.first;
  if (fn.empty()) {
    throw Error(
        ErrorKind::emit, "emit.intrinsic",
        cat("\"", op, "\" of ", to_string(e->dtype), " cannot be spelled on ", spelling_.target));
  }
  std::string out = fn + "(";
  for (std::size_t i = 0; i < e->args.size(); ++i) out += (i ? ", " : "") + bare(e->args[i], lane);
  return rounded(e->dtype, out + ")");
}

bool has_vector_access(const Stmt& s, const BufferNode* b) {
  bool found = false;
  for_each_expr(s, [&](const Expr& e) {
    if (const auto* l = as<LoadNode>(e))
      found = found || (l->buffer.get() == b && l->dtype.lanes > 1);
  });
  for_each_stmt(s, [&](const Stmt& t) {
    if (const auto* st = as<StoreNode>(t))
      found = found || (st->buffer.get() == b && st->value->dtype.lanes > 1);
  });
  return found;
}

std::vector<const LoadNode*> certain_vector_loads(const Expr& e) {
  class Finder final : public Visitor {
   public:
    std::vector<const LoadNode*> loads;

   protected:
    void visit_load(const LoadNode* l) override {
      if (l->indices.size() == 1 && l->indices[0]->kind == ExprKind::ramp) loads.push_back(l);
      Visitor::visit_load(l);
    }
    void visit_call(const CallNode* c) override {
      if (c->op == "if_then_else") return visit(c->args[0]);
      if (c->op == "masked_load" || c->op == "address_of") return;
      Visitor::visit_call(c);
    }
  } finder;
  static_cast<Visitor&>(finder).visit(e);
  return finder.loads;
}

}  // namespace emit
}  // namespace weft
