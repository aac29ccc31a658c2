// SPDX-License-Identifier: Apache-2.0
// Steps that add, move and remove blocks.

#include "schedule_kit.h"

namespace weft::schedule::testing {
namespace {

/// A -> B (halo of 1 in j) -> C, odd sizes.
std::string halo(int m, int n) {
  return cat("@T.prim_func\ndef main(A: T.Buffer((", m, ", ", n + 2,
             "), \"float32\"), C: T.Buffer((", m, ", ", n,
             "), \"float32\")):\n    B = T.alloc_buffer((", m, ", ", n + 2,
             "), \"float32\")\n    for i, j in T.grid(", m, ", ", n + 2,
             "):\n        with T.block(\"B\"):\n            vi, vj = T.axis.remap(\"SS\", [i, "
             "j])\n            B[vi, vj] = A[vi, vj] * T.float32(2)\n"
             "    for i, j in T.grid(",
             m, ", ", n,
             "):\n        with T.block(\"C\"):\n            vi, vj = T.axis.remap(\"SS\", [i, "
             "j])\n            C[vi, vj] = B[vi, vj] + B[vi, vj + 1] + B[vi, vj + 2]\n");
}

/// Row sums, then a scaling of each row by its sum.
std::string row_sums(int m, int n) {
  return cat("@T.prim_func\ndef main(A: T.Buffer((", m, ", ", n, "), \"float32\"), C: T.Buffer((",
             m, ", ", n, "), \"float32\")):\n    S = T.alloc_buffer((", m,
             ",), \"float32\")\n    for i, k in T.grid(", m, ", ", n,
             "):\n        with T.block(\"S\"):\n            vi, vk = T.axis.remap(\"SR\", [i, "
             "k])\n            with T.init():\n                S[vi] = T.float32(0)\n"
             "            S[vi] = S[vi] + A[vi, vk]\n    for i, j in T.grid(",
             m, ", ", n,
             "):\n        with T.block(\"C\"):\n            vi, vj = T.axis.remap(\"SS\", [i, "
             "j])\n            C[vi, vj] = A[vi, vj] + S[vi]\n");
}

TEST(schedule_blocks, compute_at_regenerates_the_tile_with_its_halo) {
  for (int n : {16, 13, 3}) {
    Schedule sch = make(halo(5, n));
    const auto l = sch.get_loops(sch.get_block("C"));
    const auto j = sch.split(l[1], {None, 4});
    sch.compute_at(sch.get_block("B"), j[0]);
    expect_sound(sch, halo(5, n));
  }
}

TEST(schedule_blocks, compute_at_deeper_a_second_time) {
  Schedule sch = make(halo(6, 12));
  const auto l = sch.get_loops(sch.get_block("C"));
  const auto j = sch.split(l[1], {None, 4});
  const BlockRef b = sch.get_block("B");
  sch.compute_at(b, l[0]);
  sch.compute_at(b, j[0]);
  expect_sound(sch, halo(6, 12));
}

TEST(schedule_blocks, compute_at_of_a_reduction) {
  Schedule sch = make(row_sums(6, 7));
  sch.compute_at(sch.get_block("S"), sch.get_loops(sch.get_block("C"))[0]);
  expect_program(sch, R"(
@T.prim_func
def main(A: T.Buffer((6, 7), "float32"), C: T.Buffer((6, 7), "float32")):
    S = T.alloc_buffer((6,), "float32")
    for i in range(6):
        for ax0 in range(7):
            with T.block("S"):
                vi = T.axis.spatial(6, i)
                vk = T.axis.reduce(7, ax0)
                with T.init():
                    S[vi] = T.float32(0)
                S[vi] = S[vi] + A[vi, vk]
        for j in range(7):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] + S[vi]
)");
  expect_sound(sch, row_sums(6, 7));
}

TEST(schedule_blocks, compute_at_at_a_chosen_slot_and_with_unit_loops) {
  Schedule sch = make(two_stages(5, 6));
  const auto l = sch.get_loops(sch.get_block("C"));
  sch.compute_at(sch.get_block("B"), l[1], true, -2);
  EXPECT_EQ(sch.get_loops(sch.get_block("B")).size(), 4u);
  expect_sound(sch, two_stages(5, 6));
}

TEST(schedule_blocks, reverse_compute_at_follows_the_tiles) {
  for (int n : {16, 15}) {
    Schedule sch = make(two_stages(8, n));
    const auto l = sch.get_loops(sch.get_block("B"));
    const auto j = sch.split(l[1], {None, 4});
    sch.reverse_compute_at(sch.get_block("C"), j[0]);
    expect_sound(sch, two_stages(8, n));
  }
}

TEST(schedule_blocks, reverse_compute_at_with_a_producer_before_the_loop) {
  const std::string text = R"(
@T.prim_func
def main(A: T.Buffer((8, 6), "float32"), D: T.Buffer((6,), "float32"), C: T.Buffer((8, 6), "float32")):
    B = T.alloc_buffer((8, 6), "float32")
    E = T.alloc_buffer((6,), "float32")
    for j in range(6):
        with T.block("E"):
            vj = T.axis.spatial(6, j)
            E[vj] = D[vj] * T.float32(3)
    for i, j in T.grid(8, 6):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)
    for i, j in T.grid(8, 6):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + E[vj]
)";
  Schedule sch = make(text);
  const auto l = sch.get_loops(sch.get_block("B"));
  const BlockRef c = sch.get_block("C"), e = sch.get_block("E");
  sch.reverse_compute_at(c, l[0]);
  EXPECT_EQ(sch.get_loops(c)[0], l[0]);
  expect_sound(sch, text);
  sch.compute_at(e, l[0]);
  EXPECT_EQ(sch.get_loops(e)[0], l[0]);
  expect_sound(sch, text);
  // A producer between the loop and the consumer still forbids the move.
  std::string later = text;
  const auto from = later.find("    for j in range(6):"), to = later.find("    for i, j in");
  const std::string nest = later.substr(from, to - from);
  later.erase(from, to - from);
  later.insert(later.rfind("    for i, j in"), nest);
  Schedule other = make(later);
  EXPECT_THROW(
      other.reverse_compute_at(other.get_block("C"), other.get_loops(other.get_block("B"))[0]),
      Error);
}

