// SPDX-License-Identifier: Apache-2.0
#pragma once
// Structured operations on arrays that the host cannot address: indexing by arrays, selection,
// running sums, positions of extrema, sorting and searching. They are written as programs of the
// IR (device_index.cpp) or composed of other operations (device_sort.cpp), so a device needs
// nothing for them but the compiler.

#include "weft/array/ops.h"

namespace weft {

/// out = condition ? a : b; operands broadcast to out.
void device_where(const NDArray& out, const NDArray& condition, const Arg& a, const Arg& b);
NDArray device_gather(const NDArray& x, std::span<const NDArray> indices);
/// Equal indices: the last value stands, or all are added when `accumulate`. Work grows with the
/// number of indices times the number of places.
void device_scatter(const NDArray& x, std::span<const NDArray> indices, const NDArray& value,
                    bool accumulate);
/// The elements of each line along the axis at positions of their own; other axes are alike.
NDArray device_take_along(const NDArray& x, const NDArray& indices, int axis);
/// x at `at`, int64 positions in [0, x.size()) along the only axis; not checked.
NDArray device_pick(const NDArray& x, const NDArray& at);

/// Inclusive, by doubling: log2(n) passes.
NDArray device_scan(ReduceOp op, const NDArray& x, int axis, Elem elem);
/// x (..., n), n > 0; first of equals, NaN wins; the last axis goes.
NDArray device_arg_reduce(bool largest, const NDArray& x);
/// Along the last axis, NaN last, stable: a bitonic network over (element, position).
NDArray device_sort(const NDArray& x, bool descending, bool positions);
NDArray device_searchsorted(const NDArray& x, const NDArray& values, bool right);
std::vector<NDArray> device_nonzero(const NDArray& x);

}  // namespace weft
