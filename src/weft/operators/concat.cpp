// SPDX-License-Identifier: Apache-2.0
#include "weft/operators/concat.h"

#include "weft/base/text.h"
#include "weft/operators/program_text.h"

namespace weft::operators {

ir::PrimFunc concat_rows(const ConcatSpec& spec) {
  const std::string index = index_type(spec.narrow), word = cat("uint", 8 * spec.bytes);
  const bool divides = !spec.one_row && spec.narrow;
  ProgramText text("concat");
  text.buffer("out", word);
  for (int k = 0; k < spec.parts; ++k) text.buffer(cat("part", k), word);
  for (const char* name : {"blocks", "count", "width", "step"}) text.scalar(name, index);
  for (int k = 0; k < spec.parts; ++k)
    text.scalar(cat("end", k), index).scalar(cat("step", k), index);
  if (divides) text.scalar("factor", "int64").scalar("shift", "int64");
  // A choice of each part by itself, which needs no branch.
  std::string loads;
  for (int k = 0; k < spec.parts; ++k) {
    const std::string before = k ? cat(" - end", k - 1) : "",
                      of_row = spec.one_row ? "" : cat("row * step", k, " + ");
    loads += cat("                if T.Cast(\"u{I}\", c", before, ") < T.Cast(\"u{I}\", end", k,
                 before, "):\n                    V[i] = part", k, "[", of_row, "c", before, "]\n");
  }
  const char* row =
      spec.one_row ? ""
      : divides    ? "                row: T.{I} = T.Cast(\"{I}\", T.shift_right(T.Cast(\"int64\", "
                     "p) * factor, shift))\n"
                   : "                row: T.{I} = p // width\n";
  const Values values = {{"I", index},
                         {"word", word},
                         {"threads", cat(kConcatThreads)},
                         {"items", cat(kConcatItems)},
                         {"loads", fill(loads, {{"I", index}})},
                         {"c", spec.one_row ? "p" : "p - row * width"},
                         {"to", spec.one_row ? "p" : "row * step + c"}};
  return text.parse(cat(R"(    for b in T.thread_binding(blocks, thread="blockIdx.x"):
        for t in T.thread_binding(T.{I}({threads}), thread="threadIdx.x"):
            V = T.allocate(({items},), "{word}", scope="local")  # loads are in flight together
            for i in T.unroll(T.{I}({items})):
                p: T.{I} = T.min((b * {items} + i) * {threads} + t, count - 1)
)",
                        row, R"(                c: T.{I} = {c}
{loads}            for i in T.unroll(T.{I}({items})):
                p: T.{I} = (b * {items} + i) * {threads} + t
)",
                        row, R"(                c: T.{I} = {c}
                if p < count:
                    out[{to}] = V[i]
)"),
                    values);
}

}  // namespace weft::operators
