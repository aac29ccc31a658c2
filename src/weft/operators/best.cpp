// SPDX-License-Identifier: Apache-2.0
#include "weft/operators/best.h"

#include <bit>

#include "weft/base/integers.h"
#include "weft/base/text.h"
#include "weft/operators/network_sort.h"
#include "weft/operators/program_text.h"

namespace weft::operators {

std::int64_t best_items(std::int64_t k, std::int64_t length) {
  const std::int64_t most = (k - 1) * ceil_div(length, std::int64_t{kBestThreads}) + 1;
  return static_cast<std::int64_t>(
      std::bit_ceil(static_cast<std::uint64_t>(ceil_div(most, std::int64_t{kBestThreads}))));
}

ir::PrimFunc best_of_pieces(const BestSpec& spec) {
  const NetworkText bound = sorting_network(kBestThreads, 1, "uint64"),
                    rest = sorting_network(kBestThreads, spec.items, "uint64");
  const BlockScan scan = block_scan("C0", "C1", kBestThreads, "({a} + {b})", 12);
  const std::string result = spec.last ? "int64" : "uint64";
  // Beyond the piece: after every element.
  const std::string given =
      spec.first
          ? R"({b}u: T.{K} = T.if_then_else(e < count, T.Cast("{K}", x[row * n + start + e]), T.{K}(0))
{b}key: T.{K} = {key}
{b}v: T.uint64 = T.Select(e < count, T.bitwise_or(T.shift_left(T.Cast("uint64", key), T.uint64(32)), T.Cast("uint64", start + e)), {most})
)"
          : R"({b}v: T.uint64 = T.if_then_else(e < count, x[row * n + start + e], {most})
)";
  auto values = [&](std::string_view blanks) {
    return Values{{"b", std::string(blanks)},
                  {"K", sort_key_type(spec.keys)},
                  {"key", sort_key(spec.keys, "u")},
                  {"most", "T.uint64(18446744073709551615)"}};
  };
  Values all = values("");
  all.emplace_back("threads", cat(kBestThreads));
  all.emplace_back("items", cat(spec.items));
  all.emplace_back("tile", cat(kBestThreads * spec.items));
  all.emplace_back("given", fill(given, values("                ")));
  all.emplace_back("bound", bound.text);
  all.emplace_back("B", cat("S", bound.free));
  all.emplace_back("F", cat("S", 1 - bound.free));
  all.emplace_back("scan", scan.text);
  all.emplace_back("R", scan.result);
  all.emplace_back("rest", rest.text);
  all.emplace_back("L", cat("S", rest.free));
  all.emplace_back(
      "result", spec.last ? "T.Cast(\"int64\", T.bitwise_and({v}, T.uint64(4294967295)))" : "{v}");
  const std::string place = cat("S", rest.free, "[e]");
  all.back().second = fill(all.back().second, {{"v", place}});
  ProgramText text("best");
  return text.buffer("x", spec.first ? cat("uint", spec.keys.bits) : "uint64")
      .buffer("out", result)
      .scalar("blocks", "int64")
      .scalar("n", "int64")
      .scalar("length", "int64")
      .scalar("pieces", "int64")
      .scalar("k", "int64")
      .distinct()
      .parse(R"(    for b in T.thread_binding(blocks, thread="blockIdx.x"):
        for t in T.thread_binding({threads}, thread="threadIdx.x"):
            H = T.allocate(({items},), "uint64", scope="local")
            N = T.allocate((1,), "uint32", scope="local")
            S0 = T.allocate(({tile},), "uint64", scope="shared")
            S1 = T.allocate(({tile},), "uint64", scope="shared")
            C0 = T.allocate(({threads},), "uint32", scope="shared")
            C1 = T.allocate(({threads},), "uint32", scope="shared")
            row: T.int64 = b // pieces
            start: T.int64 = (b - row * pieces) * length
            count: T.int64 = T.min(length, n - start)
            turns: T.int64 = (count + {threads} - 1) // {threads}
            H[0] = {most}
            for i in T.serial(turns):
                e: T.int64 = i * {threads} + t
{given}                H[0] = T.min(H[0], v)
{bound}            {B}[t] = H[0]
            N[0] = T.uint32(0)
            for i in T.serial(turns):
                e: T.int64 = i * {threads} + t
{given}                if v <= {B}[k - 1]:
                    N[0] = N[0] + T.uint32(1)
            C0[t] = N[0]
            for i in T.unroll({items}):
                {F}[i * {threads} + t] = {most}
{scan}            N[0] = {R}[t] - N[0]
            for i in T.serial(turns):
                e: T.int64 = i * {threads} + t
{given}                if v <= {B}[k - 1] and v != {most}:
                    {F}[T.Cast("int64", N[0])] = v
                    N[0] = N[0] + T.uint32(1)
            for i in T.unroll({items}):
                H[i] = {F}[i * {threads} + t]
{rest}            for i in T.unroll({items}):
                {L}[t * {items} + i] = H[i]
            for i in T.unroll({items}):
                e: T.int64 = i * {threads} + t
                if e < k:
                    out[b * k + e] = {result}
)",
             all);
}

}  // namespace weft::operators
