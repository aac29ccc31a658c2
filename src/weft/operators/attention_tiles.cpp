// SPDX-License-Identifier: Apache-2.0
// Attention whose products are made by groups of 128 threads on tiles in shared memory, with a
// thread that starts copies beside them (docs/design/roles.md).
#include "weft/operators/attention_tiles.h"

#include <algorithm>

#include "weft/base/text.h"
#include "weft/operators/attention_text.h"
#include "weft/operators/program_text.h"

namespace weft::operators {

namespace {

constexpr const char* kPlace =
    R"(            tile: T.int32 = T.Cast("int32", tiles) - 1 - b % T.Cast("int32", tiles)
            z: T.int32 = b // T.Cast("int32", tiles)
            bat: T.int32 = z // T.Cast("int32", heads)
            h: T.int32 = z % T.Cast("int32", heads)
            kz: T.int32 = h // T.Cast("int32", group)
            first: T.int32 = tile * {rows}
            begin: T.int32 = {begin}
            count: T.int32 = T.max({end} - begin, T.int32(1))
)";

constexpr const char* kMemory =
    R"(            QS = T.allocate(({q_pieces}, {rows}, 64), "{type}", scope="shared")
            KS = T.allocate(({stages}, {pieces}, {columns}, 64), "{type}", scope="shared")
            VS = T.allocate(({stages}, {column_pieces}, {value_pieces}, 64, 64), "{type}", scope="shared")
            q_full = T.allocate((1,), "uint64", scope="shared")
            k_full = T.allocate(({stages},), "uint64", scope="shared")
            k_empty = T.allocate(({stages},), "uint64", scope="shared")
            v_full = T.allocate(({stages},), "uint64", scope="shared")
            v_empty = T.allocate(({stages},), "uint64", scope="shared")
            turn = T.allocate(({groups},), "uint64", scope="shared")
            if t == 0:
                T.token_init(q_full[0], 1)
                for s in T.serial({groups}):
                    T.token_init(turn[s], 128)
                for s in T.serial({stages}):
                    T.token_init(k_full[s], 1)
                    T.token_init(k_empty[s], {warps})
                    T.token_init(v_full[s], 1)
                    T.token_init(v_empty[s], {warps})
            T.evaluate(T.sync("shared"))
)";

constexpr const char* kCopy = R"(            with T.block("copy"):
                T.execution("threadIdx.x", 0, 128)
                T.block_attr({copying})
                if t == 0:
                    T.token_expect(q_full[0], {q_bytes})
                    for c in T.unroll(T.int32({pieces})):
                        T.bulk_load(QS[c, 0, 0], q_map, q_full[0], c * 64, first, h, bat)
                    for step in T.serial(count):
                        slot: T.int32 = step % {stages}
                        start: T.int32 = (begin + step) * {columns}
                        T.token_wait(k_empty[slot], 1 - step // {stages} % 2)
                        T.token_expect(k_full[slot], {k_bytes})
                        for c in T.unroll(T.int32({pieces})):
                            T.bulk_load(KS[slot, c, 0, 0], k_map, k_full[slot], c * 64, start, kz, bat)
                        T.token_wait(v_empty[slot], 1 - step // {stages} % 2)
                        T.token_expect(v_full[slot], {v_bytes})
                        for r in T.unroll(T.int32({column_pieces})):
                            for c in T.unroll(T.int32({value_pieces})):
                                T.bulk_load(VS[slot, r, c, 0, 0], v_map, v_full[slot], c * 64, start + r * 64, kz, bat)
)";

constexpr const char* kStart = R"(            with T.block("multiply"):
                T.execution("threadIdx.x", 128, {threads})
                T.block_attr({multiplying})
                S = T.allocate(({column_groups}, 2, 2), "float32", scope="local")
                P = T.allocate(({column_groups}, 2, 2), "{type}", scope="local")
                OUT = T.allocate(({value_groups}, 2, 2), "float32", scope="local")
                SUM = T.allocate((1, 2, 2), "float32", scope="local")
                TOP = T.allocate((2,), "float32", scope="local")
                NEW = T.allocate((2,), "float32", scope="local")
                LESS = T.allocate((2,), "float32", scope="local")
                g: T.int32 = t // 128 - 1
                row: T.int32 = first + g * 64 + t % 128 // 32 * 16 + t % 32 // 4
                scale2: T.float32 = scale * T.float32(1.4426950408889634)
                for i in T.unroll(T.int32(2)):
                    TOP[i] = T.float32("-inf")
                    SUM[0, i, 0] = T.float32(0)
                    SUM[0, i, 1] = T.float32(0)
                for j in T.unroll(T.int32({value_groups})):
                    for i in T.unroll(T.int32(2)):
                        for e in T.unroll(T.int32(2)):
                            OUT[j, i, e] = T.float32(0)
                T.token_wait(q_full[0], 0)
                T.token_wait(k_full[0], 0)
{first_turn}                with T.async_("wgmma", scored):
{first_scores}{first_pass}                T.wait(scored, 0)
                if t % 32 == 0:
                    T.token_signal(k_empty[0])
                start0: T.int32 = begin * {columns}
{first_softmax}                T.tile_round(P[0, 0, 0], S[0, 0, 0], {columns})
)";

