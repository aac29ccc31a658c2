// SPDX-License-Identifier: Apache-2.0
#pragma once
// Means of windows over up to three axes, on the host and on devices with a grid.

#include "weft/autograd/gpu/pool.h"
#include "weft/operators/mean_pool.h"

namespace weft {

struct MeanWindows {
  PoolWindows windows;  // dilation is not read; of adaptive windows extents and counts alone
  bool adaptive = false;
  operators::MeanOf of = operators::MeanOf::with_border;
  std::int64_t divisor = 1;
};

/// Of a real floating type; 16-bit floats are summed in float32. Every window has an element
/// inside. Derivatives of any order.
Tensor mean_pool(const Tensor& x, const MeanWindows& windows, const Dims& out_shape);

}  // namespace weft
