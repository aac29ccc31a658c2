// SPDX-License-Identifier: Apache-2.0
// split, fuse, reorder, add_unit_loop and the loop kinds: expected programs, and the same results
// before and after.

#include "schedule_kit.h"
#include "weft/base/file.h"

namespace weft::schedule::testing {
namespace {

TEST(schedule_loops, split_by_factors_that_do_not_divide_adds_a_predicate) {
  Schedule sch = make(vector_add(1000));
  const auto i = sch.split(sch.get_loops(sch.get_block("C"))[0], {None, 128});
  expect_program(sch, R"(
@T.prim_func
def main(A: T.Buffer((1000,), "float32"), B: T.Buffer((1000,), "float32"), C: T.Buffer((1000,), "float32")):
    for i_0, i_1 in T.grid(8, 128):
        with T.block("C"):
            vi = T.axis.spatial(1000, i_0 * 128 + i_1)
            T.where(i_0 * 128 + i_1 < 1000)
            C[vi] = A[vi] + B[vi]
)");
  sch.split(i[1], {3, None});
  sch.split(i[0], {None, 3});
  expect_sound(sch, vector_add(1000));
}

TEST(schedule_loops, split_infers_any_position) {
  for (const Factors& f : {Factors{None, 4, 8}, Factors{2, None, 8}, Factors{2, 4, None},
                           Factors{64}, Factors{None}}) {
    Schedule sch = make(vector_add(64));
    const auto parts = sch.split(sch.get_loops(sch.get_block("C"))[0], f);
    EXPECT_EQ(parts.size(), f.size());
    EXPECT_EQ(sch.show().find("T.where"), std::string::npos);
    expect_sound(sch, vector_add(64));
  }
}

TEST(schedule_loops, split_without_unit_iterators) {
  Schedule sch = make(vector_add(8));
  sch.split(sch.get_loops(sch.get_block("C"))[0], {None, 1}, false);
  EXPECT_NE(sch.show().find("vi = T.axis.remap(\"S\", [i_0])"), std::string::npos) << sch.show();
  expect_sound(sch, vector_add(8));
}

TEST(schedule_loops, split_of_a_symbolic_extent_needs_no_predicate_when_it_divides) {
  const std::string text = R"(
@T.prim_func
def main(n: T.int64, A: T.Buffer((n * 4,), "float32"), B: T.Buffer((n * 4,), "float32")):
    for i in range(n * 4):
        with T.block("B"):
            vi = T.axis.spatial(n * 4, i)
            B[vi] = A[vi] + T.float32(1)
)";
  Schedule sch = make(text);
  sch.split(sch.get_loops(sch.get_block("B"))[0], {None, 4});
  EXPECT_EQ(sch.show().find("T.where"), std::string::npos) << sch.show();
  Schedule odd = make(text);
  odd.split(odd.get_loops(odd.get_block("B"))[0], {None, 3});
  EXPECT_NE(odd.show().find("T.where"), std::string::npos) << odd.show();
  expect_replays(odd, parse(text));
}

TEST(schedule_loops, split_takes_back_what_fuse_joined) {
  Schedule sch = make(two_stages(12, 10));
  const auto loops = sch.get_loops(sch.get_block("C"));
  const LoopRef fused = sch.fuse({loops[0], loops[1]});
  EXPECT_EQ(fused.var->name, "i_j_fused");
  sch.split(fused, {None, 10});
  EXPECT_NE(sch.show().find("vi, vj = T.axis.remap(\"SS\", [i_j_fused_0, i_j_fused_1])"),
            std::string::npos)
      << sch.show();
  expect_sound(sch, two_stages(12, 10));
}

TEST(schedule_loops, predicates_survive_split_fuse_and_split) {
  Schedule sch = make(two_stages(13, 11));
  const BlockRef c = sch.get_block("C");
  const auto loops = sch.get_loops(c);
  const auto i = sch.split(loops[0], {None, 4});
  const auto j = sch.split(loops[1], {None, 3});
  sch.reorder({i[0], j[0], i[1], j[1]});
  const LoopRef tile = sch.fuse({i[1], j[1]});
  sch.split(tile, {None, 5});
  expect_sound(sch, two_stages(13, 11));
}

TEST(schedule_loops, reorder_permutes_only_the_named_positions) {
  Schedule sch = make(matmul(4, 5, 6));
  const auto l = sch.get_loops(sch.get_block("C"));
  sch.reorder({l[2], l[0]});
  const auto after = sch.get_loops(sch.get_block("C"));
  EXPECT_TRUE(after[0] == l[2] && after[1] == l[1] && after[2] == l[0]);
  expect_sound(sch, matmul(4, 5, 6));
}

TEST(schedule_loops, reorder_keeps_kinds_and_annotations_with_their_loops) {
  Schedule sch = make(matmul(4, 5, 6));
  const auto l = sch.get_loops(sch.get_block("C"));
  sch.parallel(l[0]);
  sch.annotate(l[1], "key", 3);
  sch.reorder({l[1], l[0]});
  EXPECT_NE(sch.show().find("for j in T.serial(5, annotations={\"key\": 3}):"), std::string::npos)
      << sch.show();
  EXPECT_NE(sch.show().find("for i in T.parallel(4):"), std::string::npos) << sch.show();
  expect_sound(sch, matmul(4, 5, 6));
}

TEST(schedule_loops, add_unit_loop_around_blocks_and_loops) {
  Schedule sch = make(vector_add(6));
  const BlockRef c = sch.get_block("C");
  const LoopRef inner = sch.add_unit_loop(c);
  const LoopRef outer = sch.add_unit_loop(sch.get_loops(c)[0]);
  const auto l = sch.get_loops(c);
  ASSERT_EQ(l.size(), 3u);
  EXPECT_TRUE(l[0] == outer && l[2] == inner);
  expect_sound(sch, vector_add(6));
}

TEST(schedule_loops, kinds_are_set) {
  Schedule sch = make(matmul(4, 8, 16));
  const auto l = sch.get_loops(sch.get_block("C"));
  sch.parallel(l[0]);
  sch.vectorize(l[1]);
  sch.unroll(l[2]);
  const std::string text = sch.show();
  EXPECT_NE(text.find("T.parallel(4)"), std::string::npos);
  EXPECT_NE(text.find("T.vectorized(8)"), std::string::npos);
  EXPECT_NE(text.find("T.unroll"), std::string::npos);
  expect_sound(sch, matmul(4, 8, 16));
}

TEST(schedule_loops, a_reduction_may_be_bound_to_an_axis_that_reduces) {
  Schedule sch = make(matmul(4, 8, 16));
  const auto l = sch.get_loops(sch.get_block("C"));
  sch.bind(l[0], "blockIdx.x");
  sch.bind(l[2], "threadIdx.x");
  expect_sound(sch, matmul(4, 8, 16));
}

TEST(schedule_loops, vectorize_and_parallel_after_decompose) {
  Schedule sch = make(matmul(6, 8, 16));
  const BlockRef c = sch.get_block("C");
  const auto l = sch.get_loops(c);
  sch.reorder({l[0], l[2], l[1]});
  const BlockRef init = sch.decompose_reduction(c, l[2]);
  sch.vectorize(l[1]);
  sch.vectorize(sch.get_loops(init).back());
  sch.parallel(l[0]);
  expect_sound(sch, matmul(6, 8, 16));
}

TEST(schedule_loops, lookups_walk_the_data_flow) {
  Schedule sch = make(two_stages(4, 4));
  const BlockRef b = sch.get_block("B"), c = sch.get_block("C");
  EXPECT_EQ(sch.get_consumers(b), std::vector<BlockRef>{c});
  EXPECT_EQ(sch.get_producers(c), std::vector<BlockRef>{b});
  EXPECT_TRUE(sch.get_producers(b).empty());
  const BlockRef root = sch.get_block("root");
  EXPECT_EQ(sch.get_child_blocks(root), (std::vector<BlockRef>{b, c}));
  EXPECT_EQ(sch.get_child_blocks(sch.get_loops(b)[0]), std::vector<BlockRef>{b});
  EXPECT_EQ(sch.get_output_blocks(root), std::vector<BlockRef>{c});
  EXPECT_TRUE(sch.get_loops(root).empty());
}

TEST(schedule_loops, sampled_factors_are_kept_in_the_trace) {
  Schedule sch = make(vector_add(96));
  const BlockRef c = sch.get_block("C");
  const LoopRef i = sch.get_loops(c)[0];
  const auto f = sch.sample_perfect_tile(i, 3, 8);
  ASSERT_EQ(f.size(), 3u);
  EXPECT_EQ(f[0].value * f[1].value * f[2].value, 96);
  EXPECT_LE(f[2].value, 8);
  sch.split(i, {f[0], f[1], f[2]});
  const IntRef pick = sch.sample_categorical({10, 20, 30}, {0.2, 0.3, 0.5});
  EXPECT_TRUE(pick.value == 10 || pick.value == 20 || pick.value == 30);
  EXPECT_NE(sch.trace().as_python().find("sch.split(loop=l0, factors=[v0, v1, v2])"),
            std::string::npos)
      << sch.trace().as_python();
  EXPECT_NE(sch.trace().as_python().find("decision=["), std::string::npos)
      << sch.trace().as_python();
  expect_sound(sch, vector_add(96));
}

TEST(schedule_manual, the_reference_page_is_the_table) {
  const std::string page = read_file(cat(WEFT_SOURCE_DIR, "/docs/reference/primitives.md"));
  EXPECT_NE(page.find(primitives_manual()), std::string::npos) << primitives_manual();
}

TEST(schedule_loops, a_decision_for_another_extent_is_repaired) {
  Schedule sch = make(vector_add(60));
  const auto f = sch.sample_perfect_tile(sch.get_loops(sch.get_block("C"))[0], 3, 16, {4, 7, 4});
  EXPECT_EQ(f[0].value * f[1].value * f[2].value, 60);
  EXPECT_EQ(f[2].value, 4);
}

}  // namespace
}  // namespace weft::schedule::testing
