// SPDX-License-Identifier: Apache-2.0
// How many groups and threads the last rule gives a nest, by its extents.

#include <gtest/gtest.h>

#include <map>

#include "schedule_kit.h"
#include "weft/ir/visit.h"
#include "weft/rules/fallback.h"
#include "weft/rules/reduce.h"

namespace weft::rules {
namespace {

/// Axis and extent of the bound loops; extents at run time are -1.
std::map<std::string, std::int64_t> bound(const Schedule& sch) {
  std::map<std::string, std::int64_t> out;
  ir::for_each_stmt(sch.func()->body, [&](const ir::Stmt& s) {
    const auto* loop = ir::as<ir::ForNode>(s);
    if (!loop || loop->for_kind != ir::ForKind::bound) return;
    std::int64_t n = -1;
    ir::is_const_int(loop->extent, &n);
    out[loop->axis] = n;
  });
  return out;
}
using Bound = std::map<std::string, std::int64_t>;

Bound fallback(const std::string& text, const std::string& block, std::int64_t threads = 256) {
  Schedule sch(ir::parse_func(text), schedule_target_info());
  schedule_fallback(sch, sch.get_block(block), threads);
  return bound(sch);
}
Bound threads_of(std::int64_t blocks, std::int64_t threads) {
  return {{"blockIdx.x", blocks}, {"threadIdx.x", threads}};
}

TEST(RuleFallback, threads_are_the_results_and_a_group_at_most) {
  const auto of = [](int n) { return fallback(schedule::testing::vector_add(n), "C"); };
  EXPECT_EQ(of(1), threads_of(1, 1));
  EXPECT_EQ(of(2), threads_of(1, 2));
  EXPECT_EQ(of(255), threads_of(1, 255));
  EXPECT_EQ(of(256), threads_of(1, 256));
  EXPECT_EQ(of(257), threads_of(2, 256));
}

TEST(RuleFallback, of_reductions_of_few_terms_the_last_loop_is_split_alone) {
  const auto of = [](int m, int n) { return fallback(schedule::testing::matmul(m, n, 4), "C"); };
  EXPECT_EQ(of(300, 1), threads_of(300, 1));
  EXPECT_EQ(of(300, 100), threads_of(300, 100));
  EXPECT_EQ(of(300, 256), threads_of(300, 256));
  EXPECT_EQ(of(300, 1000), threads_of(300 * 4, 256));
}

TEST(RuleFallback, of_long_reductions_the_terms_are_split) {
  const auto of = [](int m, int k) { return fallback(schedule::testing::matmul(m, 1, k), "C"); };
  EXPECT_EQ(of(8, 64), threads_of(8, 64));
  EXPECT_EQ(of(8, 100), threads_of(8, 64));  // a power of two
  EXPECT_EQ(of(8, 5000), threads_of(8, 256));
  EXPECT_EQ(of(8, 63), threads_of(8, 1));      // short
  EXPECT_EQ(of(513, 64), threads_of(513, 1));  // results keep the machine busy
  EXPECT_EQ(of(512, 64), threads_of(512, 64));
  EXPECT_EQ(of(8192, 1024), threads_of(8192, 256));
  EXPECT_EQ(of(8193, 2000), threads_of(8193, 1));
}

/// Two blocks under one loop of m, each under one of n of its own; through a buffer of n.
std::string together(int m, int n) {
  const std::string rows = std::to_string(m), columns = std::to_string(n);
  const std::string shape = "T.Buffer((" + rows + ", " + columns + "), \"float32\")";
  const auto block = [&](const std::string& to, const std::string& what) {
    return "        for j in range(" + columns + "):\n            with T.block(\"" + to +
           "\"):\n                vi = T.axis.spatial(" + rows +
           ", i)\n                vj = T.axis.spatial(" + columns + ", j)\n                " + to +
           "[vi, vj] = " + what + "\n";
  };
  return "@T.prim_func\ndef main(A: " + shape + ", C: " + shape + "):\n    B = T.alloc_buffer((" +
         rows + ", " + columns + "), \"float32\")\n    for i in range(" + rows + "):\n" +
         block("B", "A[vi, vj] * T.float32(2)") + block("C", "B[vi, vj] + T.float32(1)");
}

/// What the rule of reductions decides for the sums of the rows of a matrix, or of its columns.
ReduceDecisions sums(int rows, int columns, bool of_columns) {
  const std::string text = cat(
      "@T.prim_func\ndef main(A: T.Buffer((", rows, ", ", columns, "), \"float32\"), B: T.Buffer((",
      of_columns ? columns : rows, ",), \"float32\")):\n    for i, j in T.grid(", rows, ", ",
      columns, "):\n        with T.block(\"B\"):\n            vi, vj = T.axis.remap(\"",
      of_columns ? "RS" : "SR", "\", [i, j])\n            with T.init():\n                B[",
      of_columns ? "vj" : "vi", "] = T.float32(0)\n            B[", of_columns ? "vj" : "vi",
      "] = B[", of_columns ? "vj" : "vi", "] + A[vi, vj]\n");
  Schedule sch(ir::parse_func(text), schedule_target_info());
  TargetInfo machine = grid_target_info();
  machine.limits[limits::kVectorBytes] = 16;
  const auto found = match_reduce(read_nest(sch, sch.get_block("B"), {}), Facts(machine));
  EXPECT_TRUE(found.has_value());
  return found.value_or(ReduceDecisions{});
}

TEST(RuleReduce, vectors_only_where_they_divide_the_neighbours) {
  EXPECT_EQ(sums(1 << 16, 1024, false).vector, 4);
  EXPECT_EQ(sums(1 << 16, 1022, false).vector, 1);
  EXPECT_EQ(sums(1 << 16, 1023, false).vector, 1);
  EXPECT_EQ(sums(256, 1 << 20, true).vector, 4);
  EXPECT_EQ(sums(256, (1 << 20) + 2, true).vector, 1);
}

TEST(RuleFallback, blocks_together_are_bound_by_their_one_common_loop) {
  TargetInfo machine = grid_target_info();
  const Facts facts(machine);
  const auto of = [&](int m, int n) {
    Schedule sch(ir::parse_func(together(m, n)), schedule_target_info());
    schedule_together(sch, {sch.get_block("B"), sch.get_block("C")}, facts);
    return bound(sch);
  };
  EXPECT_EQ(of(100, 8), threads_of(1, 100));
  EXPECT_EQ(of(1, 8), threads_of(1, 1));
  EXPECT_EQ(of(1000, 8), threads_of(4, 256));
  // What a thread would keep to itself is at most 4096 bytes.
  EXPECT_EQ(of(100, 1024), threads_of(1, 100));
  EXPECT_EQ(of(100, 1025), Bound());
}

}  // namespace
}  // namespace weft::rules
