// SPDX-License-Identifier: Apache-2.0
#pragma once
// Copies between two layouts of one element type in one pass.

#include "weft/array/ndarray.h"

namespace weft {

/// dst = src, broadcast to dst's shape; both on the host, of one element type and without overlap.
/// False, with nothing done, where types differ or both are one run of adjacent elements.
bool strided_copy(const NDArray& dst, const NDArray& src);

/// One run: n elements of so many bytes, steps in elements.
void copy_run(int bytes, char* to, std::int64_t to_step, const char* from, std::int64_t from_step,
              std::int64_t n);

}  // namespace weft
