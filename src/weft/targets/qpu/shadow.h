// SPDX-License-Identifier: Apache-2.0
#pragma once
// Who touched which word during a launch: finds races between QPUs and TMU reads of words stored in
// the same launch. Per word two masks (readers, writers) tagged with the launch; QPUs that have
// synchronised through a semaphore carry vector clocks, and the clocks of their accesses are kept
// per line. Exact: two accesses race when neither happened before the other through semaphores or
// the mutex.

#include <array>
#include <cstdint>
#include <unordered_map>

namespace weft::qpu::hw {

inline constexpr int kMaxQpus = 12;

class Shadow {
 public:
  using Clocks = std::array<std::uint32_t, kMaxQpus>;

  explicit Shadow(std::uint64_t words);
  ~Shadow();
  Shadow(const Shadow&) = delete;
  Shadow& operator=(const Shadow&) = delete;

  /// Forgets all accesses.
  void begin_launch();

  struct Conflict {
    int other = -1;     // -1: none
    bool race = false;  // false: ordered, but written in this launch (a TMU may be stale)
    std::uint64_t word = 0;
  };
  /// Accesses [word, word + 16) of which `mask` are touched. A read reports written words too when
  /// `uncached` is false.
  Conflict read16(int qpu, std::uint64_t word, std::uint32_t mask, bool uncached);
  Conflict write16(int qpu, std::uint64_t word, std::uint32_t mask);

  /// Semaphore or mutex `s`: a release publishes what the QPU did, an acquire receives it.
  void release(int qpu, unsigned s);
  void acquire(int qpu, unsigned s);
  static constexpr unsigned kMutex = 16;

 private:
  struct LineClocks {
    std::uint32_t read[kMaxQpus][16] = {}, write[kMaxQpus][16] = {};
  };
  Conflict slow(int qpu, std::uint64_t word, std::uint32_t mask, bool write, bool uncached);
  void record(int qpu, std::uint64_t word, std::uint32_t mask, bool write);

  std::uint64_t words_;
  // Masks of 16 words side by side: 16 of readers, 16 of writers. Bits 0..11: QPUs, 12..15: launch.
  std::uint16_t* words16_ = nullptr;
  std::uint16_t& readers(std::uint64_t word) { return words16_[(word >> 4) * 32 + (word & 15)]; }
  std::uint16_t& writers(std::uint64_t word) {
    return words16_[(word >> 4) * 32 + 16 + (word & 15)];
  }
  std::uint16_t tag_ = 0;
  std::array<Clocks, kMaxQpus> clock_{};
  std::array<Clocks, 17> published_{};
  std::uint32_t advanced_ = 0;  // QPUs whose own clock is past 1: their accesses are recorded
  std::unordered_map<std::uint64_t, LineClocks> lines_;
};

}  // namespace weft::qpu::hw
