// SPDX-License-Identifier: Apache-2.0
// What ForkSafeMutex decides while a fork() waits for a lock that is held, and afterwards.

#include "weft/base/fork_safe_mutex.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <vector>

namespace weft {
namespace {

/// What runs inside fork(), in its thread. Registered before the first mutex is made, so that it
/// runs after fork() has taken the mutexes (or has gone on without) and before it gives them back.
class InsideFork {
 public:
  virtual void run() = 0;
  static inline std::atomic<InsideFork*> now = nullptr;
};
[[gnu::constructor(101)]] void watch_forks() {
  pthread_atfork(
      [] {
        if (InsideFork* now = InsideFork::now.exchange(nullptr)) now->run();
      },
      nullptr, nullptr);
}

/// A fork() that waits for `held`, which the thread of the test has. fork() takes the newest mutex
/// first, so that it stops at `held` and leaves `other` alone.
struct WaitingFork {
  ForkSafeMutex other, held;
  std::atomic<bool> forked = false;
  std::atomic<int> status = -1;
  bool refused = false;
  std::thread forking;

  /// Whether a thread without locks is refused one while fork() waits.
  void begin() {
    std::atomic<bool> tries = false;
    std::thread another([&] {
      while (!refused && !forked) {
        refused = !other.try_lock();
        if (!refused) other.unlock();
        tries = true;
      }
    });
    while (!tries) std::this_thread::yield();
    forking = std::thread([&] {
      const pid_t child = fork();
      if (child == 0) {
        alarm(60);  // ends it when it hangs
        other.lock();
        held.lock();  // nobody has it there
        _exit(0);
      }
      forked = true;
      int ended = -1;
      waitpid(child, &ended, 0);
      status = ended;
    });
    another.join();
  }
};

TEST(ForkSafeMutex, only_threads_that_hold_one_get_another_while_fork_waits) {
  for (const bool tried : {false, true}) {
    WaitingFork fork;
    if (tried) ASSERT_TRUE(fork.held.try_lock());
    else fork.held.lock();
    fork.begin();
    EXPECT_TRUE(fork.refused);
    EXPECT_TRUE(fork.other.try_lock()) << "the thread that fork() waits for";
    fork.other.unlock();
    fork.other.lock();
    fork.other.unlock();
    std::atomic<bool> released = false, early = false;
    std::thread waits([&] {
      fork.other.lock();
      early = !released;
      fork.other.unlock();
    });
    usleep(20000);
    released = true;
    fork.held.unlock();
    waits.join();
    fork.forking.join();
    EXPECT_FALSE(early) << "a thread without locks waits for the end of fork()";
    EXPECT_EQ(fork.status, 0);
    // Nothing is left behind.
    std::thread([&] {
      EXPECT_TRUE(fork.other.try_lock() && fork.held.try_lock());
      fork.held.unlock(), fork.other.unlock();
    }).join();
  }
}

/// Five seconds of waiting, without work.
TEST(ForkSafeMutex, fork_goes_on_without_a_lock_that_is_held_for_long) {
  ForkSafeMutex other, held, newest;
  struct Asks : InsideFork {
    std::atomic<bool> gone_on = false, taken = false;
    void run() override {
      gone_on = true;
      while (!taken) std::this_thread::yield();
    }
  } asks;
  held.lock();
  std::thread forking([&] {
    InsideFork::now = &asks;
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      other.lock();
      _exit(held.try_lock() ? 1 : 0);  // as it was in the parent
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_FALSE(held.try_lock()) << "fork() gave back what it did not have";
    EXPECT_FALSE(newest.try_lock()) << "fork() gave back what it had and had given back before";
    EXPECT_TRUE(other.try_lock());
    other.unlock();
  });
  while (!asks.gone_on) std::this_thread::yield();
  newest.lock();
  asks.taken = true;
  forking.join();
  newest.unlock();
  held.unlock();
}

/// While fork() has the list of the mutexes, nobody adds to it or takes from it.
TEST(ForkSafeMutex, fork_keeps_the_list_to_itself) {
  for (const bool ends : {false, true}) {
    std::optional<ForkSafeMutex> mutex;
    if (ends) mutex.emplace();
    struct Waits : InsideFork {
      std::atomic<bool> inside = false, changed = false, early = false;
      void run() override {
        inside = true;
        usleep(100000);
        early = changed.load();
      }
    } waits;
    std::thread another([&] {
      while (!waits.inside) std::this_thread::yield();
      if (ends) mutex.reset();
      else mutex.emplace();
      waits.changed = true;
    });
    InsideFork::now = &waits;
    const pid_t child = fork();
    if (child == 0) _exit(0);
    another.join();
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_FALSE(waits.early) << (ends ? "the end" : "the making")
                              << " of a mutex waits for fork()";
  }
}

/// Each in a page that nobody may touch once its mutex has ended.
TEST(ForkSafeMutex, fork_leaves_ended_ones_alone) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  for (const auto& order : {std::array{0, 1, 2}, {1, 0, 2}, {1, 2, 0}, {2, 1, 0}, {2, 0, 1}}) {
    void* pages[3];
    ForkSafeMutex* one[3];
    for (int i = 0; i < 3; ++i) {
      pages[i] = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      ASSERT_NE(pages[i], MAP_FAILED);
      one[i] = new (pages[i]) ForkSafeMutex;
    }
    for (const int i : order) {
      one[i]->~ForkSafeMutex();
      mprotect(pages[i], page, PROT_NONE);
      const pid_t child = fork();
      if (child == 0) _exit(0);
      int status = -1;
      waitpid(child, &status, 0);
      EXPECT_EQ(status, 0);
    }
    for (void* p : pages) munmap(p, page);
  }
}

/// Of threads that exclude each other, while others fork.
TEST(ForkSafeMutex, one_thread_at_a_time_holds_it) {
  ForkSafeMutex first, mutex, last;
  std::atomic<bool> going = true;
  std::atomic<int> inside = 0, bad = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      while (going) {
        if (!mutex.try_lock()) mutex.lock();
        bad += ++inside != 1;
        for (volatile int k = 0; k < 300; ++k) continue;
        --inside;
        mutex.unlock();
      }
    });
  for (int k = 0; k < 100; ++k) {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    waitpid(child, nullptr, 0);
  }
  going = false;
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(bad, 0);
}

/// The list of all of them holds while threads change it side by side.
TEST(ForkSafeMutex, threads_make_and_end_them) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] {
      for (int k = 0; k < 20000; ++k) {
        ForkSafeMutex one, two;
        const std::scoped_lock both(one, two);
      }
    });
  for (std::thread& t : threads) t.join();
  const pid_t child = fork();
  if (child == 0) _exit(0);
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace weft
