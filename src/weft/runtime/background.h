// SPDX-License-Identifier: Apache-2.0
#pragma once
// Work beside the caller's: compilers that take long and that nobody waits for yet.

#include <functional>

namespace weft::runtime {

/// Runs `task`, which must not throw, on another thread; tasks begin in order, and one for each
/// processor runs at once. In a forked child, and where the host grants no thread, it runs in the
/// caller. The process's end waits for those that have begun and drops the others.
void run_beside(std::function<void()> task);

}  // namespace weft::runtime