/// The wait for the next keys stands before that for the values: a loop, past which compilers do
/// not move either the exponentials or the wait.
constexpr const char* kSteps = R"(                if count > 1:
                    T.token_wait(k_full[1 % {stages}], 1 // {stages} % 2)
                for step in T.serial(count - 1):
                    now: T.int32 = step + 1
                    slot: T.int32 = now % {stages}
                    before: T.int32 = step % {stages}
                    start: T.int32 = (begin + now) * {columns}
{turn}                    with T.async_("wgmma", scored):
{scores}                    T.token_wait(v_full[before], step // {stages} % 2)
                    with T.async_("wgmma", scored):
{values}{pass}                    T.wait(scored, 1)
                    if t % 32 == 0:
                        T.token_signal(k_empty[slot])
{softmax}                    if now + 1 < count:
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

constexpr const char* kEnd = R"(                last: T.int32 = (count - 1) % {stages}
                T.token_wait(v_full[last], (count - 1) // {stages} % 2)
                with T.async_("wgmma", scored):
{last_values}                T.wait(scored, 0)
                T.tile_rows(NEW[0], SUM[0, 0, 0], 8, 0)
                for i in T.unroll(T.int32(2)):
                    if t % 4 == 0 and row + i * 8 < n:
                        sums[z * n + row + i * 8] = T.if_then_else(NEW[i] == T.float32(0), T.float32("-inf"), TOP[i] * scale + T.log2(NEW[i]) * T.float32(0.6931471805599453))
                    LESS[i] = T.if_then_else(NEW[i] == T.float32(0), T.float32(0), T.float32(1) / NEW[i])
                for j in T.unroll(T.int32({value_groups})):
                    for i in T.unroll(T.int32(2)):
                        for e in T.unroll(T.int32(2)):
                            OUT[j, i, e] = OUT[j, i, e] * LESS[i]
                for c in T.unroll(T.int32({value_pieces})):
                    T.tile_store(QS[c, g * 64, 0], OUT[c * 8, 0, 0])
                T.bulk_fence()
                T.meet(1 + g, 128)
                if t % 128 == 0:
                    with T.async_("bulk", sent):
                        for c in T.unroll(T.int32({value_pieces})):
                            if first + g * 64 < n:
                                T.bulk_store(out_map, QS[c, g * 64, 0], c * 64, first + g * 64, h, bat)
                    T.wait(sent, 0)
)";

}  // namespace

ir::PrimFunc attention_tiles(const AttentionTiles& s) {
  const int rows = 64 * s.groups, threads = 128 * (s.groups + 1);
  ProgramText p("attention.tiles");
  for (const char* name : {"q", "k", "v"}) p.buffer(name, s.type);
  option_arrays(p, s);
  p.buffer("out", s.type).buffer("sums", "float32");
  for (const char* name : {"blocks", "tiles", "batches", "heads", "group", "n", "m", "qb", "qh",
                           "qr", "kb", "kh", "kr", "vb", "vh", "vr", "ob", "oh", "or_"})
    p.scalar(name, "int64");
  option_numbers(p, s);
  Values v = {{"type", s.type},
              {"rows", cat(rows)},
              {"threads", cat(threads)},
              {"stages", cat(s.stages)},
              {"warps", cat(4 * s.groups)},
              {"columns", cat(s.columns)},
              {"column_pieces", cat(s.columns / 64)},
              {"column_groups", cat(s.columns / 8)},
              {"pieces", cat(pieces(s.width))},
              {"value_pieces", cat(pieces(s.value_width))},
              {"q_pieces", cat(std::max(pieces(s.width), pieces(s.value_width)))},
              {"value_groups", cat(pieces(s.value_width) * 8)},
              {"copying", "{\"registers\": 24}"},
              {"multiplying", cat("{\"registers\": ",
                                  s.groups == 4   ? 112
                                  : s.groups == 3 ? 160
                                                  : 240,
                                  "}")},
              {"q_bytes", cat(rows * pieces(s.width) * 128)},
              {"k_bytes", cat(s.columns * pieces(s.width) * 128)},
              {"v_bytes", cat(s.columns * pieces(s.value_width) * 128)}};
  v.emplace_back("begin", s.band ? cat("T.max(T.int32(0), first + low) // ", s.columns)
                                 : std::string("T.int32(0)"));
  v.emplace_back("end", s.band ? cat("(T.max(T.int32(0), T.min(visible, first + ", rows,
                                     " + high)) + ", s.columns - 1, ") // ", s.columns)
                               : cat("(visible + ", s.columns - 1, ") // ", s.columns));
  /// Groups start their products in turns, so that one multiplies while another makes weights.
  auto turn = [&](const char* name, std::string_view blanks, std::string_view use) {
    v.emplace_back(*name ? "first_turn" : "turn",
                   s.turns ? cat(blanks, "T.token_wait(turn[g], (", use,
                                 " + T.if_then_else(g > 0, 0, 1)) % 2)\n")
                           : std::string());
    v.emplace_back(
        *name ? "first_pass" : "pass",
        s.turns ? cat(blanks, "T.token_signal(turn[(g + 1) % ", s.groups, "])\n") : std::string());
  };
  turn("first_", std::string(16, ' '), "T.int32(0)");
  turn("", std::string(20, ' '), "now");
  v.emplace_back("groups", cat(s.groups));
  v.emplace_back("first_scores", tile_scores(s, "0", 20));
  v.emplace_back("scores", tile_scores(s, "slot", 24));
  v.emplace_back("values", tile_values(s, "before", "", 24));
  v.emplace_back("last_values", tile_values(s, "last", "", 20));
  v.emplace_back("first_softmax", tile_softmax(s, "start0", 16));
  v.emplace_back("softmax", tile_softmax(s, "start", 20));
  return p.parse(
      cat(tile_map("q", "q", s.width, "n", "heads", rows),
          tile_map("k", "k", s.width, "m", "heads // group", s.columns),
          tile_map("v", "v", s.value_width, "m", "heads // group", 64),
          cat("    out_map: T.handle = T.tensor_map(T.address_of(out[0]), 4, ", s.value_width,
              ", n, heads, batches, or_, oh, ob, 64, 64, 1, 1, 1, 1, 1, 1)\n"),
          "    for b in T.thread_binding(T.Cast(\"int32\", blocks), thread=\"blockIdx.x\"):\n"
          "        for t in T.thread_binding(T.int32({threads}), thread=\"threadIdx.x\"):\n",
          "            visible: T.int32 = ",
          s.lengths ? "T.min(T.Cast(\"int32\", m), lengths[b // T.Cast(\"int32\", tiles * heads)])"
                    : "T.Cast(\"int32\", m)",
          "\n", kPlace, kMemory, kCopy, kStart, kSteps, kEnd),
      v);
}

}  // namespace weft::operators
