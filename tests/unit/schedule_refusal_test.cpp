// SPDX-License-Identifier: Apache-2.0
// Every refusal: its code, what its text names, and that program and trace stay as they were.

#include "schedule_kit.h"

namespace weft::schedule::testing {
namespace {

std::string nest(const std::string& loops, const std::string& bindings, const std::string& body) {
  return cat(
      "@T.prim_func\ndef main(A: T.Buffer((64,), \"float32\"), B: T.Buffer((64,), \"float32\")):\n",
      loops, "        with T.block(\"B\"):\n            ", bindings, "\n            ", body, "\n");
}

TEST(schedule_refusal, unknown_and_ambiguous_blocks) {
  Schedule sch = make(two_stages(4, 4));
  expect_refused(sch, [](Schedule& s) { s.get_block("b"); }, "schedule.get_block.unknown",
                 {"has no block \"b\"", "\"root\", \"B\", \"C\""});
  expect_refused(sch, [](Schedule& s) { s.get_block("B", "mian"); }, "schedule.get_block.function",
                 {"did you mean \"main\"?"});
  Schedule twice = make(R"(
@T.prim_func
def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("X"):
            vi = T.axis.spatial(4, i)
            A[vi] = T.float32(1)
    for i in range(4):
        with T.block("X"):
            vi = T.axis.spatial(4, i)
            B[vi] = T.float32(1)
)");
  expect_refused(twice, [](Schedule& s) { s.get_block("X"); }, "schedule.get_block.ambiguous",
                 {"2 blocks named \"X\""});
}

TEST(schedule_refusal, references_to_what_is_gone) {
  Schedule sch = make(two_stages(4, 4));
  const BlockRef b = sch.get_block("B");
  const LoopRef i = sch.get_loops(b)[0];
  sch.split(i, {2, 2});
  expect_refused(sch, [&](Schedule& s) { s.unroll(i); }, "schedule.loop.gone",
                 {"loop \"i\"", "i_0", "get_loops"});
  sch.compute_inline(b);
  expect_refused(sch, [&](Schedule& s) { s.get_loops(b); }, "schedule.block.gone",
                 {"blocks now: \"root\", \"C\""});
  expect_refused(sch, [&](Schedule& s) { s.unroll(LoopRef{}); }, "schedule.loop.gone",
                 {"empty reference"});
}

TEST(schedule_refusal, split) {
  Schedule sch = make(vector_add(100));
  const LoopRef i = sch.get_loops(sch.get_block("C"))[0];
  expect_refused(sch,
                 [&](Schedule& s) {
                   s.split(i, {None, None});
                 },
                 "schedule.split.infer", {"[None, None]", "at most one None"});
  expect_refused(sch,
                 [&](Schedule& s) {
                   s.split(i, {4, 0});
                 },
                 "schedule.split.factor", {"factor 0"});
  expect_refused(sch, [&](Schedule& s) { s.split(i, {}); }, "schedule.split.factor",
                 {"no factors"});
  expect_refused(sch,
                 [&](Schedule& s) {
                   s.split(i, {4, 8});
                 },
                 "schedule.split.cover",
                 {"covers 32 of its 100 iterations", "sch.split(i, [None, 8])", "^"});
  expect_refused(sch,
                 [&](Schedule& s) {
                   s.split(i, {None, 8}, true, true);
                 },
                 "schedule.split.predicate", {"needs a predicate"});
  sch.annotate(i, "k", 1);
  expect_refused(sch,
                 [&](Schedule& s) {
                   s.split(i, {None, 4});
                 },
                 "schedule.split.annotated", {"\"k\"", "sch.unannotate(i, \"k\")"});
  sch.unannotate(i, "k");
  sch.bind(i, "threadIdx.x");
  expect_refused(sch,
                 [&](Schedule& s) {
                   s.split(i, {None, 4});
                 },
                 "schedule.split.bound", {"threadIdx.x"});
}

TEST(schedule_refusal, loops_that_do_not_start_at_zero) {
  Schedule sch =
      make(nest("    for i in range(2, 34):\n", "vi = T.axis.spatial(64, i)", "B[vi] = A[vi]"));
  const LoopRef i = sch.get_loops(sch.get_block("B"))[0];
  expect_refused(sch,
                 [&](Schedule& s) {
                   s.split(i, {None, 4});
                 },
                 "schedule.split.start", {"start at 0"});
  expect_refused(sch, [&](Schedule& s) { s.fuse({i}); }, "schedule.fuse.start", {"start at 0"});
}

TEST(schedule_refusal, fuse) {
  Schedule sch = make(two_stages(4, 6));
  const auto l = sch.get_loops(sch.get_block("B")), m = sch.get_loops(sch.get_block("C"));
  expect_refused(sch, [&](Schedule& s) { s.fuse({}); }, "schedule.fuse.loops", {"0 loops"});
  expect_refused(sch,
                 [&](Schedule& s) {
                   s.fuse({l[1], l[0]});
                 },
                 "schedule.fuse.nest", {"\"i\", \"j\""});
  expect_refused(sch,
                 [&](Schedule& s) {
                   s.fuse({l[0], m[1]});
                 },
                 "schedule.fuse.nest", {"directly and alone inside"});
  Schedule triangle = make(nest("    for i in range(8):\n     for j in range(i + 1):\n",
                                "vi = T.axis.spatial(64, i * 8 + j)", "B[vi] = A[vi]"));
  const auto t = triangle.get_loops(triangle.get_block("B"));
  expect_refused(triangle,
                 [&](Schedule& s) {
                   s.fuse({t[0], t[1]});
                 },
                 "schedule.fuse.dependent", {"its extent depends on it"});
  expect_refused(triangle,
                 [&](Schedule& s) {
                   s.reorder({t[1], t[0]});
                 },
                 "schedule.reorder.dependent", {"\"j\" outside \"i\""});
}

TEST(schedule_refusal, reorder) {
  Schedule sch = make(two_stages(4, 6));
  const auto l = sch.get_loops(sch.get_block("B")), m = sch.get_loops(sch.get_block("C"));
  expect_refused(sch,
                 [&](Schedule& s) {
                   s.reorder({l[0], l[0]});
                 },
                 "schedule.reorder.twice", {"loop \"i\" twice"});
  expect_refused(sch, [&](Schedule& s) { s.reorder({}); }, "schedule.reorder.loops", {"0 loops"});
  expect_refused(sch,
                 [&](Schedule& s) {
                   s.reorder({l[1], m[0]});
                 },
                 "schedule.reorder.chain", {"one chain"});
  Schedule skew = make(
      nest("    for i, j in T.grid(8, 8):\n", "vi = T.axis.spatial(64, i + j)", "B[vi] = A[vi]"));
  const auto k = skew.get_loops(skew.get_block("B"));
  expect_refused(skew,
                 [&](Schedule& s) {
                   s.reorder({k[1], k[0]});
                 },
                 "schedule.reorder.affine", {"affine"});
  Schedule ordered = make(
      nest("    for i, j in T.grid(8, 8):\n", "vi = T.axis.scan(64, i * 8 + j)", "B[vi] = A[vi]"));
  const auto o = ordered.get_loops(ordered.get_block("B"));
  expect_refused(ordered,
                 [&](Schedule& s) {
                   s.reorder({o[1], o[0]});
                 },
                 "schedule.reorder.iterator", {"\"vi\"", "neither spatial nor a reduction"});
}

TEST(schedule_refusal, reorder_that_would_break_a_hand_over) {
  const std::string text = R"(
@T.prim_func
def main(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")):
    B = T.alloc_buffer((9, 8), "float32")
    for i, j in T.grid(8, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, 0] + B[vi, vj]
)";
  Schedule sch = make(text);
  const auto l = sch.get_loops(sch.get_block("B"));
  expect_refused(sch,
                 [&](Schedule& s) {
                   s.reorder({l[1], l[0]});
                 },
                 "schedule.reorder.not_covered", {"\"C\" reads more of \"B\""});
  expect_refused(sch, [&](Schedule& s) { s.parallel(l[1]); }, "schedule.parallel.not_covered",
                 {"\"C\" reads more of \"B\""});
}

TEST(schedule_refusal, kinds_of_reductions) {
  Schedule sch = make(matmul(8, 8, 8));
  const auto l = sch.get_loops(sch.get_block("C"));
  expect_refused(sch, [&](Schedule& s) { s.parallel(l[2]); }, "schedule.parallel.iterator",
                 {"reduction iterator \"vk\"", "\"i\", \"j\"", "rfactor"});
  expect_refused(sch, [&](Schedule& s) { s.vectorize(l[2]); }, "schedule.vectorize.iterator",
                 {"\"vk\""});
  expect_refused(sch, [&](Schedule& s) { s.bind(l[2], "blockIdx.x"); }, "schedule.bind.iterator",
                 {"axes that can reduce: \"threadIdx.x\""});
  // A loop that feeds no iterator is no legal one.
  Schedule idle =
      make(nest("    for t, i in T.grid(1, 64):\n", "vi = T.axis.reduce(64, i)", "B[0] = A[vi]"));
  const auto n = idle.get_loops(idle.get_block("B"));
  expect_refused(idle, [&](Schedule& s) { s.parallel(n[1]); }, "schedule.parallel.iterator",
                 {"that feed only spatial iterators: none"});
  // Points across which a reduction runs have one result, so a loop that also counts results is
  // refused.
  Schedule counts = make(nest("    for i, k in T.grid(2, 8):\n",
                              "vi = T.axis.spatial(2, i)\n            vj = T.axis.spatial(8, k)\n"
                              "            vk = T.axis.reduce(8, k)",
                              "B[vi * 8 + vj] = B[vi * 8 + vj] + A[vk]"));
  const auto c = counts.get_loops(counts.get_block("B"));
  expect_refused(counts, [&](Schedule& s) { s.bind(c[1], "threadIdx.x"); },
                 "schedule.bind.iterator", {"\"vk\""});
  Schedule racy = make(
      nest("    for t, i in T.grid(4, 64):\n", "vi = T.axis.reduce(64, i)", "B[0] = B[0] + A[vi]"));
  const auto r = racy.get_loops(racy.get_block("B"));
  expect_refused(racy, [&](Schedule& s) { s.parallel(r[0]); }, "schedule.parallel.race",
                 {"accumulate into the same \"B\""});
}

TEST(schedule_refusal, blocks_that_depend_on_themselves) {
  Schedule sch = make(
      nest("    for i in range(63):\n", "vi = T.axis.spatial(63, i)", "B[vi + 1] = B[vi] + A[vi]"));
  const auto l = sch.get_loops(sch.get_block("B"));
  expect_refused(sch, [&](Schedule& s) { s.parallel(l[0]); }, "schedule.parallel.dependent",
                 {"it reads \"B\", which it writes"});
}

TEST(schedule_refusal, bind_names_and_limits) {
  Schedule sch = make(matmul(2048, 2048, 4));
  const auto l = sch.get_loops(sch.get_block("C"));
  expect_refused(sch, [&](Schedule& s) { s.bind(l[0], "threadIdx.w"); }, "schedule.bind.axis",
                 {"\"threadIdx.w\"", "threadIdx.z", "did you mean"});
  expect_refused(sch, [&](Schedule& s) { s.bind(l[0], "threadIdx.x"); }, "schedule.bind.limit",
                 {"needs 2048 points", "at most 1024", "sch.split(i, [None, 1024])"});
  const auto i = sch.split(l[0], {None, 64});
  const auto j = sch.split(l[1], {None, 32});
  sch.bind(i[1], "threadIdx.x");
  expect_refused(sch, [&](Schedule& s) { s.bind(j[1], "threadIdx.y"); },
                 "schedule.bind.group_limit",
                 {"makes 2048 points", "threadIdx.x = 64", "at most 1024"});
  expect_refused(sch, [&](Schedule& s) { s.bind(j[1], "threadIdx.x"); }, "schedule.bind.extent",
                 {"extent 32", "extent 64"});
}

TEST(schedule_refusal, one_axis_twice) {
  Schedule sch = make(two_stages(16, 16));
  const auto l = sch.get_loops(sch.get_block("C"));
  sch.bind(l[0], "threadIdx.x");
  expect_refused(sch, [&](Schedule& s) { s.bind(l[1], "threadIdx.x"); }, "schedule.bind.nested",
                 {"depends on \"i\""});
  Schedule own = make(window_sum(128));
  const BlockRef b = own.get_block("B");
  own.bind(own.get_loops(b)[0], "threadIdx.x");
  const BlockRef cache = own.cache_read(b, 0, "local");
  own.compute_at(cache, own.get_loops(b)[0]);
  const auto parts = own.split(own.get_loops(cache).back(), {None, 128});
  expect_refused(own, [&](Schedule& s) { s.bind(parts[1], "threadIdx.x"); }, "schedule.bind.nested",
                 {"depends on \"i\""});
}

TEST(schedule_refusal, private_memory_is_not_filled_together) {
  Schedule sch = make(matmul(16, 16, 16));
  const BlockRef c = sch.get_block("C");
  const auto l = sch.get_loops(c);
  sch.bind(l[0], "threadIdx.x");
  const BlockRef cache = sch.cache_read(c, 1, "local");
  sch.compute_at(cache, l[0]);
  const auto ax = sch.get_loops(cache);
  expect_refused(sch, [&](Schedule& s) { s.bind(ax[1], "threadIdx.x"); }, "schedule.bind.private",
                 {"its own \"B_local\"", "shared"});
}

TEST(schedule_refusal, caches) {
  Schedule sch = make(two_stages(4, 4));
  const BlockRef b = sch.get_block("B"), c = sch.get_block("C");
  expect_refused(sch, [&](Schedule& s) { s.cache_read(c, 3, "shared"); },
                 "schedule.cache_read.index", {"buffer 3", "0 = B"});
  expect_refused(sch, [&](Schedule& s) { s.cache_read(c, 0, "sharde"); },
                 "schedule.cache_read.scope", {"did you mean \"shared\"?"});
  expect_refused(sch, [&](Schedule& s) { s.cache_write(c, 1, "local"); },
                 "schedule.cache_write.index", {"0 = C"});
  expect_refused(sch, [&](Schedule& s) { s.cache_write(c, 0, "loacl"); },
                 "schedule.cache_write.scope", {"legal:"});
  expect_refused(sch, [&](Schedule& s) { s.cache_read(c, 0, "shared", {b}); },
                 "schedule.cache_read.consumer", {"does not read \"B\""});
  expect_refused(sch, [&](Schedule& s) { s.cache_read(s.get_block("root"), 0, "shared"); },
                 "schedule.cache_read.root", {"root block"});
  Schedule two = make(matmul(4, 4, 4));
  const BlockRef m = two.get_block("C");
  two.decompose_reduction(m, two.get_loops(m)[2]);
  expect_refused(two, [&](Schedule& s) { s.cache_write(m, 0, "local"); },
                 "schedule.cache_write.writers", {"\"C_init\", \"C_update\""});
}

TEST(schedule_refusal, a_cache_of_an_accumulator_that_starts_outside) {
  Schedule sch = make(matmul(8, 8, 8));
  const BlockRef c = sch.get_block("C");
  sch.blockize(sch.get_loops(c)[0]);
  expect_refused(sch, [&](Schedule& s) { s.cache_write(c, 0, "local"); },
                 "schedule.cache_write.accumulates", {"\"C\" held before"});
}

TEST(schedule_refusal, a_reduction_that_runs_twice_keeps_its_order) {
  const std::string text = R"(
@T.prim_func
def main(A: T.Buffer((4, 5), "float32"), B: T.Buffer((4,), "float32")):
    for t, i, k in T.grid(2, 4, 5):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]
)";
  Schedule sch = make(text);
  const BlockRef b = sch.get_block("B");
  const auto l = sch.get_loops(b);
  expect_refused(sch,
                 [&](Schedule& s) {
                   s.reorder({l[2], l[0]});
                 },
                 "schedule.reorder.repeated", {"\"t\" is not used"});
  expect_refused(sch, [&](Schedule& s) { s.decompose_reduction(b, l[0]); },
                 "schedule.decompose_reduction.repeated", {"several runs"});
  expect_refused(sch, [&](Schedule& s) { s.blockize(l[0]); }, "schedule.blockize.repeated",
                 {"several runs"});
  sch.decompose_reduction(b, l[1]);
  expect_sound(sch, text);
}

