// SPDX-License-Identifier: Apache-2.0
// CSL text of a staged program: the PE program and its stages.
#include "weft/targets/wse/emit_csl.h"

#include <algorithm>
#include <cmath>

#include "weft/targets/wse/emit_csl_vector.h"

namespace weft::wse {

using namespace ir;

namespace {

std::string identity(Combine c, DType t) {
  switch (c) {
    case Combine::add: return t.is_float() ? "0.0" : "0";
    case Combine::mul: return t.is_float() ? "1.0" : "1";
    case Combine::max:
      return t.is_float()   ? csl_number(-1e300 * 1e300, t)
             : t.is_uint()  ? "0"
             : t.bits == 16 ? "-32768"
                            : "-2147483648";
    case Combine::min:
      return t.is_float()   ? csl_number(1e300 * 1e300, t)
             : t.is_uint()  ? (t.bits == 16 ? "65535" : "4294967295")
             : t.bits == 16 ? "32767"
                            : "2147483647";
    case Combine::none: break;
  }
  return "0";
}

bool is_identity(Combine c, const Expr& e) {
  const auto* i = as<IntImmNode>(e);
  const auto* f = as<FloatImmNode>(e);
  const double v = i ? static_cast<double>(i->value) : f ? f->value : -1;
  return c == Combine::add ? v == 0 && !(f && std::signbit(v)) : c == Combine::mul && v == 1;
}

}  // namespace

std::string CslEmitter::run() {
  const Ways ways(p_);
  const bool any_x = ways.x, any_y = ways.y;
  std::string body;
  for (std::size_t i = 0; i < p_.stages.size(); ++i) body += stage(i);
  for (std::size_t k = 0; k < p_.takes.size(); ++k) body += take(k);
  std::string head =
      cat("// Every PE of the ", p_.width, " x ", p_.height, " rectangle runs this program; ",
          p_.name, " in ", p_.stages.size(), p_.stages.size() == 1 ? " stage.\n" : " stages.\n",
          "param memcpy_params: comptime_struct;\n",
          "const sys_mod = @import_module(\"<memcpy/memcpy>\", memcpy_params);\n"
          "const layout_mod = @import_module(\"<layout>\");\n",
          uses_math_ ? "const math = @import_module(\"<math>\");\n" : "");
  struct Way {
    bool used;
    const char *name, *comment, *first, *last;  // edges that do not send, that do not receive
    int in, out2, out3;                         // queues; WSE-3 has more
  };
  const Way all_ways[] = {
      {ways.x, "x", "Along the row from the east towards the west.", "x_first", "x_last", 2, 3, 3},
      {ways.y, "y", "Along the column from the south towards the north.", "y_first", "y_last", 4, 5,
       5},
      {ways.east, "e", "Along the row from the west towards the east.", "x_last", "x_first", 3, 2,
       6},
      {ways.south, "s", "Along the column from the north towards the south.", "y_last", "y_first",
       7, 4, 7}};
  if (any_x || ways.east) head += "param x_first: bool;\nparam x_last: bool;\n";
  if (any_y || ways.south) head += "param y_first: bool;\nparam y_last: bool;\n";
  for (const Way& w : all_ways) {
    if (!w.used) continue;
    const std::string n = w.name;
    head += cat("// ", w.comment, "\nparam ", n, "_in: color;\nparam ", n, "_out: color;\nconst ",
                n, "_in_queue = @get_input_queue(", w.in, ");\nconst ", n,
                "_out_queue = @get_output_queue(if (@is_arch(\"wse3\")) ", w.out3, " else ", w.out2,
                ");\n");
  }
  if (ways.row)
    head += "// From the first column to all PEs of the row.\nparam row_color: color;\n";
  if (ways.all) head += "// From the first PE to all.\nparam all_color: color;\n";
  for (DType t : {dtypes::float32, dtypes::float16, dtypes::int32, dtypes::int16, dtypes::uint32,
                  dtypes::uint16}) {
    if (std::int64_t n = p_.gathered(t))
      head += cat("// Parts of a buffer from several PEs.\nvar gathered_", csl_type(t),
                  " = @zeros([", n, "]", csl_type(t), ");\n");
  }
  for (const auto& [type, n] : scratch_) {
    if (n) head += cat("var scratch_", type, " = @zeros([", n, "]", type, ");\n");
  }
  if (p_.has_panels()) head += panel_head();
  for (const auto& [name, text] : helpers_) head += text;
  std::string tail = "\ncomptime {\n";
  for (const Way& w : all_ways) {
    if (!w.used) continue;
    const std::string n = w.name;
    tail += cat("  if (@is_arch(\"wse3\")) {\n    if (!", w.last, ") @initialize_queue(", n,
                "_in_queue, .{ .color = ", n, "_in });\n    if (!", w.first, ") @initialize_queue(",
                n, "_out_queue, .{ .color = ", n, "_out });\n  }\n");
  }
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
  for (std::size_t k = 0; k < p_.takes.size(); ++k) tail += cat("  @export_symbol(take", k, ");\n");
  return head + body + tail + "}\n";
}

std::string CslEmitter::take(std::size_t number_of) {
  const Take& t = p_.takes[number_of];
  std::string text =
      number_of ? std::string() : "\n// Results that the next call reads where they lie.\n";
  for (const std::string& array : {t.from, t.to}) {
    const std::string line = descriptor(cat(array, "_whole"), array, t.size);
    if (declared_.insert(line.substr(0, line.size() - 1)).second) text += line;
  }
  return cat(text, "fn take", number_of, "() void {\n  ", t.dtype.bits == 16 ? "@mov16" : "@mov32",
             "(", t.to, "_whole, ", t.from, "_whole);\n  sys_mod.unblock_cmd_stream();\n}\n");
}

std::string CslEmitter::declare(const LocalArray& a) {
  if (a.kept) return cat("// ", p_.buffers[a.buffer].name, " stays in ", a.name, "\n");
  std::string t = csl_type(p_.buffers[a.buffer].dtype);
  std::string dims;
  for (std::int64_t e : a.extent) dims += cat(dims.empty() ? "" : " x ", e);
  if (a.on_wafer())
    return cat("var ", a.name, " = @zeros([", a.size(), "]", t, ");   // ",
               p_.buffers[a.buffer].name, ", ", dims, ", from ", a.move.from, " over the fabric\n");
  return cat("var ", a.name, " = @zeros([", a.size(), "]", t, ");   // ", p_.buffers[a.buffer].name,
             dims.empty() ? std::string() : cat(", ", dims), "\nvar ", a.name, "_ptr: [*]", t,
             " = &", a.name, ";\n");
}

std::string CslEmitter::index(const Stage& s, const LocalArray& a,
                              const std::vector<std::int64_t>& offset,
                              const std::vector<std::size_t>& without) {
  const std::vector<std::int64_t> strides = a.strides();
  std::int64_t constant = 0;
  for (std::size_t d = 0; d < offset.size(); ++d) constant += offset[d] * strides[d];
  std::string out;
  for (std::size_t k = 0; k < s.iters.size(); ++k) {
    const std::int64_t factor = factor_of(s, a, k);
    if (factor == 0 || std::find(without.begin(), without.end(), k) != without.end()) continue;
    out += cat(out.empty() ? "" : " + ", s.iters[k].name,
               factor == 1 ? std::string() : cat(" * ", factor));
  }
  if (constant || out.empty()) out += cat(out.empty() ? "" : " + ", constant);
  return out;
}

std::int64_t CslEmitter::factor_of(const Stage& s, const LocalArray& a, std::size_t k) {
  const std::vector<std::int64_t> strides = a.strides();
  std::int64_t f = 0;
  for (std::size_t d = 0; d < strides.size(); ++d) f += a.coef[d][k] * strides[d];
  return s.iters[k].extent == 1 ? 0 : f;
}

std::vector<std::int64_t> CslEmitter::output_offset(const Stage& s) {
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

std::string CslEmitter::helper(const std::string& name, const std::string& text) {
  helpers_[name] = text;
  return name;
}

std::string CslEmitter::loops(const Stage& s, const std::function<bool(std::size_t)>& wanted,
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

std::string CslEmitter::temporary(int number, std::int64_t count, DType t) {
  const std::string type = csl_type(t), name = cat("temporary_", type, "_", count, "_", number);
  std::int64_t& held = scratch_[type];
  const std::int64_t need = std::max(held, (number + 1) * count);
  std::int64_t others = 0;
  for (const auto& [other, n] : scratch_) {
    if (other != type) others += n * (other.ends_with("16") ? 2 : 4);
  }
  if (others + need * t.bytes() > p_.scratch_bytes) return {};
  held = need;
  dsds_ += cat("const ", name, " = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{", count,
               "} -> scratch_", type, "[i + ", number * count, "] });\n");
  return name;
}

void CslEmitter::init(const Stage& s, std::string& body) {
  const DType dtype = p_.buffers[s.output.buffer].dtype;
  auto spatial = [&](std::size_t k) { return !s.iters[k].reduce; };
  const std::string place = cat(s.output.name, "[", index(s, s.output, output_offset(s)), "]");
  auto fill = [&](const std::string& value) {
    const std::string all = cat(s.output.name, "_whole");
    dsds_ += descriptor(all, s.output.name, s.output.size());
    body += cat("  ", dtype.bits == 16 ? "@mov16" : "@mov32", "(", all, ", ", value, ");\n");
  };
  bool constant = !s.init_guard && (as<IntImmNode>(s.init) || as<FloatImmNode>(s.init));
  if (constant && !s.keeps && s.reduced == Partition::none) return fill(expr(s, s.init));
  std::string indent = "  ", begin = cat(place, " = ", expr(s, s.init), ";\n");
  if (s.init_guard)
    begin = cat("if ", expr(s, s.init_guard), " { ", place, " = ", expr(s, s.init), "; }\n");
  if (s.reduced == Partition::none) {
    std::string closing = loops(s, spatial, body, indent);
    body += cat(indent, begin, closing);
    return;
  }
  // One PE of the chain begins with the init, the others with nothing.
  fill(cat("@as(", csl_type(dtype), ", ", identity(s.combine, dtype), ")"));
  if (constant && is_identity(s.combine, s.init)) return;
  body += cat("  if (px == 0", s.reduced == Partition::xy ? " and py == 0" : "", ") {\n");
  indent = "    ";
  std::string inner, ends;
  loops(s, spatial, inner, indent);
  for (std::string at = indent; at.size() > 4;) {
    at.resize(at.size() - 2);
    ends += cat(at, "}\n");
  }
  body += cat(inner, indent, begin, ends, "  }\n");
}

// Which part of each iterator this PE has, and the PE's place, as far as the body asks for them.
std::string CslEmitter::parts(const Stage& s, const std::string& body) const {
  std::string out;
  for (const StageIter& i : s.iters) {
    if (i.extent == 1) continue;
    const std::string& name = i.name;
    if (i.partition == Partition::none) {
      out += cat("  const n_", name, ": i32 = ", i.extent, ";\n");
      continue;
    }
    const bool columns = i.partition != Partition::y, rows = i.partition != Partition::x;
    const std::int64_t count =
        std::int64_t{columns ? p_.width : 1} * std::int64_t{rows ? p_.height : 1};
    const bool even = count * i.chunk == i.extent;
    out += cat("  // ", i.var->name, ": ", i.extent, " in parts of ", i.chunk, " over ",
               !rows      ? "the columns"
               : !columns ? "the rows"
                          : "all PEs",
               "\n");
    if (!even || body.find(cat("lo_", name)) != std::string::npos) {
      const std::string at = count == 1 ? "0"
                             : !rows    ? "px"
                             : !columns ? "py"
                                        : cat("(py * ", p_.width, " + px)");
      out += cat("  const lo_", name, ": i32 = ", at, " * ", i.chunk, ";\n");
    }
    if (even) out += cat("  const n_", name, ": i32 = ", i.chunk, ";\n");
    else
      out += cat("  var n_", name, ": i32 = ", i.extent, " - lo_", name, ";\n  if (n_", name, " > ",
                 i.chunk, ") { n_", name, " = ", i.chunk, "; }\n  if (n_", name, " < 0) { n_", name,
                 " = 0; }\n");
  }
  for (const char* place : {"py", "px"}) {
    if (out.find(place) != std::string::npos || body.find(place) != std::string::npos)
      out = cat("  const ", place, " = @as(i32, layout_mod.get_", place[1] == 'x' ? "x" : "y",
                "_coord());\n", out);
  }
  return out;
}

std::string CslEmitter::stage(std::size_t number_of) {
  const Stage& s = p_.stages[number_of];
  if (s.panels) return panels(s, number_of);
  const DType dtype = p_.buffers[s.output.buffer].dtype;
  std::string t = csl_type(dtype), text;
  dsds_.clear();
  std::string arrays = cat("\n// ---- ", s.name, "\n");
  for (const LocalArray& a : s.inputs) arrays += declare(a);
  arrays += declare(s.output);
  std::string body;
  for (const LocalArray& a : s.inputs) {
    if (a.move.kind != Redistribution::Kind::none) body += movement(s, a);
  }
  auto all = [](std::size_t) { return true; };
  std::string place = cat(s.output.name, "[", index(s, s.output, output_offset(s)), "]");
  if (s.combine != Combine::none && s.init) init(s, body);
  if (!VectorStage(*this, s).write(body)) {
    std::string indent = "  ";
    std::string value = expr(s, s.value);
    std::string closing = loops(s, all, body, indent);
    std::string update =
        cat(place, " = ", s.combine == Combine::none ? value : combined(s.combine, place, value, t),
            ";");
    if (s.guard) update = cat("if ", expr(s, s.guard), " { ", update, " }");
    body += cat(indent, update, "\n", closing);
  }
  if ((s.reduced == Partition::x || s.reduced == Partition::xy) && p_.width > 1)
    body += chain(s, "x", "true", 2, 3);
  if (s.reduced == Partition::xy && p_.height > 1) body += chain(s, "y", "px == 0", 4, 5);
  body = cat("fn stage", number_of, "() void {\n", parts(s, body), body,
             "  sys_mod.unblock_cmd_stream();\n}\n");
  std::string fresh;  // stages share descriptors of one array
  for (const std::string& line : split(dsds_, '\n')) {
    if (!line.empty() && declared_.insert(line).second) fresh += line + "\n";
  }
  return arrays + fresh + body;
}

std::string pe_text(const StageProgram& program) { return CslEmitter(program).run(); }

}  // namespace weft::wse
