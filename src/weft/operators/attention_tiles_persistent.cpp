// SPDX-License-Identifier: Apache-2.0
// The forward program whose blocks take several tiles of queries, so that the copies of the next
// one run beside the end of the last, and whose groups leave out keys that none of their own
// queries sees.
#include "weft/operators/attention_tiles.h"

#include <algorithm>

#include "weft/base/text.h"
#include "weft/operators/attention_text.h"
#include "weft/operators/program_text.h"

namespace weft::operators {

namespace {

/// The tile of queries of a block's use `round` of the grid, and the keys that it sees. Blocks take
/// the tiles of `together` planes, whose keys and values a cache holds, from the longest on.
constexpr const char* kRoundPlace = R"(work: T.int32 = b + round * T.Cast("int32", blocks)
chunk: T.int32 = work // (tiles_ * together_)
beside: T.int32 = T.min(together_, planes - chunk * together_)
rest: T.int32 = work - chunk * (tiles_ * together_)
tile: T.int32 = {tile}
z: T.int32 = chunk * together_ + {plane}
bat: T.int32 = z // T.Cast("int32", heads)
h: T.int32 = z % T.Cast("int32", heads)
kz: T.int32 = h // T.Cast("int32", group)
first: T.int32 = tile * {rows}
visible: T.int32 = {visible}
begin: T.int32 = {begin}
count: T.int32 = T.max({end} - begin, T.int32(1))
)";

constexpr const char* kRoundMemory =
    R"(            tiles_: T.int32 = T.Cast("int32", tiles)
            together_: T.int32 = T.Cast("int32", together)
            planes: T.int32 = T.Cast("int32", batches * heads)
            rounds: T.int32 = (tiles_ * planes - b + T.Cast("int32", blocks) - 1) // T.Cast("int32", blocks)
            QS = T.allocate(({q_pieces}, {rows}, 64), "{type}", scope="shared")
{results_memory}            KS = T.allocate(({stages}, {pieces}, {columns}, 64), "{type}", scope="shared")
            VS = T.allocate(({stages}, {column_pieces}, {value_pieces}, 64, 64), "{type}", scope="shared")
            q_full = T.allocate((1,), "uint64", scope="shared")
            q_empty = T.allocate((1,), "uint64", scope="shared")
            k_full = T.allocate(({stages},), "uint64", scope="shared")
            k_empty = T.allocate(({stages},), "uint64", scope="shared")
            v_full = T.allocate(({stages},), "uint64", scope="shared")
            v_empty = T.allocate(({stages},), "uint64", scope="shared")
            turn = T.allocate(({groups},), "uint64", scope="shared")
            if t == 0:
                T.token_init(q_full[0], 1)
                T.token_init(q_empty[0], {q_signals})
                for s in T.serial({groups}):
                    T.token_init(turn[s], 128)
                for s in T.serial({stages}):
                    T.token_init(k_full[s], 1)
                    T.token_init(k_empty[s], {warps})
                    T.token_init(v_full[s], 1)
                    T.token_init(v_empty[s], {warps})
            T.evaluate(T.sync("shared"))
)";

