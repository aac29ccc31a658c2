// SPDX-License-Identifier: Apache-2.0
// Guards of cut tiles: what moves out of the loops, what the tail keeps, and that results stay.

#include <gtest/gtest.h>

#include <random>

#include "weft/ir/build.h"
#include "weft/ir/interpret.h"
#include "weft/ir/text.h"
#include "weft/ir/visit.h"
#include "weft/pass/hoist_guards.h"

namespace weft::pass {
namespace {

using namespace ir;

struct Census {
  int stores = 0, ifs = 0, guarded = 0;  // guarded: conditions inside two loops or more
};

void count(const Stmt& s, int loops, Census& out) {
  if (const auto* list = as<SeqNode>(s)) {
    for (const Stmt& child : list->stmts) count(child, loops, out);
  } else if (const auto* loop = as<ForNode>(s)) {
    count(loop->body, loops + 1, out);
  } else if (const auto* i = as<IfNode>(s)) {
    ++out.ifs;
    out.guarded += loops > 1;
    count(i->then_case, loops, out);
    if (i->else_case) count(i->else_case, loops, out);
  } else if (const auto* r = as<BlockRealizeNode>(s)) {
    count(r->block->body, loops, out);
  } else {
    ++out.stores;
  }
}

Census census(const PrimFunc& f) {
  Census out;
  count(f->body, 0, out);
  return out;
}

std::vector<float> run(const PrimFunc& f) {
  std::mt19937 random(7);
  std::vector<std::vector<float>> data;
  std::vector<InterpretArg> args;
  for (const Param& p : f->params) {
    std::vector<std::int64_t> shape;
    std::int64_t size = 1;
    for (const Expr& e : p.buffer->shape) {
      std::int64_t n = 0;
      EXPECT_TRUE(is_const_int(e, &n));
      shape.push_back(n);
      size *= n;
    }
    data.emplace_back(static_cast<std::size_t>(size));
    for (float& v : data.back()) v = static_cast<float>(static_cast<int>(random() % 17) - 8);
    InterpretArg arg;
    arg.shape = shape;
    args.push_back(arg);
  }
  for (std::size_t i = 0; i < data.size(); ++i) args[i].data = data[i].data();
  interpret(f, args);
  return data.back();
}

PrimFunc tiled(int m, int n, int a, int b, const char* outer = "range") {
  return parse_func(
      cat("@T.prim_func(lowered=True)\ndef main(A: T.Buffer((", m, ", ", n,
          "), \"float32\"), B: T.Buffer((", m, ", ", n, "), \"float32\")):\n    for i0 in T.",
          outer == std::string("range") ? "serial" : outer, "(", (m + a - 1) / a,
          "):\n        for j0 in range(", (n + b - 1) / b, "):\n            for i1 in T.unroll(", a,
          "):\n                for j1 in T.vectorized(", b, "):\n                    if i0 * ", a,
          " + i1 < ", m, " and j0 * ", b, " + j1 < ", n, ":\n                        B[i0 * ", a,
          " + i1, j0 * ", b, " + j1] = A[i0 * ", a, " + i1, j0 * ", b, " + j1] * T.float32(2)\n"));
}

TEST(HoistGuards, whole_tiles_ask_nothing_and_tails_end_where_the_guard_does) {
  const PrimFunc f = tiled(13, 37, 4, 8);
  const PrimFunc out = hoist_guards(f);
  const std::string text = print(out);
  EXPECT_NE(text.find("if i0 < 3:"), std::string::npos) << text;
  EXPECT_NE(text.find("if j0 < 4:"), std::string::npos) << text;
  EXPECT_NE(text.find("T.vectorized(5)"), std::string::npos) << text;  // 37 = 4 * 8 + 5
  EXPECT_NE(text.find("T.unroll(1)"), std::string::npos) << text;      // 13 = 3 * 4 + 1
  EXPECT_EQ(run(f), run(out));
}

TEST(HoistGuards, sizes_of_every_remainder_keep_their_results) {
  for (int m : {1, 3, 4, 5, 8, 11})
    for (int n : {1, 7, 8, 9, 16, 23}) {
      for (const char* outer : {"range", "parallel"}) {
        const PrimFunc f = tiled(m, n, 4, 8, outer);
        EXPECT_EQ(run(f), run(hoist_guards(f))) << m << " x " << n << "\n"
                                                << print(hoist_guards(f));
      }
    }
}

TEST(HoistGuards, lower_bounds_and_lazy_choices_move_too) {
  const PrimFunc f = parse_func(R"(@T.prim_func(lowered=True)
def main(A: T.Buffer((20,), "float32"), B: T.Buffer((20,), "float32")):
    for i in range(5):
        for j in range(4):
            B[i * 4 + j] = T.if_then_else(1 <= i * 4 + j and i * 4 + j < 19, A[T.max(i * 4 + j - 1, 0)], T.float32(0))
)");
  const PrimFunc out = hoist_guards(f);
  const std::string text = print(out);
  EXPECT_EQ(census(out).ifs, 1) << text;
  EXPECT_EQ(census(out).stores, 2) << text;
  EXPECT_EQ(run(f), run(out)) << text;
}

TEST(HoistGuards, what_data_or_calls_decide_stays) {
  for (const char* condition :
       {"A[i * 4 + j] < T.float32(0)", "j * i < 7", "(i * 4 + j) % 3 < 2", "i * 4 + j != 3"}) {
    const PrimFunc f = parse_func(
        cat("@T.prim_func(lowered=True)\ndef main(A: T.Buffer((20,), \"float32\"), B: "
            "T.Buffer((20,), \"float32\")):\n    for i in range(5):\n        for j in range(4):\n  "
            "          if ",
            condition, ":\n                B[i * 4 + j] = A[i * 4 + j]\n"));
    const PrimFunc out = hoist_guards(f);
    EXPECT_EQ(run(f), run(out)) << condition;
    EXPECT_EQ(census(out).guarded, census(f).guarded) << condition << print(out);
  }
}

TEST(HoistGuards, an_else_branch_is_not_dropped) {
  const PrimFunc f = parse_func(R"(@T.prim_func(lowered=True)
def main(A: T.Buffer((20,), "float32"), B: T.Buffer((20,), "float32")):
    for i in range(5):
        for j in range(4):
            if i * 4 + j < 18:
                B[i * 4 + j] = A[i * 4 + j]
            else:
                B[i * 4 + j] = T.float32(-1)
)");
  EXPECT_EQ(run(f), run(hoist_guards(f))) << print(hoist_guards(f));
  EXPECT_NE(print(hoist_guards(f)).find("if i < 4:"), std::string::npos);
}

TEST(HoistGuards, bound_loops_and_large_bodies_stay) {
  const std::string head =
      "@T.prim_func(lowered=True)\ndef main(A: T.Buffer((20,), \"float32\"), B: T.Buffer((20,), "
      "\"float32\")):\n    for i in T.thread_binding(5, thread=\"blockIdx.x\"):\n        for j in "
      "range(4):\n            if i * 4 + j < 18:\n                B[i * 4 + j] = A[i * 4 + j]\n";
  const PrimFunc bound = parse_func(head);
  EXPECT_EQ(hoist_guards(bound).get(), bound.get());
  std::string body;
  for (int k = 0; k < 5000; ++k) body += "                B[i * 4 + j] = A[i * 4 + j]\n";
  const PrimFunc large = parse_func(cat(
      "@T.prim_func(lowered=True)\ndef main(A: T.Buffer((20,), \"float32\"), B: T.Buffer((20,),"
      " \"float32\")):\n    for i in range(5):\n        for j in range(4):\n            if i * 4 "
      "+ j < 18:\n",
      body));
  EXPECT_EQ(census(hoist_guards(large)).stores, 5000);
}

}  // namespace
}  // namespace weft::pass