TEST(schedule_blocks, cache_read_of_an_intermediate_goes_behind_its_writer) {
  Schedule sch = make(two_stages(4, 6));
  const BlockRef cache = sch.cache_read(sch.get_block("C"), 0, "shared");
  expect_program(sch, R"(
@T.prim_func
def main(A: T.Buffer((4, 6), "float32"), C: T.Buffer((4, 6), "float32")):
    B = T.alloc_buffer((4, 6), "float32")
    B_shared = T.alloc_buffer((4, 6), "float32", scope="shared")
    for i, j in T.grid(4, 6):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for ax0, ax1 in T.grid(4, 6):
        with T.block("B_shared"):
            v0, v1 = T.axis.remap("SS", [ax0, ax1])
            B_shared[v0, v1] = B[v0, v1]
    for i, j in T.grid(4, 6):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B_shared[vi, vj] + T.float32(1)
)");
  EXPECT_EQ(sch.get_consumers(cache).size(), 1u);
  expect_sound(sch, two_stages(4, 6));
}

TEST(schedule_blocks, caches_chain) {
  Schedule sch = make(matmul(8, 8, 8));
  const BlockRef c = sch.get_block("C");
  sch.cache_read(c, 0, "shared");
  const BlockRef a_local = sch.cache_read(c, 0, "local");
  sch.cache_read(c, 1, "shared");
  const BlockRef out = sch.cache_write(c, 0, "local");
  const auto l = sch.get_loops(c);
  sch.reverse_compute_at(out, l[1]);
  sch.compute_at(a_local, l[0]);
  expect_sound(sch, matmul(8, 8, 8));
}

