// SPDX-License-Identifier: Apache-2.0
#pragma once
// Copies on the host that exchange the contiguous axis: blocks in registers, so that both sides
// move whole cache lines.

#include "weft/array/ndarray.h"

namespace weft {

/// dst = src for equal types and shapes when the contiguous axes of the two differ and the elements
/// have at most 8 bytes; false when the layout is another and nothing was done.
bool transpose_copy(const NDArray& dst, const NDArray& src);

}  // namespace weft
