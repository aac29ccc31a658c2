// SPDX-License-Identifier: Apache-2.0
#include "weft/operators/histogram.h"

#include "weft/base/text.h"
#include "weft/operators/program_text.h"

namespace weft::operators {

ir::PrimFunc histogram(std::int64_t capacity) {
  return ProgramText("histogram")
      .buffer("x", "int64")
      .buffer("counts", "int64")
      .scalar("blocks", "int64")
      .scalar("size", "int64")
      .scalar("per", "int64")
      .scalar("bins", "int64")
      .distinct()
      .parse(R"(    for b in T.thread_binding(blocks, thread="blockIdx.x"):
        for t in T.thread_binding(T.int64({threads}), thread="threadIdx.x"):
            H = T.allocate(({capacity},), "int32", scope="shared")
            for i in T.serial(T.int64({rounds})):
                H[i * {threads} + t] = T.int32(0)
            for k in T.serial(per // {threads}):
                at: T.int64 = b * per + k * {threads} + t
                if at < size:
                    bin: T.int64 = x[at]
                    T.atomic_add(H[bin], T.int32(1))
            for i in T.serial(T.int64({rounds})):
                to: T.int64 = i * {threads} + t
                found: T.int32 = H[to]
                if to < bins and found > 0:
                    T.atomic_add(counts[to], T.Cast("int64", found))
)",
             {{"threads", cat(kHistogramThreads)},
              {"capacity", cat(capacity)},
              {"rounds", cat(capacity / kHistogramThreads)}});
}

}  // namespace weft::operators