TEST(schedule_blocks, cache_read_for_chosen_consumers_only) {
  const std::string text = R"(
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] + T.float32(1)
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = A[vi] * T.float32(3)
)";
  Schedule sch = make(text);
  const BlockRef b = sch.get_block("B"), c = sch.get_block("C");
  sch.cache_read(b, 0, "shared", {c});
  EXPECT_NE(sch.show().find("B[vi] = A[vi] + "), std::string::npos) << sch.show();
  EXPECT_NE(sch.show().find("C[vi] = A_shared[vi] * "), std::string::npos) << sch.show();
  expect_sound(sch, text);
}

TEST(schedule_blocks, cache_write_inside_a_predicated_tile) {
  Schedule sch = make(two_stages(7, 9));
  const BlockRef c = sch.get_block("C");
  sch.split(sch.get_loops(c)[1], {None, 4});
  sch.cache_write(c, 0, "local");
  sch.cache_write(sch.get_block("B"), 0, "shared");
  expect_sound(sch, two_stages(7, 9));
}

TEST(schedule_blocks, compute_inline_substitutes_and_removes) {
  Schedule sch = make(halo(3, 6));
  sch.compute_inline(sch.get_block("B"));
  expect_program(sch, R"(
@T.prim_func
def main(A: T.Buffer((3, 8), "float32"), C: T.Buffer((3, 6), "float32")):
    for i, j in T.grid(3, 6):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] * T.float32(2) + A[vi, vj + 1] * T.float32(2) + A[vi, vj + 2] * T.float32(2)
)");
  expect_sound(sch, halo(3, 6));
}

TEST(schedule_blocks, compute_inline_after_a_split_with_predicate) {
  Schedule sch = make(two_stages(7, 9));
  sch.split(sch.get_loops(sch.get_block("B"))[1], {None, 4});
  sch.compute_inline(sch.get_block("B"));
  expect_sound(sch, two_stages(7, 9));
}

TEST(schedule_blocks, reverse_compute_inline_moves_the_epilogue_into_the_producer) {
  Schedule sch = make(two_stages(5, 6));
  sch.reverse_compute_inline(sch.get_block("C"));
  expect_program(sch, R"(
@T.prim_func
def main(A: T.Buffer((5, 6), "float32"), C: T.Buffer((5, 6), "float32")):
    for i, j in T.grid(5, 6):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] * T.float32(2) + T.float32(1)
)");
  expect_sound(sch, two_stages(5, 6));
}

TEST(schedule_blocks, reverse_compute_inline_through_a_transpose_and_a_reshape) {
  const std::string text = R"(
@T.prim_func
def main(A: T.Buffer((4, 6), "float32"), C: T.Buffer((24,), "float32")):
    B = T.alloc_buffer((6, 4), "float32")
    for i, j in T.grid(4, 6):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vj, vi] = A[vi, vj] * T.float32(2)
    for i in range(24):
        with T.block("C"):
            vi = T.axis.spatial(24, i)
            C[vi] = B[vi // 4, vi % 4] + T.float32(1)
)";
  Schedule sch = make(text);
  sch.reverse_compute_inline(sch.get_block("C"));
  expect_sound(sch, text);
}

TEST(schedule_blocks, reverse_compute_inline_into_a_producer_that_computes_more) {
  const std::string text = R"(
@T.prim_func
def main(A: T.Buffer((10,), "float32"), C: T.Buffer((7,), "float32")):
    B = T.alloc_buffer((10,), "float32")
    for i in range(10):
        with T.block("B"):
            vi = T.axis.spatial(10, i)
            B[vi] = A[vi] * T.float32(2)
    for i in range(7):
        with T.block("C"):
            vi = T.axis.spatial(7, i)
            C[vi] = B[vi] + T.float32(1)
)";
  Schedule sch = make(text);
  try {
    sch.reverse_compute_inline(sch.get_block("C"));
    expect_sound(sch, text);
  } catch (const Error& e) {
    FAIL() << e.what();
  }
}

