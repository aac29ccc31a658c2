// SPDX-License-Identifier: Apache-2.0
#pragma once
// Who touched which word during a launch: finds races between QPUs and TMU reads of words stored in
// the same launch. A line of 16 words that was only read whole, or written whole by one QPU alone,
// costs one word of summary; the first other access gives it two masks per word (readers, writers).
// QPUs that have synchronised
// through a semaphore carry vector clocks, and the clocks of their accesses are kept per line.
// Exact: two accesses race when neither happened before the other through semaphores or the mutex.

#include <array>
#include <atomic>
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

  /// Forgets all accesses; the next launch, or, of a shadow beside another, the other's.
  void begin_launch();
  void begin_launch(std::uint32_t launch);
  /// QPUs that have used words of a line.
  std::uint32_t users_of(std::uint64_t line) const;
  /// Whether one of the two has stores to words of lines [first, end) that the other has used. A
  /// QPU that both know of has used those of `a` first, and may store to what it has used then.
  static bool clash(const Shadow& a, const Shadow& b, std::uint64_t first, std::uint64_t end);

  struct Conflict {
    int other = -1;     // -1: none
    bool race = false;  // false: ordered, but written in this launch (a TMU may be stale)
    std::uint64_t word = 0;
  };
  /// Accesses [word, word + 16) of which `mask` are touched. A read reports written words too when
  /// `uncached` is false.
  Conflict read16(int qpu, std::uint64_t word, std::uint32_t mask, bool uncached);
  Conflict write16(int qpu, std::uint64_t word, std::uint32_t mask);
  /// Reads a whole line that only whole accesses have touched, and that nobody wrote, or, when
  /// `uncached`, nobody else; false: ask read16.
  bool read_line(int qpu, std::uint64_t line, bool uncached) {
    std::uint32_t s = summary_[line];
    if ((s & kLaunch) != launch_) s = launch_;
    std::uint32_t writer = s & kWriter;
    if ((s & kDetailed) || advanced(qpu) || (writer && !(uncached && writer == writer_of(qpu))))
      return false;
    summary_[line] = s | 1u << qpu;
    return true;
  }
  /// The same for a read that may be stale, of a QPU that has not released anything, by the line's
  /// summary.
  std::uint32_t* summary(std::uint64_t line) { return summary_ + line; }
  bool read_line(std::uint32_t& summary, int qpu) const {
    std::uint32_t s = summary;
    if ((s ^ launch_) & kLaunch) s = launch_;
    if (s & (kDetailed | kWriter)) return false;
    summary = s | 1u << qpu;
    return true;
  }
  /// The same in parts, for code that does it by itself (engine/requests.cpp): of another launch, a
  /// summary counts as launch(); with any bit of kNotOnlyRead it is not for the short path.
  std::uint32_t launch() const { return launch_; }
  static std::uint32_t writer_of(int qpu) { return static_cast<std::uint32_t>(qpu + 1) << 13; }
  static constexpr std::uint32_t kLaunchShift = 17, kNotOnlyRead = 0x1f000;
  /// Whether a QPU has released something: its accesses have clocks of their own.
  bool advanced(int qpu) const { return advanced_.load(std::memory_order_relaxed) >> qpu & 1; }
  /// Writes a whole line that nobody else has touched, and this QPU as a whole only; false: ask
  /// write16.
  bool write_line(int qpu, std::uint64_t line) {
    std::uint32_t s = summary_[line], mine = writer_of(qpu);
    if ((s & kLaunch) != launch_) s = launch_;
    if ((s & ~(kLaunch | 1u << qpu | mine)) || advanced(qpu) ||
        ((s & kWriter) && (s & kWriter) != mine))
      return false;
    summary_[line] = s | mine;
    return true;
  }

  /// Semaphore or mutex `s`: a release publishes what the QPU did, an acquire receives it.
  void release(int qpu, unsigned s);
  void acquire(int qpu, unsigned s);
  static constexpr unsigned kMutex = 16;

 private:
  struct LineClocks {
    std::uint32_t read[kMaxQpus][16] = {}, write[kMaxQpus][16] = {};
  };
  struct Users {
    std::uint16_t read[16], written[16];
  };
  Users users(std::uint64_t line, std::uint32_t summary) const;
  /// Masks of a line's words: 16 of readers, 16 of writers; bits 0..11: QPUs.
  std::uint16_t* detail(std::uint64_t line);
  Conflict access(int qpu, std::uint64_t line, std::uint32_t mask, bool write, bool uncached);
  Conflict slow(int qpu, std::uint64_t line, std::uint32_t mask, bool write, bool uncached);
  void record(int qpu, std::uint64_t line, std::uint32_t mask, bool write);

  // A line's summary: bits 0..11 QPUs that read all of it, kDetailed, one more than the QPU that
  // wrote all of it, and the launch in the high bits: of another launch, nobody touched it.
  static constexpr std::uint32_t kDetailed = 1u << 12, kWriter = 15u << 13,
                                 kLaunch = ~0u << kLaunchShift;
  static_assert(kNotOnlyRead == (kDetailed | kWriter));
  std::uint64_t lines_count_;
  std::uint32_t* summary_ = nullptr;
  std::uint16_t* masks_ = nullptr;
  std::uint32_t launch_ = 0;
  std::array<Clocks, kMaxQpus> clock_{};
  std::array<Clocks, 17> published_{};
  // QPUs whose own clock is past 1: their accesses are recorded. One thread may release while
  // another has accesses of other QPUs (engine/decoupled_timing.h).
  std::atomic<std::uint32_t> advanced_{0};
  std::unordered_map<std::uint64_t, LineClocks> lines_;
};

}  // namespace weft::qpu::hw
