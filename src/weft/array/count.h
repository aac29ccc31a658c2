// SPDX-License-Identifier: Apache-2.0
#pragma once
// Counts of small integers and of equal bins; arrays on the host.

#include <cstdint>
#include <optional>

#include "weft/array/ndarray.h"

namespace weft {

/// How often each number from 0 to bins - 1 occurs among int64 ones; others do not count.
NDArray counts_of(const NDArray& places, std::int64_t bins);
/// How often each integer from 0 to the largest occurs, of `least` numbers at least; with weights
/// (float32 or float64, as many) their sums. Empty where an integer is negative.
std::optional<NDArray> counts_from_zero(const NDArray& x, std::int64_t least,
                                        const std::optional<NDArray>& weights);
/// How many floats lie in each of the equal bins with these ascending ends, of one type; the last
/// bin has both its ends.
NDArray counts_in_bins(const NDArray& x, const NDArray& edges);

}  // namespace weft
