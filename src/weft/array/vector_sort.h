// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sorting by vector instructions: Highway's vqsort, where its library is installed.

#include <cstdint>

namespace weft {

/// Below this many numbers a plain sort is faster than the call.
inline constexpr std::int64_t kVectorSort = 20;

/// Sorts n numbers of 2, 4 or 8 bytes in place, without NaN and -0 among them, on one thread.
/// False, and nothing done, where there is no such library.
template <typename T>
bool vector_sort(T* data, std::int64_t n, bool descending);

}  // namespace weft
