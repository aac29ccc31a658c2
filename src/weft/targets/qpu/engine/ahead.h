// SPDX-License-Identifier: Apache-2.0
#pragma once
// QPUs on several host threads with the results, faults and clocks of one. Each QPU runs ahead by
// itself and writes down, as events, what it does to units that QPUs share; the launch's own thread
// settles the events (caches, bandwidth, race checks, semaphores) in the order in which one thread
// would have met them. A QPU stops at a semaphore until that is settled. What cannot be settled so
// (a fault, rows of the VPM that two QPUs use) puts memory back, and the launch is done again by
// one thread.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "weft/targets/qpu/engine.h"

namespace weft::qpu::hw {

/// Whether a program has nothing whose outcome depends on the clock or on who comes first, other
/// than semaphores.
bool may_run_ahead(const Program& program);

class Ahead {
 public:
  /// `threads` in all, the caller's one of them.
  Ahead(Machine& machine, int threads);
  ~Ahead();
  Ahead(const Ahead&) = delete;
  Ahead& operator=(const Ahead&) = delete;

  /// Runs what Machine::begin_launch and set_uniforms have prepared. False: memory, VPM, semaphores
  /// and counters are as before, and one thread must do it.
  bool run(FastProgram& fast, int active, std::int64_t limit_cycles);

 private:
  struct Chunk {
    std::vector<Event> events;
    std::size_t used = 0;
    std::uint64_t vpm_rows = 0;  // that the QPU has touched since the launch began
  };
  static constexpr std::size_t kChunks = 3;
  /// What one QPU has written down and nobody settled yet.
  struct Feed {
    Chunk chunk[kChunks];
    std::size_t first = 0, filled = 0;
    bool running = false;
    bool stopped = false;  // at a semaphore, a fault, or the end
    Qpu::Replaced replaced;
    std::uint64_t vpm_rows = 0;
  };

  void work();
  /// Until something changes, with the lock held before and after; looks for a while, then sleeps.
  void sleep(std::unique_lock<std::mutex>& lock);
  /// Something has changed; with the lock held.
  void tell();
  /// A QPU that may run now, the one with the least written down first; -1: none.
  int candidate() const;
  /// Runs QPU i for a chunk; called and left with the lock held.
  void record(int i, std::unique_lock<std::mutex>& lock);
  /// Waits until QPU i has something to settle, running it or another one meanwhile.
  void provide(int i);
  void consume(int i, bool synchronised);
  void loop(int active, std::int64_t limit_cycles);
  /// Takes the threads off the launch.
  void settle_down();
  void put_back();

  Machine& m_;
  std::vector<Qpu> times_;  // clocks, stalls and TMU queues of each QPU, as settled
  std::vector<const Event*> at_, end_;
  std::vector<Feed> feeds_;
  FastProgram* fast_ = nullptr;
  int active_ = 0;
  bool stopping_ = false;  // this launch
  bool quit_ = false;
  std::atomic<std::uint32_t> version_{0};
  int sleeping_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::jthread> threads_;
};

}  // namespace weft::qpu::hw
