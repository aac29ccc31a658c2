// SPDX-License-Identifier: Apache-2.0
// Tensor programs on a rectangle of PEs: built through the one front door, compared with plain
// loops.
#include "weft/target/backend.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "weft/ir/build.h"
#include "weft/ir/text.h"
#include "weft/runtime/module.h"

namespace weft::wse {
namespace {

using Floats = std::vector<float>;

/// Builds `text` for `target`, runs it on tensors of the given shapes; the last one is the result.
std::string run(const std::string& text, const std::string& target,
                std::vector<std::pair<std::vector<std::int64_t>, Floats*>> tensors) {
  ir::IRModule m = ir::parse_module(text);
  Ref<runtime::Module> module = build(m, target);
  Ref<runtime::Device> device = open_device(target);
  runtime::Function f(module, module->plans()[0].name, device);
  std::vector<Ref<runtime::Storage>> keep;
  std::vector<runtime::CallArg> args;
  for (auto& [shape, values] : tensors) {
    keep.push_back(device->allocate(values->size() * 4));
    device->upload(*keep.back(), 0, values->data(), values->size() * 4);
    runtime::CallArg a;
    a.storage = keep.back().get();
    a.dtype = dtypes::float32;
    a.shape = shape;
    args.push_back(a);
  }
  f.call(args).wait();
  device->download(tensors.back().second->data(), *keep.back(), 0,
                   tensors.back().second->size() * 4);
  return module->source();
}

Floats random_floats(std::size_t n, unsigned seed) {
  std::mt19937 rng(seed);
  Floats v(n);
  for (float& x : v) x = std::uniform_real_distribution<float>(-1, 1)(rng);
  return v;
}

TEST(WseBackend, ElementwiseChainOnOddSizes) {
  const char* text = R"(
@T.prim_func
def main(A: T.Buffer((37,), "float32"), B: T.Buffer((37,), "float32"), C: T.Buffer((37,), "float32")):
    D = T.alloc_buffer((37,), "float32")
    for i in range(37):
        with T.block("D"):
            vi = T.axis.spatial(37, i)
            D[vi] = A[vi] * T.float32(2) + B[vi]
    for i in range(37):
        with T.block("C"):
            vi = T.axis.spatial(37, i)
            C[vi] = T.max(D[vi], T.float32(0)) - B[vi]
)";
  for (const char* target : {"wse:4x4", "wse:1x1", "wse:3x2", "wse:4x4,arch=wse3"}) {
    Floats a = random_floats(37, 1), b = random_floats(37, 2), c(37);
    run(text, target, {{{37}, &a}, {{37}, &b}, {{37}, &c}});
    for (std::size_t i = 0; i < 37; ++i)
      ASSERT_FLOAT_EQ(c[i], std::max(a[i] * 2 + b[i], 0.0f) - b[i]) << target << " " << i;
  }
}

const char* kGemv = R"(
@T.prim_func
def main(A: T.Buffer((30, 50), "float32"), x: T.Buffer((50,), "float32"), y: T.Buffer((30,), "float32")):
    for i, k in T.grid(30, 50):
        with T.block("y"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                y[vi] = T.float32(0)
            y[vi] = y[vi] + A[vi, vk] * x[vk]
)";

TEST(WseBackend, GemvReducesAlongTheRows) {
  for (const char* target : {"wse:4x4", "wse:1x1", "wse:7x3", "wse:1x5", "wse:6x1,arch=wse3"}) {
    Floats a = random_floats(1500, 1), x = random_floats(50, 2), y(30);
    std::string source = run(kGemv, target, {{{30, 50}, &a}, {{50}, &x}, {{30}, &y}});
    for (std::size_t i = 0; i < 30; ++i) {
      double want = 0;
      for (std::size_t k = 0; k < 50; ++k)
        want += static_cast<double>(a[i * 50 + k]) * static_cast<double>(x[k]);
      ASSERT_NEAR(y[i], want, 1e-4) << target << " " << i;
    }
    EXPECT_NE(source.find("@fmacs"), std::string::npos);
    EXPECT_NE(source.find("@set_tile_code"), std::string::npos);
  }
}

TEST(WseBackend, GemmAndTotalMaximum) {
  const char* gemm = R"(
@T.prim_func
def main(A: T.Buffer((17, 9), "float32"), B: T.Buffer((9, 13), "float32"), C: T.Buffer((17, 13), "float32")):
    for i, j, k in T.grid(17, 13, 9):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)";
  Floats a = random_floats(17 * 9, 3), b = random_floats(9 * 13, 4), c(17 * 13);
  run(gemm, "wse:4x4", {{{17, 9}, &a}, {{9, 13}, &b}, {{17, 13}, &c}});
  for (std::size_t i = 0; i < 17; ++i) {
    for (std::size_t j = 0; j < 13; ++j) {
      double want = 0;
      for (std::size_t k = 0; k < 9; ++k)
        want += static_cast<double>(a[i * 9 + k]) * static_cast<double>(b[k * 13 + j]);
      ASSERT_NEAR(c[i * 13 + j], want, 1e-4);
    }
  }
  const char* largest = R"(
@T.prim_func
def main(A: T.Buffer((101,), "float32"), C: T.Buffer((1,), "float32")):
    for o, k in T.grid(1, 101):
        with T.block("C"):
            vo, vk = T.axis.remap("SR", [o, k])
            with T.init():
                C[vo] = T.float32(-3)
            C[vo] = T.max(C[vo], A[vk])
)";
  Floats v = random_floats(101, 5), m(1);
  for (const char* target : {"wse:4x4", "wse:3x2", "wse:2x5"}) {
    run(largest, target, {{{101}, &v}, {{1}, &m}});
    EXPECT_EQ(m[0], *std::max_element(v.begin(), v.end())) << target;
  }
}

TEST(WseBackend, RefusalsSayWhy) {
  auto code = [](const std::string& text, const std::string& target) {
    try {
      build(ir::parse_module(text), target);
    } catch (const Error& e) {
      return e.code();
    }
    return std::string("none");
  };
  EXPECT_EQ(code(kGemv, "wse:0x4"), "wse.option.size");
  EXPECT_EQ(code(kGemv, "wse:4x4,arch=wse9"), "wse.option.arch");
  EXPECT_EQ(code(R"(
@T.prim_func
def main(A: T.Buffer((64, 4096), "float32"), x: T.Buffer((4096,), "float32"), y: T.Buffer((64,), "float32")):
    for i, k in T.grid(64, 4096):
        with T.block("y"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                y[vi] = T.float32(0)
            y[vi] = y[vi] + A[vi, vk] * x[vk]
)",
                 "wse:2x2"),
            "wse.lower.capacity");
  EXPECT_EQ(code(R"(
@T.prim_func
def main(A: T.Buffer((8,), "float64"), C: T.Buffer((8,), "float64")):
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = A[vi]
)",
                 "wse:2x2"),
            "wse.lower.dtype");
  EXPECT_EQ(code(R"(
@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = A[(vi * 3) % 8]
)",
                 "wse:2x2"),
            "wse.lower.index");
}

}  // namespace
}  // namespace weft::wse
