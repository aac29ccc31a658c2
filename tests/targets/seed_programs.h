// SPDX-License-Identifier: Apache-2.0
#pragma once
// The tour's GPU programs: vector add, window sum without and with the shared cache, the ladder of
// matrix products. Sizes and tiles are parameters so that emulators can run them too.

#include <string>
#include <utility>
#include <vector>

#include "weft/ir/text.h"
#include "weft/schedule/schedule.h"

namespace weft::testing {

struct Program {
  std::string name;
  ir::PrimFunc meaning;  // unscheduled
  ir::IRModule scheduled;
  std::vector<std::vector<std::int64_t>> shapes;  // arguments; the last is the output
};

inline Program vector_add_program(std::int64_t n, std::int64_t threads) {
  std::string N = std::to_string(n);
  ir::PrimFunc f =
      ir::parse_func(cat("@T.prim_func\ndef main(A: T.Buffer((", N,
                         ",), \"float32\"), B: T.Buffer((", N, ",), \"float32\"), C: T.Buffer((", N,
                         ",), \"float32\")):\n    T.func_attr({\"global_symbol\": \"main\", "
                         "\"tir.noalias\": True})\n    for i in T.grid(",
                         N, "):\n        with T.block(\"C\"):\n            vi = T.axis.spatial(", N,
                         ", i)\n            C[vi] = A[vi] + B[vi]\n"));
  Schedule sch(f);
  auto loops = sch.get_loops(sch.get_block("C"));
  auto parts = sch.split(loops[0], {std::nullopt, threads});
  sch.bind(parts[0], "blockIdx.x");
  sch.bind(parts[1], "threadIdx.x");
  return {cat("vector_add_", n), f, sch.mod(), {{n}, {n}, {n}}};
}

/// cache: 0 none, 1 each thread fetches all, 2 cooperative.
inline Program window_sum_program(std::int64_t n, std::int64_t threads, int cache) {
  std::string N = std::to_string(n), M = std::to_string(n + 2);
  ir::PrimFunc f = ir::parse_func(
      cat("@T.prim_func\ndef main(A: T.Buffer((", M, ",), \"float32\"), B: T.Buffer((", N,
          ",), \"float32\")):\n    T.func_attr({\"global_symbol\": \"main\", \"tir.noalias\": "
          "True})\n    for i in T.grid(",
          N, "):\n        with T.block(\"B\"):\n            vi = T.axis.spatial(", N,
          ", i)\n            B[vi] = A[vi] + A[vi + 1] + A[vi + 2]\n"));
  Schedule sch(f);
  auto b = sch.get_block("B");
  auto parts = sch.split(sch.get_loops(b)[0], {std::nullopt, threads});
  sch.bind(parts[0], "blockIdx.x");
  sch.bind(parts[1], "threadIdx.x");
  if (cache > 0) {
    auto shared = sch.cache_read(b, 0, "shared");
    sch.compute_at(shared, parts[1]);
    if (cache > 1) {
      auto fetch = sch.split(sch.get_loops(shared).back(), {std::nullopt, threads});
      sch.bind(fetch[1], "threadIdx.x");
    }
  }
  return {cat("window_sum_", n, "_cache", cache), f, sch.mod(), {{n + 2}, {n}}};
}

inline ir::PrimFunc matmul_meaning(std::int64_t n, std::int64_t m, std::int64_t k) {
  return ir::parse_func(cat("@T.prim_func\ndef main(A: T.Buffer((", n, ", ", k,
                            "), \"float32\"), B: T.Buffer((", k, ", ", m,
                            "), \"float32\"), C: T.Buffer((", n, ", ", m,
                            "), \"float32\")):\n    T.func_attr({\"global_symbol\": \"main\", "
                            "\"tir.noalias\": True})\n    for i, j, k in T.grid(",
                            n, ", ", m, ", ", k,
                            "):\n        with T.block(\"C\"):\n            vi, vj, vk = "
                            "T.axis.remap(\"SSR\", [i, j, k])\n            with T.init():\n"
                            "                C[vi, vj] = T.float32(0)\n            C[vi, vj] = "
                            "C[vi, vj] + A[vi, vk] * B[vk, vj]\n"));
}

/// step 1 naive binding, 2 local tiles, 3 with unroll, 4 shared memory with vectors, 5 as 4 with
/// decompose_reduction. bx x by threads of tx x ty elements each, tk columns of the reduction at
/// once.
inline Program matmul_program(std::int64_t n, std::int64_t m, std::int64_t k, int step,
                              std::int64_t bx = 8, std::int64_t by = 8, std::int64_t tx = 8,
                              std::int64_t ty = 8, std::int64_t tk = 8) {
  ir::PrimFunc f = matmul_meaning(n, m, k);
  Schedule sch(f);
  auto c = sch.get_block("C");
  if (step == 1) {
    auto l = sch.get_loops(c);
    auto i = sch.split(l[0], {std::nullopt, bx});
    auto j = sch.split(l[1], {std::nullopt, by});
    sch.reorder({i[0], j[0], i[1], j[1], l[2]});
    sch.bind(i[0], "blockIdx.x");
    sch.bind(j[0], "blockIdx.y");
    sch.bind(i[1], "threadIdx.x");
    sch.bind(j[1], "threadIdx.y");
  } else {
    auto local = sch.cache_write(c, 0, "local");
    auto l = sch.get_loops(c);
    auto i = sch.split(l[0], {std::nullopt, bx, tx});
    auto j = sch.split(l[1], {std::nullopt, by, ty});
    auto r = sch.split(l[2], {std::nullopt, tk});
    if (step == 3) sch.unroll(r[1]);
    if (step <= 3) {
      sch.reorder({i[0], j[0], i[1], j[1], r[0], r[1], i[2], j[2]});
      sch.reverse_compute_at(local, j[1]);
      sch.bind(i[0], "blockIdx.x");
      sch.bind(j[0], "blockIdx.y");
      sch.bind(i[1], "threadIdx.x");
      sch.bind(j[1], "threadIdx.y");
      sch.decompose_reduction(c, r[0]);
    } else {
      sch.reorder({i[0], j[0], i[1], j[1], r[0], r[1], i[2], j[2]});
      auto thread = sch.fuse({i[1], j[1]});
      sch.reverse_compute_at(local, thread);
      sch.bind(i[0], "blockIdx.x");
      sch.bind(j[0], "blockIdx.y");
      sch.bind(thread, "threadIdx.x");
      for (std::int64_t which : {0, 1}) {
        auto cache = sch.cache_read(c, which, "shared");
        sch.compute_at(cache, r[0]);
        auto ax = sch.get_loops(cache);
        auto fused = sch.fuse({ax[ax.size() - 2], ax[ax.size() - 1]});
        auto parts = sch.split(fused, {std::nullopt, bx * by, 4});
        sch.bind(parts[1], "threadIdx.x");
        sch.vectorize(parts[2]);
      }
      if (step == 5) sch.decompose_reduction(c, r[0]);
    }
  }
  return {cat("gemm", step, "_", n, "x", m, "x", k), f, sch.mod(), {{n, k}, {k, m}, {n, m}}};
}

}  // namespace weft::testing
