// SPDX-License-Identifier: Apache-2.0
#include "weft/base/fork_safe_mutex.h"

#include <chrono>
#include <thread>
#include <utility>

#include <pthread.h>

namespace weft {

/// The mutexes of the process, in a list without memory of its own: fork() may not allocate.
struct AllForkSafe {
  std::mutex mutex;
  ForkSafeMutex* first = nullptr;
  ForkSafeMutex* held_to = nullptr;  // fork() has those before this one
  bool held = false;

  static AllForkSafe& get() {
    static auto& one = *new AllForkSafe;
    return one;
  }

  AllForkSafe() {
    pthread_atfork([] { get().take(); }, [] { get().give(); }, [] { get().give(); });
  }

  /// Holds all of them or none: who holds one may wait for another.
  bool try_all() {
    if (!mutex.try_lock()) return false;
    for (held_to = first; held_to; held_to = held_to->next_) {
      if (held_to->try_lock()) continue;
      give_back();
      return false;
    }
    return true;
  }
  void give_back() {
    for (ForkSafeMutex* m = first; m != held_to; m = m->next_) m->unlock();
    mutex.unlock();
  }

  void take() {
    constexpr std::chrono::seconds kMost{5};
    const auto end = std::chrono::steady_clock::now() + kMost;
    while (!(held = try_all()) && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::microseconds(20));
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

}  // namespace weft
