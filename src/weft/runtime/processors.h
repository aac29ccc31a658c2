// SPDX-License-Identifier: Apache-2.0
#pragma once
// What both pools share: how many processors this process may use, and how a range is cut.

#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <thread>

namespace weft::runtime {

/// The processors the process may run on (its affinity mask), at least 1.
inline int processors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

/// Elements of one chunk of [0, n): four chunks a thread balance unequal speed; whole multiples of
/// the grain keep chunks aligned.
inline std::int64_t chunk_of(std::int64_t n, std::int64_t grain, int threads) {
  std::int64_t chunks =
      std::max<std::int64_t>(1, std::min<std::int64_t>(n / grain, std::int64_t{4} * threads));
  return ((n + chunks - 1) / chunks + grain - 1) / grain * grain;
}

}  // namespace weft::runtime
