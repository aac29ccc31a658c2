// SPDX-License-Identifier: Apache-2.0
#pragma once
// What rows that have no truth values mean for them, as in NumPy and PyTorch.

#include <optional>

#include "weft/array/ops.h"

namespace weft {

/// abs, floor, sign and their like are the values themselves; the imaginary part of numbers that
/// have none, and of truth values, is 0. Nothing for other rows.
std::optional<NDArray> without_imaginary_part(Op op, const NDArray& x);
/// Comparisons: false comes before true. Nothing for other rows.
std::optional<NDArray> compare_truth_values(Op op, const NDArray& x, const NDArray& y);

}  // namespace weft
