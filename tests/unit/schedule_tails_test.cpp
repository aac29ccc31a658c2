// SPDX-License-Identifier: Apache-2.0
// Tails of split, cut and merged loops: the same results before and after, and every refusal.

#include "schedule_kit.h"

namespace weft::schedule::testing {
namespace {

LoopRef loop(Schedule& sch, const char* block, std::size_t at = 0) {
  return sch.get_loops(sch.get_block(block))[at];
}

// ---- tails

TEST(schedule_tails, peel_makes_whole_tiles_and_a_rest) {
  Schedule sch = make(vector_add(1000));
  const auto parts = sch.split(loop(sch, "C"), {None, 16}, true, false, "peel");
  EXPECT_EQ(parts.size(), 2u);
  expect_program(sch, R"(
@T.prim_func
def main(A: T.Buffer((1000,), "float32"), B: T.Buffer((1000,), "float32"), C: T.Buffer((1000,), "float32")):
    for i_0, i_1 in T.grid(62, 16):
        with T.block("C"):
            vi = T.axis.spatial(1000, i_0 * 16 + i_1)
            C[vi] = A[vi] + B[vi]
    for i_tail in range(8):
        with T.block("C_tail"):
            vi = T.axis.spatial(1000, i_tail + 992)
            C[vi] = A[vi] + B[vi]
)");
  sch.vectorize(parts[1]);
  sch.vectorize(loop(sch, "C_tail"));
  expect_sound(sch, vector_add(1000));
}

TEST(schedule_tails, tails_keep_results_at_every_remainder) {
  for (const char* tail : {"guard", "peel", "shift_inwards"}) {
    for (int n : {4, 5, 7, 8, 11}) {
      const std::string text = matmul(n, n + 1, n + 2);
      for (std::size_t which : {0u, 1u, 2u}) {
        if (which == 2 && tail == std::string("shift_inwards")) continue;
        Schedule sch = make(text);
        sch.split(loop(sch, "C", which), {None, 2, 2}, true, false, tail);
        expect_sound(sch, text);
      }
    }
  }
}

TEST(schedule_tails, peeled_reductions_start_once) {
  Schedule sch = make(matmul(3, 4, 10));
  sch.split(loop(sch, "C", 2), {None, 4}, true, false, "peel");
  const std::string text = sch.show();
  EXPECT_EQ(text.find("T.init"), text.rfind("T.init")) << text;
  sch.decompose_reduction(sch.get_block("C"), loop(sch, "C", 2));
  expect_sound(sch, matmul(3, 4, 10));
}

TEST(schedule_tails, shifted_tiles_repeat_elements) {
  Schedule sch = make(vector_add(21));
  const auto parts = sch.split(loop(sch, "C"), {None, 8}, true, false, "shift_inwards");
  EXPECT_NE(sch.show().find("T.min(i_0 * 8, 13)"), std::string::npos) << sch.show();
  EXPECT_EQ(sch.show().find("T.where"), std::string::npos) << sch.show();
  sch.vectorize(parts[1]);
  expect_sound(sch, vector_add(21));
}

TEST(schedule_tails, rounded_up_intermediates_grow) {
  const std::string text = two_stages(3, 13);
  Schedule sch = make(text);
  const auto parts = sch.split(loop(sch, "B", 1), {None, 8}, true, false, "round_up");
  EXPECT_EQ(sch.show().find("T.where"), std::string::npos) << sch.show();
  EXPECT_NE(sch.show().find("T.alloc_buffer((3, 16)"), std::string::npos) << sch.show();
  EXPECT_NE(sch.show().find("T.if_then_else(vj < 13, A[vi, vj], T.float32(0))"), std::string::npos)
      << sch.show();
  sch.vectorize(parts[1]);
  expect_sound(sch, text);
}

TEST(schedule_tails, rounded_up_iterators_read_nothing_before_a_buffer) {
  const std::string text = R"(
@T.prim_func
def main(A: T.Buffer((5,), "float32"), C: T.Buffer((5,), "float32")):
    B = T.alloc_buffer((5,), "float32")
    for i in range(5):
        with T.block("B"):
            vi = T.axis.spatial(5, i)
            B[vi] = A[4 - vi] * T.float32(3)
    for i in range(5):
        with T.block("C"):
            vi = T.axis.spatial(5, i)
            C[vi] = B[vi] + T.float32(1)
)";
  Schedule sch(parse(text));
  sch.split(loop(sch, "B"), {None, 4}, true, false, "round_up");
  EXPECT_NE(sch.show().find("T.if_then_else(4 - vi >= 0, A[4 - vi], T.float32(0))"),
            std::string::npos)
      << sch.show();
  expect_sound(sch, text);
}

TEST(schedule_tails, tails_that_divide_are_plain_splits) {
  for (const char* tail : {"peel", "round_up", "shift_inwards"}) {
    Schedule sch = make(vector_add(64)), plain = make(vector_add(64));
    sch.split(loop(sch, "C"), {None, 16}, true, false, tail);
    plain.split(loop(plain, "C"), {None, 16});
    EXPECT_TRUE(ir::structural_equal(sch.mod(), plain.mod())) << tail;
  }
}

TEST(schedule_tails, a_symbolic_extent_is_peeled) {
  const std::string text = R"(
@T.prim_func
def main(n: T.int64, A: T.Buffer((n + 16,), "float32"), B: T.Buffer((n + 16,), "float32")):
    for i in range(n + 16):
        with T.block("B"):
            vi = T.axis.spatial(n + 16, i)
            B[vi] = A[vi] + T.float32(1)
)";
  Schedule sch(parse(text));
  EXPECT_NO_THROW(sch.split(loop(sch, "B"), {None, 1}, true, false, "peel"));
  expect_refused(sch,
                 [](Schedule& x) {
                   x.split(loop(x, "B"), {None, 4}, true, false, "shift_inwards");
                 },
                 "schedule.split.tile", {"symbolic extent", "tail=\"guard\""});
}

