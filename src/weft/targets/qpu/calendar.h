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
    buckets_.fill(-1);
    first_ = busy_ = full_from_ = full_to_ = 0;
  }
  /// No request comes from before `now` any more.
  void advance(std::int64_t now) { first_ = std::max(first_, now >> kShift); }

  /// Books `clocks` from `now` on; returns when the service ends.
  std::int64_t reserve(std::int64_t now, std::int64_t clocks) {
    busy_ += clocks;
    std::int64_t index = std::max(now >> kShift, first_), base = index << kEpoch;
    std::int64_t& bucket = buckets_[static_cast<std::size_t>(index & (kBuckets - 1))];
    std::int64_t used = bucket - base;
    if (static_cast<std::uint64_t>(used) > kWidth) used = 0;  // of another time: empty
    if (used + clocks > kWidth) [[unlikely]]
      return reserve_on(now, index, clocks);
    bucket = base + used + clocks;
    return std::max((index << kShift) + used, now) + clocks;
  }
  std::int64_t busy() const { return busy_; }

  /// What reserve would do where one bucket has room; false: it has not.
  struct Place {
    std::int64_t* bucket;
    std::int64_t value, end;
  };
  bool look(std::int64_t now, std::int64_t clocks, Place* place) {
    std::int64_t index = std::max(now >> kShift, first_), base = index << kEpoch;
    std::int64_t& bucket = buckets_[static_cast<std::size_t>(index & (kBuckets - 1))];
    std::int64_t used = bucket - base;
    if (static_cast<std::uint64_t>(used) > kWidth) used = 0;
    *place = {&bucket, base + used + clocks, std::max((index << kShift) + used, now) + clocks};
    return used + clocks <= kWidth;
  }
  void take(const Place& place, std::int64_t clocks) {
    *place.bucket = place.value;
    busy_ += clocks;
  }

 private:
  static constexpr std::int64_t kShift = 6, kWidth = 1 << kShift, kBuckets = 1024, kEpoch = 8;

  /// From bucket `index` on, through full ones.
  [[gnu::noinline]] std::int64_t reserve_on(std::int64_t now, std::int64_t index,
                                            std::int64_t clocks) {
    for (std::int64_t end = now;;) {
      if (index >= full_from_ && index < full_to_) index = full_to_;
      std::int64_t& bucket = buckets_[static_cast<std::size_t>(index & (kBuckets - 1))];
      std::int64_t base = index << kEpoch, used = bucket - base;
      if (static_cast<std::uint64_t>(used) > kWidth) used = 0;
      std::int64_t take = std::min(kWidth - used, clocks);
      if (take > 0) {
        end = std::max({end, (index << kShift) + used, now}) + take;
        bucket = base + used + take;
        clocks -= take;
        if (clocks == 0) return end;
      }
      if (index != full_to_) full_from_ = index;
      full_to_ = ++index;
    }
  }

  // Bucket number times 256 plus the clocks used of it.
  std::array<std::int64_t, kBuckets> buckets_{};
  std::int64_t first_ = 0, busy_ = 0;
  std::int64_t full_from_ = 0, full_to_ = 0;  // buckets without room, some of them
};

}  // namespace weft::qpu::hw
