// SPDX-License-Identifier: Apache-2.0
#pragma once
// QPUs on two host threads with the results, faults and clocks of one. One thread has the registers
// and memory of most QPUs: each runs ahead by itself, its accesses are checked for races, and what
// it does to units that QPUs share is written down. The launch's own thread gives all QPUs their
// clocks (caches, bandwidth, semaphores) in the order in which one thread would have met them; so
// that both have about as much to do, it has the registers and memory of the other QPUs too. A QPU
// stops at a semaphore until that is settled. What cannot be settled so (a fault, rows of the VPM
// that two QPUs use, words that QPUs of different threads use) puts memory back, and the launch is
// done again by one thread.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "weft/runtime/processors.h"
#include "weft/targets/qpu/engine.h"

namespace weft::qpu::hw {

/// Whether a program has nothing whose outcome depends on the clock or on who comes first, other
/// than semaphores.
bool may_run_ahead(const Program& program);

class Ahead {
 public:
  explicit Ahead(Machine& machine);
  ~Ahead();
  Ahead(const Ahead&) = delete;
  Ahead& operator=(const Ahead&) = delete;

  /// Runs what Machine::begin_launch has prepared, but for the QPUs. False: memory, VPM, semaphores
  /// and counters are as before, and one thread must do it. Throws what an interrupt throws; then
  /// they are as before too. `share`: of how many QPUs the launch's own thread has the registers
  /// and memory; negative: as many as the last launch of the program suggests.
  bool run(FastProgram& fast, int active, std::int64_t limit_cycles, int share = -1);
  /// The largest share: accesses that semaphores order need one shadow, hence one thread.
  static int most_share(const DividedProgram& program, int active) {
    return program.synchronises ? 0 : active - 1;
  }
  /// Of a launch that one thread begins with all QPUs: what memory holds is saved, so that `join`
  /// can do the rest.
  void watch(int active);
  /// Whether two threads can do the rest of the launch: no two QPUs have used a row of the VPM.
  bool may_join(int active) const;
  /// As run, for a launch that has come to clock `window`, where all QPUs have given way; false:
  /// all is as it was in the beginning, not as one thread has left it.
  bool join(FastProgram& fast, int active, std::int64_t limit_cycles, std::int64_t window);

 private:
  struct alignas(64) Chunk {
    std::atomic<std::uint32_t> number{0};  // of those that the QPU has filled, once this is one
    std::unique_ptr<std::byte[]> memory;   // words, then events
    std::size_t room = 0;                  // bytes
    const Event* events = nullptr;
    std::byte* leave = nullptr;  // words end behind it
    std::uint64_t vpm_rows = 0;  // that the QPU has touched since the launch began
    bool fault = false;          // the thread met one; it is found again by one thread
  };
  static constexpr std::size_t kChunks = 12;
  /// What one QPU has written down and nobody settled yet.
  struct Feed {
    Chunk chunk[kChunks];
    // Each on a line of its own: one thread looks at it while the other works.
    // Chunks so far, and before the launch: by the one thread.
    alignas(64) std::uint32_t filled = 0, first = 0;
    alignas(64) std::atomic<std::uint32_t> settled{0};  // by the other
    alignas(64) std::atomic<bool> stopped{false};       // at a semaphore, a fault, or the end
    alignas(64) std::uint64_t vpm_rows = 0;
  };

  void work();
  void save_beginning();
  void choose_share(FastProgram& fast, int active, int share);
  void begin();
  bool run_prepared(std::int64_t limit_cycles, std::int64_t window);
  void put_back();
  /// How many QPUs the launch's own thread should have led, so that the busier one had least to do.
  int best_share() const;
  /// A QPU of [first, end) that may run now, the one with the least written down first; -1: none.
  int candidate(int first, int end) const;
  /// Runs QPU i for a chunk.
  void record(int i);
  /// Waits until QPU i has something to settle.
  void provide(int i);
  void consume(int i, bool synchronised);
  void loop(int active, std::int64_t limit_cycles, std::int64_t window);
  /// Takes the other thread off the launch.
  void settle_down();
  /// Until `ready()`: looks for a while, then sleeps.
  enum Who { kOwn, kOther };  // the launch's own thread, the other
  template <typename F>
  void wait(Who who, F ready);
  /// Its parts: the first returns how often it looked in vain, negative where it gave up.
  template <typename F>
  int look(Who who, F ready);
  template <typename F>
  void sleep(Who who, F ready);
  /// The same; the wait does not count as work.
  template <typename F>
  void wait_apart(Who who, F ready);
  /// What the other thread may wait for has come: it hears of it, or (wake) mostly at once.
  void tell();
  void wake();

  Machine& m_;
  std::vector<Qpu> times_;   // clocks, stalls and TMU queues of each QPU, as settled
  std::vector<bool> holds_;  // the settling thread is at a chunk of this QPU
  std::unique_ptr<Feed[]> feeds_;
  // What was there before the launch: what stores have replaced, and the rest.
  SavedPages saved_;
  std::uint32_t vpm_before_[64][16];
  std::uint8_t semaphores_before_[16];
  Counters counters_before_;
  std::vector<Finding> findings_before_;
  std::exception_ptr stopped_;  // what an interrupt threw
  FastProgram* fast_ = nullptr;
  DividedProgram* program_ = nullptr;  // the same
  int active_ = 0, own_ = 0;           // QPUs from own_ on are led by the launch's own thread
  bool joined_ = false;                // one thread has begun the launch
  Shadow* second_ = nullptr;           // of the QPUs from own_ on; null: there are none
  std::int64_t worked_[2] = {};        // nanoseconds in this launch, by Who; with looks
  struct alignas(64) Looks {
    std::int64_t count = 0;  // in this launch, in vain
    double least = 0;        // nanoseconds that one takes; 0: not known yet
  } looks_[2];
  std::atomic<bool> running_{false};  // a launch
  std::atomic<bool> idle_{true};      // the other thread is not in it
  std::atomic<bool> quit_{false};
  std::atomic<int> sleeping_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  int spins_[2];                      // by Who
  runtime::WorkerAffinity affinity_;  // keeps the other thread off the launch's own processor
  std::jthread thread_;
};

}  // namespace weft::qpu::hw
