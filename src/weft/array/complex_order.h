// SPDX-License-Identifier: Apache-2.0
#pragma once
// The order of complex numbers is NumPy's: by real part, equal ones by imaginary part; those with a
// NaN behind all others. Composed of operations on the parts, so that every device has it.

#include "weft/array/ops.h"

namespace weft {

/// Positions that sort the lines of an axis, stable.
NDArray complex_argsort(const NDArray& x, int axis, bool descending);
/// Position of the largest (least) element of each line, the first of equals; a NaN wins. The axis
/// keeps the extent 1.
NDArray complex_extreme_positions(bool largest, const NDArray& x, int axis);
/// The largest (least) elements over the axes of `mask`, as reduce gives them.
NDArray complex_extreme(bool largest, const NDArray& x, std::uint64_t mask, bool keepdims);
/// Element by element the larger (smaller), a NaN if either is one.
NDArray complex_larger(bool largest, const NDArray& x, const NDArray& y);
/// Positions of values in a sorted row, on the host.
NDArray complex_searchsorted(const NDArray& sorted, const NDArray& values, bool right);

}  // namespace weft