TEST(schedule_refusal, the_first_step_of_a_reduction_stays_first) {
  Schedule sch = make(matmul(3, 2, 8));
  const auto l = sch.get_loops(sch.get_block("C"));
  sch.reorder({l[2], l[0], l[1]});
  const auto f = sch.split(sch.fuse({l[2], l[0]}), {None, 4});
  expect_refused(sch,
                 [&](Schedule& s) {
                   s.reorder({f[1], f[0]});
                 },
                 "schedule.reorder.first_step",
                 {"\"C\" comes first", "\"k_i_fused_0\", \"k_i_fused_1\""});
  sch.reorder({l[1], f[0], f[1]});
  expect_sound(sch, matmul(3, 2, 8));
}

TEST(schedule_refusal, a_cache_of_what_is_written_in_no_box) {
  Schedule sch =
      make(nest("    for i, j in T.grid(3, 3):\n",
                "vi = T.axis.spatial(64, i * 2 + j)\n            T.where(i * 2 + j < 5 and j < 1)",
                "B[vi] = A[vi]"));
  expect_refused(sch, [](Schedule& s) { s.cache_write(s.get_block("B"), 0, "local"); },
                 "schedule.cache_write.inexact", {"not provably a box"});
}

TEST(schedule_refusal, compute_at) {
  Schedule sch = make(two_stages(4, 4));
  const BlockRef b = sch.get_block("B"), c = sch.get_block("C");
  const LoopRef of_b = sch.get_loops(b)[0], of_c = sch.get_loops(c)[0];
  expect_refused(sch, [&](Schedule& s) { s.compute_at(b, of_b); }, "schedule.compute_at.inside",
                 {"already stands inside", "legal: \"i\", \"j\""});
  expect_refused(sch, [&](Schedule& s) { s.compute_at(c, of_b); }, "schedule.compute_at.partner",
                 {"has no consumer"});
  expect_refused(sch, [&](Schedule& s) { s.compute_at(b, of_c, false, 7); },
                 "schedule.compute_at.slot", {"slot 7", "legal: 0 to 0"});
  expect_refused(sch, [&](Schedule& s) { s.reverse_compute_at(b, of_c); },
                 "schedule.reverse_compute_at.partner", {"has no producer"});
  const std::string three = R"(
@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32"), D: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((8,), "float32")
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi]
    for i in range(8):
        with T.block("D"):
            vi = T.axis.spatial(8, i)
            D[vi] = B[vi] + C[vi]
)";
  Schedule more = make(three);
  const BlockRef p = more.get_block("B");
  expect_refused(more, [&](Schedule& s) { s.compute_at(p, s.get_loops(s.get_block("C"))[0]); },
                 "schedule.compute_at.not_under",
                 {"its consumer \"D\" stands outside", "\"C\", \"D\""});
  expect_refused(
      more, [&](Schedule& s) { s.compute_at(s.get_block("C"), s.get_loops(s.get_block("D"))[0]); },
      "schedule.compute_at.output", {"\"C\", which is an output"});
}

