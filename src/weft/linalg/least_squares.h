// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "weft/array/ndarray.h"

namespace weft::linalg {

struct LeastSquares {
  NDArray solution, sums, singular_values;  // sums of squares of what is left, a column each
  std::int64_t rank = 0;
};

/// The solution of a x = b for one matrix (m, n) and columns (m, k) of float32 or float64 on the
/// host by LAPACK's divide and conquer; singular values up to rcond times the largest count as 0.
/// Sums are of m > n and full rank, else empty. The rank is -1 where the method did not converge.
LeastSquares least_squares(const NDArray& a, const NDArray& b, double rcond);

}  // namespace weft::linalg
