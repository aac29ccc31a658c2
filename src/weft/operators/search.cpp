// SPDX-License-Identifier: Apache-2.0
#include "weft/operators/search.h"

#include <algorithm>
#include <bit>

#include "weft/base/text.h"
#include "weft/operators/program_text.h"

namespace weft::operators {

ir::PrimFunc search_sorted(const SortSpec& spec, bool right) {
  const std::string index = index_type(spec.narrow), word = cat("uint", spec.bits),
                    type = sort_key_type(spec);
  constexpr int kSteps = std::bit_width(static_cast<unsigned>(kSearchTable)) - 1;
  auto key = [&](std::string_view element) {
    return sort_key(spec, cat("T.Cast(\"", type, "\", ", element, ")"));
  };
  std::string level = "T.int32(0)";  // of the slot: its highest bit
  for (int k = 1; k < kSteps; ++k)
    level += cat(" + T.Select(slot >= ", 1 << k, ", T.int32(1), T.int32(0))");
  return ProgramText("search")
      .buffer("sorted", word)
      .buffer("values", word)
      .buffer("out", "int64")
      .scalar("blocks", index)
      .scalar("count", index)
      .scalar("n", index)
      .scalar("stride", index)
      .scalar("steps", index)
      .scalar("rounds", index)
      .parse(R"(    for b in T.thread_binding(blocks, thread="blockIdx.x"):
        for t in T.thread_binding(T.{I}({threads}), thread="threadIdx.x"):
            S = T.allocate(({table},), "{K}", scope="shared")
            WORD = T.allocate(({most_loads},), "{word}", scope="local")
            WANTED = T.allocate(({items},), "{K}", scope="local")
            AT = T.allocate(({items},), "{I}", scope="local")
            for j in T.unroll(T.{I}({each})):
                slot: T.int32 = T.max(T.Cast("int32", j * {threads} + t), 1)
                level: T.int32 = {level}
                half: T.int32 = T.shift_right(T.int32({half}), level)
                turn: T.int32 = 2 * (slot - T.shift_left(T.int32(1), level)) + 1
                place: T.{I} = T.Cast("{I}", turn * half) * stride
                WORD[j] = sorted[T.min(place, n) - 1]
            for j in T.unroll(T.{I}({each})):
                S[j * {threads} + t] = {first}
            for r in T.serial(rounds):
                for i in T.unroll(T.{I}({items})):
                    e: T.{I} = ((r * blocks + b) * {items} + i) * {threads} + t
                    WORD[i] = values[T.min(e, count - 1)]
                for i in T.unroll(T.{I}({items})):
                    WANTED[i] = {key}
                    AT[i] = 1
                for k in T.unroll(T.{I}({firsts})):
                    for i in T.unroll(T.{I}({items})):
                        AT[i] = 2 * AT[i] + T.Select(S[AT[i]] {goes} WANTED[i], T.{I}(1), T.{I}(0))
                for i in T.unroll(T.{I}({items})):
                    AT[i] = (AT[i] - {table}) * stride
                for k in T.serial(steps):
                    for i in T.unroll(T.{I}({items})):
                        next: T.{I} = AT[i] + T.shift_right(stride, k + 1)
                        WORD[i] = sorted[T.min(next, n) - 1]
                    for i in T.unroll(T.{I}({items})):
                        next: T.{I} = AT[i] + T.shift_right(stride, k + 1)
                        key: T.{K} = {key}
                        AT[i] = T.Select(key {goes} WANTED[i], next, AT[i])
                for i in T.unroll(T.{I}({items})):
                    e: T.{I} = ((r * blocks + b) * {items} + i) * {threads} + t
                    if e < count:
                        out[e] = T.Cast("int64", T.min(AT[i], n))
)",
             {{"I", index},
              {"threads", cat(kSearchThreads)},
              {"items", cat(kSearchItems)},
              {"table", cat(kSearchTable)},
              {"each", cat(kSearchTable / kSearchThreads)},
              {"level", level},
              {"firsts", cat(kSteps)},
              {"half", cat(kSearchTable / 2)},
              {"K", type},
              {"word", word},
              {"most_loads", cat(std::max(kSearchItems, kSearchTable / kSearchThreads))},
              {"first", key("WORD[j]")},
              {"key", key("WORD[i]")},
              {"goes", right ? "<=" : "<"}});
}

}  // namespace weft::operators
