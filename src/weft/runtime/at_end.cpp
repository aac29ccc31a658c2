// SPDX-License-Identifier: Apache-2.0
#include "weft/runtime/at_end.h"

#include <cstdlib>
#include <map>
#include <mutex>

#include <unistd.h>

#include "weft/base/fork_safe_mutex.h"

namespace weft::runtime {

namespace {

struct Requests {
  ForkSafeMutex mutex;
  std::map<const void*, std::function<void()>> all;
  const pid_t process = getpid();
};

Requests& requests() {
  static auto& kept = *new Requests;
  return kept;
}

}  // namespace

void wait_at_end(const void* key, std::function<void()> wait) {
  Requests& known = requests();
  if (known.process != getpid()) return;
  static const int registered = std::atexit(&wait_for_all);
  static_cast<void>(registered);
  const std::lock_guard lock(known.mutex);
  known.all.try_emplace(key, std::move(wait));
}

void wait_for_all() {
  Requests& known = requests();
  if (known.process != getpid()) return;
  std::map<const void*, std::function<void()>> all;
  {
    const std::lock_guard lock(known.mutex);
    all = known.all;
  }
  for (const auto& [key, wait] : all) wait();
}

void wait_when_thread_ends() {
  struct End {
    ~
End
() { wait_for_all(); }
}
;
thread_local const
End
end;
static_cast<void>(&end);  // made where it is named first
}

}  // namespace weft::runtime
