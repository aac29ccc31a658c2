// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rows of the operation table over complex numbers, on devices with a grid.

#include <span>

#include "weft/array/ops.h"

namespace weft::gpu {

/// out = row(args), element by element, views of any layout; one of out, compute and the arguments
/// is complex. Throws RowUnsupported for rows that have no complex numbers.
void complex_map(const NDArray& out, Op op, Elem compute, std::span<const Arg> args);

}  // namespace weft::gpu
