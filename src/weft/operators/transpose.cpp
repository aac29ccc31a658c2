// SPDX-License-Identifier: Apache-2.0
#include "weft/operators/transpose.h"

#include "weft/base/text.h"
#include "weft/operators/program_text.h"

namespace weft::operators {

ir::PrimFunc transpose_program(const TransposeSpec& spec) {
  constexpr std::int64_t kThreads = 256;
  const std::int64_t columns = spec.tile_columns, rows = spec.tile_rows();
  const std::int64_t line_in = columns / spec.lanes, line_out = rows / spec.lanes;
  const std::string index = index_type(spec.narrow);
  ProgramText text("transpose");
  text.buffer("out", spec.type).buffer("x", spec.type);
  for (const char* name :
       {"blocks_r", "blocks_c", "batches", "rows", "columns", "row_in", "row_out"})
    text.scalar(name, index);
  std::string from = "0", to = "0", places;
  for (int a = 0; a < spec.batch_axes; ++a) {
    for (const char* name : {"extent", "in", "out"}) text.scalar(cat("batch_", name, a), index);
    const bool last = a + 1 == spec.batch_axes;
    const std::string rest = a ? cat("rest", a) : "batch", at = last ? rest : cat("at", a);
    if (!last) {
      places += cat("            rest", a + 1, ": T.{I} = ", rest, " // batch_extent", a,
                    "\n            at", a, ": T.{I} = ", rest, " - rest", a + 1, " * batch_extent",
                    a, "\n");
    }
    from += cat(" + ", at, " * batch_in", a);
    to += cat(" + ", at, " * batch_out", a);
  }
  const Values values = {{"I", index},
                         {"type", spec.type},
                         {"threads", cat(kThreads)},
                         {"R", cat(rows)},
                         {"C", cat(columns)},
                         {"pitch", cat(columns + 1)},
                         {"held", cat(spec.shared_elements())},
                         {"L", cat(spec.lanes)},
                         {"line_in", cat(line_in)},
                         {"line_out", cat(line_out)},
                         {"pace_in", cat(kThreads / line_in)},
                         {"pace_out", cat(kThreads / line_out)},
                         {"steps", cat(kTransposeTile / spec.lanes / kThreads)},
                         {"from", from},
                         {"to", to},
                         {"sign", spec.backwards ? "-" : "+"}};
  return text.parse(
      cat(R"(    for block in T.thread_binding(blocks_r * blocks_c * batches, thread="blockIdx.x"):
        for thread in T.thread_binding(T.{I}({threads}), thread="threadIdx.x"):
            S = T.allocate(({held},), "{type}", scope="shared")
            H = T.allocate(({L},), "{type}", scope="local")
            tiles: T.{I} = block // blocks_c
            batch: T.{I} = tiles // blocks_r
)",
          places, R"(            c0: T.{I} = block % blocks_c * {C}
            r0: T.{I} = tiles % blocks_r * {R}
            fast: T.{I} = thread % {line_in}
            slow: T.{I} = thread // {line_in}
            near: T.{I} = thread % {line_out}
            far: T.{I} = thread // {line_out}
            first: T.{I} = {from} + (r0 + slow) * row_in {sign} (c0 // {L} + fast)
            to: T.{I} = {to} + (c0 + far) * row_out + r0 // {L} + near
            for i in T.unroll(T.{I}({steps})):
                if r0 + slow + i * {pace_in} < rows and c0 + fast * {L} < columns:
                    for v in T.vectorized(T.{I}({L})):
                        H[v] = x[(first + i * {pace_in} * row_in) * {L} + v]
                    for v in T.unroll(T.{I}({L})):
                        S[(slow + i * {pace_in}) * {pitch} + fast * {L} + v] = H[v]
            for i in T.unroll(T.{I}({steps})):
                if c0 + far + i * {pace_out} < columns and r0 + near * {L} < rows:
                    for v in T.unroll(T.{I}({L})):
                        H[v] = S[(near * {L} + v) * {pitch} + far + i * {pace_out}]
                    for v in T.vectorized(T.{I}({L})):
                        out[(to + i * {pace_out} * row_out) * {L} + v] = H[v]
)"),
      values);
}

}  // namespace weft::operators
