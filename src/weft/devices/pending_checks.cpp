// SPDX-License-Identifier: Apache-2.0
#include "weft/devices/pending_checks.h"

#include <atomic>
#include <map>
#include <mutex>
#include <vector>

#include "weft/array/ops.h"
#include "weft/base/fork_safe_mutex.h"
#include "weft/runtime/backlog.h"
#include "weft/runtime/recording.h"

namespace weft {

namespace {

constexpr std::size_t kMostChecks = 256;
constexpr std::int64_t kMostBytes = 32 << 20;

struct Checks {
  NDArray flag;
  std::vector<std::function<void()>> explain;
  std::int64_t bytes = 0;
};

ForkSafeMutex& mutex() {
  static auto& one = *new ForkSafeMutex;
  return one;
}
/// Flags hold their device, so that an address is no other device's later.
std::map<const Device*, Checks>& all() {
  static auto& one = *new std::map<const Device*, Checks>;
  return one;
}
std::atomic<int>& waiting() {
  static std::atomic<int> checks{0};
  return checks;
}

}  // namespace

NDArray pending_flag(const Ref<Device>& device) {
  {
    std::lock_guard lock(mutex());
    if (NDArray& flag = all()[device.get()].flag; flag.defined()) return flag;
  }
  runtime::MemoryPool::Scope outside(nullptr);  // a recording's pool comes and goes
  NDArray fresh = full(device, Elem::int32, Dims{1}, Scalar(0));
  runtime::OwnBacklog::settle_of(device.get());
  std::lock_guard lock(mutex());
  NDArray& flag = all()[device.get()].flag;
  if (!flag.defined()) flag = fresh;
  return flag;
}

void add_pending(const Ref<Device>& device, std::function<void()> explain, std::int64_t bytes) {
  bool full = false;
  {
    std::lock_guard lock(mutex());
    Checks& checks = all()[device.get()];
    checks.explain.push_back(std::move(explain));
    checks.bytes += bytes;
    ++waiting();
    full = checks.explain.size() >= kMostChecks || checks.bytes > kMostBytes;
  }
  if (full) settle_pending(device);
}

void settle_pending(const Ref<Device>& device) {
  if (waiting() == 0) return;
  std::vector<std::function<void()>> explain;
  NDArray flag;
  {
    std::lock_guard lock(mutex());
    Checks& checks = all()[device.get()];
    explain.swap(checks.explain);
    checks.bytes = 0;
    flag = checks.flag;
    waiting() -= static_cast<int>(explain.size());
  }
  if (explain.empty()) return;
  std::int32_t set = 0;
  device->download(&set, *flag.handle(), 0, sizeof set);
  if (!set) return;
  set = 0;
  device->upload(*flag.handle(), 0, &set, sizeof set);
  for (const std::function<void()>& f : explain) f();
  throw Error(ErrorKind::index, "array.index.range",
              "an array was read at a position outside its axis; the positions have changed since");
}

}  // namespace weft
