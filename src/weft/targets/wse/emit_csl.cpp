// SPDX-License-Identifier: Apache-2.0
// CSL text of a staged program: one layout file, one PE program that every PE of the rectangle
// runs.
#include <functional>
#include <map>

#include "weft/base/error.h"
#include "weft/ir/visit.h"
#include "weft/targets/wse/lower.h"

namespace weft::wse {

namespace {

using namespace ir;

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

std::string number(double v, DType t) {
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

std::string identity(Combine c, DType t) {
  switch (c) {
    case Combine::add: return t.is_float() ? "0.0" : "0";
    case Combine::mul: return t.is_float() ? "1.0" : "1";
    case Combine::max:
      return t.is_float()   ? number(-1e300 * 1e300, t)
             : t.is_uint()  ? "0"
             : t.bits == 16 ? "-32768"
                            : "-2147483648";
    case Combine::min:
      return t.is_float()   ? number(1e300 * 1e300, t)
             : t.is_uint()  ? (t.bits == 16 ? "65535" : "4294967295")
             : t.bits == 16 ? "32767"
                            : "2147483647";
    case Combine::none: break;
  }
  return "0";
}

/// The routes that a program needs.
struct Ways {
  bool x = false, y = false;      // chains along rows and along the first column
  bool row = false, all = false;  // broadcast along each row, and from the first PE to all
  explicit Ways(const StageProgram& p) {
    for (const Stage& s : p.stages) {
      x |= s.reduced == Spread::x || s.reduced == Spread::xy;
      y |= s.reduced == Spread::xy;
      for (const LocalArray& a : s.inputs) {
        const Movement& m = a.move;
        row |= m.kind == Movement::Kind::row;
        all |= m.kind == Movement::Kind::all;
        if (m.kind != Movement::Kind::gather || m.here) continue;
        x |= m.columns > 1;
        y |= m.rows > 1;
        (m.within_row ? row : all) = true;
      }
    }
    x &= p.width > 1;
    y &= p.height > 1;
    row &= p.width > 1;
    all &= p.width * p.height > 1;
  }
};

class Emitter {
 public:
  explicit Emitter(const StageProgram& p) : p_(p) {}

  std::string run() {
    const Ways ways(p_);
    const bool any_x = ways.x, any_y = ways.y;
    std::string body;
    for (std::size_t i = 0; i < p_.stages.size(); ++i) body += stage(i);
    std::string head =
        cat("// Every PE of the ", p_.width, " x ", p_.height, " rectangle runs this program; ",
            p_.name, " in ", p_.stages.size(), p_.stages.size() == 1 ? " stage.\n" : " stages.\n",
            "param memcpy_params: comptime_struct;\n",
            "const sys_mod = @import_module(\"<memcpy/memcpy>\", memcpy_params);\n"
            "const layout_mod = @import_module(\"<layout>\");\n",
            uses_math_ ? "const math = @import_module(\"<math>\");\n" : "");
    if (any_x)
      head +=
          "// Chain along the row: from the east, towards the west.\nparam x_first: bool;\nparam "
          "x_last: bool;\nparam x_in: color;\nparam x_out: color;\n";
    if (any_y)
      head +=
          "// Chain along the first column: from the south, towards the north.\nparam y_first: "
          "bool;\nparam y_last: bool;\nparam y_in: color;\nparam y_out: color;\n";
    if (ways.row)
      head += "// From the first column to all PEs of the row.\nparam row_color: color;\n";
    if (ways.all) head += "// From the first PE to all.\nparam all_color: color;\n";
    for (DType t : {dtypes::float32, dtypes::float16, dtypes::int32, dtypes::int16, dtypes::uint32,
                    dtypes::uint16}) {
      if (std::int64_t n = p_.gathered(t))
        head += cat("// Parts of a buffer from several PEs.\nvar gathered_", csl_type(t),
                    " = @zeros([", n, "]", csl_type(t), ");\n");
    }
    for (const auto& [name, text] : helpers_) head += text;
    std::string tail = "\ncomptime {\n";
    if (any_x)
      tail +=
          "  if (@is_arch(\"wse3\")) {\n    if (!x_last) @initialize_queue(@get_input_queue(2), .{ "
          ".color = x_in });\n    if (!x_first) @initialize_queue(@get_output_queue(3), .{ .color "
          "= x_out });\n  }\n";
    if (any_y)
      tail +=
          "  if (@is_arch(\"wse3\")) {\n    if (!y_last) @initialize_queue(@get_input_queue(4), .{ "
          ".color = y_in });\n    if (!y_first) @initialize_queue(@get_output_queue(5), .{ .color "
          "= y_out });\n  }\n";
    if (ways.row)
      tail +=
          "  if (@is_arch(\"wse3\")) {\n    @initialize_queue(@get_input_queue(5), .{ .color = "
          "row_color });\n    @initialize_queue(@get_output_queue(2), .{ .color = row_color });\n  "
          "}\n";
    if (ways.all)
      tail +=
          "  if (@is_arch(\"wse3\")) {\n    @initialize_queue(@get_input_queue(6), .{ .color = "
          "all_color });\n    @initialize_queue(@get_output_queue(4), .{ .color = all_color });\n  "
          "}\n";
    for (std::size_t i = 0; i < p_.stages.size(); ++i) {
      auto one = [&](const LocalArray& a) {
        if (!a.on_wafer()) tail += cat("  @export_symbol(", a.name, "_ptr, \"", a.name, "\");\n");
      };
      for (const LocalArray& a : p_.stages[i].inputs) one(a);
      one(p_.stages[i].output);
      tail += cat("  @export_symbol(stage", i, ");\n");
    }
    return head + body + tail + "}\n";
  }

 private:
  std::string declare(const LocalArray& a) {
    if (a.kept) return cat("// ", p_.buffers[a.buffer].name, " stays in ", a.name, "\n");
    std::string t = csl_type(p_.buffers[a.buffer].dtype);
    std::string dims;
    for (std::int64_t e : a.extent) dims += cat(dims.empty() ? "" : " x ", e);
    if (a.on_wafer())
      return cat("var ", a.name, " = @zeros([", a.size(), "]", t, ");   // ",
                 p_.buffers[a.buffer].name, ", ", dims, ", from ", a.move.from,
                 " over the fabric\n");
    return cat("var ", a.name, " = @zeros([", a.size(), "]", t, ");   // ",
               p_.buffers[a.buffer].name, dims.empty() ? std::string() : cat(", ", dims), "\nvar ",
               a.name, "_ptr: [*]", t, " = &", a.name, ";\n");
  }

  // Index into a local array; iterators in `without` count as 0.
  std::string index(const Stage& s, const LocalArray& a, const std::vector<std::int64_t>& offset,
                    std::size_t without = ~std::size_t{0}) {
    std::int64_t constant = 0, stride = 1;
    std::vector<std::int64_t> factor(s.iters.size());
    for (std::size_t d = a.extent.size(); d-- > 0;) {
      std::int64_t at = offset.empty() ? 0 : offset[d];
      constant += at * stride;
      for (std::size_t k = 0; k < s.iters.size(); ++k) factor[k] += a.coef[d][k] * stride;
      stride *= a.extent[d];
    }
    std::string out;
    for (std::size_t k = 0; k < s.iters.size(); ++k) {
      if (factor[k] == 0 || k == without || s.iters[k].extent == 1) continue;
      out += cat(out.empty() ? "" : " + ", s.iters[k].name,
                 factor[k] == 1 ? std::string() : cat(" * ", factor[k]));
    }
    if (constant || out.empty()) out += cat(out.empty() ? "" : " + ", constant);
    return out;
  }

  std::int64_t factor_of(const Stage& s, const LocalArray& a, std::size_t k) {
    std::int64_t f = 0, stride = 1;
    for (std::size_t d = a.extent.size(); d-- > 0;) {
      f += a.coef[d][k] * stride;
      stride *= a.extent[d];
    }
    return s.iters[k].extent == 1 ? 0 : f;
  }

  // Where in its array the output of the point lies: the array begins at the PE's first point.
  std::vector<std::int64_t> output_offset(const Stage& s) {
    std::vector<std::int64_t> out;
    for (std::size_t d = 0; d < s.output.extent.size(); ++d) {
      std::int64_t low = 0;
      for (std::size_t k = 0; k < s.iters.size(); ++k) {
        if (s.output.coef[d][k] < 0) low -= s.output.coef[d][k] * (s.iters[k].chunk - 1);
      }
      out.push_back(low);
    }
    return out;
  }

  std::string helper(const std::string& name, const std::string& text) {
    helpers_[name] = text;
    return name;
  }

  std::string expr(const Stage& s, const Expr& e) {
    auto type = [&] { return csl_type(e->dtype); };
    switch (e->kind) {
      case ExprKind::int_imm:
        return e->dtype.is_bool() ? (as<IntImmNode>(e)->value ? "true" : "false")
                                  : cat("@as(", type(), ", ", as<IntImmNode>(e)->value, ")");
      case ExprKind::float_imm: return number(as<FloatImmNode>(e)->value, e->dtype);
      case ExprKind::var:
        for (const StageIter& i : s.iters) {
          if (i.var.get() != e.get()) continue;
          std::string v = i.extent == 1              ? "@as(i32, 0)"
                          : i.spread == Spread::none ? i.name
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
        return cat("(if (", expr(s, n->condition), ") ", expr(s, n->a), " else ", expr(s, n->b),
                   ")");
      }
      case ExprKind::load: {
        std::vector<std::int64_t> offset;
        const LocalArray* a = find_local(p_, s, *as<LoadNode>(e), &offset);
        if (!a) break;
        // find_local counts from the array's own beginning, negative slopes included.
        for (std::size_t d = 0; d < offset.size(); ++d) (void)d;
        return cat(a->name, "[", index(s, *a, offset), "]");
      }
      case ExprKind::call: {
        const auto* c = as<CallNode>(e);
        auto arg = [&](std::size_t i) { return expr(s, c->args[i]); };
        if (c->op == "if_then_else")
          return cat("(if (", arg(0), ") ", arg(1), " else ", arg(2), ")");
        if (c->op == "likely") return arg(0);
        if (c->op == "bitwise_and") return cat("(", arg(0), " & ", arg(1), ")");
        if (c->op == "bitwise_or") return cat("(", arg(0), " | ", arg(1), ")");
        if (c->op == "bitwise_xor") return cat("(", arg(0), " ^ ", arg(1), ")");
        std::string t = type();
        if (c->op == "sigmoid") {
          uses_math_ = true;
          return cat("(@as(", t, ", 1.0) / (@as(", t, ", 1.0) + math.exp_", t, "(-(", arg(0),
                     "))))");
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
                        ", which PEs do not have"));
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
                cat("block ", s.name, " computes an expression of kind ", static_cast<int>(e->kind),
                    " that has no CSL form"));
  }

  std::string pick(const std::string& name, const std::string& op, const std::string& t) {
    return helper(cat(name, "_", t), cat("fn ", name, "_", t, "(a: ", t, ", b: ", t, ") ", t,
                                         " { if (a ", op, " b) { return a; } return b; }\n"));
  }

  std::string combined(Combine c, const std::string& a, const std::string& b,
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

  // Loops over the PE's part of the iterators for which `wanted` holds; returns the closing text.
  std::string loops(const Stage& s, const std::function<bool(std::size_t)>& wanted,
                    std::string& out, std::string& indent) {
    std::vector<std::string> ends;
    for (std::size_t k = 0; k < s.iters.size(); ++k) {
      if (!wanted(k) || s.iters[k].extent == 1) continue;
      out += cat(indent, "for (@range(i32, n_", s.iters[k].name, ")) |", s.iters[k].name, "| {\n");
      indent += "  ";
    }
    std::string closing, at = indent;
    while (at.size() > 2) {
      at.resize(at.size() - 2);
      closing += cat(at, "}\n");
    }
    return closing;
  }

  // acc += a * b with a vector along a spatial iterator: one @fmacs in place of that loop.
  bool vector_update(const Stage& s, std::string& out) {
    const auto* m = as<BinaryNode>(s.value);
    if (s.combine != Combine::add || !m || m->kind != ExprKind::mul || m->dtype != dtypes::float32)
      return false;
    for (std::size_t v = s.iters.size(); v-- > 0;) {
      if (s.iters[v].reduce || s.iters[v].extent == 1) continue;
      for (const auto& [vec, sca] : {std::pair{m->a, m->b}, std::pair{m->b, m->a}}) {
        const auto* l = as<LoadNode>(vec);
        std::vector<std::int64_t> offset;
        const LocalArray* a = l ? find_local(p_, s, *l, &offset) : nullptr;
        if (!a) continue;
        std::int64_t fa = factor_of(s, *a, v), fo = factor_of(s, s.output, v);
        bool scalar = true;
        for_each_expr(sca, [&](const Expr& x) {
          if (x.get() == s.iters[v].var.get()) scalar = false;
        });
        if (!scalar || fa <= 0 || fo <= 0) continue;
        std::string n = cat(s.label, "_v");
        dsds_ += cat("const ", n, "_acc = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{",
                     s.iters[v].chunk, "} -> ", s.output.name, "[i * ", fo, "] });\n", "const ", n,
                     "_vec = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{", s.iters[v].chunk,
                     "} -> ", a->name, "[i * ", fa, "] });\n");
        std::string indent = "  ";
        std::string closing = loops(
            s, [&](std::size_t k) { return k != v; }, out, indent);
        out +=
            cat(indent, "const acc = @set_dsd_length(@increment_dsd_offset(", n, "_acc, @as(i16, ",
                index(s, s.output, output_offset(s), v), "), f32), @as(u16, n_", s.iters[v].name,
                "));\n", indent, "const vec = @set_dsd_length(@increment_dsd_offset(", n,
                "_vec, @as(i16, ", index(s, *a, offset, v), "), f32), @as(u16, n_", s.iters[v].name,
                "));\n", indent, "@fmacs(acc, acc, vec, ", expr(s, sca), ");\n", closing);
        return true;
      }
    }
    return false;
  }

  std::string chain(const Stage& s, const char* axis, const std::string& guard, int in_queue,
                    int out_queue) {
    const DType dtype = p_.buffers[s.output.buffer].dtype;
    std::string t = csl_type(dtype), n = s.label;
    std::int64_t size = s.output.size();
    std::string mov = dtype.bits == 16 ? "@mov16" : "@mov32";
    std::string add = dtype == dtypes::float32 && s.combine == Combine::add   ? "@fadds"
                      : dtype == dtypes::float32 && s.combine == Combine::max ? "@fmaxs"
                      : dtype == dtypes::float16 && s.combine == Combine::add ? "@faddh"
                                                                              : "";
    std::string body;
    dsds_ += cat("const ", n, "_all = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{", size, "} -> ",
                 n, "[i] });\n");
    if (add.empty())
      dsds_ += cat("var ", n, "_", axis, "_got = @zeros([", size, "]", t, ");\nconst ", n, "_",
                   axis, "_gotten = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{", size, "} -> ", n,
                   "_", axis, "_got[i] });\n");
    body += cat(
        "  // Sums of the PEs further on the axis come in, the own ones are added, and go on.\n  "
        "if (",
        guard, ") {\n    if (!", axis, "_last) {\n",
        "      const from = @get_dsd(fabin_dsd, .{ .extent = ", size, ", .fabric_color = ", axis,
        "_in, .input_queue = @get_input_queue(", in_queue, ") });\n");
    if (!add.empty()) {
      body +=
          cat("      if (", axis, "_first) {\n        ", add, "(", n, "_all, from, ", n,
              "_all);\n      } else {\n        const to = @get_dsd(fabout_dsd, .{ .extent = ", size,
              ", .fabric_color = ", axis, "_out, .output_queue = @get_output_queue(", out_queue,
              ") });\n        ", add, "(to, from, ", n, "_all);\n      }\n    } else {\n");
    } else {
      body += cat("      ", mov, "(", n, "_", axis, "_gotten, from);\n      for (@range(i32, ",
                  size, ")) |i| { ", n,
                  "[i] = ", combined(s.combine, cat(n, "[i]"), cat(n, "_", axis, "_got[i]"), t),
                  "; }\n    }\n    if (!", axis, "_first) {\n");
    }
    body += cat("      const to = @get_dsd(fabout_dsd, .{ .extent = ", size,
                ", .fabric_color = ", axis, "_out, .output_queue = @get_output_queue(", out_queue,
                ") });\n      ", mov, "(to, ", n, "_all);\n    }\n  }\n");
    return body;
  }

  std::string descriptor(const std::string& name, const std::string& array, std::int64_t n) {
    return cat("const ", name, " = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{", n, "} -> ", array,
               "[i] });\n");
  }

  static std::string fabric(bool in, const std::string& extent, const char* color, int queue) {
    return cat("@get_dsd(", in ? "fabin" : "fabout", "_dsd, .{ .extent = ", extent,
               ", .fabric_color = ", color,
               in ? ", .input_queue = @get_input_queue(" : ", .output_queue = @get_output_queue(",
               queue, ") })");
  }

  // Brings a box from the PEs that hold it.
  std::string movement(const LocalArray& a) {
    const Movement& m = a.move;
    const DType dtype = p_.buffers[a.buffer].dtype;
    const std::string mov = dtype.bits == 16 ? "@mov16" : "@mov32", here = cat(a.name, "_here");
    const std::string& buffer = p_.buffers[a.buffer].name;
    std::string out;
    if (m.kind != Movement::Kind::gather) {
      bool row = m.kind == Movement::Kind::row;
      std::string n = cat(a.size()), there = cat(a.name, "_there");
      const char* color = row ? "row_color" : "all_color";
      dsds_ += descriptor(here, a.name, a.size()) + descriptor(there, m.from, a.size());
      out += cat("  // ", buffer,
                 row ? " goes from the first column along the rows.\n"
                     : " goes from the first PE to all.\n");
      std::string copy = cat(mov, "(", here, ", ", there, ");");
      if (row ? p_.width == 1 : p_.width * p_.height == 1) return cat(out, "  ", copy, "\n");
      return cat(out, "  if (px == 0", row ? "" : " and py == 0", ") {\n    ", copy, "\n    ", mov,
                 "(", fabric(false, n, color, row ? 2 : 4), ", ", there, ");\n  } else {\n    ",
                 mov, "(", here, ", ", fabric(true, n, color, row ? 5 : 6), ");\n  }\n");
    }
    std::int64_t box = 1;
    for (std::int64_t e : m.box) box *= e;
    std::string source = m.from;
    if (!m.here) {
      source = cat("gathered_", csl_type(dtype));
      out += gather(a, mov, box);
    }
    out += cat("  // Every PE takes its part of ", buffer, ".\n");
    std::string indent = "  ", position = "0", inside, place = "0";
    std::string row_of = "0", column_of = "0";
    for (std::size_t d = 0; d < a.extent.size(); ++d) {
      const Movement::Origin& o = m.origin[d];
      const Movement::Part& part = m.parts[d];
      std::string j = cat("j", d), g = cat("g", d);
      out += cat(indent, "for (@range(i32, ", a.extent[d], ")) |", j, "| {\n");
      indent += "  ";
      out += cat(indent, "const ", g, " = ", o.base, " + ", o.cx, " * px + ", o.cy, " * py + ", j,
                 ";\n");
      inside += cat(inside.empty() ? "" : " and ", g, " >= 0 and ", g, " < ",
                    p_.buffers[a.buffer].shape[d]);
      position = cat("(", position, ") * ", a.extent[d], " + ", j);
      std::string part_of = part.spread == Spread::none ? "" : cat(g, " / ", part.chunk);
      std::string local = part.spread == Spread::none ? g : cat(g, " % ", part.chunk);
      place = cat("(", place, ") * ", m.box[d], " + ", local);
      if (part.spread == Spread::x) column_of = part_of;
      if (part.spread == Spread::y && !m.within_row) row_of = part_of;
      if (part.spread == Spread::xy) {
        column_of = cat("(", part_of, ") % ", p_.width);
        row_of = cat("(", part_of, ") / ", p_.width);
      }
    }
    std::string owner = m.columns * m.rows == 1 ? ""
                                                : cat("((", row_of, ") * ", m.columns, " + ",
                                                      column_of, ") * ", box, " + ");
    out += cat(indent, "if (", inside, ") { ", a.name, "[", position, "] = ", source, "[", owner,
               place, "]; }\n");
    while (indent.size() > 2) {
      indent.resize(indent.size() - 2);
      out += cat(indent, "}\n");
    }
    return out;
  }

  // All parts come to the first PE of the row or of all, row by row, and go from there to
  // everybody.
  std::string gather(const LocalArray& a, const std::string& mov, std::int64_t box) {
    const Movement& m = a.move;
    const std::string own = cat(a.name, "_own"), all = cat(a.name, "_gathered"),
                      element = csl_type(p_.buffers[a.buffer].dtype);
    const std::int64_t line = box * m.columns, total = line * m.rows;
    dsds_ += descriptor(own, m.from, box);
    dsds_ += descriptor(all, cat("gathered_", element), total);
    auto part = [&](std::int64_t from, std::int64_t n) {
      return cat("@set_dsd_length(@increment_dsd_offset(", all, ", ", from, ", ", element, "), ", n,
                 ")");
    };
    auto passed = [&](const char* axis, int in, int queue, const std::string& n) {
      return cat(mov, "(", fabric(false, n, axis[0] == 'x' ? "x_out" : "y_out", queue), ", ",
                 fabric(true, n, axis[0] == 'x' ? "x_in" : "y_in", in), ");");
    };
    std::string out = cat("  // Parts of ", p_.buffers[a.buffer].name, " come together",
                          m.within_row ? " in the first column.\n" : " in the first PE.\n");
    if (m.columns > 1) {
      out +=
          cat("  if (px > 0) {\n    ", mov, "(", fabric(false, cat(box), "x_out", 3), ", ", own,
              ");\n    if (px < ", p_.width - 1, ") {\n      const n = @as(u16, (", p_.width - 1,
              " - px) * ", box, ");\n      ", passed("x", 2, 3, "n"), "\n    }\n  } else {\n    ",
              mov, "(", part(0, box), ", ", own, ");\n    ", mov, "(", part(box, line - box), ", ",
              fabric(true, cat(line - box), "x_in", 2), ");\n  }\n");
    } else {
      out += cat("  if (px == 0) ", mov, "(", part(0, box), ", ", own, ");\n");
    }
    if (m.rows > 1) {
      out += cat("  if (px == 0 and py > 0) {\n    ", mov, "(",
                 fabric(false, cat(line), "y_out", 5), ", ", part(0, line), ");\n    if (py < ",
                 p_.height - 1, ") {\n      const n = @as(u16, (", p_.height - 1, " - py) * ", line,
                 ");\n      ", passed("y", 4, 5, "n"), "\n    }\n  } else if (px == 0) {\n    ",
                 mov, "(", part(line, total - line), ", ",
                 fabric(true, cat(total - line), "y_in", 4), ");\n  }\n");
    }
    if (m.within_row ? p_.width == 1 : p_.width * p_.height == 1) return out;
    const char* color = m.within_row ? "row_color" : "all_color";
    return cat(out, "  if (px == 0", m.within_row ? "" : " and py == 0", ") {\n    ", mov, "(",
               fabric(false, cat(total), color, m.within_row ? 2 : 4), ", ", all,
               ");\n  } else {\n    ", mov, "(", all, ", ",
               fabric(true, cat(total), color, m.within_row ? 5 : 6), ");\n  }\n");
  }

  std::string stage(std::size_t number_of) {
    const Stage& s = p_.stages[number_of];
    const DType dtype = p_.buffers[s.output.buffer].dtype;
    std::string t = csl_type(dtype), text;
    dsds_.clear();
    std::string arrays = cat("\n// ---- ", s.name, "\n");
    for (const LocalArray& a : s.inputs) arrays += declare(a);
    arrays += declare(s.output);
    std::string body = cat("fn stage", number_of,
                           "() void {\n  const px = @as(i32, layout_mod.get_x_coord());\n  const "
                           "py = @as(i32, layout_mod.get_y_coord());\n");
    for (const StageIter& i : s.iters) {
      if (i.extent == 1) continue;
      if (i.spread == Spread::none) {
        body += cat("  const n_", i.name, ": i32 = ", i.extent, ";\n");
        continue;
      }
      std::string at = i.spread == Spread::x   ? "px"
                       : i.spread == Spread::y ? "py"
                                               : cat("(py * ", p_.width, " + px)");
      body += cat("  // ", i.var->name, ": ", i.extent, " in parts of ", i.chunk, " over ",
                  i.spread == Spread::x   ? "the columns"
                  : i.spread == Spread::y ? "the rows"
                                          : "all PEs",
                  "\n", "  const lo_", i.name, ": i32 = ", at, " * ", i.chunk, ";\n  var n_",
                  i.name, ": i32 = ", i.extent, " - lo_", i.name, ";\n  if (n_", i.name, " > ",
                  i.chunk, ") { n_", i.name, " = ", i.chunk, "; }\n  if (n_", i.name, " < 0) { n_",
                  i.name, " = 0; }\n");
    }
    for (const LocalArray& a : s.inputs) {
      if (a.move.kind != Movement::Kind::none) body += movement(a);
    }
    auto spatial = [&](std::size_t k) { return !s.iters[k].reduce; };
    auto all = [](std::size_t) { return true; };
    std::string place = cat(s.output.name, "[", index(s, s.output, output_offset(s)), "]");
    if (s.combine != Combine::none && s.init) {
      std::string indent = "  ", begin = expr(s, s.init);
      if (s.reduced !=
          Spread::none) {  // one PE of the chain begins with the init, the others with nothing
        body += cat("  for (@range(i32, ", s.output.size(), ")) |i| { ", s.output.name,
                    "[i] = ", identity(s.combine, dtype), "; }\n");
        body += cat("  if (px == 0", s.reduced == Spread::xy ? " and py == 0" : "", ") {\n");
        indent = "    ";
        std::string inner;
        std::string closing = loops(s, spatial, inner, indent);
        (void)closing;
        std::string ends;
        for (std::string at = indent; at.size() > 4;) {
          at.resize(at.size() - 2);
          ends += cat(at, "}\n");
        }
        body += cat(inner, indent, place, " = ", begin, ";\n", ends, "  }\n");
      } else {
        std::string closing = loops(s, spatial, body, indent);
        body += cat(indent, place, " = ", begin, ";\n", closing);
      }
    }
    if (!vector_update(s, body)) {
      std::string indent = "  ";
      std::string value = expr(s, s.value);
      std::string closing = loops(s, all, body, indent);
      body += cat(indent, place, " = ",
                  s.combine == Combine::none ? value : combined(s.combine, place, value, t), ";\n",
                  closing);
    }
    if ((s.reduced == Spread::x || s.reduced == Spread::xy) && p_.width > 1)
      body += chain(s, "x", "true", 2, 3);
    if (s.reduced == Spread::xy && p_.height > 1) body += chain(s, "y", "px == 0", 4, 5);
    body += "  sys_mod.unblock_cmd_stream();\n}\n";
    // A stage with both chains declares its whole-array descriptor once.
    std::string seen;
    for (const std::string& line : split(dsds_, '\n')) {
      if (!line.empty() && seen.find(line + "\n") == std::string::npos) seen += line + "\n";
    }
    return arrays + seen + body;
  }

  const StageProgram& p_;
  std::map<std::string, std::string> helpers_;
  std::string dsds_;
  bool uses_math_ = false;
};

}  // namespace

std::string pe_text(const StageProgram& program) { return Emitter(program).run(); }

std::string layout_text(const StageProgram& p) {
  const Ways ways(p);
  const bool x = ways.x, y = ways.y;
  std::string out =
      cat("// ", p.name, " on a rectangle of ", p.width, " x ", p.height,
          " PEs.\nconst memcpy = @import_module(\"<memcpy/get_params>\", .{ .width = ", p.width,
          ", .height = ", p.height, " });\n");
  // Neighbours use two colours in turn, so that no router sees one colour from two sides.
  if (x) out += "const x_colors = [2]color{ @get_color(0), @get_color(1) };\n";
  if (y) out += "const y_colors = [2]color{ @get_color(2), @get_color(3) };\n";
  if (ways.row) out += "const row_color = @get_color(4);\n";
  if (ways.all) out += "const all_color = @get_color(5);\n";
  out += cat("\nlayout {\n  @set_rectangle(", p.width, ", ", p.height, ");\n  for (@range(u16, ",
             p.width, ")) |px| {\n    for (@range(u16, ", p.height, ")) |py| {\n",
             "      @set_tile_code(px, py, \"pe.csl\", .{\n        .memcpy_params = "
             "memcpy.get_params(px),\n");
  if (x)
    out += cat("        .x_first = px == 0, .x_last = px == ", p.width - 1,
               ",\n        .x_out = x_colors[px % 2], .x_in = x_colors[(px + 1) % 2],\n");
  if (y)
    out += cat("        .y_first = py == 0, .y_last = py == ", p.height - 1,
               ",\n        .y_out = y_colors[py % 2], .y_in = y_colors[(py + 1) % 2],\n");
  if (ways.row) out += "        .row_color = row_color,\n";
  if (ways.all) out += "        .all_color = all_color,\n";
  out += "      });\n";
  if (ways.row)
    out +=
        cat("      if (px == 0) { @set_color_config(px, py, row_color, .{ .routes = .{ .rx = .{ "
            "RAMP }, .tx "
            "= .{ EAST } } }); }\n      else if (px < ",
            p.width - 1,
            ") { @set_color_config(px, py, row_color, .{ .routes = .{ .rx = .{ WEST }, .tx = .{ "
            "RAMP, EAST } "
            "} }); }\n      else { @set_color_config(px, py, row_color, .{ .routes = .{ .rx = .{ "
            "WEST }, .tx "
            "= .{ RAMP } } }); }\n");
  if (ways.all) {
    // East along the first row and from there south.
    for (bool first_row : {true, false}) {
      for (int column = 0; column < 3; ++column) {  // first, between, last
        bool west = column == 0, east = column == 2;
        if (first_row) {
          std::string to = west ? "" : "RAMP";
          auto add = [&](const char* side) { to += cat(to.empty() ? "" : ", ", side); };
          if (!east && p.width > 1) add("EAST");
          if (p.height > 1) add("SOUTH");
          if (p.width == 1 && !west) continue;
          if (p.width == 2 && column == 1) continue;
          out += cat("      if (py == 0 and px ",
                     west   ? "== 0"
                     : east ? cat("== ", p.width - 1)
                            : cat("> 0 and px < ", p.width - 1),
                     ") @set_color_config(px, py, all_color, .{ .routes = .{ .rx = .{ ",
                     west ? "RAMP" : "WEST", " }, .tx = .{ ", to, " } } });\n");
        } else if (column < 2 && p.height > 1) {  // between the rows, the last row
          if (column == 0 && p.height == 2) continue;
          out += cat(
              "      if (py ",
              column == 0 ? cat("> 0 and py < ", p.height - 1) : cat("== ", p.height - 1),
              ") @set_color_config(px, py, all_color, .{ .routes = .{ .rx = .{ NORTH }, .tx = .{ ",
              column == 0 ? "RAMP, SOUTH" : "RAMP", " } } });\n");
        }
      }
    }
  }
  if (x)
    out +=
        cat("      if (px > 0) @set_color_config(px, py, x_colors[px % 2], .{ .routes = .{ .rx = "
            ".{ RAMP }, .tx = .{ WEST } } });\n",
            "      if (px < ", p.width - 1,
            ") @set_color_config(px, py, x_colors[(px + 1) % 2], .{ .routes = .{ .rx = .{ EAST }, "
            ".tx = .{ RAMP } } });\n");
  if (y)
    out +=
        cat("      if (py > 0) @set_color_config(px, py, y_colors[py % 2], .{ .routes = .{ .rx = "
            ".{ RAMP }, .tx = .{ NORTH } } });\n",
            "      if (py < ", p.height - 1,
            ") @set_color_config(px, py, y_colors[(py + 1) % 2], .{ .routes = .{ .rx = .{ SOUTH }, "
            ".tx = .{ RAMP } } });\n");
  out += "    }\n  }\n";
  for (std::size_t i = 0; i < p.stages.size(); ++i) {
    auto one = [&](const LocalArray& a) {
      if (a.on_wafer()) return;
      out += cat("  @export_name(\"", a.name, "\", [*]", csl_type(p.buffers[a.buffer].dtype),
                 ", true);\n");
    };
    for (const LocalArray& a : p.stages[i].inputs) one(a);
    one(p.stages[i].output);
    out += cat("  @export_name(\"stage", i, "\", fn()void);\n");
  }
  return out + "}\n";
}

}  // namespace weft::wse
