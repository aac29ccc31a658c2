// SPDX-License-Identifier: Apache-2.0
#include "weft/operators/labels.h"

#include "weft/base/text.h"
#include "weft/operators/program_text.h"

namespace weft::operators {

ir::PrimFunc label_positions(const std::string& label_type) {
  return ProgramText("label.positions")
      .buffer("labels", label_type)
      .buffer("at", "int64")
      .buffer("flag", "int32")
      .scalar("blocks", "int64")
      .scalar("size", "int64")
      .scalar("classes", "int64")
      .distinct()
      .parse(R"(    for b in T.thread_binding(blocks, thread="blockIdx.x"):
        for t in T.thread_binding(T.int64({threads}), thread="threadIdx.x"):
            i: T.int64 = b * {threads} + t
            if i < size:
                label: T.int64 = T.Cast("int64", labels[i])
                wrong: T.bool = label < 0 or label >= classes
                if wrong:
                    flag[0] = 1
                at[i] = i * classes + T.Select(wrong, T.int64(0), label)
)",
             {{"threads", cat(kLabelThreads)}});
}

}  // namespace weft::operators
