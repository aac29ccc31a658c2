// SPDX-License-Identifier: Apache-2.0
// CSL text of expressions and of the vector updates that products become.
#include "weft/targets/wse/emit_csl.h"

#include "weft/base/error.h"
#include "weft/ir/text.h"
#include "weft/ir/visit.h"

namespace weft::wse {

using namespace ir;

namespace {

/// Its power series near 0, which keeps small results exact; elsewhere formula 7.1.26 of Abramowitz
/// and Stegun, to 1.5e-7. The square of what is far out does not overflow. NaN stays NaN.
constexpr const char* kErf = R"(fn erf_f32(x: f32) f32 {
  if (!(x == x)) { return x; }
  const a = if (x < 0.0) -x else x;
  const s = x * x;
  if (a < 0.75) { return x * (1.128379167 - s * (0.3761263890 - s * (0.1128379167 - s * (0.02686617064 - s * (0.005223977626 - s * (0.0008548327023 - s * 0.0001205533)))))); }
  if (a > 4.0) { return if (x < 0.0) @as(f32, -1.0) else @as(f32, 1.0); }
  const t = 1.0 / (1.0 + 0.3275911 * a);
  const y = 1.0 - t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))) * math.exp_f32(-s);
  return if (x < 0.0) -y else y;
}
)";

}  // namespace

std::string csl_type(DType t) {
  if (t.is_bool()) return "bool";
  if (t == dtypes::float32) return "f32";
  if (t == dtypes::float16) return "f16";
  if (t.is_int())
    return t.bits == 16 ? "i16" : t.bits == 8 ? "i8" : "i32";  // 64-bit indices fit 32 bits on a PE
  if (t.is_uint()) return t.bits == 16 ? "u16" : t.bits == 8 ? "u8" : "u32";
  throw Error(ErrorKind::lower, "wse.lower.dtype",
              cat("an expression has type ", to_string(t), ", which PEs do not compute with"));
}

std::string csl_number(double v, DType t) {
  if (v != v)
    return cat("@bitcast(", csl_type(t),
               t.bits == 16 ? ", @as(u16, 0x7e00))" : ", @as(u32, 0x7fc00000))");
  if (v > 3.4028234663852886e38)
    return t.bits == 16 ? "@bitcast(f16, @as(u16, 0x7c00))" : "@bitcast(f32, @as(u32, 0x7f800000))";
  if (v < -3.4028234663852886e38)
    return t.bits == 16 ? "@bitcast(f16, @as(u16, 0xfc00))" : "@bitcast(f32, @as(u32, 0xff800000))";
  std::string text = shortest(v);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return cat("@as(", csl_type(t), ", ", text, ")");
}

std::string CslEmitter::data_offset(const Stage& s, const LocalArray& a, const LoadNode& l) {
  const std::vector<std::int64_t> strides = a.strides();
  std::string out;
  for (std::size_t d = 0; d < strides.size(); ++d) {
    if (!a.along_data(d)) continue;
    const std::string at =
        helper("position",
               "// A position that data decide.\nfn position(i: i32, n: i32) i32 { @assert(i >= 0 "
               "and i < n); return i; }\n");
    std::string where = expr(s, l.indices[d]);
    if (csl_type(l.indices[d]->dtype) != "i32") where = cat("@as(i32, ", where, ")");
    out += cat(" + ", at, "(", where, ", ", a.extent[d], ")",
               strides[d] == 1 ? std::string() : cat(" * ", strides[d]));
  }
  return out;
}

