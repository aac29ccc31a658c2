// SPDX-License-Identifier: Apache-2.0
#pragma once
// Counts of small integers and of equal bins; arrays on the host.

#include <cstdint>
#include <optional>

#include "weft/array/ndarray.h"

namespace weft {

/// How often each integer from 0 to the largest occurs, of `least` numbers at least. Empty where an
/// integer is negative.
std::optional<NDArray> counts_from_zero(const NDArray& x, std::int64_t least);
/// The sums of the weights, as many float32 or float64 as there are integers, of each; likewise.
std::optional<NDArray> sums_from_zero(const NDArray& x, const NDArray& weights, std::int64_t least);
/// How many floats (float32 or float64) lie in each of the equal bins with these ascending ends, of
/// one type; the last bin has both its ends.
NDArray counts_in_bins(const NDArray& x, const NDArray& edges);

/// Where an element of a line in order differs from the one before, and one place behind the last.
NDArray run_starts(const NDArray& ordered);

}  // namespace weft
