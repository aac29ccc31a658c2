// SPDX-License-Identifier: Apache-2.0
// New iterators and layouts, copies, padding, rolling buffers: the same results before and after,
// and every refusal.

#include "schedule_kit.h"

namespace weft::schedule::testing {
namespace {

IndexMap map_of(const char* text) { return IndexMap::parse(text); }

std::string bias_add(int m, int n, int k, const char* join = "C[vi, vj] + D[vj]") {
  return cat(
      "@T.prim_func\ndef main(A: T.Buffer((", m, ", ", k, "), \"float32\"), B: T.Buffer((", k, ", ",
      n, "), \"float32\"), D: T.Buffer((", n, ",), \"float32\"), E: T.Buffer((", m, ", ", n,
      "), \"float32\")):\n    C = T.alloc_buffer((", m, ", ", n,
      "), \"float32\")\n    for i, j, k in T.grid(", m, ", ", n, ", ", k,
      "):\n        with T.block(\"C\"):\n            vi, vj, vk = T.axis.remap(\"SSR\", [i, "
      "j, k])\n            with T.init():\n                C[vi, vj] = T.float32(0)\n         "
      "   C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]\n    for i, j in T.grid(",
      m, ", ", n,
      "):\n        with T.block(\"E\"):\n            vi, vj = T.axis.remap(\"SS\", [i, j])\n  "
      "          E[vi, vj] = ",
      join, "\n");
}

std::string padded_copy(int n) {
  return cat(
      "@T.prim_func\ndef main(A: T.Buffer((", n, ", ", n, "), \"float32\"), B: T.Buffer((", n + 2,
      ", ", n + 3, "), \"float32\")):\n    for i, j in T.grid(", n + 2, ", ", n + 3,
      "):\n        with T.block(\"B\"):\n            vi, vj = T.axis.remap(\"SS\", [i, j])\n  "
      "          B[vi, vj] = T.if_then_else(1 <= vi and vi < ",
      n + 1, " and vj >= 1 and vj < ", n + 1, ", A[vi - 1, vj - 1], T.float32(0))\n");
}

std::string conv1d(int n, int k) {
  return cat(
      "@T.prim_func\ndef main(A: T.Buffer((", n + k - 1, ",), \"float32\"), W: T.Buffer((", k,
      ",), \"float32\"), C: T.Buffer((", n, ",), \"float32\")):\n    for i, r in T.grid(", n, ", ",
      k,
      "):\n        with T.block(\"C\"):\n            vi, vr = T.axis.remap(\"SR\", [i, r])\n  "
      "          with T.init():\n                C[vi] = T.float32(0)\n            C[vi] = C[vi] "
      "+ A[vi + vr] * W[vr]\n");
}

std::string in_place(int n) {
  return cat(
      "@T.prim_func\ndef main(A: T.Buffer((", n, ",), \"float32\")):\n    for i in range(", n,
      "):\n        with T.block(\"A\"):\n            vi = T.axis.spatial(", n,
      ", i)\n            T.reads(A[vi])\n            T.writes(A[vi])\n            A[vi] = A[vi] "
      "* T.float32(3)\n");
}

std::string upsample(int n) {
  return cat("@T.prim_func\ndef main(A: T.Buffer((", n, ",), \"float32\"), B: T.Buffer((", 2 * n,
             ",), \"float32\")):\n    for i in range(", 2 * n,
             "):\n        with T.block(\"B\"):\n            vi = T.axis.spatial(", 2 * n,
             ", i)\n            B[vi] = A[vi // 2] + A[vi // 2] * T.float32(2)\n");
}

LoopRef loop(Schedule& sch, const char* block, std::size_t at = 0) {
  return sch.get_loops(sch.get_block(block))[at];
}

// ---- iterators

TEST(schedule_steps, iterators_change_places) {
  Schedule sch = make(matmul(3, 4, 5));
  sch.reorder_block_iter_var(sch.get_block("C"), {2, 0, 1});
  EXPECT_NE(sch.show().find("vk, vi, vj = T.axis.remap(\"RSS\", [k, i, j])"), std::string::npos)
      << sch.show();
  expect_sound(sch, matmul(3, 4, 5));
  for (const std::vector<std::int64_t>& bad :
       {std::vector<std::int64_t>{0, 1}, {0, 0, 1}, {0, 1, 3}, {-1, 0, 1}})
    expect_refused(sch, [&](Schedule& x) { x.reorder_block_iter_var(x.get_block("C"), bad); },
                   "schedule.reorder_block_iter_var.order", {"0 to 2"});
}

TEST(schedule_steps, a_block_gets_another_nest) {
  Schedule sch = make(matmul(4, 6, 5));
  const auto loops =
      sch.transform_block_layout(sch.get_block("C"), map_of("lambda i, j, k: (i * 6 + j, k)"));
  EXPECT_EQ(loops.size(), 2u);
  expect_sound(sch, matmul(4, 6, 5));
  Schedule digits = make(matmul(4, 6, 8));
  digits.transform_block_layout(digits.get_block("C"),
                                map_of("lambda i, j, k: (k // 4, j, i, k % 4)"));
  expect_sound(digits, matmul(4, 6, 8));
  digits.decompose_reduction(digits.get_block("C"), loop(digits, "C", 0));
  expect_sound(digits, matmul(4, 6, 8));
}

TEST(schedule_steps, transform_block_layout_refuses) {
  Schedule sch = make(matmul(4, 6, 5));
  const auto refused = [&](const char* map, const char* slug, const char* part) {
    expect_refused(sch,
                   [&](Schedule& x) { x.transform_block_layout(x.get_block("C"), map_of(map)); },
                   slug, {part});
  };
  refused("lambda i, j: (i, j)", "schedule.transform_block_layout.rank", "3 iterators");
  refused("lambda i, j, k: (i, j)", "schedule.transform_block_layout.bijective", "not one to one");
  refused("lambda i, j, k: (i + 1, j, k)", "schedule.transform_block_layout.bijective", "offset");
  refused("lambda i, j, k: (i // 3, i % 3, j, k)", "schedule.transform_block_layout.bijective",
          "not one to one");
  refused("lambda i, j, k: (i, j * 5 + k)", "schedule.transform_block_layout.kinds",
          "spatial and reduction");
  sch.unroll(loop(sch, "C", 1));
  refused("lambda i, j, k: (j, i, k)", "schedule.transform_block_layout.kind", "\"j\"");
  sch.split(loop(sch, "C", 0), {None, 2});
  refused("lambda i, j, k: (j, i, k)", "schedule.transform_block_layout.nest",
          "not bound to one iterator");
}

// ---- reindex

TEST(schedule_steps, reindex_makes_im2col) {
  Schedule sch = make(conv1d(7, 3));
  const BlockRef copy = sch.reindex(sch.get_block("C"), {"read", 0, ""});
  EXPECT_NE(sch.show().find("A_reindex[v0, v1] = A[v0 + v1]"), std::string::npos) << sch.show();
  EXPECT_NE(sch.show().find("A_reindex[vi, vr] * W[vr]"), std::string::npos) << sch.show();
  expect_sound(sch, conv1d(7, 3));
  sch.compute_at(copy, loop(sch, "C"));
  expect_sound(sch, conv1d(7, 3));
}

TEST(schedule_steps, reindex_moves_results_out) {
  const std::string text = R"(
@T.prim_func
def main(A: T.Buffer((4, 6), "float32"), C: T.Buffer((6, 4), "float32")):
    for i, j in T.grid(4, 6):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vj, vi] = A[vi, vj] + T.float32(1)
)";
  Schedule sch = make(text);
  sch.reindex(sch.get_block("C"), {"write", 0, ""});
  EXPECT_NE(sch.show().find("C_reindex[vi, vj] = A[vi, vj]"), std::string::npos) << sch.show();
  expect_sound(sch, text);
  Schedule reduced = make(matmul(4, 5, 6));
  reduced.reindex_cache_write(reduced.get_block("C"), 0, "local", map_of("lambda i, j, k: (j, i)"));
  reduced.reindex_cache_read(reduced.get_block("C"), 0, "shared",
                             map_of("lambda i, j, k: (k // 2, i, k % 2)"));
  expect_sound(reduced, matmul(4, 5, 6));
}

