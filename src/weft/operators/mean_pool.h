// SPDX-License-Identifier: Apache-2.0
#pragma once
// Means of windows over up to three axes, and the way back. Arrays are [planes, depth, height,
// width] and [planes, windows of each axis], compact. Windows are boxes at steps, or `adaptive`:
// window o of m over an axis of n has the elements from o n / m to (o + 1) n / m rounded up.

#include <array>
#include <string>

#include "weft/ir/node.h"

namespace weft::operators {

/// What a window's sum is divided by: its elements with those of the border, its elements, or one
/// number.
enum class MeanOf : std::uint8_t { with_border, inside, number };

struct MeanPoolSpec {
  std::string type, sums;  // of the elements; of the arithmetic
  bool adaptive = false;
  std::array<int, 3> kernel{1, 1, 1}, stride{1, 1, 1}, padding{0, 0, 0};  // of boxes
  MeanOf of = MeanOf::with_border;
  int divisor = 1;  // of MeanOf::number
  bool narrow = true;
  int first = 0;         // the axes before it have one element and one window
  bool whole = false;    // every box lies inside
  bool written = false;  // boxes are written out: their elements' loads are in flight together
};
/// Boxes of so many elements are written out.
inline constexpr int kWrittenPlaces = 64;

/// Both take (from, out), then (blocks, size, the three extents, the three numbers of windows);
/// where positions are narrow then, of each axis from `first` on, the factor and the shift that
/// divide by its number of windows (its extent for the gradient). Blocks have kPoolThreads threads
/// (pool.h).
ir::PrimFunc mean_pool(const MeanPoolSpec& spec);
/// The gradient: each element's sum over the windows that have it, so sums have one order.
ir::PrimFunc mean_pool_spread(const MeanPoolSpec& spec);

}  // namespace weft::operators
