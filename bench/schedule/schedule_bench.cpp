// SPDX-License-Identifier: Apache-2.0
// Time of a schedule step on the shared-memory GEMM: schedule_bench [repeats]. Prints JSON.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "weft/ir/text.h"
#include "weft/schedule/schedule.h"

namespace {

constexpr const char* kGemm = R"(
@T.prim_func
def main(A: T.Buffer((1024, 1024), "float32"), B: T.Buffer((1024, 1024), "float32"), C: T.Buffer((1024, 1024), "float32")):
    for i, j, k in T.grid(1024, 1024, 1024):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)";

void fetch(weft::Schedule& sch, weft::BlockRef block, int index, const weft::LoopRef& at) {
  const auto cache = sch.cache_read(block, index, "shared");
  sch.compute_at(cache, at);
  const auto loops = sch.get_loops(cache);
  const auto fused = sch.fuse({loops[loops.size() - 2], loops[loops.size() - 1]});
  const auto parts = sch.split(fused, {std::nullopt, 64, 4});
  sch.bind(parts[1], "threadIdx.x");
  sch.vectorize(parts[2]);
}

std::size_t run(const weft::ir::PrimFunc& f) {
  weft::Schedule sch(f);
  const auto c = sch.get_block("C");
  const auto out = sch.cache_write(c, 0, "local");
  const auto l = sch.get_loops(c);
  const auto i = sch.split(l[0], {std::nullopt, 8, 8}), j = sch.split(l[1], {std::nullopt, 8, 8}),
             k = sch.split(l[2], {std::nullopt, 8});
  sch.reorder({i[0], j[0], i[1], j[1], k[0], k[1], i[2], j[2]});
  const auto tx = sch.fuse({i[1], j[1]});
  sch.reverse_compute_at(out, tx);
  sch.bind(i[0], "blockIdx.x");
  sch.bind(j[0], "blockIdx.y");
  sch.bind(tx, "threadIdx.x");
  fetch(sch, c, 0, k[0]);
  fetch(sch, c, 1, k[0]);
  sch.decompose_reduction(c, k[0]);
  return sch.trace().entries().size();
}

}  // namespace

int main(int argc, char** argv) {
  const int repeats = argc > 1 ? std::atoi(argv[1]) : 200;
  const auto f = weft::ir::parse_func(kGemm);
  run(f);
  std::size_t steps = 0;
  const std::clock_t cpu = std::clock();
  const auto start = std::chrono::steady_clock::now();
  for (int r = 0; r < repeats; ++r) steps += run(f);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const double busy = static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC;
  const auto n = static_cast<double>(steps);
  std::printf(
      "{\"benchmark\": \"schedule.gemm\", \"steps\": %zu, \"us_per_step\": %.2f, "
      "\"cpu_us_per_step\": %.2f}\n",
      steps, seconds * 1e6 / n, busy * 1e6 / n);
  return 0;
}
