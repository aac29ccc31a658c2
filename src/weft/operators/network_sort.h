// SPDX-License-Identifier: Apache-2.0
#pragma once
// Stable sorting of short rows of a compact array by a network: the pairs that are compared do not
// depend on the data. A thread holds `items` elements in registers, `lanes` threads a row; pairs of
// different threads meet in shared memory. About log2(n)^2 / 2 comparisons an element, so fewer
// instructions than a sort by digits up to about a thousand elements. Keys as in radix_sort.h.

#include "weft/operators/radix_sort.h"

namespace weft::operators {

/// Statements at 12 blanks that sort what the threads t of a block hold in H[0 .. items - 1], of
/// type `element`: thread t's item i gets place t * items + i. S0 and S1 are shared, of threads *
/// items elements; `free`: the one of them that is not read last.
struct NetworkText {
  std::string text;
  int free = 0;
};
NetworkText sorting_network(int threads, int items, const std::string& element);

/// Threads that share a row of n elements: a power of two.
int network_lanes(const SortSpec& spec, std::int64_t n);
/// Shared memory of a block.
std::int64_t network_shared_bytes(const SortSpec& spec);

/// (x, out, blocks, rows, n): a block has spec.threads / lanes rows of at most lanes * spec.items
/// elements.
ir::PrimFunc sort_network(const SortSpec& spec, int lanes);

}  // namespace weft::operators
