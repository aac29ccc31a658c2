// SPDX-License-Identifier: Apache-2.0
#pragma once
// Limits of 16-bit floats by their words, without a float.

#include <optional>

#include "weft/array/ops.h"

namespace weft {

/// Contiguous 16-bit floats on the host, and limits that are real numbers or absent.
bool has_clipped_words(const NDArray& x, const std::optional<Scalar>& low,
                       const std::optional<Scalar>& high);
/// The elements, no less than `low` and then no more than `high`; NaN stays.
NDArray clipped_words(const NDArray& x, const std::optional<Scalar>& low,
                      const std::optional<Scalar>& high);

}  // namespace weft
