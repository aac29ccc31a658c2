// SPDX-License-Identifier: Apache-2.0
#pragma once
// Scatters that combine values with what is there, and rows added without a gather before
// (index.cpp).

#include <span>

#include "weft/array/ndarray.h"

namespace weft {

/// The largest (smallest) of what is at a position and all values for it; NaN if one is. On the
/// host.
void scatter_extreme(const NDArray& x, std::span<const NDArray> indices, const NDArray& value,
                     bool largest);
/// What is at a position times all values for it. On the host.
void scatter_product(const NDArray& x, std::span<const NDArray> indices, const NDArray& value);
/// x[to[i]] += table[from[i]], row by row; on the host the rows are not gathered first.
void add_rows(const NDArray& x, const NDArray& to, const NDArray& table, const NDArray& from);

}  // namespace weft
