// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "weft/array/ndarray.h"

namespace weft {

/// Each entry of an axis `times` times.
NDArray repeat(const NDArray& x, std::int64_t times, int axis);

}  // namespace weft
