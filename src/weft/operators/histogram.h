// SPDX-License-Identifier: Apache-2.0
#pragma once
// How often each of a few small integers occurs: each block counts in shared memory of its own and
// adds what it found to the result once.

#include <cstdint>

#include "weft/ir/node.h"

namespace weft::operators {

inline constexpr int kHistogramThreads = 256, kHistogramMostBins = 4096;

/// (x, counts, blocks, size, per, bins): int64 numbers from 0 to bins - 1, `per` to a block (a
/// multiple of the threads); adds to int64 counts. `capacity`: bins at most, a multiple of the
/// threads.
ir::PrimFunc histogram(std::int64_t capacity);

}  // namespace weft::operators
