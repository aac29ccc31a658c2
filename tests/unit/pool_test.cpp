// SPDX-License-Identifier: Apache-2.0
// The thread pool, whichever library drives it (built once for each): every element once, errors
// come back, nesting and forked children stay serial.
#include "weft/runtime/pool.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>
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

TEST(Pool, WorkersLeaveTheCallersProcessor) {
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
  if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "one processor: there is nowhere to go";
  Pool pool(2);
  // Jobs until a worker took part; how many of its chunks ran off `cpu`, and how many there were.
  auto call = [&](int cpu) {
    const auto me = std::this_thread::get_id();
    std::atomic<int> workers = 0, off = 0;
    for (int round = 0; round < 200 && workers == 0; ++round) {
      pool.parallel_for(4, 1, [&](std::int64_t, std::int64_t) {
        if (std::this_thread::get_id() == me) {
          for (int wait = 0; wait < 100 && workers == 0; ++wait) usleep(100);
          return;
        }
        cpu_set_t mine;
        ASSERT_EQ(sched_getaffinity(0, sizeof(mine), &mine), 0);
        off += !CPU_ISSET(cpu, &mine) && CPU_COUNT(&mine) == CPU_COUNT(&all) - 1;
        ++workers;
      });
    }
    return std::pair{off.load(), workers.load()};
  };
  ASSERT_GT(call(0).second, 0);  // threads are made with the mask of their maker: all processors
  for (int cpu = 0, tried = 0; cpu < CPU_SETSIZE && tried < 2; ++cpu) {
    if (!CPU_ISSET(cpu, &all)) continue;
    ++tried;
    std::thread caller([&] {  // pinned, so that the test knows where it calls from
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(cpu, &one);
      ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
      usleep(20000);  // the worker is out of the last job
      const auto [off, workers] = call(cpu);
      EXPECT_GT(workers, 0);
      EXPECT_EQ(off, workers) << "called from processor " << cpu;
    });
    caller.join();
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

TEST(Pool, ADyingChildDoesNotWaitForItsParentsWorkers) {
  auto pool = std::make_unique<Pool>(3);
  std::atomic<std::int64_t> warm = 0;
  pool->parallel_for(1000, 1, [&](std::int64_t b, std::int64_t e) { warm += e - b; });
  usleep(20000);  // the workers wait for the next job
  pid_t child = fork();
  if (child == 0) {
    alarm(60);  // ends it when it hangs
    pool.reset();
    _exit(0);
  }
  ASSERT_GT(child, 0);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << status;
}

}  // namespace
}  // namespace weft::runtime
