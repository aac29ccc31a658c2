// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sums of squares about a mean, the one long step of a variance.

#include "weft/array/ndarray.h"

namespace weft {

/// Sums of (x - mean)^2 along rows: x is contiguous on the host, of float32 or float64, and has
/// mean.size() rows; one mean and one sum for each row.
NDArray squares_about(const NDArray& x, const NDArray& mean);

}  // namespace weft
