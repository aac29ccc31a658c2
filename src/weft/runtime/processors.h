// SPDX-License-Identifier: Apache-2.0
#pragma once
// What both pools share: how many processors this process may use, where workers run, and how a
// range is cut.

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
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
/// milliseconds while another is idle. The caller sets the masks, before it wakes anybody, and only
/// when it runs elsewhere than at the last call. At most kMost workers; more find their own places.
class WorkerAffinity {
 public:
  static constexpr std::size_t kMost = 32;
  void calls() {
    const int cpu = sched_getcpu();
    if (caller_.exchange(cpu, std::memory_order_relaxed) == cpu) return;
    for (Worker& w : workers_) {
      if (const pid_t thread = w.thread.load(std::memory_order_acquire)) place(w, thread, cpu);
    }
  }
  /// On a worker, at the start of its work: enters it once for the thread's life.
  void works() {
    thread_local Entry entry(*this);
    (void)entry;
  }
  /// The process's; never destroyed, since workers may outlive what is static.
  static WorkerAffinity& shared() {
    static WorkerAffinity& affinity = *new WorkerAffinity;
    return affinity;
  }

 private:
  struct Worker {
    std::atomic<pid_t> thread{0};
    cpu_set_t all;  // what it was allowed at first
  };
  struct Entry {
    Worker* slot = nullptr;
    explicit Entry(WorkerAffinity& affinity) {
      cpu_set_t all;
      if (sched_getaffinity(0, sizeof(all), &all) != 0) return;
      const auto self = static_cast<pid_t>(syscall(SYS_gettid));
      for (Worker& w : affinity.workers_) {
        pid_t none = 0;
        if (!w.thread.compare_exchange_strong(none, -1)) continue;
        w.all = all;
        w.thread.store(self, std::memory_order_release);
        slot = &w;
        place(w, self, affinity.caller_.load(std::memory_order_relaxed));
        return;
      }
    }
    ~Entry() {
      if (slot) slot->thread.store(0, std::memory_order_release);
    }
  };
  static void place(const Worker& w, pid_t thread, int cpu) {
    if (thread <= 0 || cpu < 0 || cpu >= CPU_SETSIZE) return;
    cpu_set_t rest = w.all;
    CPU_CLR(cpu, &rest);
    if (CPU_COUNT(&rest) > 0) sched_setaffinity(thread, sizeof(rest), &rest);
  }
  std::atomic<int> caller_{-1};
  std::array<Worker, kMost> workers_;
};

/// Elements of one chunk of [0, n): four chunks a thread balance unequal speed; whole multiples of
/// the grain keep chunks aligned.
inline std::int64_t chunk_of(std::int64_t n, std::int64_t grain, int threads) {
  std::int64_t chunks =
      std::max<std::int64_t>(1, std::min<std::int64_t>(n / grain, std::int64_t{4} * threads));
  return ((n + chunks - 1) / chunks + grain - 1) / grain * grain;
}

}  // namespace weft::runtime
