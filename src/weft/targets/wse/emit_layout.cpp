// SPDX-License-Identifier: Apache-2.0
// CSL text of the layout: one program on every PE, the routes between them, the names that the host
// knows.
#include "weft/targets/wse/emit_csl.h"

namespace weft::wse {

Ways::Ways(const StageProgram& p) {
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
