// SPDX-License-Identifier: Apache-2.0
#pragma once
// Running extremes with their positions; arrays on the host.

#include <optional>
#include <utility>

#include "weft/array/ndarray.h"

namespace weft {

/// The largest (least) elements so far along an axis and where they are, the last of equals; a NaN
/// stays once met. Empty for types that are not looked at here.
std::optional<std::pair<NDArray, NDArray>> running_extremes(const NDArray& x, int axis,
                                                            bool largest);

}  // namespace weft
