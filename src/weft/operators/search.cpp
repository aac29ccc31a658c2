// SPDX-License-Identifier: Apache-2.0
#include "weft/operators/search.h"

#include <bit>

#include "weft/base/text.h"
#include "weft/operators/program_text.h"

namespace weft::operators {

ir::PrimFunc search_sorted(const SortSpec& spec, bool right) {
  const std::string index = index_type(spec.narrow), word = cat("uint", spec.bits),
                    type = sort_key_type(spec);
  const std::uint64_t most = spec.bits == 64 ? ~0ull : (1ull << spec.bits) - 1;
  constexpr int kSteps = std::bit_width(static_cast<unsigned>(kSearchTable)) - 1;
  auto key = [&](std::string_view element) {
    return sort_key(spec, cat("T.Cast(\"", type, "\", ", element, ")"));
  };
  return ProgramText("search")
      .buffer("sorted", word)
      .buffer("values", word)
      .buffer("out", "int64")
      .scalar("blocks", index)
      .scalar("count", index)
      .scalar("n", index)
      .scalar("stride", index)
      .scalar("steps", index)
      .parse(R"(    for b in T.thread_binding(blocks, thread="blockIdx.x"):
        for t in T.thread_binding(T.{I}({threads}), thread="threadIdx.x"):
            S = T.allocate(({table},), "{K}", scope="shared")
            WANTED = T.allocate(({items},), "{K}", scope="local")
            AT = T.allocate(({items},), "{I}", scope="local")
            for j in T.unroll(T.{I}({each})):
                place: T.{I} = (j * {threads} + t) * stride
                at: T.{I} = T.max(T.min(place, n), 1) - 1
                first: T.{K} = {element}
                S[j * {threads} + t] = T.Select(place <= n, first, T.{K}({most}))
            for i in T.unroll(T.{I}({items})):
                e: T.{I} = (b * {items} + i) * {threads} + t
                WANTED[i] = {value}
                AT[i] = 0
            for k in T.serial(T.{I}({firsts})):
                for i in T.unroll(T.{I}({items})):
                    next: T.{I} = AT[i] + T.shift_right(T.{I}({half}), k)
                    AT[i] = T.Select(S[next] {goes} WANTED[i], next, AT[i])
            for i in T.unroll(T.{I}({items})):
                AT[i] = AT[i] * stride
            for k in T.serial(steps):
                for i in T.unroll(T.{I}({items})):
                    next: T.{I} = AT[i] + T.shift_right(stride, k + 1)
                    at: T.{I} = T.min(next, n) - 1
                    key: T.{K} = {element}
                    AT[i] = T.Select(next <= n and key {goes} WANTED[i], next, AT[i])
            for i in T.unroll(T.{I}({items})):
                e: T.{I} = (b * {items} + i) * {threads} + t
                if e < count:
                    out[e] = T.Cast("int64", T.min(AT[i], n))
)",
             {{"I", index},
              {"threads", cat(kSearchThreads)},
              {"items", cat(kSearchItems)},
              {"table", cat(kSearchTable)},
              {"each", cat(kSearchTable / kSearchThreads)},
              {"firsts", cat(kSteps)},
              {"half", cat(kSearchTable / 2)},
              {"K", type},
              {"most", cat(most)},  // may be passed; what lies there is no element
              {"value", key("values[T.min(e, count - 1)]")},
              {"element", key("sorted[at]")},
              {"goes", right ? "<=" : "<"}});
}

}  // namespace weft::operators
