// SPDX-License-Identifier: Apache-2.0
#pragma once
// Triangular systems with many right sides by products of matrices, which take most of their time.

#include "weft/linalg/lapack.h"

namespace weft::linalg {

/// From how many rows and right sides on this is faster than a library's routine.
constexpr std::int64_t kTriangularRows = 48, kTriangularColumns = 16;

/// Which triangle, and whether its diagonal counts as 1. `unit_lower_inverse`: the right sides are
/// the identity, so that half of the work falls away.
enum class Side : std::uint8_t { lower, unit_lower, unit_lower_inverse, upper, unit_upper };

/// T X = B in place of B: n rows of k elements, one after the other. `negative`: -T without gaps,
/// of which the other triangle is not read.
template <typename T>
void solve_triangle(Side side, std::int64_t n, std::int64_t k, const T* negative, T* x);

}  // namespace weft::linalg