TEST(schedule_tails, split_refuses_tails_that_do_not_fit) {
  Schedule sch = make(matmul(5, 6, 7));
  expect_refused(sch,
                 [](Schedule& x) {
                   x.split(loop(x, "C"), {None, 4}, true, false, "peal");
                 },
                 "schedule.split.tail", {"\"peal\"", "shift_inwards", "peel"});
  expect_refused(sch,
                 [](Schedule& x) {
                   x.split(loop(x, "C"), {None, 8}, true, false, "peel");
                 },
                 "schedule.split.tile", {"5 iterations do not fill", "guard"});
  expect_refused(sch,
                 [](Schedule& x) {
                   x.split(loop(x, "C", 2), {None, 4}, true, false, "shift_inwards");
                 },
                 "schedule.split.repeated", {"run iterations twice", "\"vk\""});
  expect_refused(sch,
                 [](Schedule& x) {
                   x.split(loop(x, "C"), {None, 4}, true, false, "round_up");
                 },
                 "schedule.split.round_up.output", {"does not allocate", "cache_write"});
  expect_refused(sch,
                 [](Schedule& x) {
                   x.split(loop(x, "C", 2), {None, 4}, true, false, "round_up");
                 },
                 "schedule.split.round_up.iterator", {"pad_reduction"});
  expect_refused(sch,
                 [](Schedule& x) {
                   x.split(loop(x, "C"), {None, 4}, true, true);
                 },
                 "schedule.split.predicate", {"tail=\"peel\""});
}

// ---- loop_partition, merge

TEST(schedule_tails, partition_cuts_the_range) {
  for (const Factors& f :
       {Factors{3}, Factors{3, None}, Factors{2, 3, None}, Factors{None, 4}, Factors{4, 6}}) {
    Schedule sch = make(matmul(4, 3, 10));
    const auto parts = sch.loop_partition(loop(sch, "C", 2), f);
    EXPECT_EQ(parts.size(), f.size() + (f.size() == 1 ? 1 : 0));
    expect_sound(sch, matmul(4, 3, 10));
    Schedule rows = make(matmul(10, 3, 4));
    rows.loop_partition(loop(rows, "C", 0), f);
    rows.reorder({loop(rows, "C_p1", 2), loop(rows, "C_p1", 1)});
    expect_sound(rows, matmul(10, 3, 4));
  }
}

