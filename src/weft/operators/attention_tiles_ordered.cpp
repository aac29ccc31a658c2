// SPDX-License-Identifier: Apache-2.0
// Gradients of attention by products of tiles whose sums have one order: one program for queries,
// one for keys, each of which computes the scores again.
#include <algorithm>

#include "weft/base/text.h"
#include "weft/operators/attention_text.h"
#include "weft/operators/program_text.h"

namespace weft::operators {

namespace {

using Sums = AttentionTiles::Sums;

/// Whether a program sums the gradient of its scores' operand (dq or dk), and that of values.
bool sums_first(const AttentionTiles& s, bool queries) { return queries || s.sums != Sums::values; }
bool sums_second(const AttentionTiles& s, bool queries) { return !queries && s.sums != Sums::keys; }

/// Rows stay: XA with scores, XB with gradients of weights; tiles of 64 columns YA and YB pass.
constexpr const char* kGradientMemory =
    R"(            XA = T.allocate(({pieces}, {rows}, 64), "{type}", scope="shared")
            XB = T.allocate(({value_pieces}, {rows}, 64), "{type}", scope="shared")
            YA = T.allocate(({stages}, {pieces}, 64, 64), "{type}", scope="shared")
            YB = T.allocate(({stages}, {value_pieces}, 64, 64), "{type}", scope="shared")
{stats_memory}            x_full = T.allocate((1,), "uint64", scope="shared")
            y_full = T.allocate(({stages},), "uint64", scope="shared")
            y_empty = T.allocate(({stages},), "uint64", scope="shared")
            if t == 0:
                T.token_init(x_full[0], 1)
                for s in T.serial({stages}):
                    T.token_init(y_full[s], 1)
                    T.token_init(y_empty[s], {warps})
            T.evaluate(T.sync("shared"))
            with T.block("copy"):
                T.execution("threadIdx.x", 0, 128)
                T.block_attr({copying})
                if t == 0:
                    T.token_expect(x_full[0], {x_bytes})
                    for c in T.unroll(T.int32({pieces})):
                        T.bulk_load(XA[c, 0, 0], {xa}_map, x_full[0], c * 64, first, {own}, bat)
                    for c in T.unroll(T.int32({value_pieces})):
                        T.bulk_load(XB[c, 0, 0], {xb}_map, x_full[0], c * 64, first, {own}, bat)
                    for step in T.serial(steps):
                        slot: T.int32 = step % {stages}
                        start: T.int32 = (begin + step % count) * 64
                        other: T.int32 = {other}
                        T.token_wait(y_empty[slot], 1 - step // {stages} % 2)
                        T.token_expect(y_full[slot], {y_bytes})
{stats_load}                        for c in T.unroll(T.int32({pieces})):
                            T.bulk_load(YA[slot, c, 0, 0], {ya}_map, y_full[slot], c * 64, start, other, bat)
                        for c in T.unroll(T.int32({value_pieces})):
                            T.bulk_load(YB[slot, c, 0, 0], {yb}_map, y_full[slot], c * 64, start, other, bat)
)";

constexpr const char* kGradientStart = R"(            with T.block("multiply"):
                T.execution("threadIdx.x", 128, {threads})
                T.block_attr({multiplying})
                S = T.allocate((8, 2, 2), "float32", scope="local")
                D = T.allocate((8, 2, 2), "float32", scope="local")
                W = T.allocate((8, 2, 2), "{type}", scope="local")
{second_memory}{first_memory}                NUMBER = T.allocate((2,), "float32", scope="local")
                KEPT = T.allocate((1, 2, 2), "float32", scope="local")
                LOG = T.allocate((2,), "float32", scope="local")
                DEL = T.allocate((2,), "float32", scope="local")
                g: T.int32 = t // 128 - 1
                row: T.int32 = first + g * 64 + t % 128 // 32 * 16 + t % 32 // 4
                scale2: T.float32 = scale * T.float32(1.4426950408889634)
{first_start}{second_start}                T.token_wait(x_full[0], 0)
)";

constexpr const char* kGradientEnd = R"({first_end}{second_end}                T.bulk_fence()
                T.meet(1 + g, 128)
                if t % 128 == 0:
                    with T.async_("bulk", sent):
                        if first + g * 64 < {length}:
{first_send}{second_send}                    T.wait(sent, 0)
)";

