// SPDX-License-Identifier: Apache-2.0
#pragma once
// Membership of elements; arrays on the host.

#include "weft/array/ndarray.h"

namespace weft {

/// Which elements of x are among `values`, of any shape, as `==` compares them: NaN never is. Of
/// real types; both are converted to their common type.
NDArray is_in(const NDArray& x, const NDArray& values);

}  // namespace weft
