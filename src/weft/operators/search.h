// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where values would go in a sorted array: a binary search for each, over the keys that sorting
// uses. The elements of its first steps lie in shared memory, in the order of the steps: the two
// that may follow the one at e lie at 2 e and 2 e + 1, so that threads at different elements of a
// step meet in few banks (a sorted table has those of a step at multiples of a power of two). A
// thread has several searches, whose loads are in flight together; a block has its table once for
// all its tiles. Blocks collect a short table themselves; a long one is made by a program of its
// own, since its elements lie apart, and copied.

#include "weft/operators/radix_sort.h"

namespace weft::operators {

inline constexpr int kSearchItems = 8, kShortSearchTable = 2048, kLongSearchTableBytes = 1 << 16;

struct SearchSpec {
  SortSpec keys;
  bool right = false;  // behind equal elements
  int threads = 256;
  int table = kShortSearchTable;  // 2 to the power of the first steps
  bool made = false;              // by search_table
  int tile() const { return threads * kSearchItems; }
};

/// (sorted, table, blocks, n, stride): the keys of a table, by blocks of `threads` of them.
ir::PrimFunc search_table(const SearchSpec& spec);
/// (sorted, [table], values, out, blocks, count, n, stride, steps, rounds): stride is 2 to the
/// power of steps, and table times it is more than n, which is not 0; behind the last element its
/// copies lie. Blocks take `rounds` tiles each.
ir::PrimFunc search_sorted(const SearchSpec& spec);

}  // namespace weft::operators
