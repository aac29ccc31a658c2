// SPDX-License-Identifier: Apache-2.0
// A program outside weft's tree: doubles four numbers on the host.
#include <cstdio>

#include <weft/weft.h>

int main() {
  weft::Module m = weft::build(weft::Schedule(weft::script::from_source(R"(
@T.prim_func
def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.block("B"):
            vi = T.axis.remap("S", [i])
            B[vi] = A[vi] * T.float32(2)
)")),
                               "cpu");
  auto cpu = weft::device("cpu");
  weft::NDArray a = weft::asarray(std::vector<float>{1, 2, 3, 4}, {4}, cpu);
  weft::NDArray b = weft::asarray(std::vector<float>(4), {4}, cpu);
  m["main"](a, b);
  for (float x : weft::to_vector<float>(b)) std::printf("%g ", x);
  std::printf("\n");
}
