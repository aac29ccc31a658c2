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

namespace {

std::uint64_t all_bits(const SortSpec& spec) {
  return spec.bits == 64 ? ~0ull : (1ull << spec.bits) - 1;
}
std::string flip(const SortSpec& spec, const std::string& value, std::uint64_t by) {
  return by ? cat("T.bitwise_xor(", value, ", ", key_literal(spec, by), ")") : value;
}
/// What an integer's bits are turned by, to make a key and to undo it.
std::uint64_t integer_turn(const SortSpec& spec) {
  const std::uint64_t turn = spec.descending ? all_bits(spec) : 0;
  return spec.kind == KeyKind::signed_integer ? turn ^ (1ull << (spec.bits - 1)) : turn;
}
/// How many numbers of one sign are NaN.
std::uint64_t nan_count(const SortSpec& spec) {
  return (1ull << (spec.bits - 1 - spec.exponent_bits)) - 1;
}

/// The key of which no two words have the same, and the word of such a key.
std::string unique_key(const SortSpec& spec, const std::string& word) {
  if (spec.kind != KeyKind::floating) return flip(spec, word, integer_turn(spec));
  const std::uint64_t all = all_bits(spec), sign = 1ull << (spec.bits - 1), nan = nan_count(spec),
                      turn = spec.descending ? all : 0;
  // In the order of bits NaN of one sign come first: they are put behind those of the other.
  return cat("T.let(", word, ", lambda bits_: T.let(T.Select(bits_ >= ", key_literal(spec, sign),
             ", ", flip(spec, "bits_", all ^ turn), ", ", flip(spec, "bits_", sign ^ turn),
             "), lambda turned_: T.Select(turned_ < ", key_literal(spec, nan), ", turned_ + ",
             key_literal(spec, all - nan + 1), ", turned_ - ", key_literal(spec, nan), ")))");
}
std::string word_of_key(const SortSpec& spec, const std::string& key) {
  if (spec.kind != KeyKind::floating) return sort_word(spec, key);
  const std::uint64_t all = all_bits(spec), sign = 1ull << (spec.bits - 1), nan = nan_count(spec),
                      turn = spec.descending ? all : 0;
  return cat("T.let(", key, ", lambda key_: T.let(T.Select(key_ > ", key_literal(spec, all - nan),
             ", key_ - ", key_literal(spec, all - nan + 1), ", key_ + ", key_literal(spec, nan),
             "), lambda turned_: T.Select(", flip(spec, "turned_", turn),
             " >= ", key_literal(spec, sign), ", ", flip(spec, "turned_", sign ^ turn), ", ",
             flip(spec, "turned_", all ^ turn), ")))");
}

bool has_positions(const SortSpec& spec) { return spec.result == SortResult::positions; }

/// What a key is sorted by: unique ones say which zero or NaN it is, of which all are equal.
std::string order_of(const SortSpec& spec, const std::string& key) {
  if (has_positions(spec) || spec.kind != KeyKind::floating) return key;
  const std::uint64_t all = all_bits(spec), nan = nan_count(spec),
                      zero = (1ull << (spec.bits - 1)) - nan;
  return cat("T.let(", key, ", lambda own_: T.Select(own_ > ", key_literal(spec, all - 2 * nan),
             ", ", key_literal(spec, all), ", T.Select(own_ == ", key_literal(spec, zero - 1), ", ",
             key_literal(spec, zero), ", own_)))");
}

/// The lines of `text` that do not speak of positions, or all of them.
std::string lines_for(const SortSpec& spec, std::string_view text) {
  if (has_positions(spec)) return std::string(text);
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    const std::string_view line = text.substr(at, end - at);
    if (line.find("POS") == std::string_view::npos && line.find("HP") == std::string_view::npos)
      out += line;
    at = end;
  }
  return out;
}

}  // namespace

std::string sort_key(const SortSpec& spec, const std::string& word) {
  const std::uint64_t all = all_bits(spec), sign = 1ull << (spec.bits - 1),
                      turn = spec.descending ? all : 0;
  if (spec.kind != KeyKind::floating) return flip(spec, word, integer_turn(spec));
  const std::uint64_t infinity = ((1ull << spec.exponent_bits) - 1)
                                 << (spec.bits - 1 - spec.exponent_bits);
  // A negative number's bits are turned, a positive one's sign is set, and -0 is taken for 0.
  return cat("T.let(", word, ", lambda bits_: T.Select(T.bitwise_and(bits_, ",
             key_literal(spec, all >> 1), ") > ", key_literal(spec, infinity), ", ",
             key_literal(spec, all), ", T.Select(bits_ > ", key_literal(spec, sign), ", ",
             flip(spec, "bits_", all ^ turn), ", ",
             flip(spec, cat("T.bitwise_or(bits_, ", key_literal(spec, sign), ")"), turn), ")))");
}