TEST(schedule_refusal, reverse_compute_at_before_the_data_is_complete) {
  const std::string text = R"(
@T.prim_func
def main(A: T.Buffer((18,), "float32"), C: T.Buffer((16,), "float32")):
    B = T.alloc_buffer((18,), "float32")
    for i_0, i_1 in T.grid(6, 3):
        with T.block("B"):
            vi = T.axis.spatial(18, i_0 * 3 + i_1)
            B[vi] = A[vi]
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = B[vi] + B[vi + 2]
)";
  Schedule sch = make(text);
  const LoopRef i = sch.get_loops(sch.get_block("B"))[0];
  expect_refused(sch, [&](Schedule& s) { s.reverse_compute_at(s.get_block("C"), i); },
                 "schedule.reverse_compute_at.incomplete", {"cannot run inside \"i_0\""});
  Schedule sum = make(matmul(4, 4, 4));
  const BlockRef c = sum.get_block("C");
  const BlockRef out = sum.cache_write(c, 0, "local");
  expect_refused(sum, [&](Schedule& s) { s.reverse_compute_at(out, s.get_loops(c)[2]); },
                 "schedule.reverse_compute_at.incomplete", {"\"k\""});
}

TEST(schedule_refusal, a_consumer_must_not_move_under_a_reduction_loop) {
  Schedule sch = make(matmul(4, 4, 4));
  const BlockRef c = sch.get_block("C");
  const BlockRef out = sch.cache_write(c, 0, "local");
  const auto l = sch.get_loops(c);
  sch.reorder({l[2], l[0], l[1]});
  for (const LoopRef& loop : {l[2], l[0], l[1]}) {
    expect_refused(sch, [&](Schedule& s) { s.reverse_compute_at(out, loop); },
                   "schedule.reverse_compute_at.incomplete", {});
  }
}

