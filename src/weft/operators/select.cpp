// SPDX-License-Identifier: Apache-2.0
#include "weft/operators/select.h"

#include "weft/base/text.h"
#include "weft/operators/program_text.h"

namespace weft::operators {

namespace {

Values values_of(const SelectSpec& spec) {
  return {{"I", index_type(spec.narrow)},        {"type", spec.runs},
          {"threads", cat(kSelectThreads)},      {"end", cat(kSelectThreads - 1)},
          {"items", cat(kSelectItems)},          {"tile", cat(kSelectTile)},
          {"padded", cat(kSelectTile * 36 / 32)}};
}

/// M[i] becomes 1 where place i * threads + t of tile b is set, else 0.
constexpr const char* kOfMask = R"(            M = T.allocate(({items},), "uint8", scope="local")
            for i in T.unroll(T.{I}({items})):
                at: T.{I} = b * {tile} + i * {threads} + t
                M[i] = T.if_then_else(at < marks, T.Cast("uint8", mask[at]), T.uint8(0))
)";
// Loads are in flight together; the one before is mostly a neighbouring thread's.
constexpr const char* kOfRuns = R"(            M = T.allocate(({items},), "uint8", scope="local")
            HERE = T.allocate(({items},), "{type}", scope="local")
            BEFORE = T.allocate(({items},), "{type}", scope="local")
            for i in T.unroll(T.{I}({items})):
                at: T.{I} = b * {tile} + i * {threads} + t
                HERE[i] = x[T.min(at, n - 1)]
                BEFORE[i] = x[T.max(T.min(at, n) - 1, 0)]
            for i in T.unroll(T.{I}({items})):
                at: T.{I} = b * {tile} + i * {threads} + t
                M[i] = T.Select(at < marks and (at == 0 or at == n or HERE[i] != BEFORE[i]), T.uint8(1), T.uint8(0))
)";
std::string marks_text(const SelectSpec& spec) {
  return fill(spec.runs.empty() ? kOfMask : kOfRuns, values_of(spec));
}
void add_marks(ProgramText& text, const SelectSpec& spec) {
  if (spec.runs.empty()) text.buffer("mask", "bool");
  else text.buffer("x", spec.runs);
}
void add_sizes(ProgramText& text, const SelectSpec& spec) {
  const std::string index = index_type(spec.narrow);
  text.scalar("blocks", index).scalar("marks", index);
  if (!spec.runs.empty()) text.scalar("n", index);
}

}  // namespace

ir::PrimFunc select_count(const SelectSpec& spec) {
  Values values = values_of(spec);
  values.emplace_back("load", marks_text(spec));
  std::string tree;
  for (int half = kSelectThreads / 2; half >= 1; half /= 2)
    tree +=
        cat("            if t < ", half, ":\n                P[t] = P[t] + P[t + ", half, "]\n");
  values.emplace_back("tree", tree);
  ProgramText text("select.count");
  add_marks(text, spec);
  text.buffer("counts", index_type(spec.narrow));
  add_sizes(text, spec);
  return text.parse(R"(    for b in T.thread_binding(blocks, thread="blockIdx.x"):
        for t in T.thread_binding(T.{I}({threads}), thread="threadIdx.x"):
            P = T.allocate(({threads},), "int32", scope="shared")
            C = T.allocate((1,), "int32", scope="local")
{load}            C[0] = 0
            for i in T.unroll(T.{I}({items})):
                C[0] = C[0] + T.Cast("int32", M[i])
            P[t] = C[0]
{tree}            if t == 0:
                counts[b] = T.Cast("{I}", P[0])
)",
                    values);
}

