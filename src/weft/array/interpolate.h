// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "weft/array/ndarray.h"

namespace weft {

/// Values at x of the lines through the points (xp, fp), xp ascending, at least one of them; `left`
/// and `right` beyond them, NaN of NaN. Arrays on the host of one type, float32 or float64.
NDArray interpolate(const NDArray& x, const NDArray& xp, const NDArray& fp, double left,
                    double right);

}  // namespace weft
