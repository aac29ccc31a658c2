// SPDX-License-Identifier: Apache-2.0
#pragma once
// Copies between layouts whose fastest axes differ, through tiles in shared memory, so that both
// sides are read and written in whole lines.

#include "weft/array/ndarray.h"

namespace weft::device {

/// out[b, c, r] = x[b, r, c], one type; neighbours along c in x and along r in out lie together.
void grid_transpose(const NDArray& out, const NDArray& x);

/// dst = src, where the two have their unit steps along different axes, src's forwards or
/// backwards: through tiles in shared memory, so that reads and writes run along memory. False, and
/// nothing done, for other layouts, other types and small arrays.
bool transpose_copy(const NDArray& dst, const NDArray& src);
/// The operand in the layout of `out`, where it lies transposed beside it; else the operand itself.
NDArray transposed_for(const NDArray& out, const NDArray& operand);

}  // namespace weft::device
