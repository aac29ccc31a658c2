// SPDX-License-Identifier: Apache-2.0
// The meaning of programs, against results computed here by other means.

#include <gtest/gtest.h>

#include <cmath>
#include <ctime>
#include <iostream>
#include <numeric>
#include <random>

#include "ir_programs.h"
#include "weft/base/error.h"
#include "weft/ir/build.h"
#include "weft/ir/eval.h"
#include "weft/ir/interpret.h"
#include "weft/ir/text.h"

namespace weft::ir {
namespace {

template <typename T>
struct Array {
  std::vector<std::int64_t> shape;
  std::vector<T> data;
  explicit Array(std::vector<std::int64_t> s) : shape(std::move(s)) {
    std::int64_t n = 1;
    for (std::int64_t d : shape) n *= d;
    data.resize(static_cast<std::size_t>(n));
  }
  InterpretArg arg() { return {data.data(), shape, {}, 0, 0}; }
  T& operator[](std::size_t i) { return data[i]; }
};

InterpretArg number(std::int64_t v) { return {nullptr, {}, {}, v, 0}; }
InterpretArg real(double v) { return {nullptr, {}, {}, 0, v}; }

template <typename... Args>
void run(const PrimFunc& f, Args&&... args) {
  std::vector<InterpretArg> list{args...};
  interpret(f, list, 100000000);
}

template <typename T>
Array<T> random_array(std::vector<std::int64_t> shape, unsigned seed) {
  Array<T> a(std::move(shape));
  std::mt19937 random(seed);
  for (T& x : a.data) {
    if constexpr (std::is_floating_point_v<T>) x = std::uniform_real_distribution<T>(-1, 1)(random);
    else x = static_cast<T>(random());
  }
  return a;
}

void expect_fault(const PrimFunc& f, std::vector<InterpretArg> args, ErrorKind kind,
                  std::string_view code, std::string_view message, std::int64_t limit = 1000000) {
  try {
    interpret(f, args, limit);
    ADD_FAILURE() << "ran, expected " << code;
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    EXPECT_EQ(e.code(), code) << e.what();
    EXPECT_NE(std::string_view(e.what()).find(message), std::string_view::npos) << e.what();
  }
}

TEST(IrInterpret, MatmulIsExactlyTheSequentialSum) {
  PrimFunc f = parse_func(programs::kMatmul);
  auto a = random_array<float>({16, 32}, 1), b = random_array<float>({32, 24}, 2);
  Array<float> c({16, 24});
  run(f, a.arg(), b.arg(), c.arg());
  for (std::size_t i = 0; i < 16; ++i) {
    for (std::size_t j = 0; j < 24; ++j) {
      volatile float sum = 0;  // float after every operation
      for (std::size_t k = 0; k < 32; ++k) {
        volatile float product = a[i * 32 + k] * b[k * 24 + j];
        sum = sum + product;
      }
      ASSERT_EQ(c[i * 24 + j], sum);
    }
  }
}

void check_window(const PrimFunc& f) {
  auto a = random_array<float>({1026}, 3);
  Array<float> b({1024});
  run(f, a.arg(), b.arg());
  for (std::size_t i = 0; i < 1024; ++i) {
    float sum = a[i] + a[i + 1];
    ASSERT_EQ(b[i], sum + a[i + 2]) << i;
  }
}

TEST(IrInterpret, WindowSumScheduledAndLowered) {
  check_window(parse_module(programs::kSeedWindowSum)->functions[0].second);
  check_window(parse_func(programs::kWindowScheduled));
  check_window(parse_func(programs::kWindowLowered));
}

TEST(IrInterpret, MissingBarriersShow) {
  std::string text = programs::kWindowLowered;
  std::size_t at = text.find("        T.sync(\"shared\")\n");
  ASSERT_NE(at, std::string::npos);
  text.erase(at, std::string("        T.sync(\"shared\")\n").size());
  auto a = random_array<float>({1026}, 3);
  Array<float> b({1024});
  run(parse_func(text), a.arg(), b.arg());
  int wrong = 0;
  for (std::size_t i = 0; i < 1024; ++i) wrong += !(b[i] == a[i] + a[i + 1] + a[i + 2]);
  EXPECT_GT(wrong, 0);
  // A barrier that comes too late in a loop: the next round overwrites what others still read.
  PrimFunc f = parse_func(R"(@T.prim_func(lowered=True)
def f(A: T.Buffer((4, 64), "int32"), B: T.Buffer((64,), "int32")):
    with T.launch("k", {"threadIdx.x": 64}) as tx:
        S = T.allocate((64,), "int32", scope="shared")
        L = T.allocate((1,), "int32", scope="local")
        L[0] = 0
        for k in range(4):
            S[tx] = A[k, tx]
            T.sync("shared")
            L[0] = L[0] + S[63 - tx]
        B[tx] = L[0]
)");
  auto in = random_array<std::int32_t>({4, 64}, 9);
  Array<std::int32_t> out({64});
  run(f, in.arg(), out.arg());
  wrong = 0;
  for (std::size_t i = 0; i < 64; ++i)
    wrong += out[i] != static_cast<std::int32_t>(0u + static_cast<unsigned>(in[63 - i]) +
                                                 static_cast<unsigned>(in[127 - i]) +
                                                 static_cast<unsigned>(in[191 - i]) +
                                                 static_cast<unsigned>(in[255 - i]));
  EXPECT_GT(wrong, 0);
}

TEST(IrInterpret, BarriersInLoopsReduceATree) {
  PrimFunc f = parse_func(R"(@T.prim_func(lowered=True)
def f(A: T.Buffer((8, 128), "float32"), B: T.Buffer((8,), "float32")):
    with T.launch("k", {"blockIdx.x": 8, "threadIdx.x": 128}) as (bx, tx):
        S = T.allocate((128,), "float32", scope="shared")
        S[tx] = A[bx, tx]
        T.sync("shared")
        for s in range(7):
            if tx < T.shift_right(64, s):
                S[tx] = S[tx] + S[tx + T.shift_right(64, s)]
            T.sync("shared")
        if tx == 0:
            B[bx] = S[0]
)");
  auto a = random_array<float>({8, 128}, 4);
  Array<float> b({8});
  run(f, a.arg(), b.arg());
  for (std::size_t r = 0; r < 8; ++r) {
    std::vector<float> s(a.data.begin() + static_cast<std::ptrdiff_t>(r * 128),
                         a.data.begin() + static_cast<std::ptrdiff_t>(r * 128 + 128));
    for (std::size_t h = 64; h > 0; h /= 2) {
      for (std::size_t i = 0; i < h; ++i) s[i] = s[i] + s[i + h];
    }
    EXPECT_EQ(b[r], s[0]);
  }
}

TEST(IrInterpret, DivergentBarriersAreFaults) {
  auto kernel = [](std::string_view body) {
    std::string text =
        "@T.prim_func(lowered=True)\ndef f(A: T.Buffer((64,), \"int32\")):\n    with "
        "T.launch(\"k\", {\"threadIdx.x\": 64}) as tx:\n";
    for (const std::string& line : split(body, '\n')) text += cat("        ", line, "\n");
    return parse_func(text);
  };
  Array<std::int32_t> a({64});
  expect_fault(kernel("if tx < 3:\n    T.sync(\"shared\")"), {a.arg()}, ErrorKind::fault,
               "interpret.barrier", "only 3 of 64 threads");
  expect_fault(kernel("if tx < 3:\n    T.sync(\"shared\")\nelse:\n    T.sync(\"shared\")"),
               {a.arg()}, ErrorKind::fault, "interpret.barrier", "of 64 threads");
  expect_fault(kernel("with T.launch(\"inner\", {}):\n    pass"), {a.arg()}, ErrorKind::verify,
               "interpret.launch", "is launched inside another");
  PrimFunc many = parse_func(
      "@T.prim_func(lowered=True)\ndef f(A: T.Buffer((64,), \"int32\")):\n    with T.launch(\"k\", "
      "{\"pe.x\": 1000, \"pe.y\": 1000}) as (x, y):\n        T.sync(\"shared\")\n");
  expect_fault(many, {a.arg()}, ErrorKind::fault, "interpret.launch",
               "has 1000000 threads that wait for each other");
  expect_fault(kernel("T.sync(\"shared\")\nA[tx * 2] = 1\nT.sync(\"shared\")"), {a.arg()},
               ErrorKind::fault, "interpret.bounds", "is outside (64)");
}

TEST(IrInterpret, CollectivesExchangeAmongTheirAxes) {
  PrimFunc f = parse_func(R"(@T.prim_func(lowered=True)
def f(A: T.Buffer((4, 8), "int32"), R: T.Buffer((4, 8, 8), "int32"), G: T.Buffer((4, 8, 8), "int32")):
    with T.launch("k", {"pe.y": 4, "pe.x": 8}) as (y, x):
        m = T.allocate((1,), "int32", scope="local")
        r = T.allocate((8,), "int32", scope="local")
        g = T.allocate((8,), "int32", scope="local")
        for i in range(8):
            g[i] = -7
            r[i] = -7
        m[0] = A[y, x]
        T.collective("all_reduce", ("pe.x",), r[0:1], m[0:1], reducer="sum")
        T.collective("reduce", ("pe.x",), r[1:2], m[0:1], reducer="max", root=2)
        T.collective("broadcast", ("pe.x",), r[2:3], m[0:1], root=3)
        T.collective("shift", ("pe.x",), r[3:4], m[0:1], root=1)
        T.collective("shift", ("pe.y", "pe.x"), r[4:5], m[0:1], root=-1)
        T.collective("all_reduce", ("pe.y",), r[5:6], m[0:1], reducer=T.comm_reducer(lambda a, b: a * 3 + b, [T.int32(0)]))
        T.collective("gather", ("pe.x",), g[0:8], m[0:1], root=5)
        T.collective("scatter", ("pe.x",), r[6:7], g[0:8], root=5)
        for i in range(8):
            R[y, x, i] = r[i]
            G[y, x, i] = g[i]
)");
  Array<std::int32_t> a({4, 8}), r({4, 8, 8}), g({4, 8, 8});
  std::iota(a.data.begin(), a.data.end(), 100);
  run(f, a.arg(), r.arg(), g.arg());
  for (int y = 0; y < 4; ++y) {
    for (int x = 0; x < 8; ++x) {
      auto at = [&](int yy, int xx) { return a[static_cast<std::size_t>(yy * 8 + xx)]; };
      auto got = [&](int i) { return r[static_cast<std::size_t>((y * 8 + x) * 8 + i)]; };
      int sum = 0, poly = at(0, x);
      for (int k = 0; k < 8; ++k) sum += at(y, k);
      for (int k = 1; k < 4; ++k) poly = poly * 3 + at(k, x);
      EXPECT_EQ(got(0), sum);
      EXPECT_EQ(got(1), x == 2 ? at(y, 7) : -7);
      EXPECT_EQ(got(2), at(y, 3));
      EXPECT_EQ(got(3), at(y, (x + 7) % 8));
      int next = (y * 8 + x + 1) % 32;
      EXPECT_EQ(got(4), at(next / 8, next % 8));
      EXPECT_EQ(got(5), poly);
      EXPECT_EQ(got(6), at(y, x));
      for (int k = 0; k < 8; ++k)
        EXPECT_EQ(g[static_cast<std::size_t>((y * 8 + x) * 8 + k)], x == 5 ? at(y, k) : -7);
    }
  }
}

TEST(IrInterpret, SymbolicShapesStridesAndScalars) {
  PrimFunc f = parse_func(R"(@T.prim_func
def f(a: T.handle, B: T.Buffer((n + 1,), "float64"), n: T.int64, k: T.float64):
    m = T.int64()
    s = T.int64()
    A = T.match_buffer(a, (n, m), "float64", strides=(s, 1))
    for i in range(n):
        with T.block("sum"):
            vi = T.axis.remap("S", [i])
            B[vi] = T.float64(0)
            for j in range(m):
                B[vi] = B[vi] + A[vi, j] * k
    B[n] = T.Cast("float64", s)
)");
  Array<double> a({12}), b({4});
  std::iota(a.data.begin(), a.data.end(), 0.0);
  InterpretArg view{a.data.data(), {3, 2}, {4, 1}, 0, 0};
  run(f, view, b.arg(), number(3), real(2));
  EXPECT_EQ(b.data, (std::vector<double>{2, 18, 34, 4}));
  Array<double> small({3});
  expect_fault(f, {view, small.arg(), number(3), real(2)}, ErrorKind::shape, "interpret.shape",
               "has extent 3 in dimension 0, but 4 is expected");
  expect_fault(f, {a.arg(), b.arg(), number(3), real(2)}, ErrorKind::shape, "interpret.rank",
               "has 1 dimensions, but 2 are expected");
  expect_fault(f, {view, b.arg(), number(3)}, ErrorKind::value, "interpret.arity",
               "takes 4 arguments, not 3");
  InterpretArg sparse{a.data.data(), {4}, {3}, 0, 0};
  expect_fault(f, {view, sparse, number(3), real(2)}, ErrorKind::shape, "interpret.strides",
               "must be compact");
  InterpretArg null{nullptr, {4}, {}, 0, 0};
  expect_fault(f, {view, null, number(3), real(2)}, ErrorKind::value, "interpret.argument",
               "has no data");
  InterpretArg twisted{a.data.data(), {3, 2}, {1, 4}, 0, 0};
  expect_fault(f, {twisted, b.arg(), number(3), real(2)}, ErrorKind::shape, "interpret.strides",
               "has stride 4 in dimension 1, but 1 is expected");
}

TEST(IrInterpret, EveryTypeRoundsAndWrapsAsItShould) {
  auto each = [](const char* type, auto check) {
    PrimFunc f = parse_func(
        cat("@T.prim_func\ndef f(A: T.Buffer((64,), \"", type, "\"), B: T.Buffer((64,), \"", type,
            "\"), C: T.Buffer((6, 64), \"", type,
            "\")):\n    for i in range(64):\n        C[0, i] = A[i] + B[i]\n        C[1, i] = A[i] "
            "- B[i]\n        C[2, i] = A[i] * B[i]\n        C[3, i] = T.min(A[i], B[i])\n"
            "        C[4, i] = T.max(A[i], B[i])\n        C[5, i] = -A[i]\n"));
    check(f);
  };
  auto ints = [&](const char* name, auto zero) {
    using T = decltype(zero);
    each(name, [&](const PrimFunc& f) {
      auto a = random_array<T>({64}, 5), b = random_array<T>({64}, 6);
      Array<T> c({6, 64});
      run(f, a.arg(), b.arg(), c.arg());
      for (std::size_t i = 0; i < 64; ++i) {
        using U = std::make_unsigned_t<T>;
        auto x = static_cast<std::uint64_t>(a[i]), y = static_cast<std::uint64_t>(b[i]);
        ASSERT_EQ(c[i], static_cast<T>(static_cast<U>(x + y))) << name;
        ASSERT_EQ(c[64 + i], static_cast<T>(static_cast<U>(x - y))) << name;
        ASSERT_EQ(c[128 + i], static_cast<T>(static_cast<U>(x * y))) << name;
        ASSERT_EQ(c[192 + i], std::min(a[i], b[i])) << name;
        ASSERT_EQ(c[256 + i], std::max(a[i], b[i])) << name;
        ASSERT_EQ(c[320 + i], static_cast<T>(static_cast<U>(0 - x))) << name;
      }
    });
  };
  ints("int8", std::int8_t{}), ints("int16", std::int16_t{}), ints("int32", std::int32_t{}),
      ints("int64", std::int64_t{});
  // A literal -1 does not fit unsigned types, so they are negated by subtraction elsewhere.
  each("float32", [&](const PrimFunc& f) {
    auto a = random_array<float>({64}, 5), b = random_array<float>({64}, 6);
    Array<float> c({6, 64});
    run(f, a.arg(), b.arg(), c.arg());
    for (std::size_t i = 0; i < 64; ++i) {
      ASSERT_EQ(c[i], a[i] + b[i]);
      ASSERT_EQ(c[128 + i], a[i] * b[i]);
    }
  });
  for (const char* type : {"float16", "bfloat16"}) {
    bool half = type[0] == 'f';
    each(type, [&](const PrimFunc& f) {
      std::mt19937 random(8);
      Array<std::uint16_t> a({64}), b({64}), c({6, 64});
      auto to = [&](double x) { return half ? double_to_half(x) : double_to_bfloat(x); };
      auto from = [&](std::uint16_t x) { return half ? half_to_float(x) : bfloat_to_float(x); };
      for (std::size_t i = 0; i < 64; ++i)
        a[i] = to(static_cast<double>(random() % 2000) / 7 - 100),
        b[i] = to(static_cast<double>(random() % 2000) / 13 - 50);
      run(f, a.arg(), b.arg(), c.arg());
      for (std::size_t i = 0; i < 64; ++i) {
        double x = from(a[i]), y = from(b[i]);
        ASSERT_EQ(c[i], to(x + y)) << type;
        ASSERT_EQ(c[64 + i], to(x - y)) << type;
        ASSERT_EQ(c[128 + i], to(x * y)) << type;
      }
    });
  }
}

TEST(IrInterpret, DivisionsRoundAsDefined) {
  PrimFunc f = parse_func(R"(@T.prim_func
def f(A: T.Buffer((4,), "int32"), x: T.int32, y: T.int32):
    A[0] = x // y
    A[1] = x % y
    A[2] = T.truncdiv(x, y)
    A[3] = T.truncmod(x, y)
)");
  for (int x = -9; x <= 9; ++x) {
    for (int y = -4; y <= 4; ++y) {
      Array<std::int32_t> a({4});
      if (y == 0) {
        run(f, a.arg(), number(x), number(y));
        for (int k = 0; k < 4; ++k) EXPECT_EQ(a[k], 0);
        continue;
      }
      run(f, a.arg(), number(x), number(y));
      EXPECT_EQ(a[0], static_cast<int>(std::floor(static_cast<double>(x) / y)));
      EXPECT_EQ(a[1], x - a[0] * y);
      EXPECT_EQ(a[2], x / y);
      EXPECT_EQ(a[3], x % y);
    }
  }
}

TEST(IrInterpret, VectorsEqualTheirLanes) {
  PrimFunc f = parse_func(R"(@T.prim_func
def f(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8, 16), "float32"), V: T.Buffer((4,), "float32x4"), R: T.Buffer((8, 4), "float32")):
    for i, jo in T.grid(8, 4):
        x: T.float32x4 = A[i, T.ramp(jo * 4, 1, 4)]
        B[i, T.ramp(jo * 4 + 3, -1, 4)] = T.Select(x < T.broadcast(T.float32(0), 4), x * T.float32(2), T.exp(x) + T.Cast("float32x4", T.ramp(jo, 1, 4)))
        V[jo] = x + V[jo]
        R[i, jo] = T.vector_reduce_add(x) + T.vector_reduce_max(x) * T.vector_extract(x, 2)
    for i in range(8):
        # the arm that is not chosen reads outside and must not be evaluated
        B[i, 0:4] = T.if_then_else(T.ramp(12, 1, 4) + i < T.broadcast(T.int64(16), 4), A[i, T.ramp(12 + i, 1, 4)], B[i, 0:4])
)");
  auto a = random_array<float>({8, 16}, 11);
  Array<float> b({8, 16}), v({4, 4}), r({8, 4});
  InterpretArg packed{v.data.data(), {4}, {}, 0, 0};
  run(f, a.arg(), b.arg(), packed, r.arg());
  for (std::size_t i = 0; i < 8; ++i) {
    std::vector<float> row(16);
    for (std::size_t j = 0; j < 16; ++j) {
      float x = a[i * 16 + j];
      float e = static_cast<float>(std::exp(static_cast<double>(x)));
      row[j / 4 * 4 + 3 - j % 4] = x < 0 ? x * 2 : e + static_cast<float>(j / 4 + j % 4);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      if (12 + k + i < 16) row[k] = a[i * 16 + 12 + i + k];
    }
    for (std::size_t j = 0; j < 16; ++j) ASSERT_EQ(b[i * 16 + j], row[j]) << i << " " << j;
    for (std::size_t k = 0; k < 4; ++k) {
      const float* x = &a[i * 16 + k * 4];
      float sum = (x[0] + x[1]) + (x[2] + x[3]);
      float most = std::max(std::max(x[0], x[1]), std::max(x[2], x[3]));
      ASSERT_EQ(r[i * 4 + k], sum + most * x[2]);
    }
  }
  float total = 0;
  for (std::size_t i = 0; i < 8; ++i) total = a[i * 16 + 5] + total;
  EXPECT_EQ(v[5], total);
}

