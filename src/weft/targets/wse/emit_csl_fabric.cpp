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

std::string CslEmitter::halo(const LocalArray& a, bool corners) {
  const Redistribution& m = a.move;
  const std::string mov = p_.buffers[a.buffer].dtype.bits == 16 ? "@mov16" : "@mov32";
  const std::size_t rank = a.extent.size();
  struct Box {
    std::vector<std::int64_t> start, extent;
    std::int64_t size() const {
      std::int64_t n = 1;
      for (std::int64_t e : extent) n *= e;
      return n;
    }
  };
  auto describe = [&](const char* what, const std::string& array,
                      const std::vector<std::int64_t>& shape, const Box& box) {
    std::string variables, extents, place;
    std::int64_t stride = 1, at = 0;
    int dims = 0;
    for (std::size_t d = rank; d-- > 0;) {
      at += box.start[d] * stride;
      if (box.extent[d] > 1) {
        const std::string v(1, static_cast<char>('i' + dims));
        variables = cat(v, dims ? ", " : "", variables);
        extents = cat(box.extent[d], dims ? ", " : "", extents);
        place += cat(" + ", v, " * ", stride);
        ++dims;
      }
      stride *= shape[d];
    }
    if (dims == 0) variables = "i", extents = "1";
    const std::string name = cat(a.name, "_", what);
    dsds_ += cat("const ", name, " = @get_dsd(", dims > 1 ? "mem4d" : "mem1d",
                 "_dsd, .{ .tensor_access = |", variables, "|{", extents, "} -> ", array, "[", at,
                 place, "] });\n");
    return name;
  };
  // What the own part and the box have in common, in the box and in the part.
  Box here, part;
  for (std::size_t d = 0; d < rank; ++d) {
    const std::int64_t before = std::max<std::int64_t>(m.before[d], 0),
                       after = std::max<std::int64_t>(m.after[d], 0);
    here.start.push_back(before);
    here.extent.push_back(a.extent[d] - before - after);
    part.start.push_back(std::max<std::int64_t>(-m.before[d], 0));
    part.extent.push_back(here.extent.back());
  }
  std::string out = cat("  // Borders of ", p_.buffers[a.buffer].name,
                        " come from the neighbours.\n"),
              take;
  const std::string copy = cat("  ", mov, "(", describe("here", a.name, a.extent, here), ", ",
                               describe("own", m.from, m.box, part), ");\n");
  // `from_own`: `array` is the own part rather than the box.
  auto exchange = [&](std::size_t d, bool along_x, bool from_own, const std::string& array,
                      const std::vector<std::int64_t>& shape, Box send, Box take_at) {
    const std::int64_t own = from_own ? part.extent[d] : m.box[d],
                       n = along_x ? p_.width : p_.height;
    const std::string at = along_x ? "px" : "py";
    std::string sends, takes;
    for (bool onward : {true, false}) {
      const std::int64_t count = onward ? m.before[d] : m.after[d];
      if (count <= 0 || n == 1) continue;
      const char* way = onward ? (along_x ? "e" : "s") : (along_x ? "x" : "y");
      const std::int64_t first = from_own ? 0 : m.before[d];
      send.extent[d] = take_at.extent[d] = count;
      send.start[d] = onward ? first + own - count : first;
      take_at.start[d] = onward ? 0 : m.before[d] + own;
      const std::string extent = cat(send.size()),
                        from = describe(cat(way, "_send").c_str(), array, shape, send),
                        to = describe(cat(way, "_take").c_str(), a.name, a.extent, take_at);
      const std::string sender = onward ? cat(at, " < ", n - 1) : cat(at, " > 0"),
                        taker = onward ? cat(at, " > 0") : cat(at, " < ", n - 1);
      sends += cat("  if (", sender, ") ", mov, "(@get_dsd(fabout_dsd, .{ .extent = ", extent,
                   ", .fabric_color = ", way, "_out, .output_queue = ", way, "_out_queue }), ",
                   from, ", .{ .async = true });\n");
      takes +=
          cat("  if (", taker, ") ", mov, "(", to, ", @get_dsd(fabin_dsd, .{ .extent = ", extent,
              ", .fabric_color = ", way, "_in, .input_queue = ", way, "_in_queue }));\n");
    }
    return std::pair{sends, takes};
  };
  std::string rest;
  for (std::size_t d = 0; d < rank; ++d) {  // along the rows from the own part
    if (m.parts[d].partition != Partition::x) continue;
    auto [sends, takes] = exchange(d, true, true, m.from, m.box, part, here);
    out += sends;
    rest += takes;
  }
  for (std::size_t d = 0; d < rank && !corners; ++d) {
    if (m.parts[d].partition != Partition::y) continue;
    auto [sends, takes] = exchange(d, false, true, m.from, m.box, part, here);
    out += sends;
    rest += takes;
  }
  out += copy + rest;
  for (std::size_t d = 0; d < rank && corners; ++d) {  // then along the columns, with what came
    if (m.parts[d].partition != Partition::y) continue;
    Box whole = here;
    for (std::size_t e = 0; e < rank; ++e) {
      if (e != d && m.parts[e].partition == Partition::x)
        whole.start[e] = 0, whole.extent[e] = a.extent[e];
    }
    auto [sends, takes] = exchange(d, false, false, a.name, a.extent, whole, whole);
    out += sends + takes;
  }
  return out;
}

