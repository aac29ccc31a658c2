// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "weft/array/ndarray.h"

namespace weft {

/// out[n] = the sum of a[k] v[n - k] of two vectors that are not empty, of one type (no 16-bit
/// floats, no booleans), on the host; v is the shorter. Its elements are added in order.
NDArray convolve(const NDArray& a, const NDArray& v);

}  // namespace weft
