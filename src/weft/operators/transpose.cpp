// SPDX-License-Identifier: Apache-2.0
#include "weft/operators/transpose.h"

#include "weft/base/text.h"
#include "weft/operators/program_text.h"

namespace weft::operators {

ir::PrimFunc transpose_program(const TransposeSpec& spec) {
  constexpr std::int64_t kThreads = 256;
  const std::int64_t line = kTransposeTile / spec.lanes, pace = kThreads / line;
  const std::string index = index_type(spec.narrow);
  ProgramText text("transpose");
  text.buffer("out", spec.type).buffer("x", spec.type);
  for (const char* name : {"blocks_r", "blocks_c", "batches", "rows", "columns", "batch_in",
                           "row_in", "batch_out", "row_out"})
    text.scalar(name, index);
  return text.parse(
      R"(    for block in T.thread_binding(blocks_r * blocks_c * batches, thread="blockIdx.x"):
        for thread in T.thread_binding(T.{I}({threads}), thread="threadIdx.x"):
            S = T.allocate(({held},), "{type}", scope="shared")
            H = T.allocate(({L},), "{type}", scope="local")
            rest: T.{I} = block // blocks_c
            batch: T.{I} = rest // blocks_r
            c0: T.{I} = block % blocks_c * {tile}
            r0: T.{I} = rest % blocks_r * {tile}
            fast: T.{I} = thread % {line}
            slow: T.{I} = thread // {line}
            first: T.{I} = batch * batch_in + (r0 + slow) * row_in + c0 // {L} + fast
            to: T.{I} = batch * batch_out + (c0 + slow) * row_out + r0 // {L} + fast
            for i in T.unroll(T.{I}({steps})):
                if r0 + slow + i * {pace} < rows and c0 + fast * {L} < columns:
                    for v in T.vectorized(T.{I}({L})):
                        H[v] = x[(first + i * {pace} * row_in) * {L} + v]
                    for v in T.unroll(T.{I}({L})):
                        S[(slow + i * {pace}) * {pitch} + fast * {L} + v] = H[v]
            for i in T.unroll(T.{I}({steps})):
                if c0 + slow + i * {pace} < columns and r0 + fast * {L} < rows:
                    for v in T.unroll(T.{I}({L})):
                        H[v] = S[(fast * {L} + v) * {pitch} + slow + i * {pace}]
                    for v in T.vectorized(T.{I}({L})):
                        out[(to + i * {pace} * row_out) * {L} + v] = H[v]
)",
      {{"I", index},
       {"type", spec.type},
       {"threads", cat(kThreads)},
       {"tile", cat(kTransposeTile)},
       {"pitch", cat(kTransposeLine)},
       {"held", cat(kTransposeTile * kTransposeLine)},
       {"L", cat(spec.lanes)},
       {"line", cat(line)},
       {"pace", cat(pace)},
       {"steps", cat(kTransposeTile / pace)}});
}

}  // namespace weft::operators
