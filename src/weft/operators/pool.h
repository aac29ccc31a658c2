// SPDX-License-Identifier: Apache-2.0
#pragma once
// The largest element of windows over up to three axes, with its position, and the way back. Arrays
// are [planes, depth, height, width] and [planes, windows of each axis], compact.

#include <array>
#include <string>

#include "weft/ir/node.h"

namespace weft::operators {

struct PoolSpec {
  std::string type;
  std::array<int, 3> kernel{1, 1, 1}, stride{1, 1, 1}, padding{0, 0, 0}, dilation{1, 1, 1};
  bool narrow = true;
};
inline constexpr int kPoolThreads = 256;

/// All take their arrays, then (blocks, size, the three extents, the three numbers of windows).
/// (x, out, at): the largest, NaN before all, the first of equals; at: its place in the plane.
ir::PrimFunc pool_max(const PoolSpec& spec);
/// (g, at, out): each element's sum over the windows that took it. No two threads write one
/// element, so the sum has one order.
ir::PrimFunc pool_spread(const PoolSpec& spec);
/// (x, at, out): the element that each window took.
ir::PrimFunc pool_pick(const PoolSpec& spec);

}  // namespace weft::operators
