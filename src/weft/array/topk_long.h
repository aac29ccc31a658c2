// SPDX-License-Identifier: Apache-2.0
#pragma once
// The largest elements of a long row on a device with a grid, without sorting the row.

#include <optional>

#include "weft/array/ndarray.h"

namespace weft {

/// Positions of the k largest (smallest) of a row, as argsort orders them; nothing where too many
/// elements may be among them, where work is recorded (the host must learn how many are), and for
/// arrays that are no single long row.
std::optional<NDArray> topk_of_long_row(const NDArray& x, std::int64_t k, bool largest);

}  // namespace weft
