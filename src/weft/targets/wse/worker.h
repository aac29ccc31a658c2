// SPDX-License-Identifier: Apache-2.0
#pragma once
// What one host thread owns while the fabric runs: a calendar of PEs to visit and letters to the
// other threads, delivered between cycles. Internal to the fabric.

#include <algorithm>
#include <exception>
#include <queue>
#include <utility>
#include <vector>

#include "weft/targets/wse/fabric.h"

namespace weft::wse {

struct Fabric::Worker {
  static constexpr Cycle kWheel = 1024;
  int id = 0;
  std::array<std::vector<std::uint32_t>, static_cast<std::size_t>(kWheel)> wheel;
  std::array<std::uint64_t, static_cast<std::size_t>(kWheel / 64)>
      filled{};  // slots that hold something
  using Far = std::pair<Cycle, std::uint32_t>;
  std::priority_queue<Far, std::vector<Far>, std::greater<>> far;
  Cycle base = 0;  // wheel holds [base, base + kWheel)

  struct Letter {
    std::uint32_t pe;
    std::int32_t color;
    Cycle at;
  };
  std::array<std::vector<std::vector<Letter>>, 2>
      letters;  // [parity of the cycle][receiving worker]
  struct Mail {
    std::uint32_t pe;
    HostSource message;
  };
  std::array<std::vector<std::vector<Mail>>, 2> mail;  // as letters
  Cycle letter_min = kNever;
  int parity = 0;
  std::vector<LogLine> log;
  std::vector<std::uint32_t> batch;
  std::int64_t steps = 0, hops = 0;
  std::exception_ptr error;
  std::uint32_t error_pe = 0;
  Cycle error_at = kNever;
  Cycle now = 0;   // of the calendar; a core may be a few cycles ahead of it
  Cycle last = 0;  // no core goes on beyond it in this run
  /// Faults of cores that were ahead: thrown when the calendar has come to their cycle.
  struct Deferred {
    Cycle at;
    std::uint32_t pe;
    std::exception_ptr error;
  };
  std::vector<Deferred> deferred;
  Cycle asleep_until = 0;  // idle main threads whose time is up then are not visited for it

  void put(Cycle t, std::uint32_t pe) {
    if (t < base + kWheel) {
      auto s = static_cast<std::size_t>(t % kWheel);
      wheel[s].push_back(pe);
      filled[s / 64] |= 1ull << (s % 64);
    } else {
      far.emplace(t, pe);
    }
  }
  /// Forgets all entries.
  void clear() {
    for (auto& slot : wheel) slot.clear();
    filled.fill(0);
    far = {};
  }
  /// First cycle >= base with an entry, kNever if none.
  Cycle first() const {
    auto start = static_cast<std::size_t>(base % kWheel);
    std::size_t words = filled.size();
    std::uint64_t word = filled[start / 64] & (~0ull << (start % 64));
    for (std::size_t k = 0; k <= words; ++k) {
      std::size_t i = (start / 64 + k) % words;
      if (k == words) word = filled[i] & ~(~0ull << (start % 64));
      if (word) {
        std::size_t s = i * 64 + static_cast<std::size_t>(std::countr_zero(word));
        Cycle ahead = static_cast<Cycle>((s + static_cast<std::size_t>(kWheel) - start) %
                                         static_cast<std::size_t>(kWheel));
        Cycle t = base + ahead;
        return far.empty() ? t : std::min(t, far.top().first);
      }
      word = filled[(start / 64 + k + 1) % words];
    }
    return far.empty() ? kNever : far.top().first;
  }
  /// Moves the wheel to `now` and takes the PEs due then into `batch`.
  void take(Cycle now) {
    base = now;
    while (!far.empty() && far.top().first < base + kWheel) {
      auto [t, pe] = far.top();
      far.pop();
      put(t, pe);
    }
    auto s = static_cast<std::size_t>(now % kWheel);
    batch.clear();
    batch.swap(wheel[s]);
    filled[s / 64] &= ~(1ull << (s % 64));
  }
};

// The counters up to `now`: work to where the main thread and the elements have come, then waiting.
inline void Fabric::account(Pe& pe, Cycle now) {
  const Cycle from = pe.accounted;
  if (now <= from) return;
  const Cycle worked = std::clamp(std::max(pe.worked_until, pe.main_until), from, now);
  if (pe.has_gaps) [[unlikely]]
    book_gaps(pe, from, worked, now);
  pe.count.busy += worked - from;
  (pe.waits ? pe.count.stall : pe.count.idle) += now - worked;
  pe.accounted = now;
}

// Only by the thread that owns the PE, or while nothing runs.
inline void Fabric::schedule(Pe& pe, Cycle t) {
  if (t < pe.wake_at) {
    pe.wake_at = t;
    workers_[pe.worker]->put(t, pe.index);
  }
}

inline void Fabric::schedule_core(Pe& pe, Cycle t) {
  pe.core_at = std::min(pe.core_at, t);
  schedule(pe, t);
}

// What a letter does, in the thread that owns the PE.
inline void Fabric::wake(Pe& pe, Cycle t, int color) {
  if (color >= 0 && color < kExpressLetter) {
    pe.busy_colors |= 1u << color;
    schedule(pe, t);
    return;
  }
  if (color >= 0) pe.express_in |= 1u << (color - kExpressLetter);
  schedule_core(pe, t);
}

// As wake, from any worker; color >= 0: a wavelet has been put into one of that colour's rings.
inline void Fabric::notify(Worker& w, Pe& pe, Cycle t, int color) {
  if (pe.worker == w.id) return wake(pe, t, color);
  w.letters[static_cast<std::size_t>(w.parity)][pe.worker].push_back({pe.index, color, t});
  w.letter_min = std::min(w.letter_min, t);
}

}  // namespace weft::wse