TEST(schedule_refusal, a_block_around_loops_that_change_with_loops_outside) {
  Schedule sch = make(R"(
@T.prim_func
def main(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32")):
    for i in range(4):
        for j in range(i + 1):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]
)");
  const auto l = sch.get_loops(sch.get_block("B"));
  expect_refused(sch, [&](Schedule& s) { s.blockize(l[1]); }, "schedule.blockize.extent",
                 {"the range of \"j\" changes with \"i\""});
}

TEST(schedule_refusal, inlining) {
  Schedule sch = make(matmul(4, 4, 4));
  const BlockRef c = sch.get_block("C");
  expect_refused(sch, [&](Schedule& s) { s.compute_inline(c); }, "schedule.compute_inline.init",
                 {"\"C\" is a reduction"});
  Schedule two = make(two_stages(4, 4));
  expect_refused(two, [&](Schedule& s) { s.compute_inline(s.get_block("C")); },
                 "schedule.compute_inline.output", {"\"C\", which is an output"});
  expect_refused(two, [&](Schedule& s) { s.reverse_compute_inline(s.get_block("B")); },
                 "schedule.reverse_compute_inline.producer", {"has 0 producers"});
  const BlockRef out = sch.cache_write(c, 0, "local");
  expect_refused(sch, [&](Schedule& s) { s.reverse_compute_inline(out); },
                 "schedule.reverse_compute_inline.producer", {"not a complete block"});
}

