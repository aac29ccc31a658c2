// SPDX-License-Identifier: Apache-2.0
#pragma once
// A shared unit of the timing model that serves one thing per clock. Requests may come out of order
// within the scheduler's quantum, so capacity is kept in a ring of 64-clock buckets instead of one
// "free from" time. The ring holds 65536 clocks, many times what a QPU can be behind another.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace weft::qpu::hw {

class Calendar {
 public:
  void reset() {
    until_.fill(0);
    busy_ = full_from_ = full_to_ = 0;
  }

  /// Books `clocks` from `now` on; returns when the service ends.
  std::int64_t book(std::int64_t now, std::int64_t clocks) {
    const std::int64_t base = now & -kWidth;
    std::int64_t& until = bucket(base);
    const std::int64_t used = std::max(until, base);  // of an earlier time: empty
    if (used + clocks > base + kWidth) [[unlikely]]
      return book_on(now, clocks);
    until = used + clocks;
    return std::max(used, now) + clocks;
  }
  /// The same, and counts them.
  std::int64_t reserve(std::int64_t now, std::int64_t clocks) {
    busy_ += clocks;
    return book(now, clocks);
  }
  /// Clocks that reserve has booked.
  std::int64_t busy() const { return busy_; }

  /// For code that books by itself (engine/requests.cpp): places in bytes; those of the buckets'
  /// clocks are multiples of eight from 0 on.
  static constexpr std::size_t busy_place() { return offsetof(Calendar, busy_); }
  static constexpr std::size_t full_from_place() { return offsetof(Calendar, full_from_); }
  static constexpr std::size_t full_to_place() { return offsetof(Calendar, full_to_); }

  /// Books through full buckets.
  [[gnu::noinline]] std::int64_t book_on(std::int64_t now, std::int64_t clocks) {
    std::int64_t base = now & -kWidth, end = now;
    while (true) {
      if (base >= full_from_ && base < full_to_) base = full_to_;
      std::int64_t &until = bucket(base), used = until - base;
      if (static_cast<std::uint64_t>(used) > kWidth) used = 0;  // of another time: empty
      std::int64_t take = std::min(kWidth - used, clocks);
      if (take > 0) {
        until = base + used + take;
        end = std::max(base + used, end) + take;
        clocks -= take;
        if (clocks == 0) return end;
      }
      if (base != full_to_) full_from_ = base;
      full_to_ = base += kWidth;
    }
  }

  static constexpr std::int64_t kWidth = 1 << 6, kBuckets = 1024;

 private:
  std::int64_t& bucket(std::int64_t base) {
    return until_[static_cast<std::size_t>(base >> 6 & (kBuckets - 1))];
  }

  // Up to which clock a bucket is used; at most its first clock: not at all.
  std::array<std::int64_t, kBuckets> until_{};
  std::int64_t busy_ = 0;
  std::int64_t full_from_ = 0, full_to_ = 0;  // buckets without room, some of them
};

}  // namespace weft::qpu::hw
