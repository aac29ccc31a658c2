// SPDX-License-Identifier: Apache-2.0
// CSL text of the layout: one program on every PE, the routes between them, the names that the host
// knows.
#include "weft/targets/wse/emit_csl.h"

namespace weft::wse {

Ways::Ways(const StageProgram& p) {
  for (const Stage& s : p.stages) {
    x |= s.reduced == Partition::x || s.reduced == Partition::xy;
    y |= s.reduced == Partition::xy;
    for (const LocalArray& a : s.inputs) {
      const Redistribution& m = a.move;
      if (m.kind == Redistribution::Kind::halo) {
        for (std::size_t d = 0; d < a.extent.size(); ++d) {
          const bool along_x = m.parts[d].partition == Partition::x;
          (along_x ? east : south) |= m.before[d] > 0;
          (along_x ? x : y) |= m.after[d] > 0;
        }
      }
      row |= m.kind == Redistribution::Kind::row;
      all |= m.kind == Redistribution::Kind::all;
      if (m.kind != Redistribution::Kind::gather || m.here) continue;
      x |= m.columns > 1;
      y |= m.rows > 1;
      (m.within_row ? row : all) = true;
    }
  }
  x &= p.width > 1;
  y &= p.height > 1;
  east &= p.width > 1;
  south &= p.height > 1;
  row &= p.width > 1;
  all &= p.width * p.height > 1;
}

namespace {

/// Routes of one axis of travelling parts (emit_csl_panels.cpp).
std::string panel_routes(const std::string& at, std::int32_t n, const std::string& onward,
                         const std::string& back) {
  auto upper = [](std::string text) {
    for (char& c : text) c = static_cast<char>(c - 'a' + 'A');
    return text;
  };
  auto route = [&](const std::string& when, const std::string& color, const std::string& rx,
                   const std::string& tx, const std::string& switches) {
    return cat("      ", when, "@set_color_config(px, py, ", color, ", .{ .routes = .{ .rx = .{ ",
               rx, " }, .tx = .{ ", tx, " } }", switches.empty() ? "" : ", .switches = .{ ",
               switches, switches.empty() ? "" : " }", " });\n");
  };
  const std::string to = upper(onward), from = upper(back),
                    pop = ".pop_mode = .{ .always_pop = true }",
                    own = cat(".pos1 = .{ .rx = RAMP }, ", pop),
                    through = cat(".pos1 = .{ .tx = .{ RAMP, ", from, " } }, .pos2 = .{ .rx = ", to,
                                  " }");
  const std::string first = cat("if (", at, " == 0) "), last = cat("if (", at, " == ", n - 1, ") "),
                    inner = cat("if (", at, " > 0 and ", at, " < ", n - 1, ") ");
  std::string out = route(first, onward, "RAMP", cat("RAMP, ", to), pop) +
                    route(last, onward, from, "RAMP", own) + route(first, back, to, "RAMP", "") +
                    route(last, back, "RAMP", from, "");
  if (n > 2)
    out += route(inner, onward, from, cat("RAMP, ", to), own) +
           route(inner, back, "RAMP", from, through);
  return out;
}

}  // namespace

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
  if (ways.east) out += "const e_colors = [2]color{ @get_color(10), @get_color(11) };\n";
  if (ways.south) out += "const s_colors = [2]color{ @get_color(12), @get_color(13) };\n";
  if (ways.row) out += "const row_color = @get_color(4);\n";
  if (ways.all) out += "const all_color = @get_color(5);\n";
  const bool panel_x = p.has_panels() && p.width > 1, panel_y = p.has_panels() && p.height > 1;
  if (panel_x) out += "const east = @get_color(6);\nconst west = @get_color(7);\n";
  if (panel_y) out += "const south = @get_color(8);\nconst north = @get_color(9);\n";
  out += cat("\nlayout {\n  @set_rectangle(", p.width, ", ", p.height, ");\n  for (@range(u16, ",
             p.width, ")) |px| {\n    for (@range(u16, ", p.height, ")) |py| {\n",
             "      @set_tile_code(px, py, \"pe.csl\", .{\n        .memcpy_params = "
             "memcpy.get_params(px),\n");
  if (x || ways.east)
    out += cat("        .x_first = px == 0, .x_last = px == ", p.width - 1, ",\n");
  if (y || ways.south)
    out += cat("        .y_first = py == 0, .y_last = py == ", p.height - 1, ",\n");
  if (ways.east) out += "        .e_out = e_colors[px % 2], .e_in = e_colors[(px + 1) % 2],\n";
  if (ways.south) out += "        .s_out = s_colors[py % 2], .s_in = s_colors[(py + 1) % 2],\n";
  if (x) out += cat("        .x_out = x_colors[px % 2], .x_in = x_colors[(px + 1) % 2],\n");
  if (y) out += cat("        .y_out = y_colors[py % 2], .y_in = y_colors[(py + 1) % 2],\n");
  if (ways.row) out += "        .row_color = row_color,\n";
  if (ways.all) out += "        .all_color = all_color,\n";
  if (panel_x) out += "        .east = east, .west = west,\n";
  if (panel_y) out += "        .south = south, .north = north,\n";
  out += "      });\n";
  if (panel_x) out += panel_routes("px", p.width, "east", "west");
  if (panel_y) out += panel_routes("py", p.height, "south", "north");
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
  if (ways.east)
    out += cat("      if (px < ", p.width - 1,
               ") @set_color_config(px, py, e_colors[px % 2], .{ .routes = .{ .rx = .{ RAMP }, .tx "
               "= .{ EAST } } });\n      if (px > 0) @set_color_config(px, py, e_colors[(px + 1) % "
               "2], .{ .routes = .{ .rx = .{ WEST }, .tx = .{ RAMP } } });\n");
  if (ways.south)
    out +=
        cat("      if (py < ", p.height - 1,
            ") @set_color_config(px, py, s_colors[py % 2], .{ .routes = .{ .rx = .{ RAMP }, .tx "
            "= .{ SOUTH } } });\n      if (py > 0) @set_color_config(px, py, s_colors[(py + 1) % "
            "2], .{ .routes = .{ .rx = .{ NORTH }, .tx = .{ RAMP } } });\n");
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
  for (std::size_t k = 0; k < p.takes.size(); ++k)
    out += cat("  @export_name(\"take", k, "\", fn()void);\n");
  return out + "}\n";
}

}  // namespace weft::wse