/// USED: steps of all rounds so far; rings go on from one round to the next.
constexpr const char* kRoundCopy = R"(            with T.block("copy"):
                T.execution("threadIdx.x", 0, 128)
                T.block_attr({copying})
                if t == 0:
                    USED = T.allocate((1,), "int32", scope="local")
                    USED[0] = 0
                    for round in T.serial(rounds):
{place}                        for step in T.serial(count):
                            use: T.int32 = USED[0] + step
                            slot: T.int32 = use % {stages}
                            start: T.int32 = (begin + step) * {columns}
                            T.token_wait(k_empty[slot], 1 - use // {stages} % 2)
                            T.token_expect(k_full[slot], {k_bytes})
                            for c in T.unroll(T.int32({pieces})):
                                T.bulk_load(KS[slot, c, 0, 0], k_map, k_full[slot], c * 64, start, kz, bat)
                            if step == 0:
                                T.token_wait(q_empty[0], 1 - round % 2)
                                T.token_expect(q_full[0], {q_bytes})
                                for c in T.unroll(T.int32({pieces})):
                                    T.bulk_load(QS[c, 0, 0], q_map, q_full[0], c * 64, first, h, bat)
                            T.token_wait(v_empty[slot], 1 - use // {stages} % 2)
                            T.token_expect(v_full[slot], {v_bytes})
                            for r in T.unroll(T.int32({column_pieces})):
                                for c in T.unroll(T.int32({value_pieces})):
                                    T.bulk_load(VS[slot, r, c, 0, 0], v_map, v_full[slot], c * 64, start + r * 64, kz, bat)
                        USED[0] = USED[0] + count
)";

/// Steps whose keys no query of a group sees: the group hands back what it does not read. Values
/// arrive after their keys were sent for.
constexpr const char* kSkip = R"(for step in T.serial({many}):
    use: T.int32 = {from} + step
    slot: T.int32 = use % {stages}
{turn}{pass}    T.token_wait(v_full[slot], use // {stages} % 2)
    if t % 32 == 0:
        T.token_signal(k_empty[slot])
        T.token_signal(v_empty[slot])
)";

constexpr const char* kRoundStart = R"(            with T.block("multiply"):
                T.execution("threadIdx.x", 128, {threads})
                T.block_attr({multiplying})
                S = T.allocate(({column_groups}, 2, 2), "float32", scope="local")
                P = T.allocate(({column_groups}, 2, 2), "{type}", scope="local")
                OUT = T.allocate(({value_groups}, 2, 2), "float32", scope="local")
                SUM = T.allocate((1, 2, 2), "float32", scope="local")
                TOP = T.allocate((2,), "float32", scope="local")
                NEW = T.allocate((2,), "float32", scope="local")
                LESS = T.allocate((2,), "float32", scope="local")
                USED = T.allocate((1,), "int32", scope="local")
                USED[0] = 0
                g: T.int32 = t // 128 - 1
                scale2: T.float32 = scale * T.float32(1.4426950408889634)
                for round in T.serial(rounds):
{own_place}                    row: T.int32 = first + g * 64 + t % 128 // 32 * 16 + t % 32 // 4
                    T.token_wait(q_full[0], round % 2)
{early}                    base_use: T.int32 = USED[0] + before_own
                    T.token_wait(k_full[base_use % {stages}], base_use // {stages} % 2)
{first_turn}                    with T.async_("wgmma", scored):
{first_scores}{first_pass}                    for i in T.unroll(T.int32(2)):
                        TOP[i] = T.float32("-inf")
                        SUM[0, i, 0] = T.float32(0)
                        SUM[0, i, 1] = T.float32(0)
                    T.wait(scored, 0)
                    if t % 32 == 0:
                        T.token_signal(k_empty[base_use % {stages}])
                    start0: T.int32 = (begin + before_own) * {columns}
{first_softmax}                    T.tile_round(P[0, 0, 0], S[0, 0, 0], {columns})
)";

/// The wait for the next keys stands before that for the values: a loop, past which compilers do
/// not move either the exponentials or the wait.
constexpr const char* kRoundSteps = R"(                    if own > 1:
                        T.token_wait(k_full[(base_use + 1) % {stages}], (base_use + 1) // {stages} % 2)
                    for step in T.serial(own - 1):
                        now: T.int32 = base_use + step + 1
                        slot: T.int32 = now % {stages}
                        before: T.int32 = (base_use + step) % {stages}
                        start: T.int32 = (begin + before_own + step + 1) * {columns}
{turn}                        with T.async_("wgmma", scored):
{scores}                        T.token_wait(v_full[before], (base_use + step) // {stages} % 2)
                        with T.async_("wgmma", scored):
{values}{pass}                        T.wait(scored, 1)
                        if t % 32 == 0:
                            T.token_signal(k_empty[slot])
{softmax}                        if step + 2 < own:
                            T.token_wait(k_full[(now + 1) % {stages}], (now + 1) // {stages} % 2)
                        T.wait(scored, 0)
                        if t % 32 == 0:
                            T.token_signal(v_empty[before])
                        for j in T.unroll(T.int32({value_groups})):
                            for i in T.unroll(T.int32(2)):
                                for e in T.unroll(T.int32(2)):
                                    OUT[j, i, e] = OUT[j, i, e] * LESS[i]
                        T.tile_round(P[0, 0, 0], S[0, 0, 0], {columns})
)";

constexpr const char* kRoundEnd = R"(                    last: T.int32 = base_use + own - 1
{q_read}                    T.token_wait(v_full[last % {stages}], last // {stages} % 2)
                    with T.async_("wgmma", scored):
{last_values}                    T.wait(scored, 0)
                    if t % 32 == 0:
                        T.token_signal(v_empty[last % {stages}])
{late}                    USED[0] = USED[0] + count
                    T.tile_rows(NEW[0], SUM[0, 0, 0], 8, 0)
                    for i in T.unroll(T.int32(2)):
                        if t % 4 == 0 and row + i * 8 < n:
                            sums[z * n + row + i * 8] = T.if_then_else(NEW[i] == T.float32(0), T.float32("-inf"), TOP[i] * scale + T.log2(NEW[i]) * T.float32(0.6931471805599453))
                        LESS[i] = T.if_then_else(NEW[i] == T.float32(0), T.float32(0), T.float32(1) / NEW[i])
                    for j in T.unroll(T.int32({value_groups})):
                        for i in T.unroll(T.int32(2)):
                            for e in T.unroll(T.int32(2)):
                                OUT[j, i, e] = OUT[j, i, e] * LESS[i]
                    if t % 128 == 0:
                        T.wait(sent, 0)
                    T.meet(1 + g, 128)
                    for c in T.unroll(T.int32({value_pieces})):
                        T.tile_store({results}[c, g * 64, 0], OUT[c * 8, 0, 0])
                    T.bulk_fence()
                    T.meet(1 + g, 128)
                    if t % 128 == 0:
                        with T.async_("bulk", sent):
                            for c in T.unroll(T.int32({value_pieces})):
                                if first + g * 64 < n:
                                    T.bulk_store(out_map, {results}[c, g * 64, 0], c * 64, first + g * 64, h, bat)
{results_sent}                if t % 128 == 0:
                    T.wait(sent, 0)
)";

/// Whether results leave through memory of their own, so that the next queries arrive meanwhile.
bool stages_results(const AttentionTiles& s) { return std::max(s.width, s.value_width) <= 128; }

}  // namespace

ir::PrimFunc attention_tiles_persistent(const AttentionTiles& s) {
  const int rows = 64 * s.groups, threads = 128 * (s.groups + 1);
  const int a = pieces(s.width), b = pieces(s.value_width);
  const bool apart = stages_results(s);
  ProgramText p("attention.tiles_persistent");
  for (const char* name : {"q", "k", "v"}) p.buffer(name, s.type);
  option_arrays(p, s);
  p.buffer("out", s.type).buffer("sums", "float32");
  for (const char* name :
       {"blocks", "tiles", "batches", "heads", "group", "n",  "m",  "together", "qb", "qh",
        "qr",     "kb",    "kh",      "kr",    "vb",    "vh", "vr", "ob",       "oh", "or_"})
    p.scalar(name, "int64");
  option_numbers(p, s);
  const std::string columns = cat(s.columns);
  const Values facts = {
      {"type", s.type},
      {"rows", cat(rows)},
      {"threads", cat(threads)},
      {"stages", cat(s.stages)},
      {"warps", cat(4 * s.groups)},
      {"q_signals", cat(apart ? 4 * s.groups : s.groups)},
      {"groups", cat(s.groups)},
      {"columns", columns},
      {"column_pieces", cat(s.columns / 64)},
      {"column_groups", cat(s.columns / 8)},
      {"pieces", cat(a)},
      {"value_pieces", cat(b)},
      {"q_pieces", cat(apart ? a : std::max(a, b))},
      {"value_groups", cat(b * 8)},
      {"copying", "{\"registers\": 32}"},
      {"multiplying", cat("{\"registers\": ",
                          s.groups == 4   ? 112
                          : s.groups == 3 ? 160
                                          : 240,
                          "}")},
      {"q_bytes", cat(rows * a * 128)},
      {"k_bytes", cat(s.columns * a * 128)},
      {"v_bytes", cat(s.columns * b * 128)},
      {"visible", s.lengths ? "T.min(T.Cast(\"int32\", m), lengths[bat])" : "T.Cast(\"int32\", m)"},
      {"tile", s.band ? "tiles_ - 1 - rest // beside" : "rest % tiles_"},
      {"plane", s.band ? "rest % beside" : "rest // tiles_"},
      {"begin",
       s.band ? cat("T.max(T.int32(0), first + low) // ", columns) : std::string("T.int32(0)")},
      {"end", s.band ? cat("(T.max(T.int32(0), T.min(visible, first + ", rows, " + high)) + ",
                           s.columns - 1, ") // ", columns)
                     : cat("(visible + ", s.columns - 1, ") // ", columns)}};
  /// Groups start their products in turns, so that one multiplies while another makes weights.
  auto turn = [&](std::string_view use, int blanks) {
    return s.turns ? indented(cat("T.token_wait(turn[g], (", use,
                                  " + T.if_then_else(g > 0, 0, 1)) % 2)\n"),
                              blanks)
                   : std::string();
  };
  auto pass = [&](int blanks) {
    return s.turns ? indented(cat("T.token_signal(turn[(g + 1) % ", s.groups, "])\n"), blanks)
                   : std::string();
  };
  auto skip = [&](const char* many, const char* from) {
    return indented(fill(kSkip, {{"many", many},
                                 {"from", from},
                                 {"stages", cat(s.stages)},
                                 {"turn", turn("use", 4)},
                                 {"pass", pass(4)}}),
                    20);
  };
  const std::string place = fill(kRoundPlace, facts);
  std::string own = "own_first: T.int32 = first + g * 64\n";
  if (s.band)
    own += cat("before_own: T.int32 = T.min(T.max(T.max(T.int32(0), own_first + low) // ", columns,
               " - begin, T.int32(0)), count - 1)\n"
               "own_end: T.int32 = (T.max(T.int32(0), T.min(visible, own_first + 64 + high)) + ",
               s.columns - 1, ") // ", columns, " - begin\n");
  else own += "before_own: T.int32 = 0\nown_end: T.int32 = count\n";
  own +=
      "own: T.int32 = T.if_then_else(own_first >= T.Cast(\"int32\", n), T.int32(1), "
      "T.max(T.int32(1), T.min(own_end, count) - before_own))\n";
  Values v = facts;
  v.emplace_back("place", indented(place, 24));
  v.emplace_back("own_place", indented(place + own, 20));
  v.emplace_back("early", s.band ? skip("before_own", "USED[0]") : std::string());
  v.emplace_back("late", skip("count - before_own - own", "base_use + own"));
  v.emplace_back("first_turn", turn("base_use", 20));
  v.emplace_back("first_pass", pass(20));
  v.emplace_back("turn", turn("now", 24));
  v.emplace_back("pass", pass(24));
  v.emplace_back("first_scores", tile_scores(s, cat("base_use % ", s.stages), 24));
  v.emplace_back("scores", tile_scores(s, "slot", 28));
  v.emplace_back("values", tile_values(s, "before", "step == 0", 28));
  v.emplace_back("last_values", tile_values(s, cat("last % ", s.stages), "own == 1", 24));
  v.emplace_back("first_softmax", tile_softmax(s, "start0", 20));
  v.emplace_back("softmax", tile_softmax(s, "start", 24));
  v.emplace_back("results", apart ? "OS" : "QS");
  v.emplace_back("results_memory",
                 apart
                     ? fill("            OS = T.allocate(({value_pieces}, {rows}, 64), \"{type}\", "
                            "scope=\"shared\")\n",
                            facts)
                     : std::string());
  v.emplace_back("q_read", apart ? indented("if t % 32 == 0:\n    T.token_signal(q_empty[0])\n", 20)
                                 : std::string());
  v.emplace_back("results_sent", apart ? std::string()
                                       : std::string(24, ' ') + "T.wait(sent, 0)\n" +
                                             std::string(24, ' ') + "T.token_signal(q_empty[0])\n");
  return p.parse(
      cat(tile_map("q", "q", s.width, "n", "heads", rows),
          tile_map("k", "k", s.width, "m", "heads // group", s.columns),
          tile_map("v", "v", s.value_width, "m", "heads // group", 64),
          cat("    out_map: T.handle = T.tensor_map(T.address_of(out[0]), 4, ", s.value_width,
              ", n, heads, batches, or_, oh, ob, 64, 64, 1, 1, 1, 1, 1, 1)\n"),
          "    for b in T.thread_binding(T.Cast(\"int32\", blocks), thread=\"blockIdx.x\"):\n"
          "        for t in T.thread_binding(T.int32({threads}), thread=\"threadIdx.x\"):\n",
          kRoundMemory, kRoundCopy, kRoundStart, kRoundSteps, kRoundEnd),
      v);
}

}  // namespace weft::operators
