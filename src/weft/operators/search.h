// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where values would go in a sorted array: one binary search for each, over the keys that sorting
// uses.

#include "weft/operators/radix_sort.h"

namespace weft::operators {

/// (sorted, values, out, blocks, count, n, steps, top): top is the greatest power of two up to n,
/// steps how often it can be halved, and once more. right: behind equal elements.
ir::PrimFunc search_sorted(const SortSpec& spec, bool right);
inline constexpr int kSearchThreads = 256;

}  // namespace weft::operators
