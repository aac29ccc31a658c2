// SPDX-License-Identifier: Apache-2.0
// CSL text of what crosses the fabric: chains of sums, broadcasts, gathers.
#include "weft/targets/wse/emit_csl.h"

namespace weft::wse {

using namespace ir;

std::string CslEmitter::chain(const Stage& s, const char* axis, const std::string& guard,
                              int in_queue, int out_queue) {
  const DType dtype = p_.buffers[s.output.buffer].dtype;
  std::string t = csl_type(dtype), n = s.label;
  std::int64_t size = s.output.size();
  std::string mov = dtype.bits == 16 ? "@mov16" : "@mov32";
  // Not @fmaxs for maxima: it drops NaN.
  std::string add = dtype == dtypes::float32 && s.combine == Combine::add   ? "@fadds"
                    : dtype == dtypes::float16 && s.combine == Combine::add ? "@faddh"
                                                                            : "";
  std::string body;
  dsds_ += cat("const ", n, "_all = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{", size, "} -> ", n,
               "[i] });\n");
  if (add.empty())
    dsds_ += cat("var ", n, "_", axis, "_got = @zeros([", size, "]", t, ");\nconst ", n, "_", axis,
                 "_gotten = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{", size, "} -> ", n, "_",
                 axis, "_got[i] });\n");
  body +=
      cat("  // Sums of the PEs further on the axis come in, the own ones are added, and go on.\n  "
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
    body += cat("      ", mov, "(", n, "_", axis, "_gotten, from);\n      for (@range(i32, ", size,
                ")) |i| { ", n,
                "[i] = ", combined(s.combine, cat(n, "[i]"), cat(n, "_", axis, "_got[i]"), t),
                "; }\n    }\n    if (!", axis, "_first) {\n");
  }
  body += cat("      const to = @get_dsd(fabout_dsd, .{ .extent = ", size,
              ", .fabric_color = ", axis, "_out, .output_queue = @get_output_queue(", out_queue,
              ") });\n      ", mov, "(to, ", n, "_all);\n    }\n  }\n");
  return body;
}

std::string CslEmitter::descriptor(const std::string& name, const std::string& array,
                                   std::int64_t n) {
  return cat("const ", name, " = @get_dsd(mem1d_dsd, .{ .tensor_access = |i|{", n, "} -> ", array,
             "[i] });\n");
}

std::string CslEmitter::fabric(bool in, const std::string& extent, const char* color, int queue) {
  return cat("@get_dsd(", in ? "fabin" : "fabout", "_dsd, .{ .extent = ", extent,
             ", .fabric_color = ", color,
             in ? ", .input_queue = @get_input_queue(" : ", .output_queue = @get_output_queue(",
             queue, ") })");
}

std::string CslEmitter::movement(const LocalArray& a) {
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
               "(", fabric(false, n, color, row ? 2 : 4), ", ", there, ");\n  } else {\n    ", mov,
               "(", here, ", ", fabric(true, n, color, row ? 5 : 6), ");\n  }\n");
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

std::string CslEmitter::gather(const LocalArray& a, const std::string& mov, std::int64_t box) {
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
    out += cat("  if (px > 0) {\n    ", mov, "(", fabric(false, cat(box), "x_out", 3), ", ", own,
               ");\n    if (px < ", p_.width - 1, ") {\n      const n = @as(u16, (", p_.width - 1,
               " - px) * ", box, ");\n      ", passed("x", 2, 3, "n"), "\n    }\n  } else {\n    ",
               mov, "(", part(0, box), ", ", own, ");\n    ", mov, "(", part(box, line - box), ", ",
               fabric(true, cat(line - box), "x_in", 2), ");\n  }\n");
  } else {
    out += cat("  if (px == 0) ", mov, "(", part(0, box), ", ", own, ");\n");
  }
  if (m.rows > 1) {
    out += cat("  if (px == 0 and py > 0) {\n    ", mov, "(", fabric(false, cat(line), "y_out", 5),
               ", ", part(0, line), ");\n    if (py < ", p_.height - 1,
               ") {\n      const n = @as(u16, (", p_.height - 1, " - py) * ", line, ");\n      ",
               passed("y", 4, 5, "n"), "\n    }\n  } else if (px == 0) {\n    ", mov, "(",
               part(line, total - line), ", ", fabric(true, cat(total - line), "y_in", 4),
               ");\n  }\n");
  }
  if (m.within_row ? p_.width == 1 : p_.width * p_.height == 1) return out;
  const char* color = m.within_row ? "row_color" : "all_color";
  return cat(out, "  if (px == 0", m.within_row ? "" : " and py == 0", ") {\n    ", mov, "(",
             fabric(false, cat(total), color, m.within_row ? 2 : 4), ", ", all,
             ");\n  } else {\n    ", mov, "(", all, ", ",
             fabric(true, cat(total), color, m.within_row ? 5 : 6), ");\n  }\n");
}

}  // namespace weft::wse
