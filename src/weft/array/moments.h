// SPDX-License-Identifier: Apache-2.0
#pragma once
// Means and sums of squares about them on the host, in one pass over memory.

#include "weft/array/ops.h"

namespace weft {

enum class Moment { mean, variance, deviation };

/// The moment over the axes in `mask`, of an array on the host with elements of a real type;
/// compact and with the kept axes alone, of x's type, or float32 for integers.
NDArray host_moments(Moment moment, const NDArray& x, std::uint64_t mask, double correction);

/// Mean and variance over the axes in `mask` at once, of float32 or float64.
struct Moments {
  NDArray mean, variance;
};
Moments host_mean_and_variance(const NDArray& x, std::uint64_t mask);

}  // namespace weft
