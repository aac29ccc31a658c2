// SPDX-License-Identifier: Apache-2.0
#pragma once
// Means and sums of squares about them on the host, in one pass over memory.

#include "weft/array/ops.h"

namespace weft {

/// Of some elements: their number, mean and squares about it.
struct Spread {
  double count = 0, mean = 0, squares = 0;
  void join(double n, double m, double s) {
    if (count == 0) {  // below, the square of a large mean would be infinite, times nothing
      *this = {n, m, s};
      return;
    }
    const double all = count + n, delta = m - mean;
    squares += s + delta * delta * (count * n / all);
    mean += delta * (n / all);
    count = all;
  }
};

enum class Moment { mean, variance, deviation };

/// The moment over the axes in `mask`, of an array on the host with elements of a real type;
/// compact and with the kept axes alone, of x's type, or float32 for integers.
NDArray host_moments(Moment moment, const NDArray& x, std::uint64_t mask, double correction);

}  // namespace weft
