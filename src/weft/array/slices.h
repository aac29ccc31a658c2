// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reductions of slices of a vector on the host.

#include "weft/array/ops.h"

namespace weft {

/// x combined from each place to the next one, to the end from the last; the element alone where
/// the next place is not behind it. x: a vector, places: int64, each an index of x.
NDArray reduce_slices(ReduceOp op, const NDArray& x, const NDArray& places);

}  // namespace weft