TEST(schedule_blocks, decompose_reduction_at_each_legal_loop) {
  for (int at : {0, 1, 2}) {
    Schedule sch = make(matmul(5, 6, 7));
    const BlockRef c = sch.get_block("C");
    const BlockRef init =
        sch.decompose_reduction(c, sch.get_loops(c)[static_cast<std::size_t>(at)]);
    EXPECT_TRUE(sch.get_block("C_init") == init);
    EXPECT_TRUE(sch.get_block("C_update") == c);
    expect_sound(sch, matmul(5, 6, 7));
  }
}

TEST(schedule_blocks, decompose_reduction_with_predicates_and_bound_loops) {
  Schedule sch = make(matmul(10, 9, 11));
  const BlockRef c = sch.get_block("C");
  const auto l = sch.get_loops(c);
  const auto i = sch.split(l[0], {None, 4});
  const auto j = sch.split(l[1], {None, 4});
  const auto k = sch.split(l[2], {None, 4});
  sch.reorder({i[0], j[0], k[0], i[1], j[1], k[1]});
  sch.bind(i[0], "blockIdx.x");
  sch.bind(i[1], "threadIdx.x");
  sch.decompose_reduction(c, k[0]);
  expect_sound(sch, matmul(10, 9, 11));
}

TEST(schedule_blocks, rfactor_over_either_half_of_a_split_reduction) {
  for (int half : {0, 1}) {
    for (int axis : {0, 2, -1}) {
      Schedule sch = make(matmul(4, 5, 10));
      const BlockRef c = sch.get_block("C");
      const auto k = sch.split(sch.get_loops(c)[2], {None, 4});
      const BlockRef rf = sch.rfactor(k[static_cast<std::size_t>(half)], axis);
      EXPECT_TRUE(sch.get_block("C_rf") == rf);
      expect_sound(sch, matmul(4, 5, 10));
    }
  }
}

TEST(schedule_blocks, rfactor_of_fused_reductions_gives_each_loop_one_iterator) {
  const std::string text = R"(
@T.prim_func
def main(A: T.Buffer((3, 4, 12), "float32"), S: T.Buffer((3,), "float32")):
    for i, k, l in T.grid(3, 4, 12):
        with T.block("S"):
            vi, vk, vl = T.axis.remap("SRR", [i, k, l])
            with T.init():
                S[vi] = T.float32(0)
            S[vi] = S[vi] + A[vi, vk, vl]
)";
  for (std::int64_t pieces : {1, 2, 4, 8}) {
    for (std::int64_t lanes : {1, 2, 3, 6}) {
      if (pieces * lanes == 1) continue;  // no slices
      SCOPED_TRACE(cat(pieces, " pieces, ", lanes, " lanes"));
      Schedule sch = make(text);
      const auto l = sch.get_loops(sch.get_block("S"));
      const auto k = sch.split(sch.fuse({l[1], l[2]}), {pieces, None, lanes});
      sch.reorder({k[0], k[2], k[1]});
      const BlockRef rf = sch.rfactor(sch.fuse({k[0], k[2]}), 0);
      const auto inner = sch.get_loops(rf);
      const auto parts = sch.split(inner[1], {pieces, lanes});
      sch.reorder({parts[0], inner[2], parts[1]});  // needs affine bindings
      sch.decompose_reduction(rf, inner[2]);
      expect_sound(sch, text);
    }
  }
}

TEST(schedule_blocks, rfactor_of_a_maximum) {
  const std::string text = R"(
@T.prim_func
def main(A: T.Buffer((3, 12), "float32"), M: T.Buffer((3,), "float32")):
    for i, k in T.grid(3, 12):
        with T.block("M"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                M[vi] = T.float32(-1000)
            M[vi] = T.max(M[vi], A[vi, vk])
)";
  Schedule sch = make(text);
  const auto k = sch.split(sch.get_loops(sch.get_block("M"))[1], {None, 4});
  sch.rfactor(k[1], 1);
  expect_sound(sch, text);
}