TEST(schedule_refusal, decompose_reduction) {
  Schedule sch = make(matmul(4, 4, 4));
  const BlockRef c = sch.get_block("C");
  const auto l = sch.get_loops(c);
  sch.reorder({l[2], l[0], l[1]});
  expect_refused(sch, [&](Schedule& s) { s.decompose_reduction(c, l[1]); },
                 "schedule.decompose_reduction.height", {"reduction loop \"k\"", "legal: \"k\""});
  Schedule two = make(two_stages(4, 4));
  const BlockRef b = two.get_block("B");
  expect_refused(two, [&](Schedule& s) { s.decompose_reduction(b, s.get_loops(b)[0]); },
                 "schedule.decompose_reduction.block", {"it has no init"});
  expect_refused(two,
                 [&](Schedule& s) { s.decompose_reduction(b, s.get_loops(s.get_block("C"))[0]); },
                 "schedule.decompose_reduction.loop", {"not around the block"});
}

TEST(schedule_refusal, rfactor) {
  Schedule sch = make(matmul(4, 4, 4));
  const auto l = sch.get_loops(sch.get_block("C"));
  expect_refused(sch, [&](Schedule& s) { s.rfactor(l[0], 0); }, "schedule.rfactor.loop",
                 {"legal: \"k\""});
  expect_refused(sch, [&](Schedule& s) { s.rfactor(l[2], 3); }, "schedule.rfactor.axis",
                 {"legal: -3 to 2"});
  sch.unroll(l[2]);
  Schedule bound = make(matmul(4, 4, 4));
  const auto m = bound.get_loops(bound.get_block("C"));
  bound.bind(m[2], "threadIdx.x");
  expect_refused(bound, [&](Schedule& s) { s.rfactor(m[2], 0); }, "schedule.rfactor.kind",
                 {"serial loop"});
  const std::string odd = R"(
@T.prim_func
def main(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4,), "float32")):
    for i, k in T.grid(4, 4):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = A[vi, vk] - B[vi]
)";
  Schedule minus = make(odd);
  expect_refused(minus, [](Schedule& s) { s.rfactor(s.get_loops(s.get_block("B"))[1], 0); },
                 "schedule.rfactor.combiner", {"+, *, min, max"});
}

