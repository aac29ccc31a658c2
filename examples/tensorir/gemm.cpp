// SPDX-License-Identifier: Apache-2.0
// The ladder of GEMM schedules, as in programs.py: on devices with threads 1 one thread an element,
// 2 tiles in registers, 3 unrolled, 4 shared memory with vectorized cooperative fetch, 4
// decomposed; on the host register tiles.
#include <cstdio>

#include "example.h"

namespace {

constexpr std::int64_t n = 64;

weft::PrimFunc matmul() {
  using namespace weft;
  const ir::Exprs shape = {ir::make_int(n), ir::make_int(n)};
  te::Tensor A = te::placeholder(shape, dtypes::float32, "A");
  te::Tensor B = te::placeholder(shape, dtypes::float32, "B");
  ir::IterVar k = te::reduce_axis(n, "k");
  te::Tensor C = te::compute(
      shape,
      [&](const std::vector<ir::Var>& i) { return te::sum(A(i[0], k.var) * B(k.var, i[1]), {k}); },
      "C");
  return te::create_prim_func({A, B, C});
}

weft::Schedule gemm_1() {
  weft::Schedule sch(matmul());
  auto loops = sch.get_loops(sch.get_block("C"));
  auto i = sch.split(loops[0], {weft::None, 16}), j = sch.split(loops[1], {weft::None, 16});
  sch.reorder({i[0], j[0], i[1], j[1]});
  sch.bind(i[0], "blockIdx.x");
  sch.bind(j[0], "blockIdx.y");
  sch.bind(i[1], "threadIdx.x");
  sch.bind(j[1], "threadIdx.y");
  return sch;
}

weft::Schedule gemm_2(bool unroll) {
  weft::Schedule sch(matmul());
  weft::BlockRef block = sch.get_block("C"), local = sch.cache_write(block, 0, "local");
  auto loops = sch.get_loops(block);
  auto i = sch.split(loops[0], {weft::None, 8, 8}), j = sch.split(loops[1], {weft::None, 8, 8}),
       k = sch.split(loops[2], {weft::None, 4});
  if (unroll) sch.unroll(k[1]);
  sch.reorder({i[0], j[0], i[1], j[1], k[0], k[1], i[2], j[2]});
  sch.reverse_compute_at(local, j[1]);
  sch.bind(i[0], "blockIdx.x");
  sch.bind(j[0], "blockIdx.y");
  sch.bind(i[1], "threadIdx.x");
  sch.bind(j[1], "threadIdx.y");
  sch.decompose_reduction(block, k[0]);
  return sch;
}

void cooperative_fetch(weft::Schedule& sch, weft::BlockRef block, int index,
                       const weft::LoopRef& at, int threads) {
  weft::BlockRef cached = sch.cache_read(block, index, "shared");
  sch.compute_at(cached, at);
  auto loops = sch.get_loops(cached);
  weft::LoopRef all = sch.fuse({loops[loops.size() - 2], loops.back()});
  auto parts = sch.split(all, {weft::None, threads, 4});
  sch.bind(parts[1], "threadIdx.x");
  sch.vectorize(parts[2]);
}

weft::Schedule gemm_4(bool decompose) {
  weft::Schedule sch(matmul());
  weft::BlockRef block = sch.get_block("C"), local = sch.cache_write(block, 0, "local");
  auto loops = sch.get_loops(block);
  auto i = sch.split(loops[0], {weft::None, 8, 8}), j = sch.split(loops[1], {weft::None, 8, 8}),
       k = sch.split(loops[2], {weft::None, 8});
  sch.reorder({i[0], j[0], i[1], j[1], k[0], k[1], i[2], j[2]});
  weft::LoopRef tx = sch.fuse({i[1], j[1]});
  sch.reverse_compute_at(local, tx);
  sch.bind(i[0], "blockIdx.x");
  sch.bind(j[0], "blockIdx.y");
  sch.bind(tx, "threadIdx.x");
  cooperative_fetch(sch, block, 0, k[0], 64);
  cooperative_fetch(sch, block, 1, k[0], 64);
  if (decompose) sch.decompose_reduction(block, k[0]);
  return sch;
}

weft::Schedule gemm_host() {
  weft::Schedule sch(matmul());
  weft::BlockRef block = sch.get_block("C"), local = sch.cache_write(block, 0, "local");
  auto loops = sch.get_loops(block);
  auto i = sch.split(loops[0], {weft::None, 4}), j = sch.split(loops[1], {weft::None, 32});
  sch.reorder({i[0], j[0], loops[2], i[1], j[1]});
  sch.reverse_compute_at(local, j[0]);
  weft::BlockRef init = sch.decompose_reduction(block, loops[2]);
  for (weft::BlockRef b : {block, local, init}) {
    auto inner = sch.get_loops(b);
    sch.unroll(inner[inner.size() - 2]);
    sch.vectorize(inner.back());
  }
  return sch;
}

}  // namespace

int example(const std::string& target) {
  auto dev = weft::device(target);
  std::vector<float> a = random_values(n * n, 1), b = random_values(n * n, 2), want(n * n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < n; ++k) {
      for (std::size_t j = 0; j < n; ++j) want[i * n + j] += a[i * n + k] * b[k * n + j];
    }
  }
  weft::NDArray A = weft::asarray(a, {n, n}, dev), B = weft::asarray(b, {n, n}, dev);
  std::vector<std::pair<const char*, weft::Schedule>> rungs;
  if (has_threads(target)) {
    rungs = {{"GEMM-1", gemm_1()},
             {"GEMM-2", gemm_2(false)},
             {"GEMM-3", gemm_2(true)},
             {"GEMM-4", gemm_4(false)},
             {"GEMM-4 decomposed", gemm_4(true)}};
  } else {
    rungs = {{"GEMM tiled", gemm_host()}};
  }
  int bad = 0;
  for (const auto& [name, sch] : rungs) {
    weft::NDArray C = weft::asarray(std::vector<float>(n * n), {n, n}, dev);
    weft::Module m = weft::build(sch, target);
    m["main"](A, B, C);
    weft::TimeResult t = m.time_evaluator("main", 2, 3)(A, B, C);
    bad |= report(name, target, t, 2.0 * n * n * n, weft::to_vector<float>(C), want);
  }
  return bad;
}

int main(int argc, char** argv) { return run_example(argc, argv, example); }