TEST(schedule_blocks, annotations_come_and_go) {
  Schedule sch = make(vector_add(8));
  const BlockRef c = sch.get_block("C");
  const LoopRef i = sch.get_loops(c)[0];
  const auto before = ir::structural_hash(sch.mod());
  sch.annotate(i, "pragma_auto_unroll_max_step", 16);
  sch.annotate(c, "software_pipeline_stage", Json::array());
  EXPECT_NE(ir::structural_hash(sch.mod()), before);
  expect_sound(sch, vector_add(8));
  sch.unannotate(i, "pragma_auto_unroll_max_step");
  sch.unannotate(c, "software_pipeline_stage");
  EXPECT_EQ(ir::structural_hash(sch.mod()), before);
}

TEST(schedule_blocks, storage_align_and_set_scope) {
  Schedule sch = make(two_stages(8, 8));
  const BlockRef b = sch.get_block("B");
  sch.storage_align(b, 0, -2, 32, 1);
  sch.storage_align(b, 0, 0, 16, 1);  // replaces the row for the same axis
  sch.set_scope(b, 0, "shared");
  EXPECT_NE(sch.show().find("\"buffer_dim_align\": [[0, 0, 16, 1]]"), std::string::npos)
      << sch.show();
  EXPECT_NE(sch.show().find("scope=\"shared\""), std::string::npos) << sch.show();
  expect_sound(sch, two_stages(8, 8));
}

TEST(schedule_blocks, transform_layout_of_an_intermediate) {
  Schedule sch = make(two_stages(8, 12));
  sch.transform_layout(sch.get_block("B"), {"write", 0, ""},
                       IndexMap::parse("lambda i, j: (i // 4, j, i % 4)"));
  EXPECT_NE(sch.show().find("B = T.alloc_buffer((2, 12, 4)"), std::string::npos) << sch.show();
  expect_sound(sch, two_stages(8, 12));
}

TEST(schedule_blocks, packing_is_cache_read_with_a_layout) {
  Schedule sch = make(matmul(8, 8, 8));
  const BlockRef c = sch.get_block("C");
  const BlockRef pack = sch.cache_read(c, 1, "global");
  sch.transform_layout(pack, {"write", 0, ""}, IndexMap::parse("lambda k, j: (j // 4, k, j % 4)"));
  const auto l = sch.get_loops(c);
  const auto j = sch.split(l[1], {None, 4});
  sch.reorder({j[0], l[0], l[2], j[1]});
  sch.compute_at(pack, j[0]);
  expect_sound(sch, matmul(8, 8, 8));
}

TEST(schedule_blocks, blockize_makes_tiles) {
  Schedule sch = make(matmul(8, 8, 8));
  const BlockRef c = sch.get_block("C");
  const auto l = sch.get_loops(c);
  const auto i = sch.split(l[0], {None, 4});
  const auto j = sch.split(l[1], {None, 4});
  const auto k = sch.split(l[2], {None, 4});
  sch.reorder({i[0], j[0], k[0], i[1], j[1], k[1]});
  const BlockRef tile = sch.blockize(i[1]);
  EXPECT_EQ(sch.get_loops(tile).size(), 3u);
  expect_sound(sch, matmul(8, 8, 8));
  sch.decompose_reduction(tile, k[0]);
  expect_sound(sch, matmul(8, 8, 8));
}

std::shared_ptr<const TargetInfo> with_dot4() {
  auto machine = std::make_shared<TargetInfo>(*schedule_target_info());
  const std::string head = R"(
@T.prim_func
def dot4(C: T.Buffer((4, 4), "float32"), A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32")):
)";
  const std::string meaning = head + R"(
    for i, j, k in T.grid(4, 4, 4):
        with T.block("update"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)";
  // The same result in another order, so that a test sees which of the two ran.
  const std::string implementation = head + R"(
    for k, i, j in T.grid(4, 4, 4):
        with T.block("instruction"):
            vk = T.axis.reduce(4, k)
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = C[vi, vj] + B[vk, vj] * A[vi, vk]
)";
  machine->instructions.push_back({"dot4", parse(meaning), parse(implementation), {}});
  return machine;
}

