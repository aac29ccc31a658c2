// SPDX-License-Identifier: Apache-2.0
// The canonical ladder: vector add, window sum with a cooperative cache, GEMM from naive binding to
// shared memory with vectorized fetches.

#include "schedule_kit.h"

namespace weft::schedule::testing {
namespace {

TEST(schedule_ladder, vector_add_is_split_and_bound) {
  Schedule sch = make(vector_add(1024));
  const BlockRef c = sch.get_block("C", "main");
  const auto loops = sch.get_loops(c);
  ASSERT_EQ(loops.size(), 1u);
  const auto i = sch.split(loops[0], {None, 128});
  sch.bind(i[0], "blockIdx.x");
  sch.bind(i[1], "threadIdx.x");
  expect_program(sch, R"(
@T.prim_func
def main(A: T.Buffer((1024,), "float32"), B: T.Buffer((1024,), "float32"), C: T.Buffer((1024,), "float32")):
    for i_0 in T.thread_binding(8, thread="blockIdx.x"):
        for i_1 in T.thread_binding(128, thread="threadIdx.x"):
            with T.block("C"):
                vi = T.axis.spatial(1024, i_0 * 128 + i_1)
                T.reads(A[vi], B[vi])
                T.writes(C[vi])
                C[vi] = A[vi] + B[vi]
)");
  expect_sound(sch, vector_add(1024));
}

TEST(schedule_ladder, window_sum_fetches_130_elements_cooperatively) {
  Schedule sch = make(window_sum(1024));
  const BlockRef b = sch.get_block("B", "main");
  const auto i = sch.split(sch.get_loops(b)[0], {None, 128});
  sch.bind(i[0], "blockIdx.x");
  sch.bind(i[1], "threadIdx.x");
  const BlockRef shared = sch.cache_read(b, 0, "shared");
  sch.compute_at(shared, i[1]);
  expect_program(sch, R"(
@T.prim_func
def main(A: T.Buffer((1026,), "float32"), B: T.Buffer((1024,), "float32")):
    A_shared = T.alloc_buffer((1026,), "float32", scope="shared")
    for i_0 in T.thread_binding(8, thread="blockIdx.x"):
        for i_1 in T.thread_binding(128, thread="threadIdx.x"):
            for ax0 in range(130):
                with T.block("A_shared"):
                    v0 = T.axis.spatial(1026, i_0 * 128 + ax0)
                    T.reads(A[v0])
                    T.writes(A_shared[v0])
                    A_shared[v0] = A[v0]
            with T.block("B"):
                vi = T.axis.spatial(1024, i_0 * 128 + i_1)
                T.reads(A_shared[vi:vi + 3])
                T.writes(B[vi])
                B[vi] = A_shared[vi] + A_shared[vi + 1] + A_shared[vi + 2]
)");
  expect_sound(sch, window_sum(1024));
  const auto ax = sch.split(sch.get_loops(shared).back(), {None, 128});
  sch.bind(ax[1], "threadIdx.x");
  EXPECT_NE(sch.show().find("T.where(ax0_0 * 128 + ax0_1 < 130)"), std::string::npos) << sch.show();
  expect_sound(sch, window_sum(1024));
}

TEST(schedule_ladder, window_sum_at_odd_sizes) {
  for (int n : {1, 5, 127, 131, 300}) {
    Schedule sch = make(window_sum(n));
    const BlockRef b = sch.get_block("B");
    const auto i = sch.split(sch.get_loops(b)[0], {None, 32});
    sch.bind(i[0], "blockIdx.x");
    sch.bind(i[1], "threadIdx.x");
    const BlockRef shared = sch.cache_read(b, 0, "shared");
    sch.compute_at(shared, i[1]);
    const auto ax = sch.split(sch.get_loops(shared).back(), {None, 32});
    sch.bind(ax[1], "threadIdx.x");
    expect_sound(sch, window_sum(n));
  }
}

/// GEMM-2 and 3: local tiling, optionally unrolled.
Schedule local_tiles(const std::string& program, int tile_block_x, int tile_block_y,
                     int tile_thread_x, int tile_thread_y, int tile_k, bool unroll) {
  Schedule sch = make(program);
  const BlockRef block_c = sch.get_block("C", "main");
  const BlockRef c_local = sch.cache_write(block_c, 0, "local");
  const auto loops = sch.get_loops(block_c);
  const auto i = sch.split(loops[0], {None, tile_block_x, tile_thread_x});
  const auto j = sch.split(loops[1], {None, tile_block_y, tile_thread_y});
  const auto k = sch.split(loops[2], {None, tile_k});
  if (unroll) sch.unroll(k[1]);
  sch.reorder({i[0], j[0], i[1], j[1], k[0], k[1], i[2], j[2]});
  sch.reverse_compute_at(c_local, j[1]);
  sch.bind(i[0], "blockIdx.x");
  sch.bind(j[0], "blockIdx.y");
  sch.bind(i[1], "threadIdx.x");
  sch.bind(j[1], "threadIdx.y");
  sch.decompose_reduction(block_c, k[0]);
  return sch;
}

void fetch(Schedule& sch, BlockRef block, int index, const LoopRef& at, int threads, int lanes) {
  const BlockRef cache = sch.cache_read(block, index, "shared");
  sch.compute_at(cache, at);
  const auto loops = sch.get_loops(cache);
  const LoopRef fused = sch.fuse({loops[loops.size() - 2], loops[loops.size() - 1]});
  const auto parts = sch.split(fused, {None, threads, lanes});
  sch.bind(parts[1], "threadIdx.x");
  sch.vectorize(parts[2]);
}

Schedule shared_tiles(const std::string& program, int tile_block, int tile_thread, int tile_k,
                      bool decompose) {
  Schedule sch = make(program);
  const BlockRef block_c = sch.get_block("C", "main");
  const BlockRef c_local = sch.cache_write(block_c, 0, "local");
  const auto loops = sch.get_loops(block_c);
  const auto i = sch.split(loops[0], {None, tile_block, tile_thread});
  const auto j = sch.split(loops[1], {None, tile_block, tile_thread});
  const auto k = sch.split(loops[2], {None, tile_k});
  sch.reorder({i[0], j[0], i[1], j[1], k[0], k[1], i[2], j[2]});
  const LoopRef tx = sch.fuse({i[1], j[1]});
  sch.reverse_compute_at(c_local, tx);
  sch.bind(i[0], "blockIdx.x");
  sch.bind(j[0], "blockIdx.y");
  sch.bind(tx, "threadIdx.x");
  fetch(sch, block_c, 0, k[0], tile_block * tile_block, 4);
  fetch(sch, block_c, 1, k[0], tile_block * tile_block, 4);
  if (decompose) sch.decompose_reduction(block_c, k[0]);
  return sch;
}

TEST(schedule_ladder, gemm_1_binds_the_outer_loops) {
  Schedule sch = make(matmul(64, 64, 16));
  const BlockRef c = sch.get_block("C");
  const auto loops = sch.get_loops(c);
  const auto i = sch.split(loops[0], {None, 16});
  const auto j = sch.split(loops[1], {None, 16});
  sch.reorder({i[0], j[0], i[1], j[1]});
  sch.bind(i[0], "blockIdx.x");
  sch.bind(j[0], "blockIdx.y");
  sch.bind(i[1], "threadIdx.x");
  sch.bind(j[1], "threadIdx.y");
  expect_sound(sch, matmul(64, 64, 16));
}

TEST(schedule_ladder, gemm_2_and_3_tile_in_registers) {
  for (bool unroll : {false, true})
    expect_sound(local_tiles(matmul(32, 32, 16), 2, 2, 4, 4, 4, unroll), matmul(32, 32, 16));
}

TEST(schedule_ladder, gemm_2_has_the_expected_form) {
  expect_program(local_tiles(matmul(1024, 1024, 1024), 8, 8, 8, 8, 4, false), R"(
@T.prim_func
def main(A: T.Buffer((1024, 1024), "float32"), B: T.Buffer((1024, 1024), "float32"), C: T.Buffer((1024, 1024), "float32")):
    C_local = T.alloc_buffer((1024, 1024), "float32", scope="local")
    for i_0 in T.thread_binding(16, thread="blockIdx.x"):
        for j_0 in T.thread_binding(16, thread="blockIdx.y"):
            for i_1 in T.thread_binding(8, thread="threadIdx.x"):
                for j_1 in T.thread_binding(8, thread="threadIdx.y"):
                    for i_2_init, j_2_init in T.grid(8, 8):
                        with T.block("C_init"):
                            vi = T.axis.spatial(1024, i_0 * 64 + i_1 * 8 + i_2_init)
                            vj = T.axis.spatial(1024, j_0 * 64 + j_1 * 8 + j_2_init)
                            T.reads()
                            T.writes(C_local[vi, vj])
                            C_local[vi, vj] = T.float32(0)
                    for k_0, k_1, i_2, j_2 in T.grid(256, 4, 8, 8):
                        with T.block("C_update"):
                            vi = T.axis.spatial(1024, i_0 * 64 + i_1 * 8 + i_2)
                            vj = T.axis.spatial(1024, j_0 * 64 + j_1 * 8 + j_2)
                            vk = T.axis.reduce(1024, k_0 * 4 + k_1)
                            T.reads(C_local[vi, vj], A[vi, vk], B[vk, vj])
                            T.writes(C_local[vi, vj])
                            C_local[vi, vj] = C_local[vi, vj] + A[vi, vk] * B[vk, vj]
                    for ax0, ax1 in T.grid(8, 8):
                        with T.block("C_local"):
                            v0 = T.axis.spatial(1024, i_0 * 64 + i_1 * 8 + ax0)
                            v1 = T.axis.spatial(1024, j_0 * 64 + j_1 * 8 + ax1)
                            T.reads(C_local[v0, v1])
                            T.writes(C[v0, v1])
                            C[v0, v1] = C_local[v0, v1]
)");
}

TEST(schedule_ladder, gemm_4_fetches_tiles_together) {
  for (bool decompose : {false, true})
    expect_sound(shared_tiles(matmul(32, 32, 32), 2, 8, 8, decompose), matmul(32, 32, 32));
}

TEST(schedule_ladder, gemm_4_of_the_full_size_is_built) {
  const Schedule sch = shared_tiles(matmul(1024, 1024, 1024), 8, 8, 8, true);
  EXPECT_NE(sch.show().find("for ax0_ax1_fused_0 in range(2):"), std::string::npos) << sch.show();
  expect_replays(sch, parse(matmul(1024, 1024, 1024)));
}

TEST(schedule_ladder, gemm_of_odd_sizes_keeps_predicates) {
  const std::string program = matmul(33, 29, 19);
  expect_sound(local_tiles(program, 2, 2, 4, 4, 4, true), program);
}

TEST(schedule_ladder, steps_take_positional_and_keyword_arguments) {
  Schedule sch = make(matmul(64, 64, 64));
  const Value c = sch.call("get_block", {"C", "main"});
  const Value cache = sch.call(
      "cache_read", {}, {{"block", c}, {"read_buffer_index", 0}, {"storage_scope", "shared"}});
  ASSERT_TRUE(cache.get<BlockRef>());
  const Value all = sch.call("get_loops", {"C"});  // a name stands for the block
  const Value::List l = *all.get<Value::List>();
  const Value parts = sch.call("split", {l[0], Value::List{nullptr, 8}});
  ASSERT_EQ(parts.get<Value::List>()->size(), 2u);
  sch.call("reorder", {l[2], l[1]});
  sch.call("bind", {(*parts.get<Value::List>())[0]}, {{"thread_axis", "blockIdx.x"}});
  expect_sound(sch, matmul(64, 64, 64));
}

}  // namespace
}  // namespace weft::schedule::testing
