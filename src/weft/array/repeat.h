// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "weft/array/ndarray.h"

namespace weft {

/// Each entry of an axis `times` times.
NDArray repeat(const NDArray& x, std::int64_t times, int axis);
/// How often each number from 0 to bins - 1 occurs among int64 ones on the host; others do not
/// count.
NDArray counts_of(const NDArray& places, std::int64_t bins);

}  // namespace weft
