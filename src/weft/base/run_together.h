// SPDX-License-Identifier: Apache-2.0
#pragma once
// One body on several threads that wait for each other.

#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

namespace weft {

/// body(0) on this thread and body(1) to body(n - 1) beside it; returns when all have ended. Where
/// the host does not grant the threads, no body begins, and std::system_error is thrown.
template <typename Body>
void run_together(int n, const Body& body) {
  std::atomic<int> go{0};
  std::vector<std::jthread> threads;
  auto begin = [&](int i) {
    while (go == 0) std::this_thread::yield();
    if (go > 0) body(i);
  };
  try {
    for (int i = 1; i < n; ++i) threads.emplace_back(begin, i);
  } catch (const std::system_error&) {
    go = -1;
    throw;
  }
  go = 1;
  body(0);
}

}  // namespace weft
