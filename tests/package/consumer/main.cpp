// SPDX-License-Identifier: Apache-2.0
// A program outside weft's tree: doubles four numbers on the host, and takes a gradient.
#include <cstdio>

#include <weft/autograd/tensor.h>
#include <weft/weft.h>

int main() {
  weft::Module m = weft::build(weft::Schedule(weft::script::from_source(R"(
@T.prim_func
def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32"), n: T.int64):
    for i in range(4):
        with T.block("B"):
            vi = T.axis.remap("S", [i])
            B[vi] = A[vi] * T.Cast("float32", n)
)")),
                               "cpu");
  auto cpu = weft::device("cpu");
  weft::NDArray a = weft::asarray(std::vector<float>{1, 2, 3, 4}, {4}, cpu);
  weft::NDArray b = weft::asarray(std::vector<float>(4), {4}, cpu);
  m["main"](a, b, 2);
  weft::Tensor x(a, true);
  weft::sum(x * x).backward();
  if (weft::to_vector<float>(x.grad().data()) != weft::to_vector<float>(b)) return 1;
  for (float x : weft::to_vector<float>(b)) std::printf("%g ", x);
  std::printf("\n");
}
