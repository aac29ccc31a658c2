// SPDX-License-Identifier: Apache-2.0
#pragma once
// Steps of optimizers that write over what they read, one launch for each array.

#include <span>

#include "weft/array/ops.h"

namespace weft {

/// out = of out, arrays a0 ... and numbers c0 ..., element by element:
enum class Update : std::uint8_t {
  blend,         // c0 * out + c1 * a0
  blend_square,  // c0 * out + c1 * a0 * a0
  descend,       // out - c0 * a0
  descend_root,  // out - c0 / a2 * a0 / (sqrt(a1 / a3) + c1); a2, a3 of no axes
};
/// False where the device has no such kernel; then nothing was done.
bool update_in_place(Update rule, const NDArray& out, std::span<const NDArray> arrays,
                     std::span<const Scalar> numbers);

}  // namespace weft