std::string CslEmitter::expr(const Stage& s, const Expr& e) {
  auto type = [&] { return csl_type(e->dtype); };
  switch (e->kind) {
    case ExprKind::int_imm:
      return e->dtype.is_bool() ? (as<IntImmNode>(e)->value ? "true" : "false")
                                : cat("@as(", type(), ", ", as<IntImmNode>(e)->value, ")");
    case ExprKind::float_imm: return csl_number(as<FloatImmNode>(e)->value, e->dtype);
    case ExprKind::var:
      for (const StageIter& i : s.iters) {
        if (i.var.get() != e.get()) continue;
        std::string v = i.extent == 1                    ? "@as(i32, 0)"
                        : i.partition == Partition::none ? i.name
                                                         : cat("(lo_", i.name, " + ", i.name, ")");
        return type() == "i32" ? v : cat("@as(", type(), ", ", v, ")");
      }
      break;
    case ExprKind::cast: {
      const Expr& v = as<CastNode>(e)->value;
      if (csl_type(v->dtype) == type()) return expr(s, v);
      return cat("@as(", type(), ", ", expr(s, v), ")");
    }
    case ExprKind::not_: return cat("(!", expr(s, as<NotNode>(e)->a), ")");
    case ExprKind::select: {
      const auto* n = as<SelectNode>(e);
      return cat("(if (", expr(s, n->condition), ") ", expr(s, n->a), " else ", expr(s, n->b), ")");
    }
    case ExprKind::load: {
      std::vector<std::int64_t> offset;
      const LocalArray* a = find_local(p_, s, *as<LoadNode>(e), &offset);
      if (!a) break;
      // find_local counts from the array's own beginning, negative slopes included.
      const std::string at = cat(index(s, *a, offset), data_offset(s, *a, *as<LoadNode>(e)));
      return cat(a->name, "[", at, "]");
    }
    case ExprKind::call: {
      const auto* c = as<CallNode>(e);
      auto arg = [&](std::size_t i) { return expr(s, c->args[i]); };
      if (c->op == "if_then_else") return cat("(if (", arg(0), ") ", arg(1), " else ", arg(2), ")");
      if (c->op == "likely") return arg(0);
      if (c->op == "bitwise_and") return cat("(", arg(0), " & ", arg(1), ")");
      if (c->op == "bitwise_or") return cat("(", arg(0), " | ", arg(1), ")");
      if (c->op == "bitwise_xor") return cat("(", arg(0), " ^ ", arg(1), ")");
      // The language counts places without a sign.
      auto count = [&] {
        return c->args[1]->dtype.is_uint() ? arg(1) : cat("@as(u32, ", arg(1), ")");
      };
      if (c->op == "shift_left") return cat("(", arg(0), " << ", count(), ")");
      if (c->op == "shift_right") return cat("(", arg(0), " >> ", count(), ")");
      std::string t = type();
      if (c->op == "sigmoid") {
        uses_math_ = true;
        return cat("(@as(", t, ", 1.0) / (@as(", t, ", 1.0) + math.exp_", t, "(-(", arg(0), "))))");
      }
      if (c->op == "erf" && e->dtype.is_float()) {
        uses_math_ = true;
        const std::string f = helper("erf_f32", kErf);
        if (t == "f32") return cat(f, "(", arg(0), ")");
        return cat("@as(", t, ", ", f, "(@as(f32, ", arg(0), ")))");
      }
      static const std::map<std::string, std::string> kUnary = {
          {"exp", "exp"},     {"exp2", "exp2"}, {"log", "log"},       {"log2", "log2"},
          {"log10", "log10"}, {"sqrt", "sqrt"}, {"rsqrt", "invsqrt"}, {"sin", "sin"},
          {"cos", "cos"},     {"tan", "tan"},   {"asin", "asin"},     {"acos", "acos"},
          {"atan", "atan"},   {"sinh", "sinh"}, {"cosh", "cosh"},     {"tanh", "tanh"},
          {"floor", "floor"}, {"ceil", "ceil"}, {"trunc", "trunc"},   {"abs", "abs"}};
      if (auto it = kUnary.find(c->op); it != kUnary.end() && e->dtype.is_float()) {
        uses_math_ = true;
        return cat("math.", it->second, "_", t, "(", arg(0), ")");
      }
      if (c->op == "abs")
        return cat(helper(cat("abs_", t), cat("fn abs_", t, "(a: ", t, ") ", t,
                                              " { if (a < 0) { return -a; } return a; }\n")),
                   "(", arg(0), ")");
      if (c->op == "pow" && e->dtype.is_float()) {
        uses_math_ = true;
        return cat("math.pow_", t, "(", arg(0), ", ", arg(1), ")");
      }
      throw Error(ErrorKind::lower, "wse.lower.intrinsic",
                  cat("block ", s.name, " calls ", c->op, " on ", to_string(e->dtype),
                      ", which PEs do not have"))
          .help(e->dtype.is_float()
                    ? "write it with the functions of CSL's <math>, or build for another target"
                    : "convert to float32 first, or build for another target");
    }
    default: break;
  }
  if (is_binary(e->kind)) {
    const auto* b = as<BinaryNode>(e);
    std::string x = expr(s, b->a), y = expr(s, b->b), t = csl_type(b->a->dtype);
    auto infix = [&](std::string_view op) { return cat("(", x, " ", op, " ", y, ")"); };
    switch (e->kind) {
      case ExprKind::add: return infix("+");
      case ExprKind::sub: return infix("-");
      case ExprKind::mul: return infix("*");
      case ExprKind::div: return infix("/");
      case ExprKind::mod: return infix("%");
      case ExprKind::eq: return infix("==");
      case ExprKind::ne: return infix("!=");
      case ExprKind::lt: return infix("<");
      case ExprKind::le: return infix("<=");
      case ExprKind::gt: return infix(">");
      case ExprKind::ge: return infix(">=");
      case ExprKind::and_: return infix("and");
      case ExprKind::or_: return infix("or");
      case ExprKind::min: return cat(pick("min", "<", t), "(", x, ", ", y, ")");
      case ExprKind::max: return cat(pick("max", ">", t), "(", x, ", ", y, ")");
      case ExprKind::floordiv:
        return cat(helper(cat("floordiv_", t),
                          cat("fn floordiv_", t, "(a: ", t, ", b: ", t, ") ", t,
                              " {\n  const q = a / b;\n  if (a % b != 0 and (a < 0) != (b < 0)) "
                              "{ return q - 1; }\n  return q;\n}\n")),
                   "(", x, ", ", y, ")");
      case ExprKind::floormod:
        return cat(
            helper(cat("floormod_", t), cat("fn floormod_", t, "(a: ", t, ", b: ", t, ") ", t,
                                            " {\n  const r = a % b;\n  if (r != 0 and (r < 0) != "
                                            "(b < 0)) { return r + b; }\n  return r;\n}\n")),
            "(", x, ", ", y, ")");
      default: break;
    }
  }
  throw Error(ErrorKind::lower, "wse.lower.expression",
              cat("block ", s.name, " computes ", print(e), ", which has no CSL form"))
      .help("write it with arithmetic, comparisons, select and the functions of CSL's <math>");
}

std::string CslEmitter::pick(const std::string& name, const std::string& op, const std::string& t) {
  const char* nan = t[0] == 'f' ? " or a != a" : "";  // a NaN on either side is the result
  return helper(cat(name, "_", t),
                cat("fn ", name, "_", t, "(a: ", t, ", b: ", t, ") ", t, " { if (a ", op, " b", nan,
                    ") { return a; } return b; }\n"));
}

std::string CslEmitter::combined(Combine c, const std::string& a, const std::string& b,
                                 const std::string& t) {
  switch (c) {
    case Combine::add: return cat(a, " + ", b);
    case Combine::mul: return cat(a, " * ", b);
    case Combine::min: return cat(pick("min", "<", t), "(", a, ", ", b, ")");
    case Combine::max: return cat(pick("max", ">", t), "(", a, ", ", b, ")");
    case Combine::none: break;
  }
  return b;
}

}  // namespace weft::wse
