// SPDX-License-Identifier: Apache-2.0
// Window sum, as in programs.py: B[i] = A[i] + A[i + 1] + A[i + 2]; on devices with threads without
// the shared cache, with it, and with a cooperative fetch of its 130 floats.
#include <cstdio>

#include "example.h"

const char* kWindowSum = R"(
@T.prim_func
def main(A: T.Buffer[(1026,), "float32"], B: T.Buffer[(1024,), "float32"]):
    T.func_attr({"global_symbol": "main", "tir.noalias": True})
    for i in T.grid(1024):
        with T.block("B"):
            vi = T.axis.spatial((0, 1024), i)
            B[vi] = A[vi] + A[vi + 1] + A[vi + 2]
)";

weft::Schedule schedule(bool threads, bool shared, bool cooperative) {
  weft::Schedule sch(weft::script::from_source(kWindowSum));
  weft::BlockRef block = sch.get_block("B");
  auto loops = sch.split(sch.get_loops(block)[0], {weft::None, 128});
  if (!threads) {
    sch.vectorize(sch.split(loops[1], {weft::None, 16})[1]);
    return sch;
  }
  sch.bind(loops[0], "blockIdx.x");
  sch.bind(loops[1], "threadIdx.x");
  if (!shared) return sch;
  weft::BlockRef cached = sch.cache_read(block, 0, "shared");
  sch.compute_at(cached, loops[1]);
  if (cooperative) {
    weft::LoopRef fetch = sch.get_loops(cached).back();
    sch.bind(sch.split(fetch, {weft::None, 128})[1], "threadIdx.x");
  }
  return sch;
}

int example(const std::string& target) {
  auto dev = weft::device(target);
  std::vector<float> a = random_values(1026, 1), want(1024);
  for (std::size_t k = 0; k < 1024; ++k) want[k] = a[k] + a[k + 1] + a[k + 2];
  weft::NDArray A = weft::asarray(a, {1026}, dev);
  bool threads = has_threads(target);
  int bad = 0;
  for (int step = 0; step < (threads ? 3 : 1); ++step) {
    static const char* names[] = {"window sum", "window sum, shared", "window sum, cooperative"};
    weft::NDArray B = weft::asarray(std::vector<float>(1024), {1024}, dev);
    weft::Module m = weft::build(schedule(threads, step >= 1, step == 2), target);
    m["main"](A, B);
    weft::TimeResult t = m.time_evaluator("main", 10, 3)(A, B);
    bad |= report(names[step], target, t, 2048, weft::to_vector<float>(B), want);
  }
  return bad;
}

int main(int argc, char** argv) { return run_example(argc, argv, example); }
