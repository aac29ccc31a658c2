// SPDX-License-Identifier: Apache-2.0
// The thread pool, whichever library drives it (built once for each): every element once, errors
// come back, nesting and forked children stay serial.
#include "weft/runtime/pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

namespace weft::runtime {
namespace {

TEST(Pool, EveryElementOnceInAlignedChunks) {
  Pool pool(3);
  for (std::int64_t n : {0, 1, 7, 64, 1000, 4099}) {
    for (std::int64_t grain : {1, 3, 64, 5000}) {
      std::vector<std::atomic<int>> seen(static_cast<std::size_t>(n));
      std::atomic<bool> aligned = true;
      pool.parallel_for(n, grain, [&](std::int64_t begin, std::int64_t end) {
        if (begin % grain != 0 || end > n || begin >= end) aligned = false;
        for (std::int64_t i = begin; i < end; ++i) ++seen[static_cast<std::size_t>(i)];
      });
      EXPECT_TRUE(aligned) << n << " by " << grain;
      for (auto& count : seen) ASSERT_EQ(count, 1) << n << " by " << grain;
    }
  }
}

TEST(Pool, AnErrorOfABodyComesBackAndThePoolGoesOn) {
  Pool pool(2);
  for (int round = 0; round < 20; ++round) {
    EXPECT_THROW(pool.parallel_for(1000, 1,
                                   [](std::int64_t begin, std::int64_t) {
                                     if (begin > 300) throw std::runtime_error("planted");
                                   }),
                 std::runtime_error);
    std::atomic<std::int64_t> sum = 0;
    pool.parallel_for(1000, 1, [&](std::int64_t b, std::int64_t e) { sum += e - b; });
    EXPECT_EQ(sum, 1000);
  }
}

TEST(Pool, NestedCallsStayInTheirThread) {
  Pool pool(2);
  std::atomic<bool> same = true;
  pool.parallel_for(8, 1, [&](std::int64_t, std::int64_t) {
    auto me = std::this_thread::get_id();
    pool.parallel_for(100, 1, [&](std::int64_t, std::int64_t) {
      if (std::this_thread::get_id() != me) same = false;
    });
  });
  EXPECT_TRUE(same);
}

TEST(Pool, OneThreadMeansTheCaller) {
  Pool pool(4);
  pool.limit(1);
  EXPECT_EQ(pool.threads(), 1);
  auto me = std::this_thread::get_id();
  bool same = true;
  pool.parallel_for(100, 1,
                    [&](std::int64_t, std::int64_t) { same &= std::this_thread::get_id() == me; });
  EXPECT_TRUE(same);
  pool.limit(99);
  EXPECT_EQ(pool.threads(), 4);
}

TEST(Pool, ManyCallersAtOnce) {
  Pool pool(2);
  std::atomic<std::int64_t> sum = 0;
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t) {
    callers.emplace_back([&] {
      for (int i = 0; i < 50; ++i)
        pool.parallel_for(100, 1, [&](std::int64_t b, std::int64_t e) { sum += e - b; });
    });
  }
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(sum, 4 * 50 * 100);
}

TEST(Pool, AForkedChildWorksAlone) {
  Pool& pool = Pool::shared();
  std::atomic<std::int64_t> warm = 0;
  pool.parallel_for(1000, 1, [&](std::int64_t b, std::int64_t e) { warm += e - b; });
  pid_t child = fork();
  if (child == 0) {
    std::int64_t sum = 0;  // serial: no lock needed
    pool.parallel_for(1000, 1, [&](std::int64_t b, std::int64_t e) { sum += e - b; });
    _exit(sum == 1000 ? 0 : 1);
  }
  ASSERT_GT(child, 0);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_FALSE(Pool::kind().empty());
}

}  // namespace
}  // namespace weft::runtime