TEST(schedule_blocks, tensorize_replaces_a_tile_by_an_instruction) {
  Schedule sch(parse(matmul(8, 8, 8)), with_dot4());
  sch.set_verifying(true);
  const BlockRef c = sch.get_block("C");
  const auto l = sch.get_loops(c);
  const auto i = sch.split(l[0], {None, 4});
  const auto j = sch.split(l[1], {None, 4});
  const auto k = sch.split(l[2], {None, 4});
  sch.reorder({i[0], j[0], k[0], i[1], j[1], k[1]});
  sch.decompose_reduction(c, k[0]);
  sch.tensorize(i[1], "dot4");
  EXPECT_NE(sch.show().find("instruction"), std::string::npos) << sch.show();
  EXPECT_NE(sch.show().find("T.match_buffer"), std::string::npos) << sch.show();
  expect_same_results(parse(matmul(8, 8, 8)), sch.func());
  const Schedule again =
      Schedule::replay(parse(matmul(8, 8, 8)), sch.trace().to_json(), with_dot4());
  EXPECT_TRUE(ir::structural_equal(again.mod(), sch.mod()));
}

TEST(schedule_blocks, caches_of_strided_buffers_are_compact) {
  const std::string text = R"(@T.prim_func
def main(a: T.handle, s: T.int32, off: T.int32, B: T.Buffer((4, 8), "float32")):
    A = T.match_buffer(a, (4, 8), "float32", strides=(s, 1), elem_offset=off)
    for i, j in T.grid(4, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)
)";
  Schedule sch = make(text);
  sch.cache_read(sch.get_block("B"), 0, "global");
  EXPECT_NE(sch.show().find("A_global = T.alloc_buffer((4, 8), \"float32\")\n"), std::string::npos)
      << sch.show();
}

TEST(schedule_blocks, tensorize_sees_tiles_through_a_blocked_layout) {
  Schedule sch(parse(matmul(8, 8, 8)), with_dot4());
  sch.set_verifying(true);
  const BlockRef c = sch.get_block("C");
  const BlockRef a = sch.cache_read(c, 0, "global");
  const auto l = sch.get_loops(c);
  const auto i = sch.split(l[0], {None, 4});
  const auto j = sch.split(l[1], {None, 4});
  const auto k = sch.split(l[2], {None, 4});
  sch.reorder({i[0], j[0], k[0], i[1], j[1], k[1]});
  sch.decompose_reduction(c, k[0]);
  // The tile is read at [(o * 4 + i) // 4][...][(o * 4 + i) % 4][...].
  sch.transform_layout(a, {"write", 0, ""},
                       IndexMap::parse("lambda x, y: (x // 4, y // 4, x % 4, y % 4)"));
  sch.tensorize(i[1], "dot4");
  EXPECT_NE(sch.show().find("T.match_buffer"), std::string::npos) << sch.show();
  expect_same_results(parse(matmul(8, 8, 8)), sch.func());
}

TEST(schedule_blocks, tensorize_refuses_what_the_instruction_does_not_compute) {
  Schedule sch(parse(matmul(8, 8, 8)), with_dot4());
  const BlockRef c = sch.get_block("C");
  const auto l = sch.get_loops(c);
  const auto i = sch.split(l[0], {None, 4});
  const auto j = sch.split(l[1], {None, 4});
  const auto k = sch.split(l[2], {None, 2});
  sch.reorder({i[0], j[0], k[0], i[1], j[1], k[1]});
  sch.decompose_reduction(c, k[0]);
  expect_refused(sch, [&](Schedule& s) { s.tensorize(i[1], "dot4"); },
                 "schedule.tensorize.mismatch",
                 {"runs 2 times, the instruction needs 4", "the instruction computes"});
  expect_refused(sch, [&](Schedule& s) { s.tensorize(i[1], "dot5"); }, "schedule.tensorize.unknown",
                 {"did you mean \"dot4\"?"});
}

}  // namespace
}  // namespace weft::schedule::testing
