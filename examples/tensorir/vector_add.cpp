// SPDX-License-Identifier: Apache-2.0
// Vector add, as in programs.py: C[i] = A[i] + B[i] on the device that is named (default: cpu).
#include <cstdio>

#include "example.h"

const char* kVectorAdd = R"(
@T.ir_module
class VectorAdd:
    @T.prim_func
    def main(A: T.Buffer[(1024,), "float32"], B: T.Buffer[(1024,), "float32"], C: T.Buffer[(1024,), "float32"]):
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        for i in T.grid(1024):
            with T.block("C"):
                vi = T.axis.spatial((0, 1024), i)
                C[vi] = A[vi] + B[vi]
)";

int example(const std::string& target) {
  weft::Schedule sch(weft::script::from_source(kVectorAdd));
  weft::LoopRef i = sch.get_loops(sch.get_block("C", "main"))[0];
  auto loops = sch.split(i, {weft::None, 128});
  if (has_threads(target)) {  // blocks of 128 threads
    sch.bind(loops[0], "blockIdx.x");
    sch.bind(loops[1], "threadIdx.x");
  } else {
    sch.vectorize(sch.split(loops[1], {weft::None, 16})[1]);
  }
  auto dev = weft::device(target);
  std::vector<float> a = random_values(1024, 1), b = random_values(1024, 2), want(1024);
  for (std::size_t k = 0; k < 1024; ++k) want[k] = a[k] + b[k];
  weft::NDArray A = weft::asarray(a, {1024}, dev), B = weft::asarray(b, {1024}, dev),
                C = weft::asarray(std::vector<float>(1024), {1024}, dev);
  weft::Module m = weft::build(sch, target);
  m["main"](A, B, C);
  weft::TimeResult t = m.time_evaluator("main", 10, 3)(A, B, C);
  return report("vector add", target, t, 1024, weft::to_vector<float>(C), want);
}

int main(int argc, char** argv) { return run_example(argc, argv, example); }
