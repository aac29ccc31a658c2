// SPDX-License-Identifier: Apache-2.0
#pragma once
// Linear interpolation of images on devices with a grid, with gradients of any order.

#include <vector>

#include "weft/autograd/tensor.h"

namespace weft {

/// One of the last axes: place i of the resized image lies at max(i * step + bias, 0) of the image.
struct ResampleAxis {
  std::int64_t extent = 1, size = 1;
  double step = 1, bias = 0;
};
/// x (..., extents), of real floats, with one to three axes resized.
Tensor grid_resample(const Tensor& x, const std::vector<ResampleAxis>& axes);

}  // namespace weft
