// SPDX-License-Identifier: Apache-2.0
#pragma once
// Extremes of what is no NaN; arrays on the host.

#include "weft/array/ops.h"

namespace weft {

/// The largest (least) elements of a float32 or float64 array that are no NaN, along axes with
/// elements; an infinity beyond all numbers where there is none.
NDArray extreme_of_numbers(bool largest, const NDArray& x, const Axes& axes, bool keepdims);

}  // namespace weft
