// SPDX-License-Identifier: Apache-2.0
#pragma once
// A shared unit of the timing model that serves one thing per clock. Requests may come out of order
// within the scheduler's quantum, so capacity is kept in a ring of 64-clock buckets instead of one
// "free from" time.

#include <algorithm>
#include <array>
#include <cstdint>

namespace weft::qpu::hw {

class Calendar {
 public:
  void reset() {
    buckets_.fill(Bucket{});
    first_ = 0;
    busy_ = 0;
  }
  /// No request comes from before `now` any more.
  void advance(std::int64_t now) { first_ = std::max(first_, now >> kShift); }

  /// Books `clocks` from `now` on; returns when the service ends.
  std::int64_t reserve(std::int64_t now, std::int64_t clocks) {
    busy_ += clocks;
    std::int64_t index = std::max(now >> kShift, first_), end = now;
    {  // nearly always there is room in the first bucket
      Bucket& bucket = buckets_[static_cast<std::size_t>(index & (kBuckets - 1))];
      std::int64_t used = bucket.epoch == index ? bucket.used : 0;
      if (used + clocks < kWidth) [[likely]] {
        bucket = {index, used + clocks};
        return std::max(index * kWidth + used, now) + clocks;
      }
    }
    while (true) {
      Bucket& bucket = buckets_[static_cast<std::size_t>(index & (kBuckets - 1))];
      std::int64_t used = bucket.epoch == index ? bucket.used : 0, room = kWidth - used;
      if (room > 0) {
        std::int64_t take = std::min(room, clocks);
        end = std::max({end, index * kWidth + used, now}) + take;
        bucket = {index, used + take};
        clocks -= take;
        if (room == take && index == first_) ++first_;
        if (clocks == 0) return end;
      }
      ++index;
    }
  }
  std::int64_t busy() const { return busy_; }

 private:
  static constexpr std::int64_t kShift = 6, kWidth = 1 << kShift, kBuckets = 1024;
  struct Bucket {
    std::int64_t epoch = -1, used = 0;
  };
  std::array<Bucket, kBuckets> buckets_{};
  std::int64_t first_ = 0, busy_ = 0;
};

}  // namespace weft::qpu::hw
