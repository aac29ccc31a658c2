// SPDX-License-Identifier: Apache-2.0
#pragma once
// The places of the first elements of a row in sorted order, without sorting the row. A block has a
// piece of a row, its threads every 256th element of it each. The k-th of the threads' first
// elements bounds what is among the first k: at most k - 1 threads hold anything before it, so few
// elements are left, and those are sorted. Keys as in radix_sort.h, of up to 32 bits; beside its
// place a key is different from all others.

#include "weft/operators/radix_sort.h"

namespace weft::operators {

inline constexpr int kBestThreads = 256;
inline constexpr int kMostBestItems = 8;  // of a thread, of what is sorted at last
inline constexpr std::int64_t kMostBest = 128;

struct BestSpec {
  SortSpec keys;      // kind, bits, exponent_bits, descending
  int items = 1;      // of a thread, of what is sorted at last
  bool first = true;  // reads elements; else keys beside places
  bool last = true;   // writes places (int64); else keys beside places
};
/// Items that suffice for k of a piece of so many elements; more than kMostBestItems: none do.
std::int64_t best_items(std::int64_t k, std::int64_t length);

/// (x, out, blocks, n, length, pieces, k): rows of n elements in pieces of `length`, a block for
/// each; out [rows, pieces, k]. A piece of fewer than k elements gives keys after all others.
ir::PrimFunc best_of_pieces(const BestSpec& spec);

}  // namespace weft::operators
