// SPDX-License-Identifier: Apache-2.0
#pragma once
// std::condition_variable::wait without libstdc++'s function, which its version 12 exports as
// another one than the versions before it: a library that calls it could not be loaded beside
// those.

#include <pthread.h>

#include <condition_variable>
#include <mutex>

namespace weft {

/// Until somebody notifies `changed`, or for no reason. `lock` is held, and held again at the
/// return.
inline void wait(std::condition_variable& changed, std::unique_lock<std::mutex>& lock) {
  ::pthread_cond_wait(changed.native_handle(), lock.mutex()->native_handle());
}

/// Until ready() holds, which is asked with the lock held.
template <typename Ready>
void wait(std::condition_variable& changed, std::unique_lock<std::mutex>& lock, Ready ready) {
  while (!ready()) wait(changed, lock);
}

}  // namespace weft
