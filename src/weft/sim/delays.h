// SPDX-License-Identifier: Apache-2.0
#pragma once
// For tests of engines with several host threads: while a RandomDelays lives, every hand-over from
// one thread to another takes a random time, so that threads meet in orders that an idle host never
// shows. Without one, a hand-over costs one relaxed load.

#include <atomic>
#include <cstdint>

namespace weft::sim {

namespace detail {
extern std::atomic<bool> delays_on;
void delay();
}  // namespace detail

/// Called where a thread gives something to another, or takes it.
inline void hand_over() {
  if (detail::delays_on.load(std::memory_order_relaxed)) [[unlikely]]
    detail::delay();
}

/// One at a time, in the whole process.
class RandomDelays {
 public:
  explicit RandomDelays(std::uint64_t seed);
  ~RandomDelays();
  RandomDelays(const RandomDelays&) = delete;
  RandomDelays& operator=(const RandomDelays&) = delete;
  /// How many hand-overs have been delayed since it was made.
  std::int64_t count() const;
};

}  // namespace weft::sim