TEST(schedule_refusal, annotations_storage_and_layout) {
  Schedule sch = make(two_stages(8, 8));
  const BlockRef b = sch.get_block("B"), c = sch.get_block("C");
  sch.annotate(b, "double_buffer", 1);
  expect_refused(sch, [&](Schedule& s) { s.unannotate(b, "doubel_buffer"); },
                 "schedule.unannotate.key", {"did you mean \"double_buffer\"?"});
  expect_refused(sch, [&](Schedule& s) { s.annotate(b, "", 1); }, "schedule.annotate.value",
                 {"non-empty key"});
  expect_refused(sch, [&](Schedule& s) { s.storage_align(b, 0, 2, 8, 0); },
                 "schedule.storage_align.axis", {"-2 to 1"});
  expect_refused(sch, [&](Schedule& s) { s.storage_align(b, 0, 1, 0, 0); },
                 "schedule.storage_align.factor", {"factor 0"});
  expect_refused(sch, [&](Schedule& s) { s.storage_align(c, 0, 1, 8, 0); },
                 "schedule.storage_align.parameter",
                 {"\"C\", which the function does not allocate"});
  expect_refused(sch, [&](Schedule& s) { s.set_scope(c, 0, "shared"); },
                 "schedule.set_scope.parameter", {"\"C\""});
  expect_refused(sch, [&](Schedule& s) { s.set_scope(b, 2, "shared"); }, "schedule.set_scope.index",
                 {"0 = B"});
  expect_refused(sch, [&](Schedule& s) { s.set_scope(b, 0, "shred"); }, "schedule.set_scope.scope",
                 {"did you mean \"shared\"?"});
  expect_refused(sch,
                 [&](Schedule& s) {
                   s.transform_layout(b, {"write", 0, ""}, IndexMap::parse("lambda i: i"));
                 },
                 "schedule.transform_layout.rank", {"2 axes"});
  expect_refused(
      sch,
      [&](Schedule& s) {
        s.transform_layout(b, {"write", 0, ""}, IndexMap::parse("lambda i, j: (i, j // 3, j % 3)"));
      },
      "schedule.transform_layout.bijective", {"not one to one", "(8, 8)"});
  expect_refused(sch,
                 [&](Schedule& s) {
                   s.transform_layout(b, {"name", 0, "D"}, IndexMap::parse("lambda i, j: (j, i)"));
                 },
                 "schedule.transform_layout.buffer", {"uses no buffer \"D\""});
}

