// SPDX-License-Identifier: Apache-2.0
#pragma once
// The largest element of windows over up to three axes, on the host and on devices with
// a grid.

#include <array>

#include "weft/autograd/tensor.h"

namespace weft {

struct PoolWindows {
  std::int64_t planes = 1;  // what stands before the three axes
  std::array<std::int64_t, 3> extents{1, 1, 1}, windows{1, 1, 1}, kernel{1, 1, 1}, stride{1, 1, 1},
      padding{0, 0, 0}, dilation{1, 1, 1};
};

/// Of a real type. Of equals the first; NaN before all. Every window has an element inside.
/// Derivatives of any order.
Tensor max_pool(const Tensor& x, const PoolWindows& windows, const Dims& out_shape);

}  // namespace weft