/// The statements of a step. Keys: scores are turned, columns are queries.
std::string gradient_step(const AttentionTiles& s, bool queries) {
  const bool first = sums_first(s, queries), second = sums_second(s, queries);
  const int a = pieces(s.width), b = pieces(s.value_width);
  auto product = [&](const char* to, const char* rows, const char* columns, int count) {
    std::string out = "with T.async_(\"wgmma\", scored):\n";
    for (int c = 0; c < count; ++c)
      out += cat("    T.tile_multiply(", to, "[0, 0, 0], ", rows, "[", c, ", g * 64, 0], ", columns,
                 "[slot, ", c, ", 0, 0], 64, 0, 0, ", c > 0 ? 1 : 0, ")\n");
    return out;
  };
  /// For each of the scores: `each` with log and due, what their query brings.
  auto scores = [&](const char* number, int at, const std::string& each) {
    const std::string out =
        cat("for j in T.unroll(T.int32(8)):\n",
            queries ? std::string()
                    : cat("    for e in T.vectorized(2):\n        NUMBER[e] = ST[slot, ", at,
                          " + j * 8 + t % 4 * 2 + e]\n"),
            "    for i in T.unroll(T.int32(2)):\n        for e in T.unroll(T.int32(2)):\n");
    return cat(out, "            ", fill(each, {{"number", queries ? number : "NUMBER[e]"}}), "\n");
  };
  std::string outside = queries ? "start + 64 > visible" : "first + g * 64 + 64 > visible";
  if (s.band)
    outside += queries
                   ? " or start < first + g * 64 + 63 + low or start + 63 > first + g * 64 + high"
                   : " or first + g * 64 < start + 63 + low or first + g * 64 + 63 > start + high";
  std::string out =
      "slot: T.int32 = step % {stages}\nstart: T.int32 = (begin + step % count) * 64\n";
  if (!queries) out += "h: T.int32 = {other}\n";
  out +=
      cat("plane: T.int32 = bat * T.Cast(\"int32\", heads) + h\n"
          "T.token_wait(y_full[slot], step // {stages} % 2)\n",
          product("S", "XA", "YA", a), first ? product("D", "XB", "YB", b) : std::string(),
          "T.wait(scored, ", first ? 1 : 0, ")\n", masked_scores(s, queries, 8, "start", outside),
          scores("LOG[i]", 0, "S[j, i, e] = T.exp2_flush(S[j, i, e] * scale2 - {number})"));
  std::string change = "D[j, i, e] = S[j, i, e] * (D[j, i, e] - {number})";
  std::string rounded = second ? "T.tile_round(V[0, 0, 0], S[0, 0, 0], 64)\n" : "";
  if (s.dropout) {
    // The sign of S tells what is dropped.
    rounded =
        cat("for j in T.unroll(T.int32(8)):\n    for i in T.unroll(T.int32(2)):\n"
            "        for e in T.unroll(T.int32(2)):\n"
            "            col: T.int32 = start + j * 8 + t % 4 * 2 + e\n",
            dropout_factor(std::string(12, ' '), queries ? "row + i * 8" : "col",
                           queries ? "col" : "row + i * 8", "plane"),
            second ? "            KEPT[0, i, e] = S[j, i, e] * keep\n" : "",
            "            S[j, i, e] = T.if_then_else(keep > T.float32(0), S[j, i, e], "
            "-S[j, i, e])\n",
            second ? "    T.tile_round(V[j, 0, 0], KEPT[0, 0, 0], 8)\n" : "");
    change =
        "D[j, i, e] = T.abs(S[j, i, e]) * (T.if_then_else(S[j, i, e] > T.float32(0), D[j, i, e] * "
        "factor, T.float32(0)) - {number})";
  }
  out += cat(rounded, "T.wait(scored, 0)\n");
  if (second)
    out +=
        cat("with T.async_(\"wgmma\", scored):\n    T.tile_multiply(SECOND[0, 0, 0], V[0, 0, 0], "
            "YB[slot, 0, 0, 0], ",
            b * 64, ", 0, 1, 1)\n");
  const std::string end = "T.wait(scored, 0)\nif t % 32 == 0:\n    T.token_signal(y_empty[slot])\n";
  if (!first) return indented(out + end, 20);
  out += cat(scores("DEL[i]", 64, change), "T.tile_round(W[0, 0, 0], D[0, 0, 0], 64)\n",
             "with T.async_(\"wgmma\", scored):\n    T.tile_multiply(FIRST[0, 0, 0], W[0, 0, 0], "
             "YA[slot, 0, 0, 0], ",
             a * 64, ", 0, 1, 1)\n");
  return indented(out + end, 20);
}

