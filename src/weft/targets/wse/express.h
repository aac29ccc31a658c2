// SPDX-License-Identifier: Apache-2.0
#pragma once
// Express channels: where a colour's way from one ramp to others is fixed (no switches, filters or
// swaps, no other input on the way, no other colour on its links), wavelets need not visit the
// routers between. A channel is a bounded queue whose entries carry the cycle in which they may be
// read, and whose free places carry the cycle in which they became free; so both ends may work
// ahead of the clock and the outcome depends on these cycles alone. What one end does in a visit is
// seen by the other from the next cycle on, whatever thread runs it.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "weft/targets/wse/arena.h"

namespace weft::wse {

using Cycle = std::int64_t;
struct Pe;

struct alignas(64) Channel {
  struct Entry {
    std::uint32_t data = 0, control = 0;
    Cycle ready = 0;                       // may be read from here on
    Cycle freed = 0;                       // its place may be used again from here on
    std::uint32_t pushed = 0, popped = 0;  // visits, by their cycle
  };
  Pe* from = nullptr;
  Pe* to = nullptr;
  std::uint8_t color = 0;
  int latency = 0;
  std::uint32_t capacity = 0, mask = 0;
  Entry* slot = nullptr;  // mask + 1 of them
  std::atomic<std::uint32_t> tail{0}, head{0};
  std::atomic<bool> starved{false};   // the writer waits for room
  std::atomic<bool> controls{false};  // it has carried a control wavelet

  /// The next entry to read, as seen in a visit at `now`; null when there is none yet. `again`:
  /// when to look for one that the writer has put there in this cycle or, ahead of the reader,
  /// later.
  Entry* front(Cycle now, Cycle& again) {
    std::uint32_t h = head.load(std::memory_order_relaxed);
    if (h == tail.load(std::memory_order_acquire)) return nullptr;
    Entry& e = slot[h & mask];
    if (before(e.pushed, now)) return &e;
    again = std::min(again, e.pushed == static_cast<std::uint32_t>(now) ? now + 1 : e.ready);
    return nullptr;
  }
  /// Whether a visit in cycle `stamp`, of which the low bits are kept, came before `now`.
  static bool before(std::uint32_t stamp, Cycle now) {
    return static_cast<std::int32_t>(stamp - static_cast<std::uint32_t>(now)) < 0;
  }
  /// Whether there is room for one more that became free in a visit before `now`.
  bool sure_of_room(Cycle now) const {
    std::uint32_t t = tail.load(std::memory_order_relaxed);
    if (t < capacity) return true;
    std::uint32_t old = t - capacity;
    return static_cast<std::int32_t>(head.load(std::memory_order_seq_cst) - old) > 0 &&
           before(slot[old & mask].popped, now);
  }
  /// The next entry, seen in this visit or not; null when there is none.
  const Entry* peek() const {
    std::uint32_t h = head.load(std::memory_order_relaxed);
    return h == tail.load(std::memory_order_acquire) ? nullptr : &slot[h & mask];
  }
  /// From when on there is room for one more, seen in this visit or not; negative: the reader says.
  Cycle next_room() {
    std::uint32_t t = tail.load(std::memory_order_relaxed);
    if (t < capacity) return 0;
    std::uint32_t old = t - capacity;
    auto taken = [&] {
      return static_cast<std::int32_t>(head.load(std::memory_order_seq_cst) - old) > 0;
    };
    if (!taken()) {
      starved.store(true, std::memory_order_seq_cst);
      if (!taken()) return -1;
    }
    return slot[old & mask].freed;
  }
  /// `at`: the cycle in which the entry is read; `now`: the visit.
  void pop(Cycle at, Cycle now) {
    std::uint32_t h = head.load(std::memory_order_relaxed);
    slot[h & mask].freed = at + 1;
    slot[h & mask].popped = static_cast<std::uint32_t>(now);
    head.store(h + 1, std::memory_order_seq_cst);
  }
  /// From when on there is room for one more; a negative number when that is not known yet.
  Cycle room(Cycle now, Cycle& again) {
    std::uint32_t t = tail.load(std::memory_order_relaxed);
    if (t < capacity) return 0;
    std::uint32_t old = t - capacity;
    auto taken = [&] {
      return static_cast<std::int32_t>(head.load(std::memory_order_seq_cst) - old) > 0;
    };
    if (!taken()) {
      starved.store(true, std::memory_order_seq_cst);
      if (taken()) again = std::min(again, now + 1);  // between the two looks
      return -1;
    }
    if (const std::uint32_t popped = slot[old & mask].popped; !before(popped, now)) {
      again = std::min(
          again, now + 1 + static_cast<std::int32_t>(popped - static_cast<std::uint32_t>(now)));
      return -1;
    }
    return slot[old & mask].freed;
  }
  void push(std::uint32_t data, std::uint32_t control, Cycle at, Cycle now) {
    std::uint32_t t = tail.load(std::memory_order_relaxed);
    Entry& e = slot[t & mask];
    e.data = data;
    e.control = control;
    if (control) controls.store(true, std::memory_order_relaxed);
    e.ready = at + latency;
    e.pushed = static_cast<std::uint32_t>(now);
    tail.store(t + 1, std::memory_order_release);
  }
  std::uint32_t held() const { return tail.load() - head.load(); }
};

/// All ends that one colour of one PE leads to.
struct Express {
  std::vector<Placed<Channel>> to;
  std::vector<std::pair<std::uint32_t, std::uint8_t>>
      links;  // router, port: what each wavelet passes
  std::int64_t sent = 0, booked = 0;
  Cycle first_ready = -1;  // earliest entry of this visit that readers have not been told of
};

}  // namespace weft::wse
