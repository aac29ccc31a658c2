// SPDX-License-Identifier: Apache-2.0
#pragma once
// Greatest common divisors and least common multiples, element by element; arrays on the host.

#include "weft/array/ndarray.h"

namespace weft {

/// Of whole numbers of one shape, in their common type, not negative.
NDArray greatest_divisors(const NDArray& a, const NDArray& b);
/// Likewise; what the type cannot hold wraps.
NDArray least_multiples(const NDArray& a, const NDArray& b);

}  // namespace weft
