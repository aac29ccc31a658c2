// SPDX-License-Identifier: Apache-2.0
#pragma once
// A border around an array.

#include <span>
#include <utility>

#include "weft/array/ops.h"

namespace weft {

/// x with so many elements of `value` before and after it along each axis, from 0 on.
NDArray pad(const NDArray& x, std::span<const std::pair<std::int64_t, std::int64_t>> widths,
            const Scalar& value);

}  // namespace weft
