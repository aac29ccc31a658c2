// SPDX-License-Identifier: Apache-2.0
// Tensor programs on a rectangle of PEs: built through the one front door, compared with plain
// loops.
#include "tensor_run.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "weft/ir/build.h"
#include "weft/ir/text.h"
#include "weft/runtime/module.h"
#include "weft/targets/wse/lower.h"

namespace weft::wse {
namespace {

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
    EXPECT_TRUE(source.find("@fmacs") != std::string::npos ||
                source.find("@fmuls") != std::string::npos);  // on descriptors
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
def main(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[A[vi]] = A[vi]
)",
                 "wse:2x2"),
            "wse.lower.index");
}

TEST(WseBackend, EveryRefusalNamesTheStatement) {
  auto refused = [](const char* slug, const char* says, const std::string& text) {
    try {
      build(ir::parse_module(text), "wse:2x2");
      FAIL() << "accepted; wanted " << slug;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), slug) << e.what();
      EXPECT_NE(std::string(e.what()).find(says), std::string::npos) << e.what();
    }
  };
  const std::string head =
      "@T.prim_func\ndef main(A: T.Buffer((8,), \"float32\"), C: T.Buffer((8,), \"float32\")):\n";
  auto block = [](const std::string& body) {
    return cat(
        "    for i in range(8):\n        with T.block(\"C\"):\n            vi = "
        "T.axis.spatial(8, i)\n",
        body);
  };
  refused(
      "stages.fused", "holds 2 blocks (B, C",
      head +
          "    B = T.alloc_buffer((8,), \"float32\")\n    for i in range(8):\n        with "
          "T.block(\"B\"):\n            vi = T.axis.spatial(8, i)\n            B[vi] = A[vi]\n    "
          "    with T.block(\"C\"):\n            vi = T.axis.spatial(8, i)\n            C[vi] = "
          "B[vi]\n");
  refused("stages.body", "block C",
          head + block("            C[vi] = A[vi]\n            C[vi] = A[vi] + T.float32(1)\n"));
  refused("wse.lower.scalar", "parameter n is a scalar",
          "@T.prim_func\ndef main(n: T.int32, A: T.Buffer((8,), \"float32\"), C: T.Buffer((8,), "
          "\"float32\")):\n" +
              block("            C[vi] = A[vi]\n"));
  refused("wse.lower.reduction", "reduces, but",
          head +
              "    for i, k in T.grid(8, 8):\n        with T.block(\"C\"):\n            vi, vk = "
              "T.axis.remap(\"SR\", [i, k])\n            with T.init():\n                C[vi] = "
              "T.float32(0)\n            C[vi] = C[vi] - A[vk]\n");
  refused("wse.lower.reduction", "depends on its reduction iterator",
          head +
              "    for k in range(8):\n        with T.block(\"C\"):\n            vk = "
              "T.axis.reduce(8, k)\n            with T.init():\n                C[vk] = "
              "T.float32(0)\n            C[vk] = C[vk] + A[vk]\n");
  refused("wse.lower.intrinsic", "block C calls round",
          head + block("            C[vi] = T.round(A[vi])\n"));
  refused(
      "wse.lower.rank", "has no dimensions",
      "@T.prim_func\ndef main(A: T.Buffer((8,), \"float32\"), C: T.Buffer((), \"float32\")):\n    "
      "for k in range(8):\n        with T.block(\"C\"):\n            vk = T.axis.reduce(8, k)\n    "
      " "
      "       with T.init():\n                C[()] = T.float32(0)\n            C[()] = C[()] + "
      "A[vk]\n");
  refused("wse.lower.index", "block C reaches C in dimension 0 through an index that depends on",
          head + block("            C[T.Cast(\"int64\", A[vi])] = A[vi]\n"));
  refused("wse.lower.index", "beside an index that data decide",
          "@T.prim_func\ndef main(A: T.Buffer((8, 8), \"float32\"), I: T.Buffer((8,), \"int32\"), "
          "C: T.Buffer((8,), \"float32\")):\n    for i in range(8):\n        with "
          "T.block(\"C\"):\n            vi = T.axis.spatial(8, i)\n            C[vi] = A[I[vi], vi "
          "* vi % 8]\n");
  try {  // a block that no verifier has seen
    StageProgram p = lower_stages(
        ir::parse_func(head + block("            C[vi] = A[vi] * T.Cast(\"float32\", i)\n")), 2, 2);
    pe_text(p);
    FAIL() << "accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "wse.lower.expression") << e.what();
    EXPECT_NE(std::string(e.what()).find("block C computes "), std::string::npos);
  }
  refused(
      "stages.symbolic", "is not a constant",
      "@T.prim_func\ndef main(a: T.handle, c: T.handle):\n    n = T.int32()\n    A = "
      "T.match_buffer(a, (n,), \"float32\")\n    C = T.match_buffer(c, (n,), \"float32\")\n    for "
      "i in range(n):\n        with T.block(\"C\"):\n            vi = T.axis.spatial(n, i)\n       "
      "  "
      "   C[vi] = A[vi]\n");
}

