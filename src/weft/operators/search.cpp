// SPDX-License-Identifier: Apache-2.0
#include "weft/operators/search.h"

#include "weft/base/text.h"
#include "weft/operators/program_text.h"

namespace weft::operators {

ir::PrimFunc search_sorted(const SortSpec& spec, bool right) {
  const std::string index = index_type(spec.narrow), word = cat("uint", spec.bits);
  return ProgramText("search")
      .buffer("sorted", word)
      .buffer("values", word)
      .buffer("out", "int64")
      .scalar("blocks", index)
      .scalar("count", index)
      .scalar("n", index)
      .scalar("steps", index)
      .scalar("top", index)
      .parse(R"(    for b in T.thread_binding(blocks, thread="blockIdx.x"):
        for t in T.thread_binding(T.{I}({threads}), thread="threadIdx.x"):
            AT = T.allocate((1,), "{I}", scope="local")
            e: T.{I} = b * {threads} + t
            if e < count:
                wanted: T.{K} = {value}
                AT[0] = 0
                for k in T.serial(steps):
                    next: T.{I} = AT[0] + T.shift_right(top, k)
                    if next <= n:
                        key: T.{K} = {element}
                        if {goes}:
                            AT[0] = next
                out[e] = T.Cast("int64", AT[0])
)",
             {{"I", index},
              {"threads", cat(kSearchThreads)},
              {"K", sort_key_type(spec)},
              {"value", sort_key(spec, cat("T.Cast(\"", sort_key_type(spec), "\", values[e])"))},
              {"element",
               sort_key(spec, cat("T.Cast(\"", sort_key_type(spec), "\", sorted[next - 1])"))},
              {"goes", right ? "key <= wanted" : "key < wanted"}});
}

}  // namespace weft::operators
