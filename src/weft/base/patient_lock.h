// SPDX-License-Identifier: Apache-2.0
#pragma once
// Waits, for a device or for a lock that is held during long work, such as a simulated launch. The
// holder may ask its embedder for signals meanwhile (poll_interrupt), and Python's answer needs the
// interpreter's lock: a thread that waits here with that lock held would wait for ever. So it lets
// go of it first. Whoever does so may hold no lock for which another thread waits with it.

#include <functional>
#include <mutex>

namespace weft {

/// How this thread waits: `around(wait)` calls wait() once, without the embedder's lock. Null: as
/// it is. Each copy of the library is told; to be called before other threads wait.
void set_patience(void (*around)(const std::function<void()>& wait));

/// Calls wait() once as set_patience() says; what it throws passes.
void wait_patiently(const std::function<void()>& wait);

template <typename Mutex>
std::unique_lock<Mutex> patient_lock(Mutex& mutex) {
  std::unique_lock lock(mutex, std::try_to_lock);
  if (!lock) wait_patiently([&] { lock.lock(); });
  return lock;
}

}  // namespace weft
