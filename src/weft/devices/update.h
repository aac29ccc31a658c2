// SPDX-License-Identifier: Apache-2.0
#pragma once
// Steps of optimizers and running statistics as one launch: those that write over what they read,
// and those that leave it and give new arrays.

#include <span>
#include <vector>

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

/// New arrays from arrays of one shape and numbers, element by element. x: what is learned, g: its
/// gradient.
enum class Step : std::uint8_t {
  descend,   // x, g; rate: x - rate g
  momentum,  // x, v, g; rate, keep, part: w = keep v + part g; gives x - rate w, w
  nesterov,  // the same, and x - rate (g + keep w)
  adam,  // x, m, v, g; rate, keep, keep_square, eps, first, second, 1 - keep, 1 - keep_square: a =
         // keep m + (1 - keep) g, b = keep_square v + (1 - keep_square) g g; gives x - rate / first
         // a / (sqrt(b / second) + eps), a, b
  running,  // m, v, a, b; keep, part, part_square: gives keep m + part a, keep v + part_square b
};
/// Of x, m, v: `decay` times x is added to g first, or x is made `shrink` times as long. Empty
/// where the device has no such kernel or the shapes differ.
std::vector<NDArray> step_of(Step rule, std::span<const NDArray> arrays,
                             std::span<const Scalar> numbers, double decay = 0, double shrink = 1);

}  // namespace weft
