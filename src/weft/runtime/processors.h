// SPDX-License-Identifier: Apache-2.0
#pragma once
// What both pools share: how many processors this process may use, where workers run, and how a
// range is cut.

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>

namespace weft::runtime {

/// The processors the process may run on (its affinity mask), at least 1.
inline int processors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

/// Keeps workers off the processor of the thread that calls them. Kernels like to wake a thread
/// where its waker runs; that one works as well, so the two would share a processor for
/// milliseconds while another is idle.
class Aside {
 public:
  void calls() { caller_.store(sched_getcpu(), std::memory_order_relaxed); }
  /// On a worker, at the start of a job. Its mask changes when the caller's processor did.
  void works() const {
    thread_local int off = -1;
    thread_local cpu_set_t all;  // what the worker was allowed at first
    const int cpu = caller_.load(std::memory_order_relaxed);
    if (cpu == off || cpu < 0 || cpu >= CPU_SETSIZE) return;
    if (off < 0 && sched_getaffinity(0, sizeof(all), &all) != 0) return;
    cpu_set_t rest = all;
    CPU_CLR(cpu, &rest);
    if (CPU_COUNT(&rest) > 0 && sched_setaffinity(0, sizeof(rest), &rest) == 0) off = cpu;
  }

 private:
  std::atomic<int> caller_{-1};
};

/// Elements of one chunk of [0, n): four chunks a thread balance unequal speed; whole multiples of
/// the grain keep chunks aligned.
inline std::int64_t chunk_of(std::int64_t n, std::int64_t grain, int threads) {
  std::int64_t chunks =
      std::max<std::int64_t>(1, std::min<std::int64_t>(n / grain, std::int64_t{4} * threads));
  return ((n + chunks - 1) / chunks + grain - 1) / grain * grain;
}

}  // namespace weft::runtime
