// SPDX-License-Identifier: Apache-2.0
#pragma once
// A mutex that nobody holds in a child that was forked. With std::mutex a child hangs whose parent
// had another thread inside at that moment: the thread is not there in the child, and its lock is.

#include <mutex>

namespace weft {

/// As std::mutex. fork() waits until it has all of them, so they are for short work that waits for
/// nothing else but others of them; after a few seconds it goes on without. While it waits, only a
/// thread that has one of them gets another: however busy the others are, they end. A mutex that is
/// held for long is no such one.
class ForkSafeMutex {
 public:
  ForkSafeMutex();
  ~ForkSafeMutex();
  ForkSafeMutex(const ForkSafeMutex&) = delete;
  ForkSafeMutex& operator=(const ForkSafeMutex&) = delete;
  void lock();
  bool try_lock();
  void unlock();

 private:
  friend struct AllForkSafe;
  std::mutex mutex_;
  ForkSafeMutex *before_ = nullptr, *next_ = nullptr;
};

}  // namespace weft
