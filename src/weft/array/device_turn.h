// SPDX-License-Identifier: Apache-2.0
#pragma once
// Copies between layouts whose fastest axes differ, through tiles in shared memory, so that both
// sides are read and written in whole lines.

#include "weft/array/ndarray.h"

namespace weft::device {

/// out[b, c, r] = x[b, r, c], one type; neighbours along c in x and along r in out lie together.
void grid_turn(const NDArray& out, const NDArray& x);

}  // namespace weft::device