TEST(schedule_refusal, arguments) {
  Schedule sch = make(vector_add(8));
  const Value c = sch.call("get_block", {"C"});
  expect_refused(sch, [](Schedule& s) { s.call("splt", {}); }, "schedule.primitive.unknown",
                 {"did you mean \"split\"?"});
  expect_refused(sch,
                 [&](Schedule& s) {
                   s.call("cache_read", {c, 0});
                 },
                 "schedule.argument.missing",
                 {"\"storage_scope\"", "cache_read(block, read_buffer_index, storage_scope"});
  expect_refused(sch,
                 [&](Schedule& s) {
                   s.call("cache_read", {c, "zero", "shared"});
                 },
                 "schedule.argument.type", {"needs int for \"read_buffer_index\", but got a str"});
  expect_refused(sch,
                 [&](Schedule& s) {
                   s.call("get_loops", {c}, {{"blok", c}});
                 },
                 "schedule.argument.unknown", {"did you mean \"block\"?"});
  expect_refused(sch,
                 [&](Schedule& s) {
                   s.call("get_loops", {c}, {{"block", c}});
                 },
                 "schedule.argument.twice", {"\"block\" twice"});
  expect_refused(sch,
                 [&](Schedule& s) {
                   s.call("get_loops", {c, c});
                 },
                 "schedule.argument.count", {"takes 1 arguments, but got 2"});
  expect_refused(sch,
                 [](Schedule& s) {
                   s.sample_categorical({1, 2}, {1.0});
                 },
                 "schedule.sample_categorical.probs", {"2 candidates and 1 probabilities"});
  expect_refused(sch,
                 [](Schedule& s) {
                   s.sample_categorical({1, 2}, {0.5, 0.5}, 2);
                 },
                 "schedule.sample_categorical.decision", {"0 to 1"});
  expect_refused(sch,
                 [](Schedule& s) { s.sample_perfect_tile(s.get_loops(s.get_block("C"))[0], 0); },
                 "schedule.sample_perfect_tile.count", {"n = 0"});
  expect_refused(sch, [](Schedule& s) { s.work_on("other"); }, "schedule.work_on.function",
                 {"\"main\""});
}

