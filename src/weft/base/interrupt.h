// SPDX-License-Identifier: Apache-2.0
#pragma once
// How long work is stopped from outside: whoever starts it says, for the current thread, what to
// ask now and then; whoever loops long asks. The Python module asks for pending signals, so that
// Ctrl-C ends a simulated kernel. Without a check a poll costs a few instructions.

#include <chrono>
#include <functional>

namespace weft {

/// While it lives, poll_interrupt() of this thread calls `check` at most once per `every`. The
/// check stops the work by throwing; loops that poll leave their machine usable then.
class InterruptScope {
 public:
  explicit InterruptScope(std::function<void()> check,
                          std::chrono::milliseconds every = std::chrono::milliseconds(50));
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;

 private:
  friend void poll_interrupt();
  std::function<void()> check_;
  std::chrono::milliseconds every_;
  std::chrono::steady_clock::time_point next_;
  InterruptScope* outer_;
};

/// Where this copy of the library keeps the current thread's innermost scope.
void** interrupt_slot();

/// Two copies of the library in one process (weft._core and weft._rpc) share scopes: one keeps them
/// where the other one does. Called before any scope exists.
void share_interrupts(void** (*slot)());

/// To be called about every microsecond to millisecond. Throws what the thread's check throws.
void poll_interrupt();

}  // namespace weft
