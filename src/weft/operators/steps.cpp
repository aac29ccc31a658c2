// SPDX-License-Identifier: Apache-2.0
#include "weft/operators/steps.h"

#include "weft/base/text.h"
#include "weft/operators/program_text.h"

namespace weft::operators {

ir::PrimFunc steps_program(const std::string& element, bool integral) {
  const std::string wide = integral ? "int64" : "float64";
  return ProgramText("steps")
      .buffer("out", element)
      .scalar("start", wide)
      .scalar("step", wide)
      .scalar("count", "int64")
      .scalar("blocks", "int64")
      .parse(R"(    for b in T.thread_binding(blocks, thread="blockIdx.x"):
        for t in T.thread_binding(T.int64({threads}), thread="threadIdx.x"):
            i: T.int64 = b * {threads} + t
            if i < count:
                out[i] = T.Cast("{element}", start + T.Cast("{wide}", i) * step)
)",
             {{"threads", cat(kStepsThreads)}, {"element", element}, {"wide", wide}});
}

}  // namespace weft::operators
