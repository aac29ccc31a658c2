// SPDX-License-Identifier: Apache-2.0
#pragma once
// Launches that wait for their kernels. A device whose kernels are compiled beside the caller keeps
// work in the order of the calls: what comes after a launch that waits, waits too.

#include <atomic>
#include <deque>
#include <functional>
#include <mutex>

#include "weft/runtime/device.h"

namespace weft::runtime {

class Backlog {
 public:
  /// Whether anything waits; asked before each launch.
  bool waits() const { return waits_.load(std::memory_order_acquire); }
  static constexpr std::size_t kMost = 10000;
  /// `ready` says whether `run` may be called without a wait. Where more than kMost pieces of work
  /// wait, the first ones run now.
  void add(std::function<bool()> ready, std::function<void()> run);
  /// Runs what is ready, up to the first that is not.
  void advance();
  /// Runs everything. Throws the first error after the rest has run.
  void settle();

 private:
  struct Work {
    std::function<bool()> ready;
    std::function<void()> run;
  };
  void run_front();

  std::recursive_mutex mutex_;
  std::deque<Work> work_;
  std::atomic<bool> waits_{false};
  std::exception_ptr error_;
};

/// While it lives, what this thread launches on a device with a backlog waits in a list of its own,
/// also where others know the device's memory, and keeps its arrays until then: kernels of one call
/// are compiled beside each other. Such work is ordered with nobody else's, so it is for calls
/// whose results nobody reads.
class OwnBacklog {
 public:
  explicit OwnBacklog(const Device* device);
  ~OwnBacklog();
  OwnBacklog(const OwnBacklog&) = delete;
  OwnBacklog& operator=(const OwnBacklog&) = delete;
  /// Runs everything. Throws the first error after the rest has run.
  void settle() { backlog_.settle(); }
  /// This thread's for the device, or null.
  static Backlog* of(const Device* device);
  /// Runs what this thread's holds: before other threads see an array that it makes.
  static void settle_of(const Device* device) {
    if (Backlog* own = of(device)) own->settle();
  }

 private:
  const Device* device_;
  Backlog backlog_;
  OwnBacklog* before_;
};

/// A device with a backlog.
class DefersWork {
 public:
  virtual ~DefersWork() = default;
  /// Its memory is known outside: from now on nothing waits, since nobody outside knows the order.
  virtual void stop_deferring() = 0;
};

/// To be called before another library, or Python, gets or gives an address of the device.
inline void share_memory(Device& device) {
  if (auto* defers = dynamic_cast<DefersWork*>(&device)) defers->stop_deferring();
}

}  // namespace weft::runtime
