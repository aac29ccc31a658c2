// SPDX-License-Identifier: Apache-2.0
#pragma once
// What is waited for when the process ends: a driver's own threads may be compiling or running what
// nobody waited for while their libraries are taken down.

#include <functional>

namespace weft::runtime {

/// Asks for `wait` when the process ends, once for each key, in the process that asked and not in
/// its children.
void wait_at_end(const void* key, std::function<void()> wait);

/// All that was asked for, now. Hosts that end in steps call it in an early one.
void wait_for_all();

/// Asks for wait_for_all when this thread ends. The end of a process may come too late: what a
/// driver's thread makes after the first request is taken down before. Objects of the thread that
/// ends the process go before all of that.
void wait_when_thread_ends();

}  // namespace weft::runtime
