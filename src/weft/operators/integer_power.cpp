// SPDX-License-Identifier: Apache-2.0
#include "weft/operators/integer_power.h"

#include "weft/base/text.h"
#include "weft/operators/program_text.h"

namespace weft::operators {

ir::PrimFunc integer_power(const std::string& element) {
  return ProgramText("integer_power")
      .buffer("x", element)
      .buffer("y", element)
      .buffer("out", element)
      .scalar("blocks", "int64")
      .scalar("count", "int64")
      .parse(R"(    for b in T.thread_binding(blocks, thread="blockIdx.x"):
        for t in T.thread_binding(T.int64({threads}), thread="threadIdx.x"):
            BASE = T.allocate((1,), "{type}", scope="local")
            LEFT = T.allocate((1,), "{type}", scope="local")
            R = T.allocate((1,), "{type}", scope="local")
            i: T.int64 = b * {threads} + t
            if i < count:
                BASE[0] = x[i]
                LEFT[0] = y[i]
                R[0] = T.{type}(1)
                while LEFT[0] > T.{type}(0):
                    if LEFT[0] % T.{type}(2) != T.{type}(0):
                        R[0] = R[0] * BASE[0]
                    BASE[0] = BASE[0] * BASE[0]
                    LEFT[0] = LEFT[0] // T.{type}(2)
                out[i] = R[0]
)",
             {{"threads", cat(kPowerThreads)}, {"type", element}});
}

}  // namespace weft::operators