std::string CslEmitter::movement(const Stage& s, const LocalArray& a) {
  const Redistribution& m = a.move;
  if (m.kind == Redistribution::Kind::halo) return halo(a, reads_corners(p_, s, a));
  const DType dtype = p_.buffers[a.buffer].dtype;
  const std::string mov = dtype.bits == 16 ? "@mov16" : "@mov32", here = cat(a.name, "_here");
  const std::string& buffer = p_.buffers[a.buffer].name;
  std::string out;
  if (m.kind != Redistribution::Kind::gather) {
    bool row = m.kind == Redistribution::Kind::row;
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
  if (a.extent.size() == 1 && m.origin[0].base >= 0 && m.origin[0].cx >= 0 && m.origin[0].cy >= 0 &&
      m.parts[0].chunk == m.box[0] && !m.here &&
      !(m.within_row && m.parts[0].partition == Partition::y)) {
    // The parts lie in the order of the elements.
    const std::int64_t total = box * m.columns * m.rows;
    const std::string all = cat(a.name, "_gathered"), element = csl_type(dtype);
    dsds_ += descriptor(here, a.name, a.size()) + descriptor(all, source, total);
    return cat(out, "  {\n    const from = ", m.origin[0].base, " + ", m.origin[0].cx, " * px + ",
               m.origin[0].cy, " * py;\n    var n: i32 = ", total, " - from;\n    if (n > ",
               a.size(), ") { n = ", a.size(), "; }\n    if (n > 0) { ", mov, "(@set_dsd_length(",
               here, ", @as(u16, n)), @set_dsd_length(@increment_dsd_offset(", all,
               ", @as(i16, from), ", element, "), @as(u16, n))); }\n  }\n");
  }
  std::string indent = "  ", position = "0", inside, place = "0";
  std::string row_of = "0", column_of = "0";
  // The last dimension goes as a run where every PE needs the same of it.
  const std::size_t rank = a.extent.size(), last = rank - 1;
  const bool run = rank > 1 && m.parts[last].partition == Partition::none &&
                   m.origin[last].cx == 0 && m.origin[last].cy == 0 && m.origin[last].base >= 0 &&
                   m.origin[last].base + a.extent[last] <= p_.buffers[a.buffer].shape[last];
  for (std::size_t d = 0; d < rank; ++d) {
    const Redistribution::Origin& o = m.origin[d];
    if (run && d == last) {
      position = cat("(", position, ") * ", a.extent[d]);
      place = cat("(", place, ") * ", m.box[d], " + ", o.base);
      break;
    }
    const Redistribution::Part& part = m.parts[d];
    std::string j = cat("j", d), g = cat("g", d);
    out += cat(indent, "for (@range(i32, ", a.extent[d], ")) |", j, "| {\n");
    indent += "  ";
    out += cat(indent, "const ", g, " = ", o.base, " + ", o.cx, " * px + ", o.cy, " * py + ", j,
               ";\n");
    inside += cat(inside.empty() ? "" : " and ", g, " >= 0 and ", g, " < ",
                  p_.buffers[a.buffer].shape[d]);
    position = cat("(", position, ") * ", a.extent[d], " + ", j);
    std::string part_of = part.partition == Partition::none ? "" : cat(g, " / ", part.chunk);
    std::string local = part.partition == Partition::none ? g : cat(g, " % ", part.chunk);
    place = cat("(", place, ") * ", m.box[d], " + ", local);
    if (part.partition == Partition::x) column_of = part_of;
    if (part.partition == Partition::y && !m.within_row) row_of = part_of;
    if (part.partition == Partition::xy) {
      column_of = cat("(", part_of, ") % ", p_.width);
      row_of = cat("(", part_of, ") / ", p_.width);
    }
  }
  std::string owner = m.columns * m.rows == 1 ? ""
                                              : cat("((", row_of, ") * ", m.columns, " + ",
                                                    column_of, ") * ", box, " + ");
  if (run) {
    const std::string element = csl_type(dtype), to = cat(a.name, "_run"),
                      from = cat(a.name, "_run_of");
    dsds_ += descriptor(to, a.name, a.extent[last]) + descriptor(from, source, a.extent[last]);
    auto moved = [&](const std::string& name, const std::string& by) {
      return cat("@increment_dsd_offset(", name, ", @as(i16, ", by, "), ", element, ")");
    };
    out += cat(indent, "if (", inside, ") { ", mov, "(", moved(to, position), ", ",
               moved(from, cat(owner, place)), "); }\n");
  } else {
    out += cat(indent, "if (", inside, ") { ", a.name, "[", position, "] = ", source, "[", owner,
               place, "]; }\n");
  }
  while (indent.size() > 2) {
    indent.resize(indent.size() - 2);
    out += cat(indent, "}\n");
  }
  return out;
}

std::string CslEmitter::gather(const LocalArray& a, const std::string& mov, std::int64_t box) {
  const Redistribution& m = a.move;
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