TEST(IrInterpret, MaskedLoadsLeaveTheOtherLanesAlone) {
  PrimFunc f = parse_func(R"(@T.prim_func
def f(A: T.Buffer((6,), "int32"), B: T.Buffer((8,), "int32")):
    B[0:8] = T.masked_load(A[T.ramp(0, 1, 8)], T.ramp(0, 1, 8) < T.broadcast(T.int64(6), 8), T.broadcast(T.int32(-3), 8))
    B[0:4] = T.vector_concat(B[2:4], T.broadcast(T.int32(9), 2))
)");
  auto a = random_array<std::int32_t>({6}, 13);
  Array<std::int32_t> b({8});
  run(f, a.arg(), b.arg());
  EXPECT_EQ(b.data, (std::vector<std::int32_t>{a[2], a[3], 9, 9, a[4], a[5], -3, -3}));
}

TEST(IrInterpret, BlockRulesHold) {
  PrimFunc f = parse_func(R"(@T.prim_func
def f(A: T.Buffer((4, 10), "int32"), S: T.Buffer((4,), "int32"), W: T.Buffer((4, 10), "int64")):
    for i in range(4):
        for j0, j1 in T.grid(3, 4):
            with T.block("sum"):
                vi = T.axis.spatial(4, i)
                vj = T.axis.reduce(10, j0 * 4 + j1)
                T.where(j0 * 4 + j1 < 10)
                with T.init():
                    S[vi] = 5
                S[vi] = S[vi] + A[vi, vj]
    for io, jo in T.grid(2, 2):
        with T.block("tile"):
            vio, vjo = T.axis.remap("SS", [io, jo])
            L = T.alloc_buffer((2, 5), "int64")
            s0 = T.int64()
            off = T.int64()
            P = T.match_buffer(W[vio * 2:vio * 2 + 2, vjo * 5:vjo * 5 + 5], (2, 5), "int64", strides=(s0, 1), elem_offset=off)
            for i, j in T.grid(2, 5):
                L[i, j] = i * 100 + j
            for i, j in T.grid(2, 5):
                P[i, j] = L[1 - i, j] + off * 1000 + s0
)");
  auto a = random_array<std::int32_t>({4, 10}, 12);
  Array<std::int32_t> s({4});
  Array<std::int64_t> w({4, 10});
  run(f, a.arg(), s.arg(), w.arg());
  for (std::size_t i = 0; i < 4; ++i) {
    std::uint32_t sum = 5;
    for (std::size_t j = 0; j < 10; ++j) {
      sum += static_cast<std::uint32_t>(a[i * 10 + j]);
      EXPECT_EQ(w[i * 10 + j], static_cast<std::int64_t>((1 - i % 2) * 100 + j % 5 +
                                                         (i / 2 * 20 + j / 5 * 5) * 1000 + 10));
    }
    EXPECT_EQ(static_cast<std::uint32_t>(s[i]), sum);
  }
}