/// A value's name: literals, since values are found by views of them.
std::string_view keep_name(std::string_view sum, std::string_view part) {
  for (std::string_view name : {"first_memory", "first_start", "first_end", "first_send",
                                "second_memory", "second_start", "second_end", "second_send"})
    if (name.starts_with(sum) && name.ends_with(part)) return name;
  return {};
}

/// A program's parameters.
ProgramText parameters(const AttentionTiles& s, bool queries) {
  ProgramText p(queries ? "attention.tiles_queries" : "attention.tiles_keys");
  for (const char* name : {"q", "k", "v", "go"}) p.buffer(name, s.type);
  option_arrays(p, s);
  p.buffer("stats", "float32");
  if (sums_first(s, queries)) p.buffer(queries ? "dq" : "dk", s.type);
  if (sums_second(s, queries)) p.buffer("dv", s.type);
  for (const char* name : {"blocks", "tiles", "batches", "heads", "group", "n", "m", "qb", "qh",
                           "qr", "kb", "kh", "kr", "vb", "vh", "vr", "gb", "gh", "gr"})
    p.scalar(name, "int64");
  option_numbers(p, s);
  return p;
}

/// Tensor maps and what a block computes.
std::string opening(const AttentionTiles& s, bool queries) {
  const int rows = 64 * s.groups;
  auto gradient_map = [&](const char* name, int width, const char* length, const char* heads) {
    return cat("    ", name, "_map: T.handle = T.tensor_map(T.address_of(", name, "[0]), 4, ",
               width, ", ", length, ", ", heads, ", batches, T.int64(", width, "), ", length, " * ",
               width, ", ", length, " * (", heads, ") * ", width, ", 64, 64, 1, 1, 1, 1, 1, 1)\n");
  };
  std::string text =
      cat(tile_map("q", "q", s.width, "n", "heads", queries ? rows : 64),
          tile_map("k", "k", s.width, "m", "heads // group", queries ? 64 : rows),
          tile_map("v", "v", s.value_width, "m", "heads // group", queries ? 64 : rows),
          tile_map("go", "g", s.value_width, "n", "heads", queries ? rows : 64));
  if (!queries)
    text +=
        "    stats_map: T.handle = T.tensor_map(T.address_of(stats[0]), 2, 32, batches * heads * "
        "((n + 63) // 64) * 4, T.int64(32), 32, 4, 1, 1)\n";
  if (queries) text += gradient_map("dq", s.width, "n", "heads");
  if (!queries && sums_first(s, queries))
    text += gradient_map("dk", s.width, "m", "heads // group");
  if (sums_second(s, queries)) text += gradient_map("dv", s.value_width, "m", "heads // group");
  return cat(text, R"(    for b in T.thread_binding(T.Cast("int32", blocks), thread="blockIdx.x"):
        for t in T.thread_binding(T.int32({threads}), thread="threadIdx.x"):
            tile: T.int32 = {tile_order}
            z: T.int32 = b // T.Cast("int32", tiles)
            bat: T.int32 = z // T.Cast("int32", {planes})
            {own}: T.int32 = z % T.Cast("int32", {planes})
)",
             queries ? "            kz: T.int32 = h // T.Cast(\"int32\", group)\n" : "",
             "            visible: T.int32 = ",
             s.lengths ? "T.min(T.Cast(\"int32\", m), lengths[bat])" : "T.Cast(\"int32\", m)",
             R"(
            first: T.int32 = tile * {rows}
            begin: T.int32 = {begin}
            count: T.int32 = T.max({end} - begin, T.int32(1))
            steps: T.int32 = count{times}
)");
}

