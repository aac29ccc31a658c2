// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "weft/array/dims.h"

namespace weft {

/// Merges neighbouring axes of arrays of one shape wherever the steps of all of them allow it, and
/// drops axes of one element. At least one axis stays; row-major order is kept.
void collapse_axes(Dims& shape, std::vector<Dims>& strides);

}  // namespace weft