TEST(schedule_steps, reindex_refuses) {
  Schedule windows = make(window_sum(8));
  expect_refused(windows,
                 [](Schedule& x) {
                   x.reindex(x.get_block("B"), {"read", 0, ""});
                 },
                 "schedule.reindex.access", {"several indices"});
  Schedule sch = make(matmul(4, 5, 6));
  expect_refused(sch,
                 [](Schedule& x) {
                   x.reindex(x.get_block("C"), {"read", 5, ""});
                 },
                 "schedule.reindex.index", {"reads 2"});
  expect_refused(sch,
                 [](Schedule& x) {
                   x.reindex_cache_read(x.get_block("C"), 0, "shared",
                                        map_of("lambda i, j, k: (i, j)"));
                 },
                 "schedule.reindex_cache_read.map", {"\"vi\", \"vk\""});
  expect_refused(sch,
                 [](Schedule& x) {
                   x.reindex_cache_read(x.get_block("C"), 0, "shared",
                                        map_of("lambda i, j: (i, j)"));
                 },
                 "schedule.reindex_cache_read.rank", {"3 iterators"});
  expect_refused(sch,
                 [](Schedule& x) {
                   x.reindex_cache_read(x.get_block("C"), 0, "here",
                                        map_of("lambda i, j, k: (i, k)"));
                 },
                 "schedule.reindex_cache_read.scope", {"here"});
  expect_refused(sch,
                 [](Schedule& x) {
                   x.reindex_cache_write(x.get_block("C"), 3, "local",
                                         map_of("lambda i, j, k: (i, j)"));
                 },
                 "schedule.reindex_cache_write.index", {"writes 1"});
  sch.decompose_reduction(sch.get_block("C"), loop(sch, "C"));
  expect_refused(sch,
                 [](Schedule& x) {
                   x.reindex(x.get_block("C_update"), {"write", 0, ""});
                 },
                 "schedule.reindex.accumulates", {"reads and writes"});
  Schedule stages = make(two_stages(4, 6));
  stages.compute_at(stages.get_block("B"), loop(stages, "C"));
  expect_refused(stages,
                 [](Schedule& x) {
                   x.reindex(x.get_block("C"), {"read", 0, ""});
                 },
                 "schedule.reindex.place", {"nest of the block"});
  Schedule nested = make(matmul(4, 5, 6));
  const BlockRef outer = nested.blockize(loop(nested, "C", 1));
  expect_refused(nested,
                 [&](Schedule& x) {
                   x.reindex(outer, {"read", 0, ""});
                 },
                 "schedule.reindex.leaf", {"holds others"});
  Schedule moved = make(R"(
@T.prim_func
def main(A: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32")):
    for i in range(2):
        with T.block("C"):
            vi = T.axis.spatial((1, 3), i + 1)
            C[vi] = A[vi]
)");
  expect_refused(moved,
                 [](Schedule& x) {
                   x.reindex(x.get_block("C"), {"read", 0, ""});
                 },
                 "schedule.reindex.start", {"start at 0"});
  Schedule padded = make(padded_copy(4));
  expect_refused(padded,
                 [](Schedule& x) {
                   x.reindex(x.get_block("B"), {"read", 0, ""});
                 },
                 "schedule.reindex.bounds", {"axis 0"});
  Schedule strided = make(R"(
@T.prim_func
def main(A: T.Buffer((4,), "float32"), C: T.Buffer((8,), "float32")):
    for i in range(4):
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            C[vi // 2] = A[vi]
)");
  expect_refused(strided,
                 [](Schedule& x) {
                   x.reindex(x.get_block("C"), {"write", 0, ""});
                 },
                 "schedule.reindex.inexact", {"once each"});
}

// ---- caches

TEST(schedule_steps, a_block_works_in_place_in_another_memory) {
  Schedule sch = make(in_place(12));
  const auto copies = sch.cache_inplace(sch.get_block("A"), 0, "local");
  ASSERT_EQ(copies.size(), 2u);
  EXPECT_NE(sch.show().find("A_local[vi] = A_local[vi] * T.float32(3)"), std::string::npos)
      << sch.show();
  expect_sound(sch, in_place(12));
  Schedule plain = make(vector_add(4));
  expect_refused(plain, [](Schedule& x) { x.cache_inplace(x.get_block("C"), 0, "local"); },
                 "schedule.cache_inplace.buffer", {"does not write it", "cache_read"});
  Schedule reduced = make(matmul(3, 4, 5));
  const LoopRef i = loop(reduced, "C");
  reduced.decompose_reduction(reduced.get_block("C"), loop(reduced, "C", 1));
  (void)i;
  expect_refused(reduced, [](Schedule& x) { x.cache_inplace(x.get_block("C_update"), 0, "local"); },
                 "schedule.cache_inplace.nest", {"C_init"});
  Schedule gaps = make(R"(
@T.prim_func
def main(A: T.Buffer((9,), "float32")):
    for i in range(4):
        with T.block("A"):
            vi = T.axis.spatial(4, i)
            T.reads(A[vi * 2])
            T.writes(A[vi * 2])
            A[vi * 2] = A[vi * 2] + T.float32(1)
)");
  expect_refused(gaps, [](Schedule& x) { x.cache_inplace(x.get_block("A"), 0, "local"); },
                 "schedule.cache_inplace.inexact", {"not provably a box"});
}

TEST(schedule_steps, readers_before_the_writer_get_no_copy_of_what_it_writes) {
  Schedule sch = make(R"(
@T.prim_func
def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[vi]
    for i in range(4):
        with T.block("A"):
            vi = T.axis.spatial(4, i)
            A[vi] = T.float32(0)
)");
  expect_refused(sch, [](Schedule& x) { x.cache_read(x.get_block("B"), 0, "local"); },
                 "schedule.cache_read.before", {"held before", "consumer_blocks"});
}

TEST(schedule_steps, indices_are_computed_ahead) {
  Schedule sch = make(upsample(5));
  const auto made = sch.cache_index(sch.get_block("B"), "global", 2);
  EXPECT_EQ(made.size(), 1u);
  EXPECT_NE(sch.show().find("B_index0"), std::string::npos) << sch.show();
  expect_sound(sch, upsample(5));
  Schedule again = make(upsample(5));
  expect_refused(again, [](Schedule& x) { x.cache_index(x.get_block("B"), "global", 3); },
                 "schedule.cache_index.none", {"3 times", "2 uses"});
}

TEST(schedule_steps, copies_at_a_loop) {
  Schedule sch = make(matmul(8, 8, 8));
  const BlockRef c = sch.get_block("C");
  const auto i = sch.split(sch.get_loops(c)[0], {None, 4});
  const BlockRef a = sch.read_at(i[0], c, 0, "shared");
  const BlockRef out = sch.write_at(i[0], c, 0, "local");
  EXPECT_EQ(sch.get_loops(a)[0], i[0]);
  EXPECT_EQ(sch.get_loops(out)[0], i[0]);
  const std::string text = sch.show();
  EXPECT_NE(text.find("\"auto_copy\": 1"), std::string::npos) << text;
  expect_sound(sch, matmul(8, 8, 8));
  expect_refused(sch, [&](Schedule& x) { x.read_at(i[0], x.get_block("C"), 7, "shared"); },
                 "schedule.cache_read.index", {"reads 2"});
}

// ---- reductions and padding

TEST(schedule_steps, an_epilogue_joins_the_reduction) {
  for (const char* join : {"C[vi, vj] + D[vj]", "D[vj] * T.float32(2) + C[vi, vj]"}) {
    const std::string text = bias_add(4, 5, 6, join);
    Schedule sch = make(text);
    sch.fuse_reduction_epilogue(sch.get_block("C"), sch.get_block("E"));
    EXPECT_EQ(sch.show().find("alloc_buffer"), std::string::npos) << sch.show();
    EXPECT_EQ(sch.get_child_blocks(sch.get_block("root")).size(), 1u);
    expect_sound(sch, text);
    Schedule parts = sch, tiles = sch;
    parts.rfactor(loop(parts, "C", 2), 0);
    expect_sound(parts, text);
    tiles.blockize(loop(tiles, "C", 1));
    expect_sound(tiles, text);
    sch.decompose_reduction(sch.get_block("C"), loop(sch, "C", 2));
    expect_sound(sch, text);
  }
}

TEST(schedule_steps, epilogues_that_do_not_join_are_refused) {
  const auto refused = [](const std::string& text, const char* slug, const char* part) {
    Schedule sch = make(text);
    expect_refused(
        sch, [](Schedule& x) { x.fuse_reduction_epilogue(x.get_block("C"), x.get_block("E")); },
        slug, {part});
  };
  refused(bias_add(4, 5, 6, "C[vi, vj] * D[vj]"), "schedule.fuse_reduction_epilogue.operator",
          "operator");
  refused(bias_add(4, 5, 6, "T.max(C[vi, vj], D[vj])"), "schedule.fuse_reduction_epilogue.operator",
          "operator");
  refused(bias_add(4, 5, 6, "C[vi, vj] + C[vi, vj]"), "schedule.fuse_reduction_epilogue.operator",
          "operator");
  refused(bias_add(4, 4, 6, "C[vj, vj] + D[vj]"), "schedule.fuse_reduction_epilogue.index",
          "one for one");
  Schedule sch = make(two_stages(4, 4));
  expect_refused(sch,
                 [](Schedule& x) { x.fuse_reduction_epilogue(x.get_block("B"), x.get_block("C")); },
                 "schedule.fuse_reduction_epilogue.reduction", {"not a reduction"});
  Schedule other = make(bias_add(4, 5, 6));
  expect_refused(other,
                 [](Schedule& x) { x.fuse_reduction_epilogue(x.get_block("C"), x.get_block("C")); },
                 "schedule.fuse_reduction_epilogue.consumer", {"only reader"});
  Schedule narrow = make(bias_add(4, 5, 6));
  narrow.unsafe_set_dtype(narrow.get_block("C"), 0, "float64");
  expect_refused(narrow,
                 [](Schedule& x) { x.fuse_reduction_epilogue(x.get_block("C"), x.get_block("E")); },
                 "schedule.fuse_reduction_epilogue.reduction", {"not a reduction of one value"});
  Schedule early = make(R"(
@T.prim_func
def main(A: T.Buffer((4, 6), "float32"), D: T.Buffer((4,), "float32"), E: T.Buffer((4,), "float32")):
    C = T.alloc_buffer((4,), "float32")
    for i, k in T.grid(4, 6):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vk]
    for i in range(4):
        with T.block("D"):
            vi = T.axis.spatial(4, i)
            D[vi] = T.float32(2)
    for i in range(4):
        with T.block("E"):
            vi = T.axis.spatial(4, i)
            E[vi] = C[vi] + D[vi]
)");
  expect_refused(early,
                 [](Schedule& x) { x.fuse_reduction_epilogue(x.get_block("C"), x.get_block("E")); },
                 "schedule.fuse_reduction_epilogue.late", {"\"D\"", "after"});
  const BlockRef tile = sch.blockize(loop(sch, "B", 1));
  (void)tile;
  expect_refused(sch,
                 [](Schedule& x) { x.fuse_reduction_epilogue(x.get_block("B"), x.get_block("C")); },
                 "schedule.fuse_reduction_epilogue.scope", {"different scopes"});
}

TEST(schedule_steps, padding_is_filled_apart) {
  for (std::size_t at : {0u, 1u}) {
    Schedule sch = make(padded_copy(5));
    const BlockRef fill = sch.decompose_padding(sch.get_block("B"), loop(sch, "B", at));
    EXPECT_EQ(sch.show().find("if_then_else"), std::string::npos) << sch.show();
    EXPECT_FALSE(sch.get_loops(fill).empty());
    expect_sound(sch, padded_copy(5));
  }
  Schedule sch = make(vector_add(4));
  expect_refused(sch, [](Schedule& x) { x.decompose_padding(x.get_block("C"), loop(x, "C")); },
                 "schedule.decompose_padding.pattern", {"constant"});
  Schedule tiled = make(padded_copy(6));
  tiled.split(loop(tiled, "B"), {None, 4});
  expect_refused(tiled, [](Schedule& x) { x.decompose_padding(x.get_block("B"), loop(x, "B")); },
                 "schedule.decompose_padding.nest", {"before split"});
  Schedule two = make(two_stages(3, 3));
  expect_refused(two, [](Schedule& x) { x.decompose_padding(x.get_block("B"), loop(x, "C")); },
                 "schedule.decompose_padding.loop", {"not one of its own"});
  Schedule odd = make(R"(
@T.prim_func
def main(A: T.Buffer((6,), "float32"), B: T.Buffer((6,), "float32")):
    for i in range(6):
        with T.block("B"):
            vi = T.axis.spatial(6, i)
            B[vi] = T.if_then_else(vi % 2 == 0, A[vi], T.float32(0))
)");
  expect_refused(odd, [](Schedule& x) { x.decompose_padding(x.get_block("B"), loop(x, "B")); },
                 "schedule.decompose_padding.condition", {"bounds of one iterator"});
}

TEST(schedule_steps, einsums_are_padded) {
  for (const std::vector<std::int64_t>& padding :
       {std::vector<std::int64_t>{0, 0, 0}, {3, 0, 0}, {0, 2, 3}, {1, 2, 3}}) {
    Schedule sch = make(matmul(5, 6, 7));
    const auto copies = sch.pad_einsum(sch.get_block("C"), padding);
    EXPECT_LE(copies.size(), 3u);
    expect_sound(sch, matmul(5, 6, 7));
  }
  Schedule sch = make(matmul(5, 6, 7));
  const auto refused = [](Schedule& s, std::vector<std::int64_t> padding, const char* slug,
                          const char* part) {
    expect_refused(s, [&](Schedule& x) { x.pad_einsum(x.get_block("C"), padding); }, slug, {part});
  };
  refused(sch, {1, 2}, "schedule.pad_einsum.padding", "3 iterators");
  refused(sch, {-1, 0, 0}, "schedule.pad_einsum.padding", "negative");
  Schedule conv = make(conv1d(4, 3));
  refused(conv, {0, 1}, "schedule.pad_einsum.pattern", "plain iterators");
  conv.pad_einsum(conv.get_block("C"), {3, 0});  // results alone: windows read the longer operand
  expect_sound(conv, conv1d(4, 3));
  Schedule halves = make(R"(
@T.prim_func
def main(A: T.Buffer((2, 5), "float32"), C: T.Buffer((4,), "float32")):
    for i, k in T.grid(4, 5):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi // 2, vk]
)");
  refused(halves, {1, 0}, "schedule.pad_einsum.index", "no sum of lengthened iterators");
  Schedule scaled = make(R"(
@T.prim_func
def main(A: T.Buffer((4, 5), "float32"), S: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32")):
    for i, k in T.grid(4, 5):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vk] * S[vi]
)");
  refused(scaled, {0, 3}, "schedule.pad_einsum.operand", "inf");
  Schedule again = make(R"(
@T.prim_func
def main(A: T.Buffer((4, 5), "float32"), B: T.Buffer((5, 3), "float32"), C: T.Buffer((4, 3), "float32")):
    for i, j, k in T.grid(4, 3, 5):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j in T.grid(4, 3):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.float32(0)
)");
  refused(again, {1, 0, 0}, "schedule.pad_einsum.place", "other statements");
  sch.split(loop(sch, "C"), {None, 2});
  refused(sch, {1, 1, 1}, "schedule.pad_einsum.nest", "before split");
}

TEST(schedule_steps, a_rolling_buffer_computes_each_row_once) {
  Schedule sch = make(window_rows(7, 4));
  sch.compute_at(sch.get_block("B"), loop(sch, "C"));
  sch.rolling_buffer(sch.get_block("B"), 0);
  EXPECT_NE(sch.show().find("T.alloc_buffer((3, 4)"), std::string::npos) << sch.show();
  expect_sound(sch, window_rows(7, 4));
}

TEST(schedule_steps, rolling_tiles_of_rows) {
  for (int rows : {2, 3}) {
    Schedule sch = make(window_rows(12, 4));
    const auto i = sch.split(loop(sch, "C"), {None, rows});
    sch.compute_at(sch.get_block("B"), i[0]);
    sch.rolling_buffer(sch.get_block("B"), 0);
    expect_sound(sch, window_rows(12, 4));
  }
}

TEST(schedule_steps, rolling_buffer_refuses) {
  Schedule sch = make(window_rows(7, 4));
  expect_refused(sch, [](Schedule& x) { x.rolling_buffer(x.get_block("B"), 0); },
                 "schedule.rolling_buffer.overlap", {"compute_at"});
  expect_refused(sch, [](Schedule& x) { x.rolling_buffer(x.get_block("C"), 0); },
                 "schedule.rolling_buffer.parameter", {"does not allocate"});
  sch.compute_at(sch.get_block("B"), loop(sch, "C"));
  sch.parallel(loop(sch, "C"));
  expect_refused(sch, [](Schedule& x) { x.rolling_buffer(x.get_block("B"), 0); },
                 "schedule.rolling_buffer.kind", {"not serial"});
}

TEST(schedule_steps, padding_is_not_folded_into_what_is_padded) {
  const std::string text = R"(
@T.prim_func
def main(A: T.Buffer((4,), "float32"), C: T.Buffer((6,), "float32")):
    B = T.alloc_buffer((4,), "float32")
    for i in range(4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[vi] * T.float32(2)
    for i in range(6):
        with T.block("C"):
            vi = T.axis.spatial(6, i)
            C[vi] = T.if_then_else(vi < 4, B[vi], T.float32(0))
)";
  Schedule padded = make(text);
  expect_refused(padded, [](Schedule& x) { x.reverse_compute_inline(x.get_block("C")); },
                 "schedule.reverse_compute_inline.domain", {"leaves the buffer", "compute_inline"});
  padded.compute_inline(padded.get_block("B"));
  expect_sound(padded, text);
}

// ---- accesses and types

TEST(schedule_steps, regions_are_stated) {
  Schedule sch = make(window_sum(8));
  sch.annotate_buffer_access(sch.get_block("B"), 0, "read", map_of("lambda i: (i, i + 3)"));
  expect_sound(sch, window_sum(8));
  const auto refused = [&](const char* kind, const char* map, const char* slug, const char* part) {
    expect_refused(
        sch, [&](Schedule& x) { x.annotate_buffer_access(x.get_block("B"), 0, kind, map_of(map)); },
        slug, {part});
  };
  refused("read", "lambda i: (i, i + 2)", "schedule.annotate_buffer_access.region", "leaves out");
  refused("write", "lambda i: (i, i + 2)", "schedule.annotate_buffer_access.region",
          "more than the block writes");
  refused("read", "lambda i: (i, i + 2, i)", "schedule.annotate_buffer_access.rank", "legal");
  refused("both", "lambda i: (i)", "schedule.annotate_buffer_access.kind", "both");
}

TEST(schedule_steps, hidden_accesses_must_not_be_used) {
  Schedule sch = make(vector_add(8));
  expect_refused(sch,
                 [](Schedule& x) { x.unsafe_hide_buffer_access(x.get_block("C"), "read", {1}); },
                 "schedule.unsafe_hide_buffer_access.used", {"\"B\""});
  expect_refused(sch,
                 [](Schedule& x) { x.unsafe_hide_buffer_access(x.get_block("C"), "write", {2}); },
                 "schedule.unsafe_hide_buffer_access.index", {"writes 1"});
  Schedule extra = make(R"(
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            T.reads(A[vi], B[vi])
            T.writes(C[vi])
            C[vi] = A[vi]
)");
  extra.unsafe_hide_buffer_access(extra.get_block("C"), "read", {1});
  EXPECT_EQ(extra.show().find("B[vi]"), std::string::npos) << extra.show();
}

TEST(schedule_steps, intermediates_change_type) {
  Schedule sch = make(two_stages(4, 4));
  sch.unsafe_set_dtype(sch.get_block("B"), 0, "float64");
  expect_sound(sch, two_stages(4, 4));
  sch.unsafe_set_dtype(sch.get_block("B"), 0, "float16");  // small whole numbers fit
  expect_sound(sch, two_stages(4, 4));
  expect_refused(sch, [](Schedule& x) { x.unsafe_set_dtype(x.get_block("B"), 0, "complex64"); },
                 "schedule.unsafe_set_dtype.dtype", {"complex64"});
  expect_refused(sch, [](Schedule& x) { x.unsafe_set_dtype(x.get_block("C"), 0, "float16"); },
                 "schedule.unsafe_set_dtype.parameter", {"does not allocate"});
  Schedule viewed = make(R"(
@T.prim_func
def main(A: T.Buffer((4, 4), "float32"), C: T.Buffer((4, 4), "float32")):
    B = T.alloc_buffer((4, 4), "float32")
    for i, j in T.grid(4, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i in range(4):
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            T.reads(B[vi, 0:4])
            T.writes(C[vi, 0:4])
            R = T.match_buffer(B[vi, 0:4], (1, 4), "float32")
            for j in range(4):
                C[vi, j] = R[0, j]
)");
  expect_refused(viewed, [](Schedule& x) { x.unsafe_set_dtype(x.get_block("B"), 0, "float16"); },
                 "schedule.unsafe_set_dtype.view", {"a view"});
}

// ---- choices

TEST(schedule_steps, partitioned_tiles_divide) {
  Schedule sch = make(vector_add(96));
  for (int k = 0; k < 8; ++k) {
    const auto f = sch.sample_partitioned_tile(loop(sch, "C"), 4, 2, 8);
    ASSERT_EQ(f.size(), 4u);
    EXPECT_EQ(f[0].value * f[1].value * f[2].value * f[3].value, 96);
    EXPECT_EQ(f[2].value * f[3].value % 8, 0);
  }
  const auto whole = sch.sample_partitioned_tile(loop(sch, "C"), 2, 1, 7);
  EXPECT_EQ(whole[1].value, 96);
  const auto kept = sch.sample_partitioned_tile(loop(sch, "C"), 2, 1, 8, {4, 24});
  EXPECT_EQ(kept[0].value, 4);
  sch.split(loop(sch, "C"), {kept[0], kept[1]});
  expect_sound(sch, vector_add(96));
  expect_refused(sch, [](Schedule& x) { x.sample_partitioned_tile(loop(x, "C"), 2, 2, 8); },
                 "schedule.sample_partitioned_tile.count", {"partition_pos"});
  Schedule symbolic(parse(R"(
@T.prim_func
def main(n: T.int64, A: T.Buffer((n,), "float32"), B: T.Buffer((n,), "float32")):
    for i in range(n):
        with T.block("B"):
            vi = T.axis.spatial(n, i)
            B[vi] = A[vi]
)"));
  expect_refused(symbolic, [](Schedule& x) { x.sample_partitioned_tile(loop(x, "B"), 2, 1, 8); },
                 "schedule.sample_partitioned_tile.extent", {"constant"});
}

TEST(schedule_steps, compute_locations_are_sampled) {
  Schedule sch = make(two_stages(5, 6));
  const BlockRef b = sch.get_block("B");
  const LoopRef at = sch.sample_compute_location(b);
  const auto loops = sch.get_loops(sch.get_block("C"));
  EXPECT_TRUE(at == loops[0] || at == loops[1]);
  sch.compute_at(b, sch.sample_compute_location(b, IntRef(1)));
  EXPECT_EQ(sch.get_loops(b).size(), 2u);
  expect_sound(sch, two_stages(5, 6));
  expect_refused(sch, [](Schedule& x) { x.sample_compute_location(x.get_block("C")); },
                 "schedule.sample_compute_location.none", {"no loop takes"});
}

}  // namespace
}  // namespace weft::schedule::testing