std::string sort_word(const SortSpec& spec, const std::string& key) {
  return flip(spec, key, integer_turn(spec));
}

namespace {

Values values_of(const SortSpec& spec) {
  return {{"I", index_type(spec.narrow)},
          {"K", sort_key_type(spec)},
          {"word", cat("uint", spec.bits)},
          {"threads", cat(spec.threads)},
          {"end", cat(spec.threads - 1)},
          {"items", cat(spec.items)},
          {"tile", cat(spec.tile())},
          {"padded", cat(spec.tile() * 33 / 32 + 1)},
          {"counters", cat(spec.threads * 8)},
          {"key", has_positions(spec) ? sort_key(spec, "u") : unique_key(spec, "u")},
          {"held", order_of(spec, "HK[i]")},
          {"order", order_of(spec, "key")},
          {"most", key_literal(spec, all_bits(spec))},
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
/// in a word; the counts are scanned by digit, then thread. An element's digit waits above its
/// rank. Under a loop, at 16 blanks.
std::string local_pass(const SortSpec& spec) {
  const BlockScan scan = block_scan("P", "Q", spec.threads, "({a} + {b})", 16, "lane");
  Values values = values_of(spec);
  values.emplace_back("scan", scan.text);
  values.emplace_back("R", scan.result);
  values.emplace_back("counter", "COUNT[lane * 8 + w]");
  return fill(lines_for(spec, R"(                for i in T.unroll({items}):
                    HK[i] = KEY[lane * {items} + i + (lane * {items} + i) // 32]
                    HP[i] = POS[lane * {items} + i + (lane * {items} + i) // 32]
                for w in T.unroll(8):
                    COUNT[lane * 8 + w] = T.uint32(0)
                for i in T.unroll({items}):
                    digit: T.uint32 = T.Cast("uint32", T.bitwise_and(T.shift_right({held}, low), {lowbits}))
                    half: T.uint32 = T.shift_right(digit, T.uint32(3)) * T.uint32(16)
                    slot: T.int64 = T.Cast("int64", T.bitwise_and(digit, T.uint32(7)))
                    RANK[i] = T.bitwise_or(T.bitwise_and(T.shift_right(COUNT[slot * {threads} + lane], half), T.uint32(65535)), T.shift_left(digit, T.uint32(16)))
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
                    digit: T.uint32 = T.shift_right(RANK[i], T.uint32(16))
                    half: T.uint32 = T.shift_right(digit, T.uint32(3)) * T.uint32(16)
                    slot: T.int64 = T.Cast("int64", T.bitwise_and(digit, T.uint32(7)))
                    to: T.int64 = T.Cast("int64", T.bitwise_and(RANK[i], T.uint32(65535)) + T.bitwise_and(T.shift_right(COUNT[slot * {threads} + lane], half), T.uint32(65535)))
                    KEY[to + to // 32] = HK[i]
                    POS[to + to // 32] = HP[i]
)"),
              values);
}

}  // namespace

std::int64_t sort_shared_bytes(const SortSpec& spec) {
  const std::int64_t padded = spec.tile() * 33 / 32 + 1;
  const std::int64_t position = has_positions(spec) ? (spec.narrow ? 4 : 8) : 0;
  return padded * (key_bits(spec) / 8 + position) + spec.threads * (8 + 2) * 4 + 2 * kDigits * 8;
}

namespace {

std::string result_type(const SortSpec& spec) {
  return has_positions(spec) ? "int64" : cat("uint", spec.bits);
}
/// What the place `at` of the tile holds, whose key is `key`, as the result has it.
std::string result_at(const SortSpec& spec, std::string_view at, const std::string& key) {
  if (has_positions(spec)) return cat("T.Cast(\"int64\", POS[", at, " + ", at, " // 32])");
  const std::string word = word_of_key(spec, key);
  return spec.bits < key_bits(spec) ? cat("T.Cast(\"", result_type(spec), "\", ", word, ")") : word;
}

}  // namespace

ir::PrimFunc sort_block(const SortSpec& spec) {
  const std::string index = index_type(spec.narrow);
  Values values = values_of(spec);
  values.emplace_back("shared", fill(lines_for(spec, kShared), values));
  values.emplace_back("pass", local_pass(spec));
  values.emplace_back("passes", cat(spec.bits / 4));
  values.emplace_back("value", result_at(spec, "at", "KEY[at + at // 32]"));
  return ProgramText("sort.block")
      .buffer("x", cat("uint", spec.bits))
      .buffer("out", result_type(spec))
      .scalar("rows", index)
      .scalar("n", index)
      .distinct()
      .parse(lines_for(spec, R"(    for b in T.thread_binding(rows, thread="blockIdx.x"):
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
                    out[b * n + at] = {value}
)"),
             values);
}

namespace {

/// A tile's elements: `load` reads the one at `at` of its row, `key` makes its key. Only the last
/// tile of a row, of which `left` elements are there, needs tests; behind them lies the greatest
/// key.
std::string load_tile(const SortSpec& spec, const std::string& load, std::string_view element,
                      const std::string& key, const Values& values) {
  Values all = values;
  all.emplace_back("load", fill(lines_for(spec, load), values));
  all.emplace_back("element", std::string(element));
  all.emplace_back("made", fill(key, values));
  return fill(R"(            if {tile} <= left:
                for i in T.unroll(T.{I}({items})):
                    at: T.{I} = tile * {tile} + i * {threads} + t
{load}                for i in T.unroll(T.{I}({items})):
                    {element} = {made}
            else:
                for i in T.unroll(T.{I}({items})):
                    at: T.{I} = T.min(tile * {tile} + i * {threads} + t, n - 1)
{load}                for i in T.unroll(T.{I}({items})):
                    {element} = T.Select(i * {threads} + t < left, {made}, {most})
)",
              all);
}

}  // namespace

ir::PrimFunc sort_count(const SortSpec& spec) {
  const std::string index = index_type(spec.narrow);
  Values values = values_of(spec);
  const std::string key = spec.first ? fill("T.let(U[i], lambda u: {key})", values) : "U[i]";
  values.emplace_back(
      "tile_loads",
      load_tile(spec, "                    U[i] = T.Cast(\"{K}\", keys[row * n + at])\n", "U[i]",
                key, values));
  values.emplace_back("digit_of", fill(R"(                    key: T.{K} = U[i]
                    digit: T.{I} = T.Cast("{I}", T.bitwise_and(T.shift_right({order}, T.Cast("{K}", shift)), {digitbits}))
)",
                                       values));
  return ProgramText("sort.count")
      .buffer("keys", spec.first ? cat("uint", spec.bits) : sort_key_type(spec))
      .buffer("counts", index)
      .scalar("blocks", index)
      .scalar("n", index)
      .scalar("tiles", index)
      .scalar("shift", index)
      .parse(R"(    for b in T.thread_binding(blocks, thread="blockIdx.x"):
        for t in T.thread_binding(T.{I}({threads}), thread="threadIdx.x"):
            H = T.allocate(({digits},), "int32", scope="shared")
            U = T.allocate(({items},), "{K}", scope="local")  # loads are in flight together
            row: T.{I} = b // tiles
            tile: T.{I} = b % tiles
            left: T.{I} = n - tile * {tile}
            for i in T.unroll(T.{I}({digits} // {threads})):
                H[i * {threads} + t] = T.int32(0)
{tile_loads}            if {tile} <= left:
                for i in T.unroll(T.{I}({items})):
{digit_of}                    T.atomic_add(H[digit], T.int32(1))
            else:
                for i in T.unroll(T.{I}({items})):
{digit_of}                    if i * {threads} + t < left:
                        T.atomic_add(H[digit], T.int32(1))
            for i in T.unroll(T.{I}({digits} // {threads})):
                counts[(row * {digits} + i * {threads} + t) * tiles + tile] = T.Cast("{I}", H[i * {threads} + t])
)",
             values);
}

ir::PrimFunc sort_move(const SortSpec& spec) {
  const std::string index = index_type(spec.narrow);
  const bool positions = has_positions(spec);
  Values values = values_of(spec);
  values.emplace_back("shared", fill(lines_for(spec, kShared), values));
  values.emplace_back("pass", local_pass(spec));
  values.emplace_back(
      "tile_loads",
      load_tile(spec,
                spec.first ? "                    HK[i] = T.Cast(\"{K}\", x[row * n + at])\n"
                           : "                    HK[i] = keys[row * n + at]\n"
                             "                    HP[i] = at_[row * n + at]\n",
                "HK[i]", spec.first ? fill("T.let(HK[i], lambda u: {key})", values) : "HK[i]",
                values));
  values.emplace_back("place", spec.first ? fill("tile * {tile} + here", values) : "HP[i]");
  values.emplace_back("keep",
                      fill(lines_for(spec, R"(                here: T.{I} = i * {threads} + t
                KEY[here + here // 32] = HK[i]
                POS[here + here // 32] = {place}
)"),
                           values));
  values.emplace_back("to", fill(R"(                    here: T.{I} = i * {threads} + t
                    HK[i] = KEY[here + here // 32]
                    digit: T.{I} = T.Cast("{I}", T.bitwise_and(T.shift_right({held}, T.Cast("{K}", shift)), {digitbits}))
                    to: T.{I} = row * n + FROM[digit] + here
)",
                                 values));
  const std::string store =
      spec.last
          ? cat("{b}out[to] = ", result_at(spec, "here", "HK[i]"), "\n")
          : lines_for(spec, "{b}keys_out[to] = HK[i]\n{b}at_out[to] = POS[here + here // 32]\n");
  values.emplace_back("store", fill(store, {{"b", std::string(20, ' ')}}));
  values.emplace_back("store_inside", fill(store, {{"b", std::string(24, ' ')}}));
  // Keys of few numbers have equal digits from some pass on: such a tile is in order.
  values.emplace_back("lead", spec.first
                                  ? ""
                                  : fill(R"(            key: T.{K} = keys[row * n + tile * {tile}]
            lead: T.{I} = (row * {digits} + T.Cast("{I}", T.bitwise_and(T.shift_right({order}, T.Cast("{K}", shift)), {digitbits}))) * tiles + tile
            behind: T.bool = lead + 1 == (row + 1) * {digits} * tiles
            alike: T.{I} = T.Select(behind, n, starts[T.Select(behind, lead, lead + 1)]) - starts[lead]
)",
                                         values));
  values.emplace_back(
      "passes", spec.first
                    ? fill("T.{I}(2)", values)
                    : fill("T.Select(alike == T.min(left, {tile}), T.{I}(0), T.{I}(2))", values));
  const BlockScan scan = block_scan("P", "Q", spec.threads, "({a} + {b})", 12, "lane");
  values.emplace_back("scan", scan.text);
  values.emplace_back("R", scan.result);
  values.emplace_back("each", cat(kDigits / spec.threads));
  ProgramText text("sort.move");
  if (spec.first) text.buffer("x", cat("uint", spec.bits));
  else text.buffer("keys", sort_key_type(spec));
  if (!spec.first && positions) text.buffer("at_", index);
  text.buffer("starts", index);
  if (spec.last) text.buffer("out", result_type(spec));
  else text.buffer("keys_out", sort_key_type(spec));
  if (!spec.last && positions) text.buffer("at_out", index);
  for (const char* name : {"blocks", "n", "tiles", "shift"}) text.scalar(name, index);
  // As many as keep a thread's elements in registers.
  return text.distinct()
      .resident(spec.bits == 64 ? 3 : 4)
      .parse(
          R"(    for b in T.thread_binding(blocks, thread="blockIdx.x"):
        for lane in T.thread_binding({threads}, thread="threadIdx.x"):
            t: T.{I} = T.Cast("{I}", lane)
{shared}            FROM = T.allocate(({digits},), "{I}", scope="shared")
            BASE = T.allocate(({each},), "{I}", scope="local")
            COUNTED = T.allocate(({each},), "uint32", scope="local")
            row: T.{I} = b // tiles
            tile: T.{I} = b % tiles
            left: T.{I} = n - tile * {tile}
{lead}{tile_loads}            SUM[0] = T.uint32(0)
            for g in T.unroll(T.{I}({each})):
                digit: T.{I} = t * {each} + g
                at: T.{I} = (row * {digits} + digit) * tiles + tile
                last: T.bool = digit * tiles + tile + 1 == {digits} * tiles
                BASE[g] = starts[at]
                COUNTED[g] = T.Cast("uint32", T.if_then_else(last, n, starts[T.Select(last, at, at + 1)]) - BASE[g])
                SUM[0] = SUM[0] + COUNTED[g]
            P[lane] = SUM[0]
{scan}            SUM[0] = {R}[lane] - SUM[0]
            for g in T.unroll(T.{I}({each})):
                FROM[t * {each} + g] = BASE[g] - T.Cast("{I}", SUM[0])
                SUM[0] = SUM[0] + COUNTED[g]
            for i in T.unroll(T.{I}({items})):
{keep}            for p in T.serial({passes}):
                low: T.{K} = T.Cast("{K}", shift + p * 4)
{pass}            if {tile} <= left:
                for i in T.unroll(T.{I}({items})):
{to}{store}            else:
                for i in T.unroll(T.{I}({items})):
{to}                    if here < left:
{store_inside})",
          values);
}

}  // namespace weft::operators
