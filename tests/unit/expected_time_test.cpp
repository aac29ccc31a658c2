// SPDX-License-Identifier: Apache-2.0
// What a scheduled program's expected time follows: the machine's rates, and what its loops do.

#include "weft/rules/expected_time.h"

#include <gtest/gtest.h>

#include "lower_kit.h"
#include "weft/ir/text.h"

namespace weft::rules {
namespace {

using namespace testing;

/// n elements in groups of 256 threads.
PrimFunc in_groups(std::int64_t n) {
  return vector_add(n, 256, ForKind::bound, "blockIdx.x", ForKind::bound, "threadIdx.x");
}

TEST(ExpectedTime, of_a_stream_is_its_bytes_at_the_memorys_rate) {
  const GridRates rates;
  const std::int64_t n = 1 << 28;
  const double bytes = 3.0 * 4 * static_cast<double>(n);
  const double time = expected_time(in_groups(n), rates);
  EXPECT_GE(time, bytes / rates.memory_bytes_per_microsecond);
  EXPECT_LE(time, 2 * bytes / rates.memory_bytes_per_microsecond);
  GridRates half = rates;
  half.memory_bytes_per_microsecond /= 2;
  EXPECT_NEAR(expected_time(in_groups(n), half) / time, 2, 0.3);
  EXPECT_NEAR(expected_time(in_groups(2 * n), rates) / time, 2, 0.1);
}

TEST(ExpectedTime, of_little_work_is_a_launch_and_a_fetch) {
  const GridRates rates;
  const double time = expected_time(in_groups(256), rates);
  EXPECT_GE(time, rates.launch + rates.latency / rates.clocks_per_microsecond);
  EXPECT_LE(time, 2 * rates.launch);
  GridRates later = rates;
  later.launch += 5;
  EXPECT_DOUBLE_EQ(expected_time(in_groups(256), later), time + 5);
}

TEST(ExpectedTime, threads_and_groups_are_faster_than_one_thread) {
  const GridRates rates;
  const std::int64_t n = 1 << 20;
  const double whole = expected_time(in_groups(n), rates);
  const double groups = expected_time(vector_add(n, 256, ForKind::bound, "blockIdx.x"), rates);
  const double alone = expected_time(vector_add(n), rates);
  EXPECT_LT(4 * whole, groups);
  EXPECT_LT(4 * groups, alone);
  GridRates small = rates;
  small.processors = 1;
  EXPECT_LT(2 * whole, expected_time(in_groups(n), small));
}

/// Rows and columns of a transposed copy: the threads' neighbours lie together in one or the other.
TEST(ExpectedTime, threads_that_lie_apart_take_longer) {
  const auto copy = [](const std::string& at) {
    return parse_func(
        "@T.prim_func\n"
        "def main(A: T.Buffer((4096, 4096), \"float32\"), B: T.Buffer((4096, 4096), "
        "\"float32\")):\n"
        "    for i in T.thread_binding(4096, thread=\"blockIdx.x\"):\n"
        "        for o in range(16):\n"
        "            for j in T.thread_binding(256, thread=\"threadIdx.x\"):\n"
        "                with T.block(\"B\"):\n"
        "                    vi = T.axis.spatial(4096, i)\n"
        "                    vj = T.axis.spatial(4096, o * 256 + j)\n"
        "                    B[" +
        at + "] = A[" + at + "] + T.float32(1)\n");
  };
  const GridRates rates;
  EXPECT_LT(1.2 * expected_time(copy("vi, vj"), rates), expected_time(copy("vj, vi"), rates));
}

/// A block that holds `bytes` of shared memory.
PrimFunc staged(std::int64_t count) {
  const std::string n = std::to_string(count);
  return parse_func(
      "@T.prim_func\n"
      "def main(A: T.Buffer((1024, " +
      n + "), \"float32\"), B: T.Buffer((1024, " + n +
      "), \"float32\")):\n"
      "    S = T.alloc_buffer((1024, " +
      n +
      "), \"float32\", scope=\"shared\")\n"
      "    for b in T.thread_binding(1024, thread=\"blockIdx.x\"):\n"
      "        for t in T.thread_binding(128, thread=\"threadIdx.x\"):\n"
      "            for k in range(" +
      std::to_string(count / 128) +
      "):\n"
      "                with T.block(\"S\"):\n"
      "                    vb = T.axis.spatial(1024, b)\n"
      "                    vi = T.axis.spatial(" +
      n +
      ", k * 128 + t)\n"
      "                    S[vb, vi] = A[vb, vi]\n"
      "        for t in T.thread_binding(128, thread=\"threadIdx.x\"):\n"
      "            for k in range(" +
      std::to_string(count / 128) +
      "):\n"
      "                with T.block(\"B\"):\n"
      "                    vb = T.axis.spatial(1024, b)\n"
      "                    vi = T.axis.spatial(" +
      n +
      ", k * 128 + t)\n"
      "                    B[vb, vi] = S[vb, vi] * T.float32(2)\n");
}

TEST(ExpectedTime, groups_that_do_not_fit_never_end) {
  const GridRates rates;
  EXPECT_LT(expected_time(staged(128), rates), 1e6);
  EXPECT_LT(expected_time(staged(16384), rates), 1e6);
  EXPECT_GE(expected_time(staged(65536), rates), 1e12);  // 256 KiB
  GridRates room = rates;
  room.memory_shared = 1 << 20;
  EXPECT_LT(expected_time(staged(65536), room), 1e6);
  GridRates few = rates;
  few.threads = 64;
  EXPECT_GE(expected_time(staged(128), few), 1e12);  // 128 threads
  few.threads = 128;
  EXPECT_LT(expected_time(staged(128), few), 1e6);
}

TEST(ExpectedTime, of_programs_that_are_not_read_is_none) {
  const PrimFunc f = parse_func(
      "@T.prim_func\n"
      "def main(A: T.Buffer((8,), \"float32\")):\n"
      "    x: T.int64 = 3\n"
      "    A[x] = T.float32(1)\n");
  EXPECT_EQ(expected_time(f, GridRates()), 0);
  EXPECT_EQ(expected_time(f, HostRates()), 0);
}

TEST(ExpectedTime, of_a_host_follows_vectors_processors_and_caches) {
  HostRates rates;
  rates.processors = 4;
  const std::int64_t small = 1 << 10, great = 1 << 26;
  const double serial = expected_time(vector_add(small, 8), rates);
  const double vectors =
      expected_time(vector_add(small, 8, ForKind::serial, "", ForKind::vectorized), rates);
  EXPECT_LT(3 * vectors, serial);
  const auto parallel = [&](std::int64_t n) {
    return expected_time(vector_add(n, 8, ForKind::parallel, "", ForKind::vectorized), rates);
  };
  const auto alone = [&](std::int64_t n) {
    return expected_time(vector_add(n, 8, ForKind::serial, "", ForKind::vectorized), rates);
  };
  EXPECT_NEAR(alone(great) / parallel(great), 4, 1e-6);
  // Three pieces on four processors are one round, five are two.
  EXPECT_DOUBLE_EQ(parallel(24), alone(24) / 3);
  EXPECT_DOUBLE_EQ(parallel(40), alone(40) * 2 / 5);
  // What no cache holds comes from memory at its rate.
  const double bytes = 3.0 * 4 * static_cast<double>(great);
  EXPECT_GE(alone(great), bytes / rates.memory_bytes / rates.clocks_per_microsecond);
  EXPECT_GT(alone(great) / static_cast<double>(great),
            2 * alone(small) / static_cast<double>(small));
  HostRates faster = rates;
  faster.clocks_per_microsecond *= 2;
  EXPECT_DOUBLE_EQ(expected_time(vector_add(small, 8), faster), serial / 2);
  HostRates wider = rates;
  wider.vector_bytes = 64;
  const auto sixteen = [&](const HostRates& r) {
    return expected_time(vector_add(small, 16, ForKind::serial, "", ForKind::vectorized), r);
  };
  EXPECT_LT(sixteen(wider), sixteen(rates));
}

TEST(ExpectedTime, rates_are_read_from_the_machines_table) {
  TargetInfo info = grid_target_info();
  info.limits[limits::kProcessors] = 132, info.limits[limits::kLanes] = 64;
  info.limits[limits::kClockKhz] = 1980000, info.limits[limits::kMemoryRate] = 4800000;
  info.set_group(1024, 65536);
  const GridRates grid = grid_rates(info);
  EXPECT_EQ(grid.processors, 132);
  EXPECT_EQ(grid.lanes, 64);
  EXPECT_DOUBLE_EQ(grid.clocks_per_microsecond, 1980);
  EXPECT_EQ(grid.memory_bytes_per_microsecond, 4800000);
  EXPECT_EQ(grid.memory_shared, 65536);
  EXPECT_EQ(grid_rates(generic_target_info()).memory_shared, GridRates().memory_shared);
  EXPECT_EQ(grid_rates(generic_target_info()).lanes, GridRates().lanes);
  info.limits = {{limits::kVectorBytes, 64},
                 {limits::kRegisters, 32},
                 {limits::kCache1Bytes, 49152},
                 {limits::kCache2Bytes, 1 << 21},
                 {limits::kThreads, 12}};
  const HostRates host = host_rates(info);
  EXPECT_EQ(host.vector_bytes, 64);
  EXPECT_EQ(host.registers, 32);
  EXPECT_EQ(host.cache1, 49152);
  EXPECT_EQ(host.cache2, 1 << 21);
  EXPECT_EQ(host.processors, 12);
}

}  // namespace
}  // namespace weft::rules
