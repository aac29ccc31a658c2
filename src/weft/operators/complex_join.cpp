// SPDX-License-Identifier: Apache-2.0
#include "weft/operators/complex_join.h"

#include "weft/base/text.h"
#include "weft/operators/program_text.h"

namespace weft::operators {

ir::PrimFunc complex_join(const std::string& real) {
  return ProgramText("complex.join")
      .buffer("parts", real)
      .buffer("out", real)
      .scalar("blocks", "int64")
      .scalar("count", "int64")
      .scalar("each", "int64")
      .distinct()
      .parse(R"(    for b in T.thread_binding(blocks, thread="blockIdx.x"):
        for t in T.thread_binding(T.int64({threads}), thread="threadIdx.x"):
            e: T.int64 = b * {threads} + t
            if e < count:
                u: T.int64 = 2 * (e // each * each + e)
                v: T.int64 = u + 2 * each
                re: T.{real} = parts[u] - parts[v + 1]
                im: T.{real} = parts[u + 1] + parts[v]
                for part in T.serial(T.int64(2)):
                    out[2 * e + part] = T.Select(part == 0, re, im)
)",
             {{"threads", cat(kComplexJoinThreads)}, {"real", real}});
}

ir::PrimFunc complex_blocks(const std::string& real) {
  return ProgramText("complex.blocks")
      .buffer("b", real)
      .buffer("out", real)
      .scalar("blocks", "int64")
      .scalar("count", "int64")
      .scalar("n", "int64")
      .distinct()
      .parse(R"(    for block in T.thread_binding(blocks, thread="blockIdx.x"):
        for t in T.thread_binding(T.int64({threads}), thread="threadIdx.x"):
            e: T.int64 = block * {threads} + t
            if e < count:
                re: T.{real} = b[2 * e]
                im: T.{real} = b[2 * e + 1]
                first: T.int64 = 2 * (e // n * n + e)
                for part in T.serial(T.int64(4)):
                    out[first + part // 2 * 2 * n + part % 2] = T.Select(part == 2, -im, T.Select(part == 1, im, re))
)",
             {{"threads", cat(kComplexJoinThreads)}, {"real", real}});
}

}  // namespace weft::operators
