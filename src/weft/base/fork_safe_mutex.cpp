// SPDX-License-Identifier: Apache-2.0
#include "weft/base/fork_safe_mutex.h"

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include <pthread.h>

namespace weft {

namespace {

std::atomic<int> forks = 0;      // threads that wait in fork()
thread_local int held_here = 0;  // of these mutexes, by this thread

void pause_shortly() { std::this_thread::sleep_for(std::chrono::microseconds(20)); }

}  // namespace

/// The mutexes of the process, in a list without memory of its own: fork() may not allocate.
struct AllForkSafe {
  std::mutex mutex;
  ForkSafeMutex* first = nullptr;
  ForkSafeMutex* held_to = nullptr;  // fork() has those before this one
  static inline thread_local bool held =
      false;  // by this thread, between the handlers of its fork()

  static AllForkSafe& get() {
    static auto& one = *new AllForkSafe;
    return one;
  }

  AllForkSafe() {
    pthread_atfork([] { get().take(); },
                   [] {
                     get().give();
                     --forks;
                   },
                   [] {
                     get().give();
                     forks = 0;  // other threads that fork are not there
                   });
  }

  /// Holds all of them or none: who holds one may wait for another.
  bool try_all() {
    if (!mutex.try_lock()) return false;
    for (held_to = first; held_to; held_to = held_to->next_) {
      if (held_to->mutex_.try_lock()) continue;
      give_back();
      return false;
    }
    return true;
  }
  void give_back() {
    for (ForkSafeMutex* m = first; m != held_to; m = m->next_) m->mutex_.unlock();
    mutex.unlock();
  }

  void take() {
    constexpr std::chrono::seconds kMost{5};
    const auto end = std::chrono::steady_clock::now() + kMost;
    ++forks;
    while (!(held = try_all()) && std::chrono::steady_clock::now() < end) pause_shortly();
  }
  void give() {
    if (std::exchange(held, false)) give_back();
  }
};

ForkSafeMutex::ForkSafeMutex() {
  AllForkSafe& all = AllForkSafe::get();
  std::lock_guard lock(all.mutex);
  next_ = all.first;
  if (next_) next_->before_ = this;
  all.first = this;
}

ForkSafeMutex::~ForkSafeMutex() {
  AllForkSafe& all = AllForkSafe::get();
  std::lock_guard lock(all.mutex);
  (before_ ? before_->next_ : all.first) = next_;
  if (next_) next_->before_ = before_;
}

void ForkSafeMutex::lock() {
  while (held_here == 0 && forks.load(std::memory_order_relaxed) > 0) pause_shortly();
  mutex_.lock();
  ++held_here;
}

bool ForkSafeMutex::try_lock() {
  if ((held_here == 0 && forks.load(std::memory_order_relaxed) > 0) || !mutex_.try_lock())
    return false;
  ++held_here;
  return true;
}

void ForkSafeMutex::unlock() {
  --held_here;
  mutex_.unlock();
}

}  // namespace weft
