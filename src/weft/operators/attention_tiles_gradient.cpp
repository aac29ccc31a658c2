// SPDX-License-Identifier: Apache-2.0
// All gradients of attention in one pass over the scores (docs/design/operators.md).
#include "weft/base/text.h"
#include "weft/operators/attention_text.h"
#include "weft/operators/program_text.h"

namespace weft::operators {

namespace {

/// Scores lie turned: rows are keys, columns queries. So weights and their gradients are operands
/// of dv and dk in registers, and only the latter go through shared memory, for dq. The scores of
/// the next step are started before dq leaves, which is added up while they are computed; the
/// last step starts scores that nobody reads, for a product in a condition would be waited for.
constexpr const char* kTogether =
    R"(    for b in T.thread_binding(T.Cast("int32", blocks), thread="blockIdx.x"):
        for t in T.thread_binding(T.int32(384), thread="threadIdx.x"):
            tile: T.int32 = b % T.Cast("int32", tiles)
            zk: T.int32 = b // T.Cast("int32", tiles)
            shared_heads: T.int32 = T.Cast("int32", heads // group)
            bat: T.int32 = zk // shared_heads
            kz: T.int32 = zk % shared_heads
            visible: T.int32 = {visible}
            first: T.int32 = tile * 128
            parts: T.int32 = (T.Cast("int32", n) + 63) // 64
            begin: T.int32 = {begin}
            count: T.int32 = T.max({end} - begin, T.int32(1))
            steps: T.int32 = count * T.Cast("int32", group)
            KX = T.allocate(({pieces}, 128, 64), "{type}", scope="shared")
            VX = T.allocate(({pieces}, 128, 64), "{type}", scope="shared")
            QY = T.allocate(({stages}, {pieces}, 64, 64), "{type}", scope="shared")
            GY = T.allocate(({stages}, {pieces}, 64, 64), "{type}", scope="shared")
            DS = T.allocate((2, 2, 64, 64), "{type}", scope="shared")
{added_memory}            ST = T.allocate(({stages}, 256), "float32", scope="shared")
            x_full = T.allocate((1,), "uint64", scope="shared")
            q_full = T.allocate(({stages},), "uint64", scope="shared")
            empty = T.allocate(({stages},), "uint64", scope="shared")
            g_full = T.allocate(({stages},), "uint64", scope="shared")
            if t == 0:
                T.token_init(x_full[0], 1)
                for s in T.serial({stages}):
                    T.token_init(q_full[s], 1)
                    T.token_init(empty[s], 8)
                    T.token_init(g_full[s], 1)
            T.evaluate(T.sync("shared"))
            with T.block("copy"):
                T.execution("threadIdx.x", 0, 128)
                T.block_attr({copying})
                if t == 0:
                    T.token_expect(x_full[0], {x_bytes})
                    for c in T.unroll(T.int32({pieces})):
                        T.bulk_load(KX[c, 0, 0], k_map, x_full[0], c * 64, first, kz, bat)
                    for c in T.unroll(T.int32({pieces})):
                        T.bulk_load(VX[c, 0, 0], v_map, x_full[0], c * 64, first, kz, bat)
                    for step in T.serial(steps + 1):
                        slot: T.int32 = step % {stages}
                        place: T.int32 = begin + step % count
                        h: T.int32 = kz * T.Cast("int32", group) + step // count
                        T.token_wait(empty[slot], 1 - step // {stages} % 2)
                        T.token_expect(q_full[slot], {q_bytes})
                        T.bulk_load(ST[slot, 0], stats_map, q_full[slot], 0, ((bat * T.Cast("int32", heads) + h) * parts + place) * 4)
                        for c in T.unroll(T.int32({pieces})):
                            T.bulk_load(QY[slot, c, 0, 0], q_map, q_full[slot], c * 64, place * 64, h, bat)
                        if step < {g_steps}:
                            T.token_expect(g_full[slot], {g_bytes})
                            for c in T.unroll(T.int32({pieces})):
                                T.bulk_load(GY[slot, c, 0, 0], go_map, g_full[slot], c * 64, place * 64, h, bat)
            with T.block("multiply"):
                T.execution("threadIdx.x", 128, 384)
                T.block_attr({multiplying})
                S = T.allocate((8, 2, 2), "float32", scope="local")
                D = T.allocate((8, 2, 2), "float32", scope="local")
                P = T.allocate((8, 2, 2), "{type}", scope="local")
                W = T.allocate((8, 2, 2), "{type}", scope="local")
                DK = T.allocate(({groups}, 2, 2), "float32", scope="local")
                DV = T.allocate(({groups}, 2, 2), "float32", scope="local")
                DQ = T.allocate(({dq_groups}, 4), "float32", scope="local")
                NUMBER = T.allocate((2,), "float32", scope="local")
{kept_memory}                g: T.int32 = t // 128 - 1
                row: T.int32 = first + g * 64 + t % 128 // 32 * 16 + t % 32 // 4
                scale2: T.float32 = scale * T.float32(1.4426950408889634)
                T.token_wait(x_full[0], 0)
                T.token_wait(q_full[0], 0)
                with T.async_("wgmma", scored):
{first_scores}{first_changes}                for step in T.serial(steps):
                    slot: T.int32 = step % {stages}
                    place: T.int32 = begin + step % count
                    start: T.int32 = place * 64
                    h: T.int32 = kz * T.Cast("int32", group) + step // count
                    plane: T.int32 = bat * T.Cast("int32", heads) + h
                    T.wait(scored, 0)
                    if t % 32 == 0 and step > 0:
                        T.token_signal(empty[(step - 1) % {stages}])
{changes}{masked}                    for j in T.unroll(T.int32(8)):
                        for e in T.vectorized(2):
                            NUMBER[e] = ST[slot, j * 8 + t % 4 * 2 + e]
                        for i in T.unroll(T.int32(2)):
                            for e in T.unroll(T.int32(2)):
                                S[j, i, e] = T.exp2_flush(S[j, i, e] * scale2 - NUMBER[e])
{rounded}                    with T.async_("wgmma", scored):
                        T.tile_multiply(DV[0, 0, 0], P[0, 0, 0], GY[slot, 0, 0, 0], {columns}, 0, 1, T.if_then_else(step > 0, 1, 0))
                    T.wait(scored, {changed})
                    for j in T.unroll(T.int32(8)):
                        for e in T.vectorized(2):
                            NUMBER[e] = ST[slot, 64 + j * 8 + t % 4 * 2 + e]
                        for i in T.unroll(T.int32(2)):
                            for e in T.unroll(T.int32(2)):
                                D[j, i, e] = {change}
                    T.tile_round(W[0, 0, 0], D[0, 0, 0], 64)
                    T.tile_store(DS[step % 2, g, 0, 0], D[0, 0, 0])
                    T.bulk_fence()
{added_sent}                    T.meet(7, 256)
{used}                    with T.async_("wgmma", scored):
                        T.tile_multiply(DQ[0, 0], DS[step % 2, 0, 0, 0], {k_low}, {dq_columns}, 1, 1, 0)
                        T.tile_multiply(DQ[0, 0], DS[step % 2, 1, 0, 0], {k_high}, {dq_columns}, 1, 1, 1)
                    with T.async_("wgmma", scored):
                        T.tile_multiply(DK[0, 0, 0], W[0, 0, 0], QY[slot, 0, 0, 0], {columns}, 0, 1, T.if_then_else(step > 0, 1, 0))
                    T.token_wait(q_full[(step + 1) % {stages}], (step + 1) // {stages} % 2)
                    with T.async_("wgmma", scored):
{next_scores}{next_changes}                    T.wait(scored, {behind})
{added}                T.wait(scored, 0)
                T.meet(7, 256)
                for j in T.unroll(T.int32({groups})):
                    for i in T.unroll(T.int32(2)):
                        for e in T.unroll(T.int32(2)):
                            DK[j, i, e] = DK[j, i, e] * scale
                for c in T.unroll(T.int32({pieces})):
                    T.tile_store(KX[c, g * 64, 0], DK[c * 8, 0, 0])
                    T.tile_store(VX[c, g * 64, 0], DV[c * 8, 0, 0])
                T.bulk_fence()
                T.meet(1 + g, 128)
                if t % 128 == 0:
                    with T.async_("bulk", sent):
                        if first + g * 64 < T.Cast("int32", m):
                            for c in T.unroll(T.int32({pieces})):
                                T.bulk_store(dk_map, KX[c, g * 64, 0], c * 64, first + g * 64, kz, bat)
                                T.bulk_store(dv_map, VX[c, g * 64, 0], c * 64, first + g * 64, kz, bat)
                    T.wait(sent, 0)
)";

std::string compact_map(const char* name, int width) {
  return cat("    ", name, "_map: T.handle = T.tensor_map(T.address_of(", name, "[0]), 4, ", width,
             ", m, heads // group, batches, T.int64(", width, "), m * ", width,
             ", m * (heads // group) * ", width, ", 64, 64, 1, 1, 1, 1, 1, 1)\n");
}

/// S or D of the keys of a group and the queries of a slot.
std::string turned(const char* to, const char* keys, const char* queries, std::string_view slot,
                   int count, int blanks) {
  std::string out;
  for (int c = 0; c < count; ++c)
    out += cat("T.tile_multiply(", to, "[0, 0, 0], ", keys, "[", c, ", g * 64, 0], ", queries, "[",
               slot, ", ", c, ", 0, 0], 64, 0, 0, ", c > 0 ? 1 : 0, ")\n");
  return indented(out, blanks);
}

/// Where a group's part of dq of a step is added up.
std::string added_place(int columns) {
  return cat(
      "dqa[((T.Cast(\"int64\", plane) * T.Cast(\"int64\", parts) + T.Cast(\"int64\", place)) * 2 "
      "+ T.Cast(\"int64\", g)) * ",
      columns * 64, "]");
}

/// The same through shared memory and the copy engine.
std::string added_in_bulk(int columns) {
  return cat(
      "for j in T.unroll(T.int32(", columns / 8,
      ")):\n    for v in T.vectorized(4):\n        ADD[g, (j * 128 + t % 128) * 4 + v] = DQ[j, "
      "v]\nT.bulk_fence()\nT.meet(1 + g, 128)\nif t % 128 == 0:\n    with "
      "T.async_(\"bulk\", sent):\n        T.bulk_add(",
      added_place(columns), ", ADD[g, 0], ", columns * 64, ")\n");
}

int wide(const AttentionTiles& s) { return pieces(std::max(s.width, s.value_width)); }

}  // namespace

ir::PrimFunc attention_tiles_gradient(const AttentionTiles& s) {
  const int a = wide(s), half = 32 * a;  // columns of dq that a group makes
  // Narrow sums leave registers for the next gradients of weights as well.
  const bool early = a == 1;
  ProgramText p("attention.tiles_gradient");
  for (const char* name : {"q", "k", "v", "go"}) p.buffer(name, s.type);
  option_arrays(p, s);
  p.buffer("stats", "float32").buffer("dqa", "float32").buffer("dk", s.type).buffer("dv", s.type);
  for (const char* name : {"blocks", "tiles", "batches", "heads", "group", "n", "m", "qb", "qh",
                           "qr", "kb", "kh", "kr", "vb", "vh", "vr", "gb", "gh", "gr"})
    p.scalar(name, "int64");
  option_numbers(p, s);
  const std::string n = "T.Cast(\"int32\", n)";
  std::string outside = "first + g * 64 + 64 > visible";
  if (s.band)
    outside += " or first + g * 64 < start + 63 + low or first + g * 64 + 63 > start + high";
  const std::string next = cat("(step + 1) % ", s.stages);
  auto changes = [&](const char* slot, int blanks) {
    return cat(indented("with T.async_(\"wgmma\", scored):\n", blanks),
               turned("D", "VX", "GY", slot, pieces(s.value_width), blanks + 4));
  };
  auto g_wait = [&](std::string_view use, int blanks) {
    return indented(cat("T.token_wait(g_full[(", use, ") % ", s.stages, "], (", use, ") // ",
                        s.stages, " % 2)\n"),
                    blanks);
  };
  std::string rounded = indented("T.tile_round(P[0, 0, 0], S[0, 0, 0], 64)\n", 20);
  std::string change = "S[j, i, e] * (D[j, i, e] - NUMBER[e])";
  if (s.dropout) {
    // The sign of S tells what is dropped.
    rounded = cat(R"(                    for j in T.unroll(T.int32(8)):
                        for i in T.unroll(T.int32(2)):
                            for e in T.unroll(T.int32(2)):
                                col: T.int32 = start + j * 8 + t % 4 * 2 + e
)",
                  dropout_factor(std::string(32, ' '), "col", "row + i * 8", "plane"),
                  R"(                                KEPT[0, i, e] = S[j, i, e] * keep
                                S[j, i, e] = T.if_then_else(keep > T.float32(0), S[j, i, e], -S[j, i, e])
                        T.tile_round(P[j, 0, 0], KEPT[0, 0, 0], 8)
)");
    change =
        "T.abs(S[j, i, e]) * (T.if_then_else(S[j, i, e] > T.float32(0), D[j, i, e] * factor, "
        "T.float32(0)) - NUMBER[e])";
  }
  const Values v = {
      {"type", s.type},
      {"stages", cat(s.stages)},
      {"pieces", cat(a)},
      {"groups", cat(8 * a)},
      {"columns", cat(64 * a)},
      {"dq_groups", cat(half / 8)},
      {"dq_columns", cat(half)},
      {"dq_elements", cat(half * 64)},
      {"k_low", a == 1 ? "KX[0, 0, g * 32]" : "KX[g, 0, 0]"},
      {"k_high", a == 1 ? "KX[0, 64, g * 32]" : "KX[g, 64, 0]"},
      {"copying", "{\"registers\": 24}"},
      {"multiplying", "{\"registers\": 240}"},
      {"x_bytes", cat(2 * a * 128 * 128)},
      {"q_bytes", cat(a * 64 * 128 + 512)},
      {"g_bytes", cat(a * 64 * 128)},
      {"g_steps", early ? "steps + 1" : "steps"},
      {"visible", s.lengths ? "T.min(T.Cast(\"int32\", m), lengths[bat])" : "T.Cast(\"int32\", m)"},
      {"begin", s.band ? "T.min(T.max(T.int32(0), first - high) // 64, parts - 1)" : "T.int32(0)"},
      {"end", s.band ? cat("(T.max(T.int32(0), T.min(", n, ", first + 128 - low)) + 63) // 64")
                     : cat("(", n, " + 63) // 64")},
      {"kept_memory",
       s.dropout ? indented("KEPT = T.allocate((1, 2, 2), \"float32\", scope=\"local\")\n", 16)
                 : std::string()},
      {"first_scores", turned("S", "KX", "QY", "0", pieces(s.width), 20)},
      {"first_changes", early ? cat(g_wait("0", 16), changes("0", 16)) : std::string()},
      {"changes", early ? std::string() : cat(g_wait("step", 20), changes("slot", 20))},
      {"masked", indented(masked_scores(s, false, 8, "start", outside), 20)},
      {"rounded", rounded},
      {"change", change},
      {"next_scores", turned("S", "KX", "QY", next, pieces(s.width), 24)},
      {"next_changes",
       early ? cat(g_wait("step + 1", 20), changes(next.c_str(), 20)) : std::string()},
      // Where registers are few, weights leave theirs before the gradients of scores are made.
      {"changed", early ? "1" : "0"},
      {"used", early ? indented("T.wait(scored, 0)\n", 20) : std::string()},
      {"added_memory", s.bulk ? cat("            ADD = T.allocate((2, ", half * 64,
                                    "), \"float32\", scope=\"shared\")\n")
                              : std::string()},
      {"added_sent",
       s.bulk ? indented("if t % 128 == 0:\n    T.wait(sent, 0)\n", 20) : std::string()},
      {"added",
       indented(s.bulk ? added_in_bulk(half)
                       : cat("T.tile_add(", added_place(half), ", DQ[0, 0], ", half, ")\n"),
                20)},
      {"behind", early ? "3" : "2"}};
  return p.parse(
      cat(tile_map("q", "q", s.width, "n", "heads", 64),
          tile_map("k", "k", s.width, "m", "heads // group", 128),
          tile_map("v", "v", s.value_width, "m", "heads // group", 128),
          tile_map("go", "g", s.value_width, "n", "heads", 64),
          "    stats_map: T.handle = T.tensor_map(T.address_of(stats[0]), 2, 32, batches * heads * "
          "((n + 63) // 64) * 4, T.int64(32), 32, 4, 1, 1)\n",
          compact_map("dk", s.width), compact_map("dv", s.value_width), kTogether),
      v);
}

ir::PrimFunc attention_tiles_stats(const AttentionTiles& s, bool together) {
  ProgramText p("attention.tiles_stats");
  p.buffer("dout", s.type).buffer("out", s.type).buffer("sums", "float32");
  p.buffer("stats", "float32");
  if (together) p.buffer("dqa", "float32");
  for (const char* name : {"blocks", "heads", "n", "gb", "gh", "gr"}) p.scalar(name, "int64");
  return p.parse(
      R"(    for b in T.thread_binding(T.Cast("int32", blocks), thread="blockIdx.x"):
        for t in T.thread_binding(T.int32(256), thread="threadIdx.x"):
            PART = T.allocate((256,), "float32", scope="shared")
            G = T.allocate((8,), "{type}", scope="local")
            O = T.allocate((8,), "{type}", scope="local")
            SUM = T.allocate((1,), "float32", scope="local")
            parts: T.int32 = (T.Cast("int32", n) + 63) // 64
            z: T.int32 = b // parts
            row: T.int32 = b % parts * 64 + t // 4
            from_g: T.int64 = T.Cast("int64", z) // heads * gb + T.Cast("int64", z) % heads * gh + T.Cast("int64", row) * gr
            from_o: T.int64 = (T.Cast("int64", z) * n + T.Cast("int64", row)) * {width}
            SUM[0] = T.float32(0)
            if T.Cast("int64", row) < n:
                for i in T.unroll(T.int32({vectors})):
                    c: T.int32 = i * 32 + t % 4 * 8
                    if c < {width}:
                        for v in T.vectorized(8):
                            G[v] = dout[from_g + T.Cast("int64", c) + v]
                        for v in T.vectorized(8):
                            O[v] = out[from_o + T.Cast("int64", c) + v]
                        for v in T.unroll(T.int32(8)):
                            SUM[0] = SUM[0] + T.Cast("float32", G[v]) * T.Cast("float32", O[v])
            PART[t] = SUM[0]
            if t < 128:
                c: T.int32 = t % 64
                r: T.int32 = t // 32
                at: T.int64 = T.Cast("int64", b) * 128 + T.Cast("int64", r * 32 + T.bitwise_xor(c % 32 // 4, r) * 4 + c % 4)
                own: T.int32 = b % parts * 64 + c
                inside: T.bool = T.Cast("int64", own) < n
                if t < 64:
                    log: T.float32 = T.if_then_else(inside, sums[T.Cast("int64", z) * n + T.Cast("int64", own)], T.float32("-inf"))
                    stats[at] = T.if_then_else(log == T.float32("-inf"), T.float32("inf"), log * T.float32(1.4426950408889634))
                else:
                    stats[at] = PART[c * 4] + PART[c * 4 + 1] + PART[c * 4 + 2] + PART[c * 4 + 3]
{zeroed})",
      {{"type", s.type},
       {"width", cat(s.value_width)},
       {"vectors", cat((s.value_width + 31) / 32)},
       {"zeroed", together ? fill(R"(            for i in T.unroll(T.int32({zeros})):
                for v in T.vectorized(4):
                    dqa[T.Cast("int64", b) * {elements} + T.Cast("int64", (i * 256 + t) * 4) + v] = T.float32(0)
)",
                                  {{"zeros", cat(4 * wide(s))}, {"elements", cat(4096 * wide(s))}})
                           : std::string()}});
}

ir::PrimFunc attention_tiles_dq(const AttentionTiles& s) {
  const int half = 32 * wide(s);
  ProgramText p("attention.tiles_dq");
  p.buffer("dqa", "float32").buffer("dq", s.type);
  for (const char* name : {"blocks", "n"}) p.scalar(name, "int64");
  p.scalar("scale", "float32");
  return p.parse(
      R"(    for b in T.thread_binding(T.Cast("int32", blocks), thread="blockIdx.x"):
        for t in T.thread_binding(T.int32(128), thread="threadIdx.x"):
            S = T.allocate((64 * {pitch},), "float32", scope="shared")
            F = T.allocate((4,), "float32", scope="local")
            R = T.allocate((8,), "{type}", scope="local")
            parts: T.int32 = (T.Cast("int32", n) + 63) // 64
            z: T.int32 = b // 2 // parts
            first: T.int32 = b // 2 % parts * 64
            g: T.int32 = b % 2
            for j in T.unroll(T.int32({groups})):
                for v in T.vectorized(4):
                    F[v] = dqa[T.Cast("int64", b) * {elements} + T.Cast("int64", (j * 128 + t) * 4) + v]
                for i in T.unroll(T.int32(2)):
                    for e in T.vectorized(2):
                        S[(t // 32 * 16 + t % 32 // 4 + i * 8) * {pitch} + j * 8 + t % 4 * 2 + e] = F[i * 2 + e] * scale
            for i in T.unroll(T.int32({rounds})):
                r: T.int32 = (i * 128 + t) // {groups}
                c: T.int32 = (i * 128 + t) % {groups} * 8
                if T.Cast("int64", first + r) < n and g * {half} + c < {width}:
                    for v in T.unroll(T.int32(8)):
                        R[v] = T.Cast("{type}", S[r * {pitch} + c + v])
                    for v in T.vectorized(8):
                        dq[(T.Cast("int64", z) * n + T.Cast("int64", first + r)) * {width} + T.Cast("int64", g * {half} + c) + v] = R[v]
)",
      {{"type", s.type},
       {"pitch", cat(half + 4)},
       {"groups", cat(half / 8)},
       {"elements", cat(half * 64)},
       {"rounds", cat(half / 16)},
       {"half", cat(half)},
       {"width", cat(s.width)}});
}

}  // namespace weft::operators
