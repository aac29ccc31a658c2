// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where values would go in a sorted array: a binary search for each, over the keys that sorting
// uses. The elements of its first steps lie in shared memory, in the order of the steps: the two
// that may follow the one at e lie at 2 e and 2 e + 1, so that threads at different elements of a
// step meet in few banks (a sorted table has those of a step at multiples of a power of two). A
// thread has several searches, whose loads are in flight together; a block makes its table once.

#include "weft/operators/radix_sort.h"

namespace weft::operators {

inline constexpr int kSearchThreads = 256, kSearchItems = 8,
                     kSearchTile = kSearchThreads * kSearchItems,
                     kSearchTable = 2048;  // 2 to the power of the first steps

/// (sorted, values, out, blocks, count, n, stride, steps, rounds): stride is 2 to the power of
/// steps, and kSearchTable times it is more than n, which is not 0; behind the last element its
/// copies lie. Blocks take `rounds` tiles each. right: behind equal elements.
ir::PrimFunc search_sorted(const SortSpec& spec, bool right);

}  // namespace weft::operators