TEST(IrInterpret, ControlFlowLetsAndFunctions) {
  IRModule m = parse_module(R"(@T.ir_module
class M:
    @T.prim_func
    def scale(x: T.Buffer((4,), "float32"), k: T.float32):
        for i in range(4):
            x[i] = x[i] * k

    @T.prim_func
    def main(A: T.Buffer((3, 4), "float32"), n: T.Buffer((1,), "int64")):
        scale(A, T.float32(2))
        T.call("scale", T.address_of(A[2, 0]), T.float32(10))
        n[0] = 1
        while n[0] * n[0] < 2000:
            n[0] = n[0] + 1
        y: T.int64 = n[0] + 1
        if y > 46:
            n[0] = y
        elif y == 46:
            n[0] = T.let(y * 2, lambda z: z * z)
        else:
            assert False, "unreachable"
        assert y > 0, "positive"
)");
  Array<float> a({3, 4});
  for (std::size_t i = 0; i < 12; ++i) a[i] = static_cast<float>(i);
  Array<std::int64_t> n({1});
  std::vector<InterpretArg> args{a.arg(), n.arg()};
  EXPECT_THROW(interpret(m, "man", args), Error);
  interpret(m, "main", args);
  EXPECT_EQ(a.data, (std::vector<float>{0, 2, 4, 6, 4, 5, 6, 7, 80, 90, 100, 110}));
  EXPECT_EQ(n[0], 92 * 92);
  IRModule over = parse_module(R"(@T.ir_module
class M:
    @T.prim_func
    def scale(x: T.Buffer((4,), "float32")):
        x[0] = T.float32(1)

    @T.prim_func
    def main(A: T.Buffer((3, 4), "float32")):
        T.call("scale", T.address_of(A[2, 1]))

    @T.prim_func
    def forever(A: T.Buffer((3, 4), "float32")):
        forever(A)
)");
  std::vector<InterpretArg> one{a.arg()};
  try {
    interpret(over, "main", one);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "interpret.bounds");
    EXPECT_NE(e.message().find("needs 4 elements, but only 3 follow"), std::string::npos)
        << e.what();
  }
  try {
    interpret(over, "forever", one);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "interpret.depth");
  }
}

