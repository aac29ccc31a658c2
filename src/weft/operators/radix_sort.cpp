// SPDX-License-Identifier: Apache-2.0
#include "weft/operators/radix_sort.h"

#include "weft/base/text.h"
#include "weft/operators/program_text.h"

namespace weft::operators {

namespace {

int key_bits(const SortSpec& spec) { return spec.bits == 64 ? 64 : 32; }

std::string key_literal(const SortSpec& spec, std::uint64_t value) {
  return cat("T.", sort_key_type(spec), "(", value, ")");
}

}  // namespace

std::string sort_key_type(const SortSpec& spec) { return cat("uint", key_bits(spec)); }

std::string sort_key(const SortSpec& spec, const std::string& word) {
  const std::uint64_t all = spec.bits == 64 ? ~0ull : (1ull << spec.bits) - 1,
                      sign = 1ull << (spec.bits - 1), turn = spec.descending ? all : 0;
  auto flip = [&](const std::string& value, std::uint64_t by) {
    return by ? cat("T.bitwise_xor(", value, ", ", key_literal(spec, by), ")") : value;
  };
  if (spec.kind == KeyKind::unsigned_integer) return flip(word, turn);
  if (spec.kind == KeyKind::signed_integer) return flip(word, sign ^ turn);
  const std::uint64_t infinity = ((1ull << spec.exponent_bits) - 1)
                                 << (spec.bits - 1 - spec.exponent_bits);
  // A negative number's bits are turned, a positive one's sign is set, and -0 is taken for 0.
  return cat("T.let(", word, ", lambda bits_: T.Select(T.bitwise_and(bits_, ",
             key_literal(spec, all >> 1), ") > ", key_literal(spec, infinity), ", ",
             key_literal(spec, all), ", T.Select(bits_ > ", key_literal(spec, sign), ", ",
             flip("bits_", all ^ turn), ", ",
             flip(cat("T.bitwise_or(bits_, ", key_literal(spec, sign), ")"), turn), ")))");
}

namespace {

Values values_of(const SortSpec& spec) {
  const std::uint64_t all = spec.bits == 64 ? ~0ull : (1ull << spec.bits) - 1;
  return {{"I", index_type(spec.narrow)},
          {"K", sort_key_type(spec)},
          {"word", cat("uint", spec.bits)},
          {"threads", cat(spec.threads)},
          {"end", cat(spec.threads - 1)},
          {"items", cat(spec.items)},
          {"tile", cat(spec.tile())},
          {"padded", cat(spec.tile() * 33 / 32 + 1)},
          {"counters", cat(spec.threads * 8)},
          {"key", sort_key(spec, "u")},
          {"most", key_literal(spec, all)},
          {"lowbits", key_literal(spec, 15)},
          {"digitbits", key_literal(spec, kDigits - 1)},
          {"digits", cat(kDigits)}};
}

constexpr const char* kShared = R"(            KEY = T.allocate(({padded},), "{K}", scope="shared")
            POS = T.allocate(({padded},), "{I}", scope="shared")
            COUNT = T.allocate(({counters},), "uint32", scope="shared")
            P = T.allocate(({threads},), "uint32", scope="shared")
            Q = T.allocate(({threads},), "uint32", scope="shared")
            HK = T.allocate(({items},), "{K}", scope="local")
            HP = T.allocate(({items},), "{I}", scope="local")
            RANK = T.allocate(({items},), "uint32", scope="local")
            SUM = T.allocate((1,), "uint32", scope="local")
)";

/// Sorts the tile by four bits from `low` on. A thread counts the digits of its own elements, two
/// in a word; the counts are scanned by digit, then thread. Under a loop, at 16 blanks.
std::string local_pass(const SortSpec& spec) {
  const BlockScan scan = block_scan("P", "Q", spec.threads, "({a} + {b})", 16, "lane");
  Values values = values_of(spec);
  values.emplace_back("scan", scan.text);
  values.emplace_back("R", scan.result);
  values.emplace_back("counter", "COUNT[lane * 8 + w]");
  return fill(R"(                for i in T.unroll({items}):
                    HK[i] = KEY[lane * {items} + i + (lane * {items} + i) // 32]
                    HP[i] = POS[lane * {items} + i + (lane * {items} + i) // 32]
                for w in T.unroll(8):
                    COUNT[lane * 8 + w] = T.uint32(0)
                for i in T.unroll({items}):
                    digit: T.int64 = T.Cast("int64", T.bitwise_and(T.shift_right(HK[i], low), {lowbits}))
                    half: T.uint32 = T.Cast("uint32", T.shift_right(digit, T.int64(3))) * T.uint32(16)
                    slot: T.int64 = T.bitwise_and(digit, T.int64(7))
                    RANK[i] = T.bitwise_and(T.shift_right(COUNT[slot * {threads} + lane], half), T.uint32(65535))
                    COUNT[slot * {threads} + lane] = COUNT[slot * {threads} + lane] + T.shift_left(T.uint32(1), half)
                SUM[0] = T.uint32(0)
                for w in T.unroll(8):
                    SUM[0] = SUM[0] + {counter}
                P[lane] = SUM[0]
{scan}                SUM[0] = {R}[lane] - SUM[0] + T.shift_left(T.bitwise_and({R}[{end}], T.uint32(65535)), T.uint32(16))
                for w in T.unroll(8):
                    count: T.uint32 = {counter}
                    {counter} = SUM[0]
                    SUM[0] = SUM[0] + count
                for i in T.unroll({items}):
                    digit: T.int64 = T.Cast("int64", T.bitwise_and(T.shift_right(HK[i], low), {lowbits}))
                    half: T.uint32 = T.Cast("uint32", T.shift_right(digit, T.int64(3))) * T.uint32(16)
                    slot: T.int64 = T.bitwise_and(digit, T.int64(7))
                    to: T.int64 = T.Cast("int64", RANK[i] + T.bitwise_and(T.shift_right(COUNT[slot * {threads} + lane], half), T.uint32(65535)))
                    KEY[to + to // 32] = HK[i]
                    POS[to + to // 32] = HP[i]
)",
              values);
}

}  // namespace

std::int64_t sort_shared_bytes(const SortSpec& spec) {
  const std::int64_t padded = spec.tile() * 33 / 32 + 1;
  return padded * (key_bits(spec) / 8 + (spec.narrow ? 4 : 8)) + spec.threads * (8 + 2) * 4 +
         2 * kDigits * 8;
}

ir::PrimFunc sort_block(const SortSpec& spec) {
  const std::string index = index_type(spec.narrow);
  Values values = values_of(spec);
  values.emplace_back("shared", fill(kShared, values));
  values.emplace_back("pass", local_pass(spec));
  values.emplace_back("passes", cat(spec.bits / 4));
  values.emplace_back("value", spec.last == SortResult::positions ? "T.Cast(\"int64\", from_)"
                                                                  : "x[b * n + from_]");
  return ProgramText("sort.block")
      .buffer("x", cat("uint", spec.bits))
      .buffer("out", spec.last == SortResult::positions ? "int64" : cat("uint", spec.bits))
      .scalar("rows", index)
      .scalar("n", index)
      .distinct()
      .parse(R"(    for b in T.thread_binding(rows, thread="blockIdx.x"):
        for lane in T.thread_binding({threads}, thread="threadIdx.x"):
            t: T.{I} = T.Cast("{I}", lane)
{shared}            for i in T.unroll(T.{I}({items})):
                at: T.{I} = i * {threads} + t
                u: T.{K} = T.if_then_else(at < n, T.Cast("{K}", x[b * n + at]), T.{K}(0))
                KEY[at + at // 32] = T.Select(at < n, {key}, {most})
                POS[at + at // 32] = at
            for p in T.serial(T.{I}({passes})):
                low: T.{K} = T.Cast("{K}", p * 4)
{pass}            for i in T.unroll(T.{I}({items})):
                at: T.{I} = i * {threads} + t
                if at < n:
                    from_: T.{I} = POS[at + at // 32]
                    out[b * n + at] = {value}
)",
             values);
}

ir::PrimFunc sort_count(const SortSpec& spec) {
  const std::string index = index_type(spec.narrow);
  Values values = values_of(spec);
  values.emplace_back("number", spec.first ? fill("T.Cast(\"{K}\", keys[row * n + at])", values)
                                           : "keys[row * n + at]");
  values.emplace_back("value", spec.first ? fill("{key}", values) : "u");
  return ProgramText("sort.count")
      .buffer("keys", spec.first ? cat("uint", spec.bits) : sort_key_type(spec))
      .buffer("counts", index)
      .scalar("blocks", index)
      .scalar("n", index)
      .scalar("tiles", index)
      .scalar("shift", index)
      .parse(R"(    for b in T.thread_binding(blocks, thread="blockIdx.x"):
        for t in T.thread_binding(T.{I}({threads}), thread="threadIdx.x"):
            H = T.allocate(({digits},), "{I}", scope="shared")
            row: T.{I} = b // tiles
            tile: T.{I} = b % tiles
            for i in T.unroll(T.{I}({digits} // {threads})):
                H[i * {threads} + t] = T.{I}(0)
            for i in T.unroll(T.{I}({items})):
                at: T.{I} = tile * {tile} + i * {threads} + t
                if at < n:
                    u: T.{K} = {number}
                    key: T.{K} = {value}
                    digit: T.{I} = T.Cast("{I}", T.bitwise_and(T.shift_right(key, T.Cast("{K}", shift)), {digitbits}))
                    T.atomic_add(H[digit], T.{I}(1))
            for i in T.unroll(T.{I}({digits} // {threads})):
                counts[(row * {digits} + i * {threads} + t) * tiles + tile] = H[i * {threads} + t]
)",
             values);
}

ir::PrimFunc sort_move(const SortSpec& spec) {
  const std::string index = index_type(spec.narrow);
  const bool elements = spec.last == SortResult::elements;
  Values values = values_of(spec);
  values.emplace_back("shared", fill(kShared, values));
  values.emplace_back("pass", local_pass(spec));
  values.emplace_back(
      "load",
      spec.first
          ? fill(
                R"(                u: T.{K} = T.if_then_else(at < n, T.Cast("{K}", x[row * n + at]), T.{K}(0))
                KEY[here + here // 32] = T.Select(at < n, {key}, {most})
                POS[here + here // 32] = at
)",
                values)
          : fill(
                R"(                KEY[here + here // 32] = T.if_then_else(at < n, keys[row * n + at], {most})
                POS[here + here // 32] = T.if_then_else(at < n, at_[row * n + at], T.{I}(0))
)",
                values));
  std::string store;
  if (spec.last == SortResult::none) {
    store =
        "                    keys_out[to] = key\n                    at_out[to] = POS[here + here "
        "// 32]\n";
  } else {
    store = cat("                    out[to] = ",
                elements ? "x[row * n + POS[here + here // 32]]"
                         : "T.Cast(\"int64\", POS[here + here // 32])",
                "\n");
  }
  values.emplace_back("store", store);
  ProgramText text("sort.move");
  if (spec.first || elements) text.buffer("x", cat("uint", spec.bits));
  if (!spec.first) text.buffer("keys", sort_key_type(spec)).buffer("at_", index);
  text.buffer("starts", index);
  if (spec.last == SortResult::none)
    text.buffer("keys_out", sort_key_type(spec)).buffer("at_out", index);
  else text.buffer("out", elements ? cat("uint", spec.bits) : "int64");
  for (const char* name : {"blocks", "n", "tiles", "shift"}) text.scalar(name, index);
  return text.distinct().parse(
      R"(    for b in T.thread_binding(blocks, thread="blockIdx.x"):
        for lane in T.thread_binding({threads}, thread="threadIdx.x"):
            t: T.{I} = T.Cast("{I}", lane)
{shared}            FROM = T.allocate(({digits},), "{I}", scope="shared")
            row: T.{I} = b // tiles
            tile: T.{I} = b % tiles
            for i in T.unroll(T.{I}({items})):
                here: T.{I} = i * {threads} + t
                at: T.{I} = tile * {tile} + here
{load}            for p in T.serial(T.{I}(2)):
                low: T.{K} = T.Cast("{K}", shift + p * 4)
{pass}            for i in T.unroll(T.{I}({items})):
                here: T.{I} = i * {threads} + t
                digit: T.{I} = T.Cast("{I}", T.bitwise_and(T.shift_right(KEY[here + here // 32], T.Cast("{K}", shift)), {digitbits}))
                left: T.{I} = T.max(here - 1, 0)
                before: T.{I} = T.Cast("{I}", T.bitwise_and(T.shift_right(KEY[left + left // 32], T.Cast("{K}", shift)), {digitbits}))
                if here == 0 or digit != before:
                    FROM[digit] = starts[(row * {digits} + digit) * tiles + tile] - here
            for i in T.unroll(T.{I}({items})):
                here: T.{I} = i * {threads} + t
                if tile * {tile} + here < n:
                    key: T.{K} = KEY[here + here // 32]
                    digit: T.{I} = T.Cast("{I}", T.bitwise_and(T.shift_right(key, T.Cast("{K}", shift)), {digitbits}))
                    to: T.{I} = row * n + FROM[digit] + here
{store})",
      values);
}

}  // namespace weft::operators
