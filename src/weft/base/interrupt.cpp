// SPDX-License-Identifier: Apache-2.0
#include "weft/base/interrupt.h"

#include <atomic>
#include <utility>

namespace weft {

void** interrupt_slot() {
  thread_local void* innermost = nullptr;
  return &innermost;
}

namespace {
std::atomic<void** (*)()> slot_of_thread{interrupt_slot};
void*& innermost() { return *slot_of_thread.load(std::memory_order_relaxed)(); }
}  // namespace

void share_interrupts(void** (*slot)()) { slot_of_thread = slot; }

InterruptScope::InterruptScope(std::function<void()> check, std::chrono::milliseconds every)
    : check_(std::move(check)),
      every_(every),
      next_(std::chrono::steady_clock::now() + every),
      outer_(static_cast<InterruptScope*>(std::exchange(innermost(), this))) {}

InterruptScope::~InterruptScope() { innermost() = outer_; }

void poll_interrupt() {
  auto* scope = static_cast<InterruptScope*>(innermost());
  if (!scope) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < scope->next_) return;
  scope->next_ = now + scope->every_;
  scope->check_();
}

}  // namespace weft