TEST(IrInterpret, FaultsNameBufferIndicesAndStatement) {
  auto func = [](std::string_view body) {
    std::string text = "@T.prim_func\ndef f(A: T.Buffer((4, 8), \"float32\"), n: T.int64):\n";
    for (const std::string& line : split(body, '\n')) text += cat("    ", line, "\n");
    return parse_func(text);
  };
  Array<float> a({4, 8});
  auto fails = [&](std::string_view body, std::string_view code, std::string_view message,
                   std::int64_t n = 0) {
    expect_fault(func(body), {a.arg(), number(n)}, ErrorKind::fault, code, message, 10000);
  };
  fails("for i in range(5):\n    A[i, 2] = T.float32(0)", "interpret.bounds",
        "\"A\"[4, 2] is outside (4, 8): index 0 is 4");
  fails("for i in range(5):\n    A[i, 2] = T.float32(0)", "interpret.bounds",
        "A[i, 2] = T.float32(0)");
  fails("A[0, 0] = A[n - 1, 7]", "interpret.bounds",
        "\"A\"[-1, 7] is outside (4, 8): index 0 is -1");
  fails("A[0, 5:9] = T.float32(0)", "interpret.bounds", "index 1 is 8");
  fails("while n == 0:\n    A[0, 0] = T.float32(0)", "interpret.steps", "the limit of steps");
  fails("assert n > 0, \"n is positive\"", "interpret.assert", "assertion failed: n is positive");
  fails("with T.block(\"b\"):\n    vi = T.axis.spatial(4, n + 4)\n    A[vi - 4, 0] = T.float32(0)",
        "interpret.domain", "\"vi\" of block \"b\" is 4, outside [0, 4)");
  fails("X = T.alloc_buffer((n - 1,), \"float32\")\nA[0, 0] = T.float32(0)", "interpret.allocate",
        "dimension 0 of \"X\" is -1");
  fails(
      "with T.block(\"b\"):\n    P = T.match_buffer(A[n:n + 2, 0:8], (2, 8), \"float32\")\n    "
      "P[0, 0] = T.float32(1)",
      "interpret.bounds", "\"P\" matches [3, 5) of dimension 0", 3);
  fails(
      "with T.block(\"b\"):\n    P = T.match_buffer(A[0:2, 0:4], (2, 4), \"float32\", strides=(4, "
      "1))\n    P[0, 0] = T.float32(1)",
      "interpret.match", "stride 0 of \"P\" is 4, its source has 8");
  fails("A[0, 0] = T.vector_extract(A[0, 0:4], n)", "interpret.bounds", "lane 9 of a vector of 4",
        9);
  fails("T.collective(\"broadcast\", (\"x\",), A[0, 0:1], A[1, 0:1], root=0)",
        "interpret.collective", "outside of a launch");
  fails("for t in T.thread_binding(4, thread=\"threadIdx.x\"):\n    T.sync(\"shared\")",
        "interpret.sync", "a barrier under a bound loop");
  fails("X = T.alloc_buffer((n * n * n,), \"float32\")\nA[0, 0] = X[0]", "interpret.memory",
        "\"X\"", 1000000);
  expect_fault(func("T.call_extern(\"puts\", n)"), {a.arg(), number(0)}, ErrorKind::lower,
               "interpret.unsupported", "no function \"puts\"");
}

