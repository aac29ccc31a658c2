// SPDX-License-Identifier: Apache-2.0
#pragma once
// Short lines sorted by a network of comparisons (Batcher's odd-even merge sort), as many lines at
// a time as a kernel has lanes.

#include "weft/array/ndarray.h"

namespace weft {

/// x sorted along an axis; undefined where another way is better or needed: long or few lines,
/// types of other sizes than 4 and 8 bytes, -0 or NaN, whose order among equal keys matters.
NDArray sorted_by_network(const NDArray& x, int axis, bool descending);

}  // namespace weft