/// What the texts leave open, but for the sums.
Values open_values(const AttentionTiles& s, bool queries) {
  const int rows = 64 * s.groups, both = pieces(s.width) + pieces(s.value_width);
  const int registers = s.groups == 4 ? 112 : s.groups == 3 ? 160 : 240;
  Values v = {
      {"type", s.type},
      {"rows", cat(rows)},
      {"threads", cat(128 * (s.groups + 1))},
      {"stages", cat(s.stages)},
      {"warps", cat(4 * s.groups)},
      {"pieces", cat(pieces(s.width))},
      {"value_pieces", cat(pieces(s.value_width))},
      {"copying", "{\"registers\": 24}"},
      {"multiplying", cat("{\"registers\": ", registers, "}")},
      {"x_bytes", cat(rows * both * 128)},
      {"y_bytes", cat(64 * both * 128 + (queries ? 0 : 512))},
      {"stats_memory", queries ? std::string()
                               : fill("            ST = T.allocate(({stages}, 256), \"float32\", "
                                      "scope=\"shared\")\n",
                                      {{"stages", cat(s.stages)}})},
      {"stats_load",
       queries ? std::string()
               : indented("T.bulk_load(ST[slot, 0], stats_map, y_full[slot], 0, ((bat * "
                          "T.Cast(\"int32\", heads) + other) * ((T.Cast(\"int32\", n) + 63) // "
                          "64) + begin + step % count) * 4)\n",
                          24)},
      {"own", queries ? "h" : "kz"},
      {"xa", queries ? "q" : "k"},
      {"xb", queries ? "go" : "v"},
      {"ya", queries ? "k" : "q"},
      {"yb", queries ? "v" : "go"},
      {"other", queries ? "kz" : "kz * T.Cast(\"int32\", group) + step // count"},
      {"planes", queries ? "heads" : "heads // group"},
      {"tile_order", queries ? "T.Cast(\"int32\", tiles) - 1 - b % T.Cast(\"int32\", tiles)"
                             : "b % T.Cast(\"int32\", tiles)"},
      {"times", queries ? "" : " * T.Cast(\"int32\", group)"},
      {"length", queries ? "T.Cast(\"int32\", n)" : "T.Cast(\"int32\", m)"}};
  const std::string n = "T.Cast(\"int32\", n)";
  if (queries) {
    v.emplace_back("begin", s.band ? "T.max(T.int32(0), first + low) // 64" : "T.int32(0)");
    v.emplace_back("end", s.band ? cat("(T.max(T.int32(0), T.min(visible, first + ", rows,
                                       " + high)) + 63) // 64")
                                 : std::string("(visible + 63) // 64"));
  } else {
    v.emplace_back("begin", s.band ? cat("T.min(T.max(T.int32(0), first - high) // 64, (", n,
                                         " + 63) // 64 - 1)")
                                   : std::string("T.int32(0)"));
    v.emplace_back("end", s.band ? cat("(T.max(T.int32(0), T.min(", n, ", first + ", rows,
                                       " - low)) + 63) // 64")
                                 : cat("(", n, " + 63) // 64"));
  }
  return v;
}