TEST(IrInterpret, IllFormedProgramsAreFaultsToo) {
  Buffer a = make_buffer("A", dtypes::float32, {make_int(4)}),
         lost = make_buffer("Lost", dtypes::float32, {make_int(4)});
  Array<float> data({4});
  auto func = [&](Stmt body) { return make_func("f", {buffer_param(a)}, std::move(body)); };
  expect_fault(func(store(lost, make_float(1), {make_int(0)})), {data.arg()}, ErrorKind::fault,
               "interpret.uninitialized", "\"Lost\" has no storage here");
  auto reducer = make_ref<ReducerNode>();
  Expr reduce = make_ref<const ReduceNode>(Reducer(reducer), Exprs{make_float(1)},
                                           std::vector<IterVar>{}, nullptr, 0);
  expect_fault(func(evaluate(reduce)), {data.arg()}, ErrorKind::verify, "interpret.reduce",
               "a reduction of the front end");
  Var token = make_var("tok");
  expect_fault(func(make_ref<const WaitNode>(token, make_int(-1), "")), {data.arg()},
               ErrorKind::fault, "interpret.wait", "at most -1 outstanding");
  IRModule m = parse_module(
      "@T.prim_func\ndef g(x: T.Buffer((4,), \"int32\")):\n    x[0] = 1\n@T.prim_func\ndef f(A: "
      "T.Buffer((4,), \"float32\")):\n    g(A)\n");
  std::vector<InterpretArg> args{data.arg()};
  try {
    interpret(m, "f", args);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "interpret.dtype");
    EXPECT_NE(e.message().find("is int32, but float32 is passed"), std::string::npos) << e.what();
  }
  try {
    interpret(m, "gg", args);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "interpret.function");
    EXPECT_NE(std::string_view(e.what()).find("did you mean \"g\"?"), std::string_view::npos)
        << e.what();
  }
}

