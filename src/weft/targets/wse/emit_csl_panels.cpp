// SPDX-License-Identifier: Apache-2.0
// CSL text of products whose operands travel. Every PE sends its part of A along its row and its
// part of B along its column at once; routers let the parts through in the order of the reduction,
// so that each PE sees all of A's columns and B's rows in step. Two colors serve an axis:
//
//   onward (east, south): PE n takes what comes from before it until the part of PE n - 1 has
//     passed; the control wavelet behind that part turns n's switch to its own ramp. A part comes
//     back over the sender's own ramp, so that no PE treats its own part in another way.
//   back (west, north): a switch lets a PE's own part out first, then what comes from behind it.
//     The last sender's control wavelet resets all switches.
//
// Nothing waits for anything else: the order is the routers'.
#include "weft/targets/wse/emit_csl.h"
#include "weft/targets/wse/emit_csl_vector.h"

namespace weft::wse {

using namespace ir;

namespace {

std::string mov_of(DType t) { return t.bits == 16 ? "@mov16" : "@mov32"; }

}  // namespace

PanelSide CslEmitter::panel_side(const Stage& s, bool along_x) {
  const Panels& p = *s.panels;
  PanelSide out;
  out.own = along_x ? p.i : p.j;
  out.divided = s.iters.size() - (along_x ? 2 : 1);
  for (const LocalArray& a : s.inputs) {
    if (factor_of(s, a, out.divided)) out.array = &a;
  }
  out.part = along_x ? p.a_part : p.b_part;
  out.rows = s.iters[out.own].chunk;
  out.stride = factor_of(s, *out.array, out.own);
  out.stride_k = factor_of(s, *out.array, out.divided);
  out.block = p.block;
  out.steps = p.steps;
  return out;
}

std::string CslEmitter::panel_head() const {
  const bool x = p_.width > 1, y = p_.height > 1;
  std::string out =
      "// Parts that travel: onward is east and south, back is west and north.\n"
      "const control = @import_module(\"<control>\");\n"
      "const tile_config = @import_module(\"<tile_config>\");\n"
      "const let_next = control.encode_payload(2, [2]control.opcode{ control.opcode.SWITCH_RST, "
      "control.opcode.SWITCH_ADV }, [2]bool{ true, true }, true, {});\n"
      "const reset = control.encode_single_payload(control.opcode.SWITCH_RST, true, {}, 0);\n"
      "const advance = control.encode_single_payload(control.opcode.SWITCH_ADV, true, {}, 0);\n"
      "var panel_step: i32 = 0;\nvar panel_stage: i16 = 0;\nvar panel_open: i16 = 0;\n"
      "const panel_step_id = @get_local_task_id(8);\n";
  // A microthread has the number of its queue unless WSE-3 is told another. A PE takes parts while
  // its own wait for their turn, so that what is taken has microthreads of its own: 6 and 7, on
  // WSE-3 3 and 5. What comes from before and from behind comes in turn and shares one.
  struct Way {
    const char* name;
    int in2, out2, in3, out3, task;
    bool used, onward;
    const char* last;
  };
  const Way ways[] = {{"east", 6, 2, 3, 6, 9, x, true, "panel_last_x"},
                      {"west", 6, 3, 6, 2, 10, x, false, "panel_last_x"},
                      {"south", 7, 4, 5, 7, 11, y, true, "panel_last_y"},
                      {"north", 7, 5, 7, 4, 12, y, false, "panel_last_y"}};
  for (const Way& w : ways) {
    if (!w.used) continue;
    const std::string n = w.name;
    if (w.onward) out += cat("var ", w.last, ": i32 = 0;\n");
    out += cat("param ", n, ": color;\nconst ", n,
               "_in = @get_input_queue(if (@is_arch(\"wse3\")) ", w.in3, " else ", w.in2,
               ");\nconst ", n, "_out = @get_output_queue(if (@is_arch(\"wse3\")) ", w.out3,
               " else ", w.out2, ");\nconst ", n, "_sent_id = @get_local_task_id(", w.task,
               ");\nconst ", n, "_control = @get_dsd(fabout_dsd, .{ .extent = ", w.onward ? 1 : 2,
               ", .fabric_color = ", n, ", .output_queue = ", n, "_out, .control = true });\n");
    const char* at = w.task < 11 ? "get_x_coord" : "get_y_coord";
    if (w.onward)
      out += cat("task ", n, "_sent() void {\n  if (@as(i32, layout_mod.", at, "()) == ", w.last,
                 ") { @mov32(", n, "_control, reset, .{ .async = true }); } else { @mov32(", n,
                 "_control, let_next, .{ .async = true }); }\n  panel_done();\n}\n");
    else
      out += cat("task ", n, "_sent() void {\n  if (@as(i32, layout_mod.", at, "()) == ", w.last,
                 ") { @mov32(@set_dsd_length(", n,
                 "_control, 1), reset, .{ .async = true }); } else { @mov32(", n,
                 "_control, advance, .{ .async = true }); }\n  panel_done();\n}\n");
  }
  out +=
      "fn panel_done() void {\n  panel_open -= 1;\n  if (panel_open == 0) "
      "sys_mod.unblock_cmd_stream();\n}\n";
  out += cat("task panel_go() void {\n", x && y ? "  @block(panel_step_id);\n" : "");
  bool first = true;
  for (std::size_t k = 0; k < p_.stages.size(); ++k) {
    if (!p_.stages[k].panels) continue;
    out += cat(first ? "  " : " else ", "if (panel_stage == ", k, ") { stage", k, "_step(); }");
    first = false;
  }
  out += "\n}\ncomptime {\n  @bind_local_task(panel_go, panel_step_id);\n";
  if (x && y) out += "  @block(panel_step_id);\n";
  for (const Way& w : ways) {
    if (!w.used) continue;
    const std::string n = w.name;
    // What is sent next waits for the hand-over: it must not come after another step's arithmetic.
    out += cat("  @bind_local_task(", n, "_sent, ", n,
               "_sent_id);\n  tile_config.task_priority.update_task_priority(", n,
               "_sent_id, tile_config.task_priority.level.HIGH);\n  if (@is_arch(\"wse3\")) {\n    "
               "@initialize_queue(",
               n, "_in, .{ .color = ", n, " });\n    @initialize_queue(", n,
               "_out, .{ .color = ", n, " });\n  }\n");
  }
  return out + "}\n";
}

std::string CslEmitter::panel_sends(const Stage& s, bool along_x) {
  const PanelSide v = panel_side(s, along_x);
  const DType t = p_.buffers[v.array->buffer].dtype;
  const std::string onward = along_x ? "east" : "south", back = along_x ? "west" : "north",
                    at = along_x ? "px" : "py", last = cat(v.last());
  auto part = [&](const std::string& name, std::int64_t n) {
    return cat("const ", name, " = @get_dsd(mem4d_dsd, .{ .tensor_access = |k, i|{", n, ", ",
               v.rows, "} -> ", v.array->name, "[k * ", v.stride_k, " + i * ", v.stride, "] });\n");
  };
  const std::string name = cat(s.label, along_x ? "_a" : "_b");
  dsds_ += part(cat(name, "_part"), v.part) + part(cat(name, "_rest"), v.rest());
  auto send = [&](const std::string& way, const std::string& from, std::int64_t n) {
    return cat(mov_of(t), "(@get_dsd(fabout_dsd, .{ .extent = ", n * v.rows,
               ", .fabric_color = ", way, ", .output_queue = ", way, "_out }), ", from,
               ", .{ .async = true, .activate = ", way, "_sent_id });");
  };
  std::string out = cat("  ", along_x ? "panel_last_x" : "panel_last_y", " = ", last, ";\n");
  const std::pair<std::string, std::pair<std::string, std::int64_t>> cases[] = {
      {cat(at, " < ", last), {cat(name, "_part"), v.part}},
      {cat(at, " == ", last), {cat(name, "_rest"), v.rest()}}};
  for (const auto& [condition, what] : cases) {
    if (v.last() == 0 && what.first == cat(name, "_part")) continue;
    out += cat("  if (", condition, ") {\n    panel_open += 1;\n    ",
               send(onward, what.first, what.second), "\n    if (", at,
               " > 0) {\n      panel_open += 1;\n      ", send(back, what.first, what.second),
               "\n    }\n  }\n");
  }
  return out;
}

std::string CslEmitter::panel_receives(const Stage& s, bool along_x) {
  const PanelSide v = panel_side(s, along_x);
  const DType t = p_.buffers[v.array->buffer].dtype;
  const std::string name = cat(s.label, along_x ? "_a" : "_b"), type = csl_type(t),
                    at = along_x ? "layout_mod.get_x_coord()" : "layout_mod.get_y_coord()",
                    done = !along_x && p_.width > 1 ? "unblock" : "activate";
  dsds_ += descriptor(cat(name, "_block_d"), cat(name, "_block"), v.piece());
  auto take = [&](const char* way) {
    const std::string what = cat(mov_of(t), "(to, @get_dsd(fabin_dsd, .{ .extent = ", v.piece(),
                                 ", .fabric_color = ", way, ", .input_queue = ", way,
                                 "_in }), .{ .async = true, .", done, " = panel_step_id");
    return cat("if (@is_arch(\"wse3\")) { ", what, ", .ut_id = @get_ut_id(", along_x ? 3 : 5,
               ") }); } else { ", what, " }); }");
  };
  return cat("  {\n    const to = @increment_dsd_offset(", name, "_block_d, @as(i16, (step & 1) * ",
             v.piece(), "), ", type, ");\n    if (step * ", v.block, " < (@as(i32, ", at,
             ") + 1) * ", v.part, ") {\n      ", take(along_x ? "east" : "south"),
             "\n    } else {\n      ", take(along_x ? "west" : "north"), "\n    }\n  }\n");
}

std::string CslEmitter::panel_block(const Stage& s, std::size_t number_of) {
  const Panels& p = *s.panels;
  const DType t = p_.buffers[s.output.buffer].dtype;
  const std::string type = csl_type(t);
  struct Operand {
    std::string array, at;  // where the block begins
    std::int64_t stride, stride_k, rows;
  };
  auto operand = [&](bool along_x) -> Operand {
    const PanelSide v = panel_side(s, along_x);
    if ((along_x ? p_.width : p_.height) == 1)
      return {v.array->name, cat("step * ", v.block * v.stride_k), v.stride, v.stride_k, v.rows};
    return {cat(s.label, along_x ? "_a_block" : "_b_block"), cat("(step & 1) * ", v.piece()), 1,
            v.rows, v.rows};
  };
  const Operand a = operand(true), b = operand(false);
  const std::int64_t ci = factor_of(s, s.output, p.i), cj = factor_of(s, s.output, p.j);
  std::string out = cat("  // Block by block of ", p.block, " of ", s.iters[p.k].extent,
                        ".\n  const step = panel_step;\n  panel_step += 1;\n");
  if (p.steps > 1)
    out += cat("  if (panel_step < ", p.steps, ") stage", number_of, "_receive(panel_step);\n");
  out +=
      cat("  var n: i32 = ", s.iters[p.k].extent, " - step * ", p.block, ";\n  if (n > ", p.block,
          ") { n = ", p.block, "; }\n  const a_at = ", a.at, ";\n  const b_at = ", b.at, ";\n");
  auto vector = [&](const std::string& name, const std::string& array, std::int64_t n,
                    std::int64_t stride) {
    dsds_ += cat("const ", name, " = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{", n, "} -> ",
                 array, "[i * ", stride, "] });\n");
  };
  auto box = [&](const std::string& name, const std::string& array, std::int64_t si,
                 std::int64_t sj) {
    // Rows that lie one after the other are one vector: no step between rows has a bank conflict.
    if (si == b.rows * sj) return vector(name, array, a.rows * b.rows, sj);
    dsds_ += cat("const ", name, " = @get_dsd(mem4d_dsd, .{ .tensor_access = |i, j|{", a.rows, ", ",
                 b.rows, "} -> ", array, "[i * ", si, " + j * ", sj, "] });\n");
  };
  auto moved = [&](const std::string& name, const std::string& by) {
    return cat("@increment_dsd_offset(", name, ", @as(i16, ", by, "), ", type, ")");
  };
  const std::string a_k = cat("a_at + k * ", a.stride_k), b_k = cat("b_at + k * ", b.stride_k);
  if (!t.is_float()) {
    return cat(out, "  for (@range(i32, n)) |k| {\n    for (@range(i32, ", a.rows,
               ")) |i| {\n      for (@range(i32, ", b.rows, ")) |j| { ", s.output.name, "[i * ", ci,
               " + j * ", cj, "] += ", a.array, "[", a_k, " + i * ", a.stride, "] * ", b.array, "[",
               b_k, " + j * ", b.stride, "]; }\n    }\n  }\n");
  }
  const char half = t == dtypes::float16 ? 'h' : 's';
  const auto mac = cycles_per_element(cat("fmac", std::string(1, half))),
             apart = cycles_per_element(cat("fmul", std::string(1, half))) +
                     cycles_per_element(cat("fadd", std::string(1, half)));
  const double rows = static_cast<double>(a.rows), columns = static_cast<double>(b.rows);
  const double by_j = rows * (kVectorStart + columns * mac),
               by_i = columns * (kVectorStart + rows * mac),
               outer = 2 * kVectorStart + rows * columns * apart;
  const std::string whole = outer < std::min(by_i, by_j) ? temporary(0, a.rows * b.rows, t) : "";
  if (!whole.empty()) {  // all products of a column of A and a row of B, then their sum
    box(cat(s.label, "_a_outer"), a.array, a.stride, 0);
    box(cat(s.label, "_b_outer"), b.array, 0, b.stride);
    box(cat(s.label, "_outer"), s.output.name, ci, cj);
    return cat(out, "  for (@range(i32, n)) |k| {\n    @fmul", half, "(", whole, ", ",
               moved(cat(s.label, "_a_outer"), a_k), ", ", moved(cat(s.label, "_b_outer"), b_k),
               ");\n    @fadd", half, "(", s.label, "_outer, ", s.label, "_outer, ", whole,
               ");\n  }\n");
  }
  const bool over_j = by_j <= by_i;
  const Operand &vec = over_j ? b : a, &one = over_j ? a : b;
  vector(cat(s.label, "_line"), s.output.name, vec.rows, over_j ? cj : ci);
  vector(cat(s.label, "_operand"), vec.array, vec.rows, vec.stride);
  return cat(
      out, "  for (@range(i32, n)) |k| {\n    const vec = ",
      moved(cat(s.label, "_operand"), over_j ? b_k : a_k), ";\n    for (@range(i32, ", one.rows,
      ")) |i| {\n      const acc = ", moved(cat(s.label, "_line"), cat("i * ", over_j ? ci : cj)),
      ";\n      @fmac", half, "(acc, acc, vec, ", one.array, "[", over_j ? a_k : b_k, " + i * ",
      one.stride, "]);\n    }\n  }\n");
}

std::string CslEmitter::panels(const Stage& s, std::size_t number_of) {
  const bool x = p_.width > 1, y = p_.height > 1;
  dsds_.clear();
  std::string arrays = cat("\n// ---- ", s.name, "\n");
  for (const LocalArray& a : s.inputs) arrays += declare(a);
  arrays += declare(s.output);
  const std::string type = csl_type(p_.buffers[s.output.buffer].dtype);
  std::string body, receive = cat("fn stage", number_of, "_receive(step: i32) void {\n");
  body = cat("fn stage", number_of,
             "() void {\n  const px = @as(i32, layout_mod.get_x_coord());\n  const py = @as(i32, "
             "layout_mod.get_y_coord());\n  panel_stage = ",
             number_of, ";\n  panel_step = 0;\n  panel_open = 1;\n");
  for (bool along_x : {true, false}) {
    if (!(along_x ? x : y)) continue;
    const PanelSide v = panel_side(s, along_x);
    arrays +=
        cat("var ", s.label, along_x ? "_a_block" : "_b_block", " = @zeros([", 2 * v.piece(), "]",
            type, ");   // ", p_.buffers[v.array->buffer].name, " in blocks of ", v.block, "\n");
    body += panel_sends(s, along_x);
    receive += panel_receives(s, along_x);
  }
  init(s, body);
  body += cat("  stage", number_of, "_receive(0);\n}\n");
  std::string step = cat("fn stage", number_of, "_step() void {\n", panel_block(s, number_of),
                         "  if (panel_step == ", s.panels->steps, ") {\n");
  // What comes from behind may come at once the next time; what comes from before comes first.
  for (const char* way : {"east", "south"}) {
    if (way[0] == 'e' ? x : y)
      step += cat("    if (@is_arch(\"wse2\")) { tile_config.queue_config.set_input_queue_color(",
                  way, "_in, ", way, "); }\n");
  }
  step += "    panel_done();\n  }\n}\n";
  std::string fresh;
  for (const std::string& line : split(dsds_, '\n')) {
    if (!line.empty() && declared_.insert(line).second) fresh += line + "\n";
  }
  return arrays + fresh + receive + "}\n" + step + body;
}

}  // namespace weft::wse