TEST(schedule_tails, partition_refuses_lengths_that_do_not_fit) {
  Schedule sch = make(vector_add(10));
  const auto refused = [&](Factors f, const char* part) {
    expect_refused(sch, [&](Schedule& x) { x.loop_partition(loop(x, "C"), f); },
                   "schedule.loop_partition.lengths", {part, "[5, None]"});
  };
  refused({11}, "exceed");
  refused({0, None}, "the length 0");
  refused({None, None}, "more than one");
  refused({10, None}, "nothing is left");
  refused({}, "no length");
  Schedule symbolic(parse(R"(
@T.prim_func
def main(n: T.int64, A: T.Buffer((n,), "float32"), B: T.Buffer((n,), "float32")):
    for i in range(n):
        with T.block("B"):
            vi = T.axis.spatial(n, i)
            B[vi] = A[vi]
)"));
  expect_refused(symbolic,
                 [](Schedule& x) {
                   x.loop_partition(loop(x, "B"), {2, None});
                 },
                 "schedule.loop_partition.symbolic", {"not constant", "peel"});
  sch.bind(loop(sch, "C"), "blockIdx.x");
  expect_refused(sch,
                 [](Schedule& x) {
                   x.loop_partition(loop(x, "C"), {2, None});
                 },
                 "schedule.loop_partition.bound", {"blockIdx.x"});
}

TEST(schedule_tails, merge_joins_loops_that_follow_each_other) {
  Schedule sch = make(two_stages(6, 5));
  const LoopRef rows = sch.merge({loop(sch, "B"), loop(sch, "C")});
  EXPECT_TRUE(rows == loop(sch, "B"));
  expect_sound(sch, two_stages(6, 5));
  sch.merge({loop(sch, "B", 1), loop(sch, "C", 1)});
  expect_sound(sch, two_stages(6, 5));
  Schedule decomposed = make(matmul(4, 5, 6));
  decomposed.decompose_reduction(decomposed.get_block("C"), loop(decomposed, "C"));
  decomposed.merge({loop(decomposed, "C_init"), loop(decomposed, "C_update")});
  expect_sound(decomposed, matmul(4, 5, 6));
}

TEST(schedule_tails, merge_refuses_what_is_handed_between_iterations) {
  Schedule sch = make(window_rows(6, 4));
  expect_refused(sch,
                 [](Schedule& x) {
                   x.merge({loop(x, "B"), loop(x, "C")});
                 },
                 "schedule.merge.extent", {"differ"});
  Schedule same = make(two_stages(4, 4));
  expect_refused(same,
                 [](Schedule& x) {
                   x.merge({loop(x, "C"), loop(x, "B")});
                 },
                 "schedule.merge.neighbours", {"directly after"});
  expect_refused(same, [](Schedule& x) { x.merge({loop(x, "B")}); }, "schedule.merge.loops",
                 {"1 loops"});
  Schedule turned = make(R"(
@T.prim_func
def main(A: T.Buffer((4, 4), "float32"), C: T.Buffer((4, 4), "float32")):
    B = T.alloc_buffer((4, 4), "float32")
    for i, j in T.grid(4, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(4, 4):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vj, vi]
)");
  expect_refused(turned,
                 [](Schedule& x) {
                   x.merge({loop(x, "B"), loop(x, "C")});
                 },
                 "schedule.merge.order", {"\"B\"", "hand to each other"});
  Schedule over = make(R"(
@T.prim_func
def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[3 - vi]
    for i in range(4):
        with T.block("A"):
            vi = T.axis.spatial(4, i)
            A[vi] = T.float32(0)
)");
  expect_refused(over,
                 [](Schedule& x) {
                   x.merge({loop(x, "B"), loop(x, "A")});
                 },
                 "schedule.merge.order", {"overwrites"});
}

TEST(schedule_tails, loops_of_another_schedule_are_named_as_such) {
  Schedule sch = make(vector_add(10)), other = make(vector_add(10));
  const LoopRef foreign = loop(other, "C");
  expect_refused(sch,
                 [&](Schedule& x) {
                   x.split(foreign, {None, 2});
                 },
                 "schedule.loop.gone", {"another schedule's", "get_loops"});
}

TEST(schedule_tails, a_loop_that_may_have_no_iteration_keeps_its_extent) {
  const std::string text = R"(
@T.prim_func
def main(A: T.Buffer((3, 2), "float32"), B: T.Buffer((3, 2), "float32")):
    for i in range(3):
        for j in range(T.min(i + 1, 2) - i):
            for k in range(2):
                with T.block("B"):
                    vi, vk = T.axis.remap("SS", [i, k])
                    B[vi, vk] = A[vi, vk]
)";
  Schedule fused = make(text);
  fused.fuse({loop(fused, "B", 1), loop(fused, "B", 2)});
  expect_sound(fused, text);
  for (const char* tail : {"guard", "peel"}) {
    for (int factor : {1, 2}) {
      Schedule sch = make(text);
      try {
        sch.split(loop(sch, "B", 1), {None, factor}, true, false, tail);
      } catch (const Error& e) {
        EXPECT_EQ(e.code(), "schedule.split.tile") << e.what();
        continue;
      }
      expect_sound(sch, text);
    }
  }
}

TEST(schedule_tails, a_reduction_moves_into_no_loop_that_repeats_it) {
  Schedule sch = make(R"(
@T.prim_func
def main(A: T.Buffer((4, 11), "float32"), W: T.Buffer((11, 4), "float32"), C: T.Buffer((4, 4), "float32")):
    B = T.alloc_buffer((4, 11), "float32")
    for i, j in T.grid(4, 11):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j, k in T.grid(4, 4, 11):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + B[vi, vk] * W[vk, vj]
)");
  const ir::PrimFunc start = sch.func();
  sch.reverse_compute_at(sch.get_block("C"), sch.fuse({loop(sch, "B"), loop(sch, "B", 1)}));
  sch.compute_at(sch.get_block("B"), loop(sch, "C", 1), false, -2);
  const BlockRef copy = sch.cache_read(sch.get_block("C"), 0, "shared");
  expect_same_results(start, sch.func());
  const LoopRef inner = sch.get_loops(copy).back();
  expect_refused(sch, [&](Schedule& x) { x.reverse_compute_at(x.get_block("C"), inner); },
                 "schedule.reverse_compute_at.incomplete", {"more than once"});
}

}  // namespace
}  // namespace weft::schedule::testing
