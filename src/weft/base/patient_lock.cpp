// SPDX-License-Identifier: Apache-2.0
#include "weft/base/patient_lock.h"

#include <atomic>

namespace weft {

namespace {
std::atomic<void (*)(const std::function<void()>&)> patience{nullptr};
}  // namespace

void set_patience(void (*around)(const std::function<void()>& wait)) { patience = around; }

void wait_patiently(const std::function<void()>& wait) {
  if (auto* around = patience.load()) around(wait);
  else wait();
}

}  // namespace weft
