// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sorting by vector instructions: Highway's vqsort, where its library is installed.

#include <cstdint>

namespace weft {

/// Below this many numbers a plain sort is faster than the call.
inline constexpr std::int64_t kVectorSort = 20;

/// Sorts n integers of 2, 4 or 8 bytes or finite floats in place, on one thread. False, and nothing
/// done, where there is no such library. No infinities: version 1.0 fills up short rows with the
/// largest finite number, which then stands in the place of one. Nor -0 beside 0, which are equal.
template <typename T>
bool vector_sort(T* data, std::int64_t n, bool descending);

}  // namespace weft