TEST(IrInterpret, FreshStorageIsNeverZero) {
  PrimFunc f = parse_func(R"(@T.prim_func
def f(A: T.Buffer((2,), "float32"), B: T.Buffer((2,), "int32")):
    X = T.alloc_buffer((2,), "float32")
    Y = T.alloc_buffer((2,), "int32")
    A[0] = X[0]
    B[0] = Y[1]
)");
  Array<float> a({2});
  Array<std::int32_t> b({2});
  run(f, a.arg(), b.arg());
  EXPECT_TRUE(std::isnan(a[0]));
  EXPECT_EQ(b[0], -1);
}

TEST(IrInterpret, IntrinsicsHaveOneMeaning) {
  auto f = [](IntrinsicId id, DType t, double x, double y = 0, double z = 0) {
    Lane in[3], out;
    in[0].f = x, in[1].f = y, in[2].f = z;
    EXPECT_TRUE(eval_intrinsic(id, t, {in, 3}, &out));
    return out.f;
  };
  auto i = [](IntrinsicId id, DType t, std::int64_t x, std::int64_t y = 0) {
    Lane in[2], out;
    in[0].i = x, in[1].i = y;
    EXPECT_TRUE(eval_intrinsic(id, t, {in, 2}, &out));
    return out.i;
  };
  using I = IntrinsicId;
  EXPECT_EQ(f(I::exp_, dtypes::float32, 1), static_cast<float>(std::exp(1.0)));
  EXPECT_EQ(f(I::round_, dtypes::float64, 2.5), 2);
  EXPECT_EQ(f(I::fma_, dtypes::float32, 1 + 0x1p-12, 1 - 0x1p-12, -1), -0x1p-24);
  EXPECT_EQ(f(I::nextafter_, dtypes::float16, 1, 2), 1 + 0x1p-10);
  EXPECT_EQ(f(I::nextafter_, dtypes::bfloat16, 1, 0), 1 - 0x1p-8);
  EXPECT_EQ(f(I::nextafter_, dtypes::float16, 0, -1), -0x1p-24);
  EXPECT_EQ(f(I::sqrt_, dtypes::float16, 2), half_to_float(double_to_half(std::sqrt(2.0))));
  EXPECT_EQ(i(I::shift_right_, dtypes::int32, -8, 1), -4);
  EXPECT_EQ(i(I::shift_right_, dtypes::int8, -8, 99), -1);
  EXPECT_EQ(i(I::shift_right_, dtypes::uint8, 0xf0, 4), 15);
  EXPECT_EQ(i(I::shift_left_, dtypes::int32, 1, 31), std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(i(I::shift_left_, dtypes::int32, 1, 32), 0);
  EXPECT_EQ(i(I::clz_, dtypes::int16, 1), 15);
  EXPECT_EQ(i(I::clz_, dtypes::int64, 0), 64);
  EXPECT_EQ(i(I::popcount_, dtypes::int8, -1), 8);
  EXPECT_EQ(i(I::mulhi_, dtypes::int64, INT64_MIN, 2), -1);
  EXPECT_EQ(i(I::mulhi_, dtypes::uint64, -1, -1), -2);
  EXPECT_EQ(i(I::mulhi_, dtypes::int32, -3, 1 << 30), -1);
  EXPECT_EQ(i(I::mulhi_, dtypes::uint32, 0xffffffff, 0xffffffff), 0xfffffffe);
  EXPECT_EQ(i(I::abs_, dtypes::int8, -128), -128);
  EXPECT_EQ(i(I::bitwise_not_, dtypes::boolean, 1), 0);
  auto cast_of = [](double v, DType to) {
    Lane l;
    l.f = v;
    return eval_cast(l, dtypes::float64, to);
  };
  EXPECT_EQ(cast_of(-3.9, dtypes::int32).i, -3);
  EXPECT_EQ(cast_of(300, dtypes::uint8).i, 44);
  EXPECT_EQ(cast_of(-300, dtypes::int8).i, -44);
  EXPECT_EQ(cast_of(-3.9, dtypes::uint32).i, 4294967293);
  EXPECT_EQ(cast_of(-1, dtypes::uint64).i, 0);
  EXPECT_EQ(cast_of(1e30, dtypes::int64).i, INT64_MAX);
  EXPECT_EQ(cast_of(std::nan(""), dtypes::int32).i, 0);
  EXPECT_EQ(cast_of(65520, dtypes::float16).f, INFINITY);
  Lane big;
  big.i = (1ll << 53) + (1ll << 29) + 1;  // rounds once, not through double
  EXPECT_EQ(eval_cast(big, dtypes::int64, dtypes::float32).f, static_cast<float>(big.i));
  std::int64_t v;
  EXPECT_TRUE(try_evaluate_int(
      make_ref<const BinaryNode>(ExprKind::floormod, dtypes::int64, make_int(-7), make_int(4)),
      &v));
  EXPECT_EQ(v, 1);
  EXPECT_FALSE(try_evaluate_int(
      make_ref<const BinaryNode>(ExprKind::div, dtypes::int64, make_int(1), make_int(0)), &v));
  EXPECT_FALSE(try_evaluate_int(make_var("x"), &v));
}

TEST(IrInterpret, RunsManySimpleStatementsPerSecond) {
  PrimFunc f = parse_func(R"(@T.prim_func
def f(A: T.Buffer((256, 256), "float32"), B: T.Buffer((256, 256), "float32"), C: T.Buffer((256, 256), "float32")):
    for i, j in T.grid(256, 256):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] + B[vi, vj]
)");
  auto a = random_array<float>({256, 256}, 1), b = random_array<float>({256, 256}, 2);
  Array<float> c({256, 256});
  std::clock_t begin = std::clock();  // the processor's time: others may be busy
  for (int k = 0; k < 20; ++k) run(f, a.arg(), b.arg(), c.arg());
  double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  RecordProperty("statements_per_second", std::to_string(20 * 65536 / seconds));
  std::cout << "statements per second: " << 20 * 65536 / seconds / 1e6 << " M\n";
  for (std::size_t i = 0; i < c.data.size(); ++i) ASSERT_EQ(c[i], a[i] + b[i]);
}

}  // namespace
}  // namespace weft::ir
