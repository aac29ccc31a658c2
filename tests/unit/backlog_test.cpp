// SPDX-License-Identifier: Apache-2.0
// Work that waits for a compiler keeps its order, and tasks beside the caller run side by side.

#include "weft/runtime/backlog.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <future>
#include <stdexcept>
#include <vector>

#include "weft/runtime/background.h"

namespace weft::runtime {
namespace {

TEST(Backlog, keeps_the_order_of_the_calls) {
  Backlog backlog;
  std::vector<int> ran;
  bool first = false;
  EXPECT_FALSE(backlog.waits());
  backlog.add([&] { return first; }, [&] { ran.push_back(1); });
  backlog.add([] { return true; }, [&] { ran.push_back(2); });
  backlog.advance();
  EXPECT_TRUE(ran.empty()) << "what is ready may not pass what is not";
  EXPECT_TRUE(backlog.waits());
  first = true;
  backlog.advance();
  EXPECT_EQ(ran, (std::vector{1, 2}));
  EXPECT_FALSE(backlog.waits());
  first = false;
  backlog.add([&] { return first; }, [&] { ran.push_back(3); });
  backlog.settle();
  EXPECT_EQ(ran, (std::vector{1, 2, 3}));
  EXPECT_FALSE(backlog.waits());
}

TEST(Backlog, tells_the_first_error_after_the_rest_has_run) {
  Backlog backlog;
  int ran = 0;
  backlog.add([] { return true; }, [] { throw std::runtime_error("one"); });
  backlog.add([] { return true; }, [] { throw std::runtime_error("two"); });
  backlog.add([] { return true; }, [&] { ++ran; });
  backlog.advance();
  EXPECT_EQ(ran, 1);
  EXPECT_TRUE(backlog.waits()) << "an error is still to be told";
  try {
    backlog.settle();
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "one");
  }
  backlog.settle();
  EXPECT_FALSE(backlog.waits());
  backlog.add([] { return true; }, [&] { ++ran; });
  backlog.settle();  // the error was told
  EXPECT_EQ(ran, 2);
}

TEST(Backlog, is_bounded) {
  Backlog backlog;
  std::size_t ran = 0;
  for (std::size_t i = 0; i < Backlog::kMost + 5; ++i)
    backlog.add([] { return false; }, [&] { ++ran; });
  EXPECT_EQ(ran, 5u);
  backlog.settle();
  EXPECT_EQ(ran, Backlog::kMost + 5);
}

TEST(OwnBacklog, is_this_threads_and_one_devices_alone) {
  const auto* one = reinterpret_cast<const Device*>(8);
  const auto* two = reinterpret_cast<const Device*>(16);
  std::vector<int> ran;
  EXPECT_EQ(OwnBacklog::of(one), nullptr);
  {
    OwnBacklog own(one);
    ASSERT_NE(OwnBacklog::of(one), nullptr);
    EXPECT_EQ(OwnBacklog::of(two), nullptr);
    std::async(std::launch::async, [&] { EXPECT_EQ(OwnBacklog::of(one), nullptr); }).get();
    OwnBacklog::of(one)->add([] { return false; }, [&] { ran.push_back(1); });
    {
      OwnBacklog inner(one);
      OwnBacklog::of(one)->add([] { return false; }, [&] { ran.push_back(2); });
    }
    EXPECT_EQ(ran, (std::vector{2}));
    OwnBacklog::of(one)->add([] { return false; }, [] { throw std::runtime_error("refused"); });
    OwnBacklog::of(one)->add([] { return false; }, [&] { ran.push_back(3); });
    EXPECT_THROW(own.settle(), std::runtime_error);
    EXPECT_EQ(ran, (std::vector{2, 1, 3}));
    OwnBacklog::of(one)->add([] { return false; }, [&] { ran.push_back(4); });
    OwnBacklog::of(one)->add([] { return false; }, [] { throw std::runtime_error("untold"); });
  }
  EXPECT_EQ(OwnBacklog::of(one), nullptr);
  EXPECT_EQ(ran.back(), 4);
}

TEST(Background, runs_every_task_off_the_callers_thread) {
  constexpr int kTasks = 40;
  std::atomic<int> done{0}, here{0};
  const auto caller = std::this_thread::get_id();
  std::promise<void> all;
  for (int i = 0; i < kTasks; ++i) {
    run_beside([&] {
      here += std::this_thread::get_id() == caller;
      if (++done == kTasks) all.set_value();
    });
  }
  all.get_future().wait();
  EXPECT_EQ(here, 0);
}

// A process without room for another thread's stack: its tasks run in the caller, and its end does
// not wait for a worker that never began.
TEST(Background, where_no_thread_can_be_made_the_caller_works) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto work = [] {
    alarm(60);
    rlim_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t now = pages * static_cast<rlim_t>(getpagesize()) + (1 << 20);
    const rlimit most{now, now};
    setrlimit(RLIMIT_AS, &most);
    bool ran = false;
    run_beside([&] { ran = true; });
    std::exit(ran ? 0 : 1);
  };
  EXPECT_EXIT(work(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace weft::runtime