TEST(WseBackend, ModulesFitTheirRectangle) {
  Ref<runtime::Module> module = build(ir::parse_module(kGemv), "wse:4x4");
  Ref<runtime::Device> other = open_device("wse:3x4");
  try {
    runtime::Function f(module, module->plans()[0].name, other);
    Floats a(1500), x(50), y(30);
    std::vector<Ref<runtime::Storage>> keep;
    std::vector<runtime::CallArg> args;
    for (auto [values, shape] : {std::pair{&a, std::vector<std::int64_t>{30, 50}},
                                 std::pair{&x, std::vector<std::int64_t>{50}},
                                 std::pair{&y, std::vector<std::int64_t>{30}}}) {
      keep.push_back(other->allocate(values->size() * 4));
      runtime::CallArg arg;
      arg.storage = keep.back().get();
      arg.dtype = dtypes::float32;
      arg.shape = shape;
      args.push_back(arg);
    }
    f.call(args).wait();
    FAIL() << "ran on another rectangle";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "wse.binary.size") << e.what();
  }
  try {
    open_device("wse:4x4,threads=65");
    FAIL() << "opened";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "wse.option.threads") << e.what();
  }
}

int count(const std::string& text, const std::string& what) {
  int n = 0;
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; ++at) ++n;
  return n;
}

TEST(WseBackend, IntermediatesStayOnThePes) {
  // A product, its row sums after a rectifier, and the scaled sums: D, E and S are never collected.
  const char* text = R"(
@T.prim_func
def main(A: T.Buffer((19, 23), "float32"), B: T.Buffer((19, 23), "float32"), R: T.Buffer((19,), "float32")):
    D = T.alloc_buffer((19, 23), "float32")
    E = T.alloc_buffer((19, 23), "float32")
    S = T.alloc_buffer((19,), "float32")
    for i, j in T.grid(19, 23):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = A[vi, vj] * B[vi, vj]
    for i, j in T.grid(19, 23):
        with T.block("E"):
            vi, vj = T.axis.remap("SS", [i, j])
            E[vi, vj] = T.max(D[vi, vj], T.float32(0)) + A[vi, vj]
    for i, j in T.grid(19, 23):
        with T.block("S"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                S[vi] = T.float32(0)
            S[vi] = S[vi] + E[vi, vj]
    for i in range(19):
        with T.block("R"):
            vi = T.axis.spatial(19, i)
            R[vi] = S[vi] * T.float32(0.5) + T.float32(1)
)";
  for (const char* target : {"wse:4x4", "wse:1x1", "wse:5x3", "wse:3x1,arch=wse3"}) {
    Floats a = random_floats(19 * 23, 1), b = random_floats(19 * 23, 2), r(19);
    std::string source = run(text, target, {{{19, 23}, &a}, {{19, 23}, &b}, {{19}, &r}});
    for (std::size_t i = 0; i < 19; ++i) {
      double sum = 0;
      for (std::size_t j = 0; j < 23; ++j)
        sum += std::max(a[i * 23 + j] * b[i * 23 + j], 0.0f) + a[i * 23 + j];
      ASSERT_NEAR(r[i], sum * 0.5 + 1, 1e-4) << target << " " << i;
    }
    EXPECT_EQ(count(source, "stays in"), 3) << source;  // D for E, E for S, S for R
    EXPECT_EQ(count(source, " = @zeros"), 7 + count(source, "var scratch_")) << source;
    // A twice, B, D, E, S, R
  }
}

