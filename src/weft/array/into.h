// SPDX-License-Identifier: Apache-2.0
#pragma once
// What is written into arrays that exist: results of rows, values at marked places. Each is false,
// and nothing is done, where the arrays are not that plain.

#include "weft/array/ops.h"

namespace weft {

/// out = the row, where `mask` is true if there is one; out and mask have the result's shape, and
/// out its type.
bool compute_into(Op op, const NDArray& out, const NDArray* mask, const Arg& x);
bool compute_into(Op op, const NDArray& out, const NDArray* mask, const Arg& x, const Arg& y);
/// x[mask] = values, in order, on the host, for a mask of x's shape and as many values as it marks.
bool put_marked(const NDArray& x, const NDArray& mask, const NDArray& values);

}  // namespace weft
