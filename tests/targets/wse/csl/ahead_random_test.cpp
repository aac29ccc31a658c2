// SPDX-License-Identifier: Apache-2.0
// Random programs of PEs that exchange streams: cores that go ahead of the calendar do in each
// cycle what visits cycle by cycle do.
#include <gtest/gtest.h>

#include "stream_programs.h"

namespace weft::wse::testing {
namespace {

TEST(CslAhead, RandomProgramsAreTheSameAsCycleByCycle) {
  std::int64_t ahead = 0, by_cycle = 0, rounds = 0;
  for (unsigned seed = 1; seed <= 150; ++seed) {
    for (Arch arch : {Arch::wse2, Arch::wse3}) {
      StreamPrograms programs(seed);
      const Layout layout = csl::compile(programs.options(arch));
      const StreamOutcome slow = run_streams(layout, {.fast = false});
      by_cycle += slow.visits;
      rounds += slow.counters[2];
      for (int threads : {1, 2, 3}) {
        if (seed > 40 && threads > 1) break;  // what threads cost on a busy machine
        const StreamOutcome fast = run_streams(layout, {.threads = threads});
        if (threads == 1) ahead += fast.visits;
        ASSERT_EQ(fast.cycles, slow.cycles) << seed << ", " << threads << " threads";
        ASSERT_TRUE(fast.memory == slow.memory) << seed << ", " << threads << " threads";
        ASSERT_EQ(fast.counters, slow.counters) << seed << ", " << threads << " threads";
      }
    }
  }
  EXPECT_GT(rounds, 10'000);
  EXPECT_LT(ahead * 4, by_cycle * 3);
}

}  // namespace
}  // namespace weft::wse::testing