/// Of each of the two sums: its memory, zeros, its tiles in shared memory, their copies.
void add_sums(Values& v, const AttentionTiles& s, bool queries) {
  const std::string blanks(16, ' ');
  auto sum = [&](const char* name, bool wanted, const char* sums, const char* rows_of, int count,
                 const char* to) {
    const Values names = {{"in", blanks},
                          {"sums", sums},
                          {"rows", rows_of},
                          {"groups", cat(count * 8)},
                          {"pieces", cat(count)},
                          {"to", to},
                          {"own", queries ? "h" : "kz"},
                          {"type", s.type}};
    auto add = [&](const char* part, const char* statements) {
      v.emplace_back(keep_name(name, part), wanted ? fill(statements, names) : std::string());
    };
    add("memory", R"({in}{sums} = T.allocate(({groups}, 2, 2), "float32", scope="local")
)");
    add("start", R"({in}for j in T.unroll(T.int32({groups})):
{in}    for i in T.unroll(T.int32(2)):
{in}        for e in T.unroll(T.int32(2)):
{in}            {sums}[j, i, e] = T.float32(0)
)");
    add("end", R"({in}for c in T.unroll(T.int32({pieces})):
{in}    T.tile_store({rows}[c, g * 64, 0], {sums}[c * 8, 0, 0])
)");
    add("send", R"({in}            for c in T.unroll(T.int32({pieces})):
{in}                T.bulk_store({to}_map, {rows}[c, g * 64, 0], c * 64, first + g * 64, {own}, bat)
)");
  };
  const int a = pieces(s.width), b = pieces(s.value_width);
  const bool first = sums_first(s, queries), second = sums_second(s, queries);
  sum("first", first, "FIRST", "XA", a, queries ? "dq" : "dk");
  sum("second", second, "SECOND", "XB", b, "dv");
  auto value = [&](std::string_view name) -> std::string& {
    return std::find_if(v.begin(), v.end(), [&](const auto& x) { return x.first == name; })->second;
  };
  if (first)
    value("first_end") = cat(fill(R"({in}for j in T.unroll(T.int32({groups})):
{in}    for i in T.unroll(T.int32(2)):
{in}        for e in T.unroll(T.int32(2)):
{in}            FIRST[j, i, e] = FIRST[j, i, e] * scale
)",
                                  {{"in", blanks}, {"groups", cat(a * 8)}}),
                             value("first_end"));
  if (second)
    value("second_memory") +=
        cat(blanks, "V = T.allocate((8, 2, 2), \"", s.type, "\", scope=\"local\")\n");
}

constexpr const char* kQueryNumbers = R"(                for i in T.unroll(T.int32(2)):
                    own: T.int32 = T.min(row + i * 8, T.Cast("int32", n) - 1)
                    part: T.int64 = (T.Cast("int64", z) * ((n + 63) // 64) + T.Cast("int64", own // 64)) * 128
                    c: T.int32 = own % 64
                    LOG[i] = stats[part + T.Cast("int64", c // 32 * 32 + T.bitwise_xor(c % 32 // 4, c // 32) * 4 + c % 4)]
                    DEL[i] = stats[part + T.Cast("int64", 64 + c // 32 * 32 + T.bitwise_xor(c % 32 // 4, 2 + c // 32) * 4 + c % 4)]
)";

ir::PrimFunc gradient(const AttentionTiles& s, bool queries) {
  const std::string text = cat(
      opening(s, queries), kGradientMemory, kGradientStart, queries ? kQueryNumbers : "",
      "                for step in T.serial(steps):\n", gradient_step(s, queries), kGradientEnd);
  Values v = open_values(s, queries);
  add_sums(v, s, queries);
  return parameters(s, queries).parse(text, v);
}

}  // namespace

ir::PrimFunc attention_tiles_queries(const AttentionTiles& s) { return gradient(s, true); }
ir::PrimFunc attention_tiles_keys(const AttentionTiles& s) { return gradient(s, false); }

}  // namespace weft::operators
