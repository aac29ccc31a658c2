// SPDX-License-Identifier: Apache-2.0
#pragma once
// Gradients of functions of rows that are one pass over memory on the host.

#include <array>

#include "weft/array/ndarray.h"

namespace weft {

/// Gradients of layer_norm(x, scale, shift) for x, scale and shift; g is the result's. All are of
/// the host, of float32 or of float64, and not empty.
std::array<NDArray, 3> layer_norm_gradients(const NDArray& x, const NDArray& scale,
                                            const NDArray& g, double eps);

}  // namespace weft
