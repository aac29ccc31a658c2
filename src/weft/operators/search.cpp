// SPDX-License-Identifier: Apache-2.0
#include "weft/operators/search.h"

#include <bit>

#include "weft/base/text.h"
#include "weft/operators/program_text.h"

namespace weft::operators {

namespace {

int first_steps(const SearchSpec& spec) {
  return std::bit_width(static_cast<unsigned>(spec.table)) - 1;
}
std::string word_of(const SearchSpec& spec) { return cat("uint", spec.keys.bits); }
std::string key(const SearchSpec& spec, std::string_view word) {
  return sort_key(spec.keys, cat("T.Cast(\"", sort_key_type(spec.keys), "\", ", word, ")"));
}

Values values_of(const SearchSpec& spec) {
  std::string level = "T.int32(0)";  // of the slot: its highest bit
  for (int k = 1; k < first_steps(spec); ++k)
    level += cat(" + T.Select(slot >= ", 1 << k, ", T.int32(1), T.int32(0))");
  return {{"I", index_type(spec.keys.narrow)},
          {"K", sort_key_type(spec.keys)},
          {"word", word_of(spec)},
          {"threads", cat(spec.threads)},
          {"items", cat(kSearchItems)},
          {"table", cat(spec.table)},
          {"turns", cat(spec.table / spec.threads / kSearchItems)},
          {"firsts", cat(first_steps(spec))},
          {"half", cat(spec.table / 2)},
          {"level", level},
          {"key", key(spec, "WORD[i]")},
          {"goes", spec.right ? "<=" : "<"}};
}

/// WORD[i] becomes the word of the table's slot `at`.
constexpr const char* kSlot = R"({b}slot: T.int32 = T.max(T.Cast("int32", {at}), 1)
{b}level: T.int32 = {level}
{b}half: T.int32 = T.shift_right(T.int32({half}), level)
{b}turn: T.int32 = 2 * (slot - T.shift_left(T.int32(1), level)) + 1
{b}place: T.{I} = T.Cast("{I}", turn * half) * stride
{b}WORD[i] = sorted[T.min(place, n) - 1]
)";

std::string slot_text(Values values, int indent, std::string_view at) {
  values.emplace_back("b", std::string(static_cast<std::size_t>(indent), ' '));
  values.emplace_back("at", std::string(at));
  return fill(kSlot, values);
}

}  // namespace

ir::PrimFunc search_table(const SearchSpec& spec) {
  const std::string index = index_type(spec.keys.narrow);
  Values values = values_of(spec);
  values.emplace_back("slot", slot_text(values, 16, "b * {threads} + t"));
  values.back().second = fill(values.back().second, values_of(spec));
  return ProgramText("search.table")
      .buffer("sorted", word_of(spec))
      .buffer("table", sort_key_type(spec.keys))
      .scalar("blocks", index)
      .scalar("n", index)
      .scalar("stride", index)
      .parse(R"(    for b in T.thread_binding(blocks, thread="blockIdx.x"):
        for t in T.thread_binding(T.{I}({threads}), thread="threadIdx.x"):
            WORD = T.allocate((1,), "{word}", scope="local")
            for i in T.unroll(T.{I}(1)):
{slot}                table[b * {threads} + t] = {key}
)",
             values);
}

ir::PrimFunc search_sorted(const SearchSpec& spec) {
  const std::string index = index_type(spec.keys.narrow);
  Values values = values_of(spec);
  const std::string at = "(r * {items} + i) * {threads} + t";
  const std::string table =
      spec.made
          ? cat("                for i in T.unroll(T.{I}({items})):\n                    S[", at,
                "] = table[", at, "]\n")
          : cat("                for i in T.unroll(T.{I}({items})):\n", slot_text(values, 20, at),
                "                for i in T.unroll(T.{I}({items})):\n                    S[", at,
                "] = {key}\n");
  values.emplace_back("fill", fill(table, values_of(spec)));
  ProgramText text("search");
  text.buffer("sorted", word_of(spec));
  if (spec.made) text.buffer("table", sort_key_type(spec.keys));
  text.buffer("values", word_of(spec)).buffer("out", "int64");
  for (const char* name : {"blocks", "count", "n", "stride", "steps", "rounds"})
    text.scalar(name, index);
  return text.parse(R"(    for b in T.thread_binding(blocks, thread="blockIdx.x"):
        for t in T.thread_binding(T.{I}({threads}), thread="threadIdx.x"):
            S = T.allocate(({table},), "{K}", scope="shared")
            WORD = T.allocate(({items},), "{word}", scope="local")
            WANTED = T.allocate(({items},), "{K}", scope="local")
            AT = T.allocate(({items},), "{I}", scope="local")
            for r in T.serial(T.{I}({turns})):
{fill}            for r in T.serial(rounds):
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
                    values);
}

}  // namespace weft::operators
