// SPDX-License-Identifier: Apache-2.0
#include "weft/operators/gather.h"

#include "weft/base/text.h"
#include "weft/operators/program_text.h"

namespace weft::operators {

namespace {

/// s0, s1, ...: the positions of tuple `c`, 0 in place of those outside; `outside`: a condition.
struct Positions {
  std::string text, outside;
};
Positions positions(const PositionSpec& spec, const std::string& c, const std::string& name,
                    int indent) {
  Positions out;
  for (int k = 0; k < spec.indices; ++k) {
    const Values values = {
        {"X", spec.index_type}, {"I", index_type(spec.narrow)},
        {"k", cat(k)},          {"c", c},
        {"s", cat(name, k)},    {"b", std::string(static_cast<std::size_t>(indent), ' ')}};
    out.text += fill(
        "{b}{s}_given: T.{X} = index{k}[{c}]\n"
        "{b}{s}_from: T.{X} = T.Select({s}_given < 0, {s}_given + T.Cast(\"{X}\", d{k}), "
        "{s}_given)\n"
        "{b}{s}: T.{I} = T.Select({s}_from < 0 or {s}_from >= T.Cast(\"{X}\", d{k}), T.{I}(0), "
        "T.Cast(\"{I}\", {s}_from))\n",
        values);
    out.outside +=
        fill(cat(k ? " or " : "", "{s}_from < 0 or {s}_from >= T.Cast(\"{X}\", d{k})"), values);
  }
  return out;
}

/// The sum of coordinates times steps g0, g1, ... of row-major position `linear` in extents f0,
/// f1, ...; `text` defines what it takes. The letters are those of the extents and the steps.
std::string dot(const std::string& linear, int rank, std::string_view extents,
                std::string_view steps, const PositionSpec& spec, int indent, std::string* text) {
  std::string sum, left = linear;
  for (int axis = rank - 1; axis >= 0; --axis) {
    if (axis == 0) {
      sum += cat(" + ", left, " * ", steps, "0");
      break;
    }
    const std::string next = cat("left_", extents, axis);
    *text += cat(std::string(static_cast<std::size_t>(indent), ' '), next, ": T.",
                 index_type(spec.narrow), " = ", left, " // ", extents, axis, "\n");
    sum += cat(" + (", left, " - ", next, " * ", extents, axis, ") * ", steps, axis);
    left = next;
  }
  return sum;
}

/// Where element r behind the tuple lies in x.
std::string place_in_x(const PositionSpec& spec, const std::string& name, int indent) {
  std::string sum, text;
  for (int k = 0; k < spec.indices; ++k) sum += cat(k ? " + " : "", name, k, " * e", k);
  sum += dot("r", spec.rest_rank, "f", "g", spec, indent, &text);
  sum += dot("o", spec.outer_rank, "p", "q", spec, indent, &text);
  return cat(text, std::string(static_cast<std::size_t>(indent), ' '), "at: T.",
             index_type(spec.narrow), " = ", sum, "\n");
}

void add_indices(ProgramText& text, const PositionSpec& spec) {
  for (int k = 0; k < spec.indices; ++k) text.buffer(cat("index", k), spec.index_type);
}

}  // namespace

namespace {

/// The place of element e among the tuples, and behind them.
std::string element_text(const PositionSpec& spec) {
  if (spec.along) return "                    o: T.{I} = e\n                    s: T.{I} = e\n";
  const bool outer = spec.outer_rank > 0;
  const std::string_view within = outer ? "w" : "e";
  std::string out = outer ? "                    o: T.{I} = e // inner\n"
                            "                    w: T.{I} = e - o * inner\n"
                          : "";
  out += spec.rest_rank == 0
             ? cat("                    s: T.{I} = ", within, "\n")
             : cat("                    s: T.{I} = ", within,
                   " // rest\n                    r: T.{I} = ", within, " - s * rest\n");
  return out;
}

/// One thread of each run of equal places works: its first adds all, its last puts its value.
std::string sorted_text(bool add) {
  return cat(add ? "                    other: T.{I} = T.max(s - 1, 0)\n"
                   "                    ends: T.bool = s == 0\n"
                 : "                    other: T.{I} = T.min(s + 1, size // rest - 1)\n"
                   "                    ends: T.bool = s == size // rest - 1\n",
             "                    if ends or place[order[s]] != place[order[other]]:\n"
             "                        c: T.{I} = T.Cast(\"{I}\", order[s])\n");
}

/// Where place s was claimed, the value of the tuple that claimed it.
std::string claimed_text(const PositionSpec& spec) {
  const std::string blanks(24, ' ');
  std::string text;
  const std::string place = dot("s", spec.indices, "d", "e", spec, 24, &text),
                    behind = dot("r", spec.rest_rank, "f", "g", spec, 24, &text);
  return cat(
      "                    c: T.{I} = T.Cast(\"{I}\", claimed[s])\n"
      "                    if c >= 0:\n",
      text, blanks, "at: T.{I} = 0", place + behind, "\n", blanks,
      spec.rest_rank == 0 ? "x[at] = value[c]\n" : "x[at] = value[c * rest + r]\n");
}

/// The arrays and numbers of a use, in order.
ProgramText arguments_of(const PositionSpec& spec) {
  const std::string index = index_type(spec.narrow);
  const bool sorted = spec.use == PositionUse::add_sorted || spec.use == PositionUse::put_sorted;
  ProgramText text("positions");
  text.buffer("x", spec.element);
  if (spec.use != PositionUse::claim)
    text.buffer(spec.use == PositionUse::gather ? "out" : "value", spec.element);
  if (spec.use == PositionUse::put_claimed) text.buffer("claimed", "int32");
  else add_indices(text, spec);
  if (spec.use == PositionUse::gather || spec.use == PositionUse::claim)
    text.buffer("flag", "int32");
  if (sorted) text.buffer("order", "int64").buffer("place", "int64");
  for (const char* name : {"blocks", "size", "rest"}) text.scalar(name, index);
  for (int k = 0; k < spec.indices; ++k) text.scalar(cat("d", k), index).scalar(cat("e", k), index);
  for (int k = 0; k < spec.rest_rank; ++k)
    text.scalar(cat("f", k), index).scalar(cat("g", k), index);
  if (spec.outer_rank > 0) text.scalar("inner", index);
  for (int k = 0; k < spec.outer_rank; ++k)
    text.scalar(cat("p", k), index).scalar(cat("q", k), index);
  return text;
}

/// What is done with element `at` of x for tuple c.
std::string use_text(const PositionSpec& spec, const std::string& outside, int indent) {
  const std::string blanks(static_cast<std::size_t>(indent), ' ');
  const std::string flagged = cat(blanks, "if ", outside, ":\n", blanks, "    flag[0] = 1\n");
  switch (spec.use) {
    case PositionUse::gather: return cat(flagged, blanks, "out[e] = x[at]\n");
    case PositionUse::claim:
      return cat(flagged, blanks, "T.atomic_max(x[at], T.Cast(\"int32\", c))\n");
    case PositionUse::add: return cat(blanks, "T.atomic_add(x[at], value[e])\n");
    case PositionUse::put:
      return cat(blanks, "x[at] = value[",
                 !spec.same            ? "e"
                 : spec.rest_rank == 0 ? "0"
                                       : "r",
                 "]\n");
    case PositionUse::put_sorted:
      return cat(blanks, "x[at] = value[", spec.rest_rank == 0 ? "c" : "c * rest + r", "]\n");
    default: break;
  }
  const std::string run = spec.rest_rank == 0 ? "T.Cast(\"{I}\", order[N[0]])"
                                              : "T.Cast(\"{I}\", order[N[0]]) * rest + r";
  return cat(blanks, "SUM[0] = T.{type}(0)\n", blanks, "N[0] = s\n", blanks,
             "while N[0] < size // rest and place[order[T.min(N[0], size // rest - 1)]] == ") +
         cat("place[c]:\n", blanks, "    SUM[0] = SUM[0] + value[", run, "]\n", blanks) +
         cat("    N[0] = N[0] + 1\n", blanks, "T.atomic_add(x[at], SUM[0])\n");
}

}  // namespace

ir::PrimFunc use_positions(const PositionSpec& spec) {
  const bool sorted = spec.use == PositionUse::add_sorted || spec.use == PositionUse::put_sorted;
  std::string body = element_text(spec);
  if (spec.use == PositionUse::put_claimed) {
    body += claimed_text(spec);
  } else {
    const int indent = sorted ? 24 : 20;
    body += sorted ? sorted_text(spec.use == PositionUse::add_sorted)
                   : "                    c: T.{I} = s\n";
    const Positions at = positions(spec, "c", "s", indent);
    body += at.text + place_in_x(spec, "s", indent) + use_text(spec, at.outside, indent);
  }
  const std::string locals =
      spec.use == PositionUse::add_sorted
          ? "            SUM = T.allocate((1,), \"{type}\", scope=\"local\")\n"
            "            N = T.allocate((1,), \"{I}\", scope=\"local\")\n"
          : "";
  const int items = sorted ? 1 : kPositionItems;
  return arguments_of(spec).distinct().parse(
      cat("    for b in T.thread_binding(blocks, thread=\"blockIdx.x\"):\n"
          "        for t in T.thread_binding(T.{I}({threads}), thread=\"threadIdx.x\"):\n",
          locals,
          "            for i in T.unroll(T.{I}({items})):\n"
          "                e: T.{I} = b * {tile} + i * {threads} + t\n"
          "                if e < size:\n",
          body),
      {{"I", index_type(spec.narrow)},
       {"type", spec.element},
       {"threads", cat(kPositionThreads)},
       {"items", cat(items)},
       {"tile", cat(kPositionThreads * items)}});
}

ir::PrimFunc check_positions(const PositionSpec& spec, bool places) {
  const std::string index = index_type(spec.narrow);
  ProgramText text("positions.check");
  add_indices(text, spec);
  if (places) text.buffer("place", "int64");
  text.buffer("flag", "int32");
  for (const char* name : {"blocks", "count"}) text.scalar(name, index);
  for (int k = 0; k < spec.indices; ++k) text.scalar(cat("d", k), index);
  const Positions here = positions(spec, "c", "s", 16),
                  left = positions(spec, "T.max(c - 1, 0)", "l", 16);
  std::string ascending, place, before;
  for (int k = 0; places && k < spec.indices; ++k) {
    place = k ? cat("(", place, ") * T.Cast(\"int64\", d", k, ") + T.Cast(\"int64\", s", k, ")")
              : "T.Cast(\"int64\", s0)";
    before = k ? cat("(", before, ") * T.Cast(\"int64\", d", k, ") + T.Cast(\"int64\", l", k, ")")
               : "T.Cast(\"int64\", l0)";
  }
  if (places)
    ascending = cat(left.text, "                here: T.int64 = ", place,
                    "\n                if c > 0 and here <= ", before,
                    ":\n                    flag[1] = 1\n                place[c] = here\n");
  return text.distinct().parse(
      cat("    for b in T.thread_binding(blocks, thread=\"blockIdx.x\"):\n"
          "        for t in T.thread_binding(T.{I}({threads}), thread=\"threadIdx.x\"):\n"
          "            c: T.{I} = b * {threads} + t\n"
          "            if c < count:\n",
          here.text, "                if ", here.outside, ":\n                    flag[0] = 1\n",
          ascending),
      {{"I", index}, {"threads", cat(kPositionThreads)}});
}

}  // namespace weft::operators
