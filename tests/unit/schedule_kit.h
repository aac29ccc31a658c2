// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shared by the schedule tests: programs as text, and the three questions every schedule must
// answer: is the program the expected one, does it compute the same, does its trace repeat it.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "weft/ir/compare.h"
#include "weft/ir/interpret.h"
#include "weft/ir/text.h"
#include "weft/ir/verify.h"
#include "weft/schedule/schedule.h"

namespace weft::schedule::testing {

inline constexpr auto None = std::nullopt;

inline ir::PrimFunc parse(const std::string& text) { return ir::parse_func(text); }

inline Schedule make(const std::string& text) {
  Schedule sch(parse(text));
  sch.set_verifying(true);
  return sch;
}

inline std::string vector_add(int n) {
  return cat("@T.prim_func\ndef main(A: T.Buffer((", n, ",), \"float32\"), B: T.Buffer((", n,
             ",), \"float32\"), C: T.Buffer((", n, ",), \"float32\")):\n    for i in range(", n,
             "):\n        with T.block(\"C\"):\n            vi = T.axis.spatial(", n,
             ", i)\n            C[vi] = A[vi] + B[vi]\n");
}

inline std::string window_sum(int n) {
  return cat("@T.prim_func\ndef main(A: T.Buffer((", n + 2, ",), \"float32\"), B: T.Buffer((", n,
             ",), \"float32\")):\n    for i in range(", n,
             "):\n        with T.block(\"B\"):\n            vi = T.axis.spatial(", n,
             ", i)\n            B[vi] = A[vi] + A[vi + 1] + A[vi + 2]\n");
}

inline std::string matmul(int m, int n, int k) {
  return cat("@T.prim_func\ndef main(A: T.Buffer((", m, ", ", k, "), \"float32\"), B: T.Buffer((",
             k, ", ", n, "), \"float32\"), C: T.Buffer((", m, ", ", n,
             "), \"float32\")):\n    for i, j, k in T.grid(", m, ", ", n, ", ", k,
             "):\n        with T.block(\"C\"):\n            vi, vj, vk = T.axis.remap(\"SSR\", [i, "
             "j, k])\n            with T.init():\n"
             "                C[vi, vj] = T.float32(0)\n            C[vi, vj] = C[vi, vj] + A[vi, "
             "vk] * B[vk, vj]\n");
}

/// A -> B = A * 2 -> C = B + 1, through an intermediate buffer.
inline std::string two_stages(int m, int n) {
  const std::string t = cat("T.Buffer((", m, ", ", n, "), \"float32\")");
  return cat("@T.prim_func\ndef main(A: ", t, ", C: ", t, "):\n    B = T.alloc_buffer((", m, ", ",
             n, "), \"float32\")\n    for i, j in T.grid(", m, ", ", n,
             "):\n        with T.block(\"B\"):\n            vi, vj = T.axis.remap(\"SS\", [i, "
             "j])\n            B[vi, vj] = A[vi, vj] * T.float32(2)\n    for i, j in T.grid(",
             m, ", ", n,
             "):\n        with T.block(\"C\"):\n            vi, vj = T.axis.remap(\"SS\", [i, "
             "j])\n            C[vi, vj] = B[vi, vj] + T.float32(1)\n");
}

/// Values for every tensor parameter; outputs begin as NaN, so that what is not written shows.
struct Tensors {
  std::vector<std::vector<float>> data;
  std::vector<ir::InterpretArg> args() {
    std::vector<ir::InterpretArg> out;
    for (std::size_t i = 0; i < data.size(); ++i) {
      ir::InterpretArg a;
      a.data = data[i].data();
      a.shape = shapes[i];
      out.push_back(std::move(a));
    }
    return out;
  }
  std::vector<std::vector<std::int64_t>> shapes;
};

inline Tensors make_tensors(const ir::PrimFunc& f, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> pick(-8, 8);  // small integers: sums are exact in any order
  const auto written = [&](const ir::BufferNode* b) {
    bool found = false, read = false;
    for (const Leaf& leaf : leaves(ir::as<ir::BlockRealizeNode>(f->body)->block->body)) {
      for (const auto& w : leaf.block()->writes) found |= w.buffer.get() == b;
      for (const auto& r : leaf.block()->reads) read |= r.buffer.get() == b;
    }
    return found && !read;
  };
  Tensors t;
  for (const ir::Param& p : f->params) {
    std::int64_t size = 1;
    std::vector<std::int64_t> shape;
    for (const ir::Expr& e : p.buffer->shape) {
      std::int64_t n = 0;
      EXPECT_TRUE(ir::is_const_int(e, &n));
      shape.push_back(n);
      size *= n;
    }
    std::vector<float> values(static_cast<std::size_t>(size));
    const bool output = written(p.buffer.get());
    for (float& v : values) v = output ? std::nanf("") : static_cast<float>(pick(random));
    t.data.push_back(std::move(values));
    t.shapes.push_back(std::move(shape));
  }
  return t;
}

/// Runs both on the same data; every parameter must end up bit-equal.
inline void expect_same_results(const ir::PrimFunc& before, const ir::PrimFunc& after,
                                std::uint32_t seed = 1) {
  Tensors a = make_tensors(before, seed), b = a;
  ir::interpret(before, a.args());
  try {
    ir::interpret(after, b.args());
  } catch (const Error& e) {
    FAIL() << e.what() << "\n" << ir::print(after);
  }
  for (std::size_t i = 0; i < a.data.size(); ++i) {
    for (std::size_t k = 0; k < a.data[i].size(); ++k) {
      const float x = a.data[i][k], y = b.data[i][k];
      if (x == y || (std::isnan(x) && std::isnan(y))) continue;
      FAIL() << "parameter " << i << " element " << k << ": before " << x << ", after " << y << "\n"
             << ir::print(after);
    }
  }
}

/// The trace as JSON, parsed again and replayed, gives the same program and the same Python text.
inline void expect_replays(const Schedule& sch, const ir::PrimFunc& start) {
  const Json json = Json::parse(sch.trace().json());
  const Schedule again = Schedule::replay(start, json);
  EXPECT_TRUE(ir::structural_equal(again.mod(), sch.mod())) << sch.show() << "\nreplayed:\n"
                                                            << again.show();
  EXPECT_EQ(again.trace().as_python(), sch.trace().as_python());
}

/// All three: well-formed and faithful text, same results, same trace.
inline void expect_sound(const Schedule& sch, const std::string& start) {
  const ir::PrimFunc f = parse(start);
  const auto verdict = ir::verify(sch.mod());
  EXPECT_FALSE(verdict) << render(*verdict) << sch.show();
  EXPECT_TRUE(ir::structural_equal(ir::parse_func(ir::print(sch.func())), sch.func()))
      << sch.show();
  expect_same_results(f, sch.func());
  expect_replays(sch, f);
}

inline void expect_program(const Schedule& sch, const std::string& text) {
  const ir::PrimFunc expected = parse(text);
  EXPECT_TRUE(ir::structural_equal(sch.func(), expected)) << "got:\n"
                                                          << ir::print(sch.func()) << "expected:\n"
                                                          << ir::print(expected);
}

/// The step must refuse with this code and with each of the parts in its text, and change nothing.
inline void expect_refused(Schedule& sch, const std::function<void(Schedule&)>& step,
                           const std::string& code, const std::vector<std::string>& parts) {
  const std::uint64_t before = ir::structural_hash(sch.mod());
  const auto count = [](const Schedule& x) {  // lookups on the way are no change
    std::size_t n = 0;
    for (const TraceEntry& e : x.trace().entries())
      n += e.primitive->name.starts_with("get_") ? 0 : 1;
    return n;
  };
  const std::size_t steps = count(sch);
  try {
    step(sch);
    ADD_FAILURE() << "not refused, expected " << code << "\n" << sch.show();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    for (const std::string& part : parts)
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << "no \"" << part << "\" in\n"
                                                                     << e.what();
  }
  EXPECT_EQ(ir::structural_hash(sch.mod()), before);
  EXPECT_EQ(count(sch), steps);
}

/// C[i, j] = B[i, j] + B[i + 1, j] + B[i + 2, j] with B = A * 2: rows and the windows that read
/// them.
inline std::string window_rows(int m, int n) {
  return cat(
      "@T.prim_func\ndef main(A: T.Buffer((", m + 2, ", ", n, "), \"float32\"), C: T.Buffer((", m,
      ", ", n, "), \"float32\")):\n    B = T.alloc_buffer((", m + 2, ", ", n,
      "), \"float32\")\n    for i, j in T.grid(", m + 2, ", ", n,
      "):\n        with T.block(\"B\"):\n            vi, vj = T.axis.remap(\"SS\", [i, j])\n  "
      "          B[vi, vj] = A[vi, vj] * T.float32(2)\n    for i, j in T.grid(",
      m, ", ", n,
      "):\n        with T.block(\"C\"):\n            vi, vj = T.axis.remap(\"SS\", [i, j])\n  "
      "          C[vi, vj] = B[vi, vj] + B[vi + 1, vj] + B[vi + 2, vj]\n");
}

}  // namespace weft::schedule::testing
