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

/// One place of a channel. A cycle's low bits stand for a visit.
struct ChannelEntry {
  std::uint32_t data = 0;
  std::uint32_t visit = 0;     // in which it was put here or, when it is gone, taken
  std::int64_t when : 63 = 0;  // from here on it may be read; when it is gone: its place used again
  std::uint64_t control : 1 = 0;
};

/// One cache line; all places but the first lie behind it. Where wavelets come one at a time, both
/// ends touch this line only.
struct alignas(64) Channel {
  using Entry = ChannelEntry;
  Cycle unannounced = -1;  // of the entries of this visit: when the first one was sent; none: -1
  std::int64_t sent = 0;   // wavelets
  std::uint32_t from = 0, to = 0;  // PEs
  std::atomic<std::uint32_t> tail{0}, head{0};
  std::atomic<std::uint32_t> first{0};   // the wavelet in places[0]; moved by the writer
  std::uint16_t capacity = 0, mask = 0;  // mask + 1 places
  std::uint16_t latency = 0;
  std::uint8_t color = 0;
  std::atomic<bool> starved{false};   // the writer waits for room
  std::atomic<bool> controls{false};  // it has carried a control wavelet
  Entry places[1];                    // mask + 1 of them

  static constexpr std::size_t bytes(std::size_t n) {
    return sizeof(Channel) + (n - 1) * sizeof(Entry);
  }
  /// The place of wavelet n.
  Entry& at(std::uint32_t n) { return places[(n - first.load(std::memory_order_relaxed)) & mask]; }
  const Entry& at(std::uint32_t n) const { return const_cast<Channel*>(this)->at(n); }

  /// The next entry to read, as seen in a visit at `now`; null when there is none yet. `again`:
  /// when to look for one that the writer has put there in this cycle or, ahead of the reader,
  /// later.
  Entry* front(Cycle now, Cycle& again) {
    std::uint32_t h = head.load(std::memory_order_relaxed);
    if (h == tail.load(std::memory_order_acquire)) return nullptr;
    Entry& e = at(h);
    if (before(e.visit, now)) return &e;
    again = std::min<Cycle>(again, e.visit == static_cast<std::uint32_t>(now) ? now + 1 : e.when);
    return nullptr;
  }
  /// Whether a visit in cycle `stamp`, of which the low bits are kept, came before `now`.
  static bool before(std::uint32_t stamp, Cycle now) {
    return static_cast<std::int32_t>(stamp - static_cast<std::uint32_t>(now)) < 0;
  }
  /// Whether wavelet n, the last whose place the next one needs, has been taken.
  bool taken(std::uint32_t n) const {
    return static_cast<std::int32_t>(head.load(std::memory_order_seq_cst) - n) > 0;
  }
  /// Whether no wavelet since `first` stands in the way of the next one.
  bool spacious(std::uint32_t t) const {
    return t - first.load(std::memory_order_relaxed) < capacity;
  }
  /// Whether there is room for one more that became free in a visit before `now`.
  bool sure_of_room(Cycle now) const {
    std::uint32_t t = tail.load(std::memory_order_relaxed);
    if (spacious(t)) return true;
    return taken(t - capacity) && before(at(t - capacity).visit, now);
  }
  /// The next entry, seen in this visit or not; null when there is none.
  const Entry* peek() const {
    std::uint32_t h = head.load(std::memory_order_relaxed);
    return h == tail.load(std::memory_order_acquire) ? nullptr : &at(h);
  }
  /// The entry that was put last; by the writer.
  const Entry& last() const { return at(tail.load(std::memory_order_relaxed) - 1); }
  /// From when on there is room for one more, seen in this visit or not; negative: the reader says.
  Cycle next_room() {
    std::uint32_t t = tail.load(std::memory_order_relaxed);
    if (spacious(t)) return 0;
    const std::uint32_t old = t - capacity;
    if (!taken(old)) {
      starved.store(true, std::memory_order_seq_cst);
      if (!taken(old)) return -1;
    }
    return at(old).when;
  }
  /// `cycle`: in which the entry is read; `now`: the visit.
  void pop(Cycle cycle, Cycle now) {
    std::uint32_t h = head.load(std::memory_order_relaxed);
    Entry& e = at(h);
    e.when = cycle + 1;
    e.visit = static_cast<std::uint32_t>(now);
    head.store(h + 1, std::memory_order_seq_cst);
  }
  /// From when on there is room for one more; a negative number when that is not known yet.
  Cycle room(Cycle now, Cycle& again) {
    std::uint32_t t = tail.load(std::memory_order_relaxed);
    if (spacious(t)) return 0;
    const std::uint32_t old = t - capacity;
    if (!taken(old)) {
      starved.store(true, std::memory_order_seq_cst);
      if (taken(old)) again = std::min(again, now + 1);  // between the two looks
      return -1;
    }
    if (const std::uint32_t popped = at(old).visit; !before(popped, now)) {
      again = std::min(
          again, now + 1 + static_cast<std::int32_t>(popped - static_cast<std::uint32_t>(now)));
      return -1;
    }
    return at(old).when;
  }
  /// By the writer, before it pushes in a visit: where every place has been free for some time,
  /// the next wavelet takes the first one again. Changes no cycle.
  void rewind(Cycle now) {
    const std::uint32_t t = tail.load(std::memory_order_relaxed);
    if (t == first.load(std::memory_order_relaxed) || head.load(std::memory_order_acquire) != t)
      return;
    const Entry& last = at(t - 1);
    if (before(last.visit, now) && last.when <= now) first.store(t, std::memory_order_relaxed);
  }
  void push(std::uint32_t data, std::uint32_t control, Cycle cycle, Cycle now) {
    rewind(now);
    std::uint32_t t = tail.load(std::memory_order_relaxed);
    Entry& e = at(t);
    e.data = data;
    e.control = control & 1u;
    if (control) controls.store(true, std::memory_order_relaxed);
    e.when = cycle + latency;
    e.visit = static_cast<std::uint32_t>(now);
    tail.store(t + 1, std::memory_order_release);
  }
  std::uint32_t held() const { return tail.load() - head.load(); }
};
static_assert(sizeof(ChannelEntry) == 16 && sizeof(Channel) == 64);

/// All ends that one colour of one PE leads to.
struct Express {
  std::vector<Placed<Channel>> to;
  std::vector<Channel*> all;  // the same
  std::vector<std::pair<std::uint32_t, std::uint8_t>>
      links;                // router, port: what each wavelet passes
  std::int64_t booked = 0;  // of the first channel's `sent`
};

}  // namespace weft::wse
