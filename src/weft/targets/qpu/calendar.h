// SPDX-License-Identifier: Apache-2.0
#pragma once
// A shared unit of the timing model that serves one thing per clock. Requests may come out of order
// within the scheduler's quantum, so capacity is kept in a ring of 64-clock buckets instead of one
// "free from" time.

#include <algorithm>
#include <cstdint>
#include <vector>

namespace weft::qpu::hw {

class Calendar {
 public:
  Calendar() : used_(kBuckets), epoch_(kBuckets, -1) {}

  void reset() {
    std::fill(epoch_.begin(), epoch_.end(), -1);
    first_ = 0;
    busy_ = 0;
  }
  /// No request comes from before `now` any more.
  void advance(std::int64_t now) { first_ = std::max(first_, now / kWidth); }

  /// Books `clocks` from `now` on; returns when the service ends.
  std::int64_t reserve(std::int64_t now, std::int64_t clocks) {
    busy_ += clocks;
    std::int64_t bucket = std::max(now / kWidth, first_), end = now;
    while (true) {
      auto slot = static_cast<std::size_t>(bucket & (kBuckets - 1));
      if (epoch_[slot] != bucket) epoch_[slot] = bucket, used_[slot] = 0;
      std::int64_t room = kWidth - used_[slot];
      if (room > 0) {
        std::int64_t take = std::min(room, clocks);
        end = std::max({end, bucket * kWidth + used_[slot], now}) + take;
        used_[slot] += take;
        clocks -= take;
        if (used_[slot] == kWidth && bucket == first_) ++first_;
        if (clocks == 0) return end;
      }
      ++bucket;
    }
  }
  std::int64_t busy() const { return busy_; }

 private:
  static constexpr std::int64_t kWidth = 64, kBuckets = 1024;
  std::vector<std::int64_t> used_, epoch_;
  std::int64_t first_ = 0, busy_ = 0;
};

}  // namespace weft::qpu::hw
