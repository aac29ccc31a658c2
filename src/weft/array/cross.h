// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "weft/array/ndarray.h"

namespace weft {

/// Products of three-vectors along an axis, of float32 or float64 on the host in arrays of
/// one shape; nothing for others.
std::optional<NDArray> cross(const NDArray& a, const NDArray& b, int axis);

}  // namespace weft