TEST(schedule_refusal, traces) {
  const auto f = parse(vector_add(8));
  const auto expect_bad = [&](const std::string& json, const std::string& code) {
    try {
      Schedule::replay(f, Json::parse(json));
      ADD_FAILURE() << json;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), code) << e.what();
    }
  };
  expect_bad("{}", "schedule.trace.format");
  expect_bad(R"({"format":"weft.trace","version":9,"steps":[]})", "schedule.trace.format");
  expect_bad(R"({"format":"weft.trace","version":1,"steps":[["get_loops",{"block":"b7"},["l0"]]]})",
             "schedule.trace.format");
  expect_bad(
      R"({"format":"weft.trace","version":1,"steps":[["get_loops",{"blocks":"b7"},["l0"]]]})",
      "schedule.trace.format");
  expect_bad(R"({"format":"weft.trace","version":1,"steps":[["get_lops",{},["l0"]]]})",
             "schedule.primitive.unknown");
  Schedule sch = make(vector_add(8));
  const auto path = find_block(sch.mod(), sch.get_block("C"));
  sch.unroll(LoopRef{path->loops()[0]->var});
  EXPECT_THROW(sch.trace().json(), Error);
}

TEST(schedule_refusal, text_shows_step_and_program) {
  Schedule sch = make(vector_add(100));
  const LoopRef i = sch.get_loops(sch.get_block("C"))[0];
  try {
    sch.split(i, {4, 8});
    FAIL();
  } catch (const Error& e) {
    const std::string text = e.what();
    EXPECT_NE(text.find("sch.split(i, [4, 8])"), std::string::npos) << text;
    EXPECT_NE(text.find("for i in range(100):"), std::string::npos) << text;
    EXPECT_NE(text.find("the schedule is unchanged"), std::string::npos) << text;
    EXPECT_EQ(e.kind(), ErrorKind::schedule);
  }
  EXPECT_TRUE(sch.check(Split{i, {4, 8}}).has_value());
  EXPECT_FALSE(sch.check(Split{i, {None, 8}}).has_value());
  sch.set_detail(false);
  try {
    sch.split(i, {4, 8});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(std::string(e.what()).find("for i in"), std::string::npos) << e.what();
  }
}

TEST(schedule_refusal, the_text_names_a_repair) {
  Schedule sch = make(matmul(8, 8, 8));
  const BlockRef c = sch.get_block("C");
  const auto l = sch.get_loops(c);
  expect_refused(sch, [&](Schedule& s) { s.bind(l[2], "blockIdx.x"); }, "schedule.bind.iterator",
                 {"sch.bind(k, \"threadIdx.x\") reduces"});
  expect_refused(sch, [&](Schedule& s) { s.vectorize(l[2]); }, "schedule.vectorize.iterator",
                 {"sch.vectorize(j)"});
  expect_refused(sch, [&](Schedule& s) { s.parallel(l[2]); }, "schedule.parallel.iterator",
                 {"sch.parallel(i)"});
  expect_refused(sch, [&](Schedule& s) { s.rfactor(l[1], 0); }, "schedule.rfactor.loop",
                 {"sch.rfactor(k, 0)"});
  expect_refused(sch,
                 [&](Schedule& s) {
                   s.fuse({l[0], l[2]});
                 },
                 "schedule.fuse.nest", {"sch.reorder(i, j, k)", "\"k\" next after \"i\""});
  expect_refused(sch, [&](Schedule& s) { s.compute_inline(c); }, "schedule.compute_inline.init",
                 {"sch.compute_at", "sch.reverse_compute_inline"});
  expect_refused(sch, [&](Schedule& s) { s.set_scope(c, 0, "shared"); },
                 "schedule.set_scope.parameter", {"sch.cache_write"});
  sch.bind(l[0], "threadIdx.x");
  expect_refused(sch, [&](Schedule& s) { s.bind(l[1], "threadIdx.x"); }, "schedule.bind.nested",
                 {"sch.bind(j, \"threadIdx.y\")"});
  sch.bind(l[1], "threadIdx.y");  // the repair is one
  sch.decompose_reduction(c, l[2]);
  expect_refused(sch, [&](Schedule& s) { s.decompose_reduction(s.get_block("C_update"), l[2]); },
                 "schedule.decompose_reduction.block", {"decomposed already"});
  Schedule two = make(two_stages(4, 4));
  const BlockRef b = two.get_block("B"), last = two.get_block("C");
  expect_refused(two, [&](Schedule& s) { s.compute_at(last, s.get_loops(b)[0]); },
                 "schedule.compute_at.partner", {"sch.reverse_compute_at", "here \"B\""});
  expect_refused(two, [&](Schedule& s) { s.compute_at(b, s.get_loops(b)[0]); },
                 "schedule.compute_at.inside", {"\"i\", \"j\" around \"C\""});
}

}  // namespace
}  // namespace weft::schedule::testing