ir::PrimFunc select_marked(const SelectSpec& spec) {
  const std::string index = index_type(spec.narrow);
  const bool positions = spec.element.empty();
  const BlockScan scan = block_scan("P", "Q", kSelectThreads, "({a} + {b})", 12);
  std::string body;
  if (positions) {
    std::string from = "at";
    for (int axis = spec.rank - 1; axis >= 0; --axis) {
      const std::string here = cat("out", axis, "[before + j] = T.Cast(\"int64\", ");
      if (axis == 0) {
        body += cat("                    ", here, from, ")\n");
        break;
      }
      const std::string next = cat("line", axis);
      body += cat("                    ", next, ": T.", index, " = ", from, " // d", axis, "\n");
      body += cat("                    ", here, from, " - ", next, " * d", axis, ")\n");
      from = next;
    }
  } else {
    body = "                    out[before + j] = x[at]\n";
  }
  ProgramText text(positions ? "select.positions" : "select.elements");
  add_marks(text, spec);
  text.buffer("ends", index);
  if (!positions && spec.runs.empty()) text.buffer("x", spec.element);
  if (!positions) text.buffer("out", spec.element);
  for (int axis = 0; positions && axis < spec.rank; ++axis) text.buffer(cat("out", axis), "int64");
  add_sizes(text, spec);
  for (int axis = 0; positions && axis < spec.rank; ++axis) text.scalar(cat("d", axis), index);
  Values values = values_of(spec);
  values.emplace_back("load", marks_text(spec));
  values.emplace_back("scan", scan.text);
  values.emplace_back("R", scan.result);
  values.emplace_back("body", body);
  return text.distinct().parse(
      R"(    for b in T.thread_binding(blocks, thread="blockIdx.x"):
        for t in T.thread_binding(T.{I}({threads}), thread="threadIdx.x"):
            F = T.allocate(({padded},), "uint8", scope="shared")
            L = T.allocate(({tile},), "int32", scope="shared")
            P = T.allocate(({threads},), "int32", scope="shared")
            Q = T.allocate(({threads},), "int32", scope="shared")
            A = T.allocate(({items},), "int32", scope="local")
            C = T.allocate((1,), "int32", scope="local")
            before: T.{I} = T.if_then_else(b > 0, ends[T.max(b - 1, 0)], 0)
{load}            for i in T.unroll(T.{I}({items})):
                F[i * {threads} + t + (i * {threads} + t) // 32 * 4] = M[i]
            C[0] = 0
            for i in T.unroll(T.{I}({items})):
                A[i] = T.Cast("int32", F[t * {items} + i + (t * {items} + i) // 32 * 4])
                C[0] = C[0] + A[i]
            P[t] = C[0]
{scan}            C[0] = {R}[t] - C[0]
            for i in T.unroll(T.{I}({items})):
                if A[i] != 0:
                    L[C[0]] = T.Cast("int32", t * {items} + i)
                C[0] = C[0] + A[i]
            for k in T.serial(T.{I}({items})):
                j: T.{I} = k * {threads} + t
                if j < T.Cast("{I}", {R}[{end}]):
                    at: T.{I} = b * {tile} + T.Cast("{I}", L[j])
{body})",
      values);
}

ir::PrimFunc run_starts(const std::string& type, bool narrow) {
  const std::string index = index_type(narrow);
  return ProgramText("select.run_starts")
      .buffer("x", type)
      .buffer("out", "bool")
      .scalar("blocks", index)
      .scalar("n", index)
      .parse(R"(    for b in T.thread_binding(blocks, thread="blockIdx.x"):
        for t in T.thread_binding(T.{I}({threads}), thread="threadIdx.x"):
            HERE = T.allocate(({items},), "{type}", scope="local")
            BEFORE = T.allocate(({items},), "{type}", scope="local")
            for k in T.unroll(T.{I}({items})):
                i: T.{I} = (b * {items} + k) * {threads} + t
                HERE[k] = x[T.min(i, n - 1)]
                BEFORE[k] = x[T.max(T.min(i, n) - 1, 0)]
            for k in T.unroll(T.{I}({items})):
                i: T.{I} = (b * {items} + k) * {threads} + t
                if i <= n:
                    out[i] = i == 0 or i == n or HERE[k] != BEFORE[k]
)",
             {{"I", index},
              {"type", type},
              {"threads", cat(kSelectThreads)},
              {"items", cat(kStartsItems)}});
}

}  // namespace weft::operators
