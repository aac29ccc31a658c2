// SPDX-License-Identifier: Apache-2.0
// Tensor programs that the QPU cannot have, and damaged binaries of several kernels.

#include <gtest/gtest.h>

#include "refusal.h"
#include "weft/ir/build.h"
#include "weft/ir/text.h"
#include "weft/runtime/device.h"
#include "weft/target/backend.h"
#include "weft/targets/qpu/tensor/emit.h"
#include "weft/targets/qpu/tensor/lowerer.h"

namespace {
using namespace weft::qpu;
using weft::cat;
using weft::Ref;
using weft::test::expect_refusal;

TEST(QpuBadTensor, binaries_of_several_kernels) {
  weft::ir::PrimFunc f = weft::ir::parse_func(
      "@T.prim_func\ndef main(A: T.Buffer((20,), \"int32\"), C: T.Buffer((20,), \"int32\")):\n"
      "    B = T.alloc_buffer((20,), \"int32\")\n"
      "    for i in range(20):\n        with T.block(\"B\"):\n"
      "            vi = T.axis.spatial(20, i)\n            B[vi] = A[vi] + 1\n"
      "    for i in range(20):\n        with T.block(\"C\"):\n"
      "            vi = T.axis.spatial(20, i)\n            C[vi] = B[19 - vi] * 2\n");
  Ref<weft::runtime::Module> module = weft::build(weft::ir::make_module(f), "qpu");
  weft::runtime::Binary good = module->binary();
  ASSERT_EQ(good.kernels.size(), 2u);
  Ref<weft::runtime::Device> device = weft::open_device("qpu");
  Ref<weft::runtime::Executable> e = device->load(good);
  std::int64_t extents[] = {1, 16};
  expect_refusal([&] { device->launch(*e, 2, {}, extents).wait(); }, "qpu.launch.kernel",
                 "number 2");
  weft::runtime::Binary bad = good;
  bad.bytes.resize(bad.bytes.size() - 8);
  expect_refusal([&] { device->load(bad); }, "qpu.binary.size", "outside the binary");
  bad = good;
  bad.metadata["programs"] = weft::Json::array();
  expect_refusal([&] { device->load(bad); }, "qpu.binary.size", "no kernel");
}

/// What the tensor lowering refuses beyond what accepts() sees in a whole function.
std::string kernel(const std::string& header, const std::string& body) {
  return cat("@T.prim_func(lowered=True)\ndef main(", header,
             "):\n    with T.launch(\"k\", {\"qpu\": 1, ", "\"lane\": 16}) as (qpu, lane):\n",
             body);
}
std::function<void()> lowering(std::string text) {
  return [text] { tensor::lower_kernel(weft::ir::parse_func(text)); };
}

TEST(QpuBadTensor, tensor_statements_without_a_form) {
  const std::string ab = "A: T.Buffer((64,), \"float32\"), B: T.Buffer((64,), \"float32\")";
  expect_refusal(lowering(kernel(ab, "        T.call_extern(\"f\", A[lane])\n")),
                 "qpu.lower.statement", "T.call_extern");
  expect_refusal(lowering(kernel(ab, "        B[lane] = T.nextafter(A[lane], A[lane])\n")),
                 "qpu.lower.intrinsic", "\"nextafter\"");
  expect_refusal(lowering(kernel(ab, "        if lane < 4:\n            T.sync(\"global\")\n")),
                 "qpu.lower.barrier", "differs by lane");
  expect_refusal(lowering(kernel(ab,
                                 "        L = T.allocate((4,), \"float32\", scope=\"local\")\n"
                                 "        L[lane % 4] = A[lane]\n        B[lane] = L[0]\n")),
                 "qpu.lower.local", "must be constant");
  expect_refusal(lowering(kernel(ab,
                                 "        L = T.allocate((9999,), \"float32\", "
                                 "scope=\"local\")\n        L[0] = A[lane]\n")),
                 "qpu.lower.local", "9999");
  expect_refusal(lowering(kernel("A: T.Buffer((64,), \"float64\")", "        A[lane] = A[lane]\n")),
                 "qpu.lower.load", "float64");
  expect_refusal(lowering(kernel("A: T.Buffer((64,), \"int8\")", "        A[lane] = T.int8(1)\n")),
                 "qpu.lower.store", "int8");
  expect_refusal(lowering(kernel("A: T.Buffer((64,), \"int32\")",
                                 "        A[lane] = T.cast(T.int64(5000000000), \"int32\")\n")),
                 "qpu.lower.range", "5000000000");
  expect_refusal(lowering(kernel(ab,
                                 "        S = T.allocate((4,), \"float32\", scope=\"shared\")\n"
                                 "        S[0] = A[lane]\n")),
                 "qpu.lower.scope", "shared");
}

}  // namespace
