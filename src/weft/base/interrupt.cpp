// SPDX-License-Identifier: Apache-2.0
#include "weft/base/interrupt.h"

#include <utility>

namespace weft {

namespace {
thread_local InterruptScope* innermost = nullptr;
}  // namespace

InterruptScope::InterruptScope(std::function<void()> check, std::chrono::milliseconds every)
    : check_(std::move(check)),
      every_(every),
      next_(std::chrono::steady_clock::now() + every),
      outer_(std::exchange(innermost, this)) {}

InterruptScope::~InterruptScope() { innermost = outer_; }

void poll_interrupt() {
  InterruptScope* scope = innermost;
  if (!scope) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < scope->next_) return;
  scope->next_ = now + scope->every_;
  scope->check_();
}

}  // namespace weft
