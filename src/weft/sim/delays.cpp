// SPDX-License-Identifier: Apache-2.0
#include "weft/sim/delays.h"

#include <chrono>
#include <thread>

#include "weft/base/error.h"

namespace weft::sim {

namespace {
std::atomic<std::uint64_t> seed{0}, threads{0};
std::atomic<std::int64_t> delayed{0};

/// splitmix64.
std::uint64_t next(std::uint64_t& state) {
  std::uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}
}  // namespace

namespace detail {
std::atomic<bool> delays_on{false};

void delay() {
  thread_local std::uint64_t state = seed.load() + 0x632be59bd9b4e019u * ++threads;
  delayed.fetch_add(1, std::memory_order_relaxed);
  const std::uint64_t r = next(state), kind = r % 64;
  // Mostly nothing or less than a microsecond; sometimes the processor is given away, seldom for
  // longer than a spinning thread looks.
  if (kind < 32) return;
  if (kind < 60) {
    for (std::uint64_t n = r >> 32 & 511; n > 0; --n)
      std::atomic_signal_fence(std::memory_order_seq_cst);
  } else if (kind < 63 || (r >> 16) % 8) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(std::chrono::microseconds(1 + (r >> 32) % 400));
  }
}
}  // namespace detail

RandomDelays::RandomDelays(std::uint64_t s) {
  WEFT_CHECK(!detail::delays_on, "random delays are on already");
  seed = s;
  delayed = 0;
  detail::delays_on = true;
}

RandomDelays::~RandomDelays() { detail::delays_on = false; }

std::int64_t RandomDelays::count() const { return delayed; }

}  // namespace weft::sim
