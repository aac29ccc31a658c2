// SPDX-License-Identifier: Apache-2.0
#include "weft/operators/pool.h"

#include "weft/base/text.h"
#include "weft/operators/program_text.h"

namespace weft::operators {

namespace {

constexpr char kAxes[] = "dhw";

/// One thread for each element of what is written: e; p and the coordinates along `extents` follow.
std::string program(const std::string& extents, const std::string& locals,
                    const std::string& body) {
  std::string text = cat(
      "    for b in T.thread_binding(blocks, thread=\"blockIdx.x\"):\n"
      "        for t in T.thread_binding(T.{I}({threads}), thread=\"threadIdx.x\"):\n",
      locals, "            e: T.{I} = b * {threads} + t\n            if e < size:\n",
      "                ch: T.{I} = e // {n}w\n                cw: T.{I} = e - ch * {n}w\n",
      "                cd: T.{I} = ch // {n}h\n                yh: T.{I} = ch - cd * {n}h\n",
      "                p: T.{I} = cd // {n}d\n                zd: T.{I} = cd - p * {n}d\n", body);
  for (std::size_t at = 0; (at = text.find("{n}", at)) != std::string::npos;)
    text.replace(at, 3, extents);
  return text;
}

void add_scalars(ProgramText& text, const std::string& index) {
  for (const char* name : {"blocks", "size", "xd", "xh", "xw", "od", "oh", "ow"})
    text.scalar(name, index);
}

Values values_of(const PoolSpec& spec) {
  return {{"I", index_type(spec.narrow)}, {"threads", cat(kPoolThreads)}, {"type", spec.type}};
}

bool is_float(const std::string& type) { return type.find("float") != std::string::npos; }

}  // namespace

ir::PrimFunc pool_max(const PoolSpec& spec) {
  const std::string index = index_type(spec.narrow);
  const char* at[] = {"zd", "yh", "cw"};
  std::string body = "                BEST[0] = T.{I}(-1)\n", inside, indent(16, ' ');
  for (int a = 0; a < 3; ++a) {
    const std::string axis(1, kAxes[a]);
    const auto k = static_cast<std::size_t>(a);
    body += cat(indent, "for k", axis, " in T.serial(T.{I}(", spec.kernel[k], ")):\n");
    indent += "    ";
    body += cat(indent, "i", axis, ": T.{I} = ", at[a], " * ", spec.stride[k], " - ",
                spec.padding[k], " + k", axis, " * ", spec.dilation[k], "\n");
    inside += cat(a ? " and " : "", "i", axis, " >= 0 and i", axis, " < x", axis);
  }
  body += cat(indent, "if ", inside, ":\n", indent, "    here: T.{I} = (id * xh + ih) * xw + iw\n",
              indent, "    v: T.{type} = x[p * (xd * xh * xw) + here]\n", indent,
              "    if BEST[0] < 0 or v > VALUE[0]", is_float(spec.type) ? " or v != v" : "", ":\n",
              indent, "        BEST[0] = here\n", indent, "        VALUE[0] = v\n");
  body += "                out[e] = VALUE[0]\n                at[e] = BEST[0]\n";
  ProgramText text("pool.max");
  text.buffer("x", spec.type).buffer("out", spec.type).buffer("at", index);
  add_scalars(text, index);
  return text.parse(program("o",
                            "            BEST = T.allocate((1,), \"{I}\", scope=\"local\")\n"
                            "            VALUE = T.allocate((1,), \"{type}\", scope=\"local\")\n",
                            body),
                    values_of(spec));
}

ir::PrimFunc pool_spread(const PoolSpec& spec) {
  const std::string index = index_type(spec.narrow);
  const bool half = spec.type == "float16" || spec.type == "bfloat16";
  const char* at[] = {"zd", "yh", "cw"};
  Values values = values_of(spec);
  values.emplace_back("sum", half ? "float32" : spec.type);
  std::string indent(16, ' ');
  std::string body =
      cat(indent, "here: T.{I} = (zd * xh + yh) * xw + cw\n", indent, "SUM[0] = T.{sum}(0)\n");
  for (int a = 0; a < 3; ++a) {
    const std::string axis(1, kAxes[a]);
    const auto k = static_cast<std::size_t>(a);
    body += cat(indent, "for k", axis, " in T.serial(T.{I}(", spec.kernel[k], ")):\n");
    indent += "    ";
    body += cat(indent, "n", axis, ": T.{I} = ", at[a], " + ", spec.padding[k], " - k", axis, " * ",
                spec.dilation[k], "\n", indent, "i", axis, ": T.{I} = n", axis, " // ",
                spec.stride[k], "\n", indent, "if n", axis, " >= 0 and n", axis, " == i", axis,
                " * ", spec.stride[k], " and i", axis, " < o", axis, ":\n");
    indent += "    ";
  }
  const std::string taken = half ? "T.Cast(\"float32\", g[window])" : "g[window]";
  body += cat(indent, "window: T.{I} = ((p * od + id) * oh + ih) * ow + iw\n", indent,
              "if at[window] == here:\n", indent, "    SUM[0] = SUM[0] + ", taken, "\n",
              "                out[e] = ", half ? "T.Cast(\"{type}\", SUM[0])" : "SUM[0]", "\n");
  ProgramText text("pool.spread");
  text.buffer("g", spec.type).buffer("at", index).buffer("out", spec.type);
  add_scalars(text, index);
  return text.parse(
      program("x", "            SUM = T.allocate((1,), \"{sum}\", scope=\"local\")\n", body),
      values);
}

ir::PrimFunc pool_pick(const PoolSpec& spec) {
  const std::string index = index_type(spec.narrow);
  ProgramText text("pool.pick");
  text.buffer("x", spec.type).buffer("at", index).buffer("out", spec.type);
  add_scalars(text, index);
  return text.parse(program("o", "", "                out[e] = x[p * (xd * xh * xw) + at[e]]\n"),
                    values_of(spec));
}

}  // namespace weft::operators