TEST(WseBackend, UpdatesInPlace) {
  const char* text = R"(
@T.prim_func
def main(A: T.Buffer((9, 14), "float32"), B: T.Buffer((14, 11), "float32"), C: T.Buffer((9, 11), "float32")):
    for i, j in T.grid(9, 11):
        with T.block("C_init"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.float32(0.25)
    for i, j, k in T.grid(9, 11, 14):
        with T.block("C_update"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)";
  Floats a = random_floats(9 * 14, 1), b = random_floats(14 * 11, 2), c(9 * 11);
  std::string source = run(text, "wse:4x2", {{{9, 14}, &a}, {{14, 11}, &b}, {{9, 11}, &c}});
  EXPECT_EQ(count(source, "stays in"), 1) << source;
  for (std::size_t i = 0; i < 9; ++i) {
    for (std::size_t j = 0; j < 11; ++j) {
      double want = 0.25;
      for (std::size_t k = 0; k < 14; ++k)
        want += static_cast<double>(a[i * 14 + k]) * static_cast<double>(b[k * 11 + j]);
      ASSERT_NEAR(c[i * 11 + j], want, 1e-4);
    }
  }
}

const char* const kEveryShape[] = {"wse:4x4", "wse:1x1", "wse:5x1",          "wse:1x4",
                                   "wse:3x2", "wse:2x5", "wse:5x3,arch=wse3"};

TEST(WseBackend, RowStatisticsAreBroadcastAlongTheRows) {
  const char* text = R"(
@T.prim_func
def main(A: T.Buffer((11, 17), "float32"), B: T.Buffer((11, 17), "float32")):
    M = T.alloc_buffer((11,), "float32")
    E = T.alloc_buffer((11, 17), "float32")
    S = T.alloc_buffer((11,), "float32")
    for i, j in T.grid(11, 17):
        with T.block("M"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                M[vi] = T.float32(-100)
            M[vi] = T.max(M[vi], A[vi, vj])
    for i, j in T.grid(11, 17):
        with T.block("E"):
            vi, vj = T.axis.remap("SS", [i, j])
            E[vi, vj] = T.exp(A[vi, vj] - M[vi])
    for i, j in T.grid(11, 17):
        with T.block("S"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                S[vi] = T.float32(0)
            S[vi] = S[vi] + E[vi, vj]
    for i, j in T.grid(11, 17):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = E[vi, vj] / S[vi]
)";
  for (const char* target : kEveryShape) {
    Floats a = random_floats(11 * 17, 1), b(11 * 17);
    std::string source = run(text, target, {{{11, 17}, &a}, {{11, 17}, &b}});
    for (std::size_t i = 0; i < 11; ++i) {
      double sum = 0;
      for (std::size_t j = 0; j < 17; ++j) sum += std::exp(static_cast<double>(a[i * 17 + j]));
      for (std::size_t j = 0; j < 17; ++j)
        ASSERT_NEAR(b[i * 17 + j], std::exp(static_cast<double>(a[i * 17 + j])) / sum, 1e-5)
            << target;
    }
    bool columns = std::string(target).find(":1x") == std::string::npos;
    EXPECT_EQ(count(source, "goes from the first column along the rows"), columns ? 2 : 0)
        << source;
  }
}

TEST(WseBackend, OneNumberIsBroadcastToAll) {
  const char* text = R"(
@T.prim_func
def main(A: T.Buffer((71,), "float32"), B: T.Buffer((71,), "float32")):
    S = T.alloc_buffer((1,), "float32")
    for o, k in T.grid(1, 71):
        with T.block("S"):
            vo, vk = T.axis.remap("SR", [o, k])
            with T.init():
                S[vo] = T.float32(0)
            S[vo] = S[vo] + A[vk] * A[vk]
    for i in range(71):
        with T.block("B"):
            vi = T.axis.spatial(71, i)
            B[vi] = A[vi] / S[0]
)";
  for (const char* target : kEveryShape) {
    Floats a = random_floats(71, 3), b(71);
    std::string source = run(text, target, {{{71}, &a}, {{71}, &b}});
    double sum = 0;
    for (float v : a) sum += static_cast<double>(v) * static_cast<double>(v);
    for (std::size_t i = 0; i < 71; ++i)
      ASSERT_NEAR(b[i], static_cast<double>(a[i]) / sum, 1e-6) << target << " " << i;
    if (std::string(target) != "wse:1x1") {
      EXPECT_EQ(count(source, "goes from the first PE to all"), 1) << source;
    }
  }
}

TEST(WseBackend, LayersGatherAndScatter) {
  // Two products with a vector: the first one's result lies along the rows, the second wants it
  // along the columns.
  const char* text = R"(
@T.prim_func
def main(A: T.Buffer((21, 13), "float32"), B: T.Buffer((10, 21), "float32"), x: T.Buffer((13,), "float32"), z: T.Buffer((10,), "float32")):
    y = T.alloc_buffer((21,), "float32")
    r = T.alloc_buffer((21,), "float32")
    for i, k in T.grid(21, 13):
        with T.block("y"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                y[vi] = T.float32(0)
            y[vi] = y[vi] + A[vi, vk] * x[vk]
    for i in range(21):
        with T.block("r"):
            vi = T.axis.spatial(21, i)
            r[vi] = T.max(y[vi], T.float32(0))
    for i, k in T.grid(10, 21):
        with T.block("z"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                z[vi] = T.float32(0)
            z[vi] = z[vi] + B[vi, vk] * r[vk]
)";
  for (const char* target : kEveryShape) {
    Floats a = random_floats(21 * 13, 1), b = random_floats(210, 2), x = random_floats(13, 3),
           z(10);
    std::string source =
        run(text, target, {{{21, 13}, &a}, {{10, 21}, &b}, {{13}, &x}, {{10}, &z}});
    std::vector<double> r(21);
    for (std::size_t i = 0; i < 21; ++i) {
      for (std::size_t k = 0; k < 13; ++k)
        r[i] += static_cast<double>(a[i * 13 + k]) * static_cast<double>(x[k]);
      r[i] = std::max(r[i], 0.0);
    }
    for (std::size_t i = 0; i < 10; ++i) {
      double want = 0;
      for (std::size_t k = 0; k < 21; ++k) want += static_cast<double>(b[i * 21 + k]) * r[k];
      ASSERT_NEAR(z[i], want, 1e-5) << target << " " << i;
    }
    EXPECT_EQ(count(source, "Every PE takes its part of r"),
              std::string(target) == "wse:1x1" ? 0 : 1)
        << target << source;
  }
}

TEST(WseBackend, ProductsOfProducts) {
  const char* text = R"(
@T.prim_func
def main(A: T.Buffer((9, 7), "%t"), B: T.Buffer((7, 13), "%t"), C: T.Buffer((13, 6), "%t"), E: T.Buffer((9, 6), "%t")):
    D = T.alloc_buffer((9, 13), "%t")
    for i, j, k in T.grid(9, 13, 7):
        with T.block("D"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                D[vi, vj] = T.%t(0)
            D[vi, vj] = D[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j, k in T.grid(9, 6, 13):
        with T.block("E"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                E[vi, vj] = T.%t(0)
            E[vi, vj] = E[vi, vj] + D[vi, vk] * C[vk, vj]
)";
  std::mt19937 rng(9);
  for (const char* type : {"float32", "int32"}) {
    std::string typed = text;
    for (std::size_t at; (at = typed.find("%t")) != std::string::npos;) typed.replace(at, 2, type);
    for (const char* target : kEveryShape) {
      // Small integers: sums are exact in every order. int32 travels in the same 32 bits.
      bool real = std::string(type) == "float32";
      auto numbers = [&](std::size_t n) {
        Floats v(n);
        for (float& e : v) {
          std::int32_t k = static_cast<std::int32_t>(rng() % 9) - 4;
          if (real) e = static_cast<float>(k);
          else std::memcpy(&e, &k, 4);
        }
        return v;
      };
      auto value = [&](float e) {
        std::int32_t k;
        std::memcpy(&k, &e, 4);
        return real ? static_cast<double>(e) : static_cast<double>(k);
      };
      Floats a = numbers(63), b = numbers(91), c = numbers(78), e(54);
      std::string source;
      {
        ir::IRModule m = ir::parse_module(typed);
        Ref<runtime::Module> module = build(m, target);
        source = module->source();
        Ref<runtime::Device> device = open_device(target);
        runtime::Function f(module, module->plans()[0].name, device);
        std::vector<Ref<runtime::Storage>> keep;
        std::vector<runtime::CallArg> args;
        for (auto& [shape, values] : {std::pair{std::vector<std::int64_t>{9, 7}, &a},
                                      std::pair{std::vector<std::int64_t>{7, 13}, &b},
                                      std::pair{std::vector<std::int64_t>{13, 6}, &c},
                                      std::pair{std::vector<std::int64_t>{9, 6}, &e}}) {
          keep.push_back(device->allocate(values->size() * 4));
          device->upload(*keep.back(), 0, values->data(), values->size() * 4);
          runtime::CallArg arg;
          arg.storage = keep.back().get();
          arg.dtype = real ? dtypes::float32 : dtypes::int32;
          arg.shape = shape;
          args.push_back(arg);
        }
        f.call(args).wait();
        device->download(e.data(), *keep.back(), 0, e.size() * 4);
      }
      for (std::size_t i = 0; i < 9; ++i) {
        for (std::size_t j = 0; j < 6; ++j) {
          double want = 0;
          for (std::size_t k = 0; k < 13; ++k) {
            double d = 0;
            for (std::size_t l = 0; l < 7; ++l) d += value(a[i * 7 + l]) * value(b[l * 13 + k]);
            want += d * value(c[k * 6 + j]);
          }
          ASSERT_EQ(value(e[i * 6 + j]), want) << target << " " << type;
        }
      }
      if (std::string(target).find(":1x") == std::string::npos) {
        EXPECT_NE(source.find("panel_step"), std::string::npos) << source;
      }
    }
  }
}

// Random compositions: elementwise blocks over vectors and matrices, sums and maxima of rows and
// columns, matrix-vector and matrix-matrix products, updates in place; compared with `ref`.
struct RandomProgram {
  std::mt19937 rng;
  std::int64_t m, n;
  std::string body, allocs;
  std::vector<std::string> matrices{"A", "B"}, rows{"u"}, columns{"v"};
  int next = 0;

  explicit RandomProgram(unsigned seed) : rng(seed), m(2 + rng() % 17), n(2 + rng() % 19) {}
  template <typename T>
  const T& any(const std::vector<T>& v) {
    return v[rng() % v.size()];
  }
  std::string fresh(std::vector<std::string>& kind, const std::string& shape, bool last) {
    std::string name = last ? "C" : cat("t", next++);
    if (!last) allocs += cat("    ", name, " = T.alloc_buffer(", shape, ", \"float32\")\n");
    kind.push_back(name);
    return name;
  }
  std::string shape(std::int64_t a) { return cat("(", a, ",)"); }
  void elementwise(bool last) {
    std::string x = any(matrices), y = any(matrices), u = any(rows), v = any(columns);
    std::string t = fresh(matrices, cat("(", m, ", ", n, ")"), last);
    static const char* kForms[] = {"%x + %y * T.float32(0.5)", "T.max(%x, %y) - %u", "%x * %v + %y",
                                   "T.if_then_else(vi + vj < 7, %x, %y)",
                                   "T.min(%x, T.float32(0.75)) * %u"};
    std::string form = kForms[rng() % 5];
    for (auto [key, value] :
         {std::pair{"%x", cat(x, "[vi, vj]")}, std::pair{"%y", cat(y, "[vi, vj]")},
          std::pair{"%u", cat(u, "[vi]")}, std::pair{"%v", cat(v, "[vj]")}}) {
      for (std::size_t at; (at = form.find(key)) != std::string::npos;) form.replace(at, 2, value);
    }
    body += cat("    for i, j in T.grid(", m, ", ", n, "):\n        with T.block(\"", t,
                "\"):\n            vi, vj = T.axis.remap(\"SS\", [i, j])\n            ", t,
                "[vi, vj] = ", form, "\n");
  }
  void vector(bool of_rows) {
    auto& kind = of_rows ? rows : columns;
    std::int64_t extent = of_rows ? m : n;
    std::string x = any(kind), y = any(kind), t = fresh(kind, shape(extent), false);
    body += cat("    for i in range(", extent, "):\n        with T.block(\"", t,
                "\"):\n            vi = T.axis.spatial(", extent, ", i)\n            ", t,
                "[vi] = ", x, "[vi] * T.float32(0.5) + T.max(", y, "[vi], T.float32(-0.25))\n");
  }
  void reduce() {
    bool over_rows = rng() % 2, largest = rng() % 2, product = rng() % 2;
    std::string x = any(matrices), w = over_rows ? any(columns) : any(rows);
    std::string t = over_rows ? fresh(rows, shape(m), false) : fresh(columns, shape(n), false);
    std::string at = over_rows ? "vi, vk" : "vk, vi";
    std::string value = cat(x, "[", at, "]");
    if (product) value += cat(" * ", w, "[vk]");
    body += cat("    for i, k in T.grid(", over_rows ? m : n, ", ", over_rows ? n : m,
                "):\n        with T.block(\"", t,
                "\"):\n            vi, vk = T.axis.remap(\"SR\", [i, k])\n            with "
                "T.init():\n                ",
                t, "[vi] = T.float32(", largest ? "-100" : "0", ")\n            ", t, "[vi] = ",
                largest ? cat("T.max(", t, "[vi], ", value, ")") : cat(t, "[vi] + ", value), "\n");
  }
  void update() {
    std::string x = any(matrices), y = any(matrices);
    std::string t = fresh(matrices, cat("(", m, ", ", n, ")"), false);
    body += cat("    for i, j in T.grid(", m, ", ", n, "):\n        with T.block(\"", t,
                "_a\"):\n            vi, vj = T.axis.remap(\"SS\", [i, j])\n            ", t,
                "[vi, vj] = ", y, "[vi, vj]\n    for i, j, k in T.grid(", m, ", ", n, ", ", m,
                "):\n        with T.block(\"", t,
                "_b\"):\n            vi, vj, vk = T.axis.remap(\"SSR\", [i, j, k])\n            ",
                t, "[vi, vj] = ", t, "[vi, vj] + ", x, "[vk, vj] * T.float32(0.125)\n");
  }
  std::string text() {
    int blocks = 2 + static_cast<int>(rng() % 5);
    for (int k = 0; k < blocks; ++k) {
      switch (rng() % 6) {
        case 0:
        case 1: elementwise(false); break;
        case 2: vector(rng() % 2); break;
        case 3:
        case 4: reduce(); break;
        default: update(); break;
      }
    }
    elementwise(true);
    std::string matrix = cat("T.Buffer((", m, ", ", n, "), \"float32\")");
    return cat("@T.prim_func\ndef main(A: ", matrix, ", B: ", matrix, ", u: T.Buffer((", m,
               ",), \"float32\"), v: T.Buffer((", n, ",), \"float32\"), C: ", matrix, "):\n",
               allocs, body);
  }
};

TEST(WseBackend, RandomCompositionsAgreeWithRef) {
  constexpr unsigned kFirst = 1, kPrograms = 60;
  std::printf("seeds %u..%u\n", kFirst, kFirst + kPrograms - 1);
  int kept = 0, moved = 0;
  for (unsigned seed = kFirst; seed < kFirst + kPrograms; ++seed) {
    RandomProgram p(seed);
    std::string text = p.text();
    auto size = static_cast<std::size_t>(p.m * p.n);
    Floats a = random_floats(size, seed), b = random_floats(size, seed + 1),
           u = random_floats(static_cast<std::size_t>(p.m), seed + 2),
           v = random_floats(static_cast<std::size_t>(p.n), seed + 3), want(size), got(size);
    std::string target =
        cat("wse:", 1 + p.rng() % 5, "x", 1 + p.rng() % 4, p.rng() % 3 ? "" : ",arch=wse3");
    try {
      run(text, "ref",
          {{{p.m, p.n}, &a}, {{p.m, p.n}, &b}, {{p.m}, &u}, {{p.n}, &v}, {{p.m, p.n}, &want}});
      std::string source =
          run(text, target,
              {{{p.m, p.n}, &a}, {{p.m, p.n}, &b}, {{p.m}, &u}, {{p.n}, &v}, {{p.m, p.n}, &got}});
      kept += count(source, "stays in");
      moved += count(source, "over the fabric");
    } catch (const Error& e) {
      FAIL() << "seed " << seed << " on " << target << "\n" << e.what() << "\n" << text;
    }
    for (std::size_t k = 0; k < size; ++k) {
      ASSERT_NEAR(got[k], want[k], 1e-4 * (1 + std::fabs(want[k])))
          << "seed " << seed << " on " << target << ", element " << k << "\n"
          << text;
    }
  }
  EXPECT_GT(kept, 50);
  EXPECT_GT(moved, 30);
}

}  // namespace
}  // namespace weft::wse
