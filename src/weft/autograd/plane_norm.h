// SPDX-License-Identifier: Apache-2.0
#pragma once
// Normalisation of planes: x (n, c, ...) has n c of them. Statistics are those of a channel over
// the batch, or of neighbouring channels of an image; weight and bias hold a number for each
// channel.

#include "weft/autograd/tensor.h"

namespace weft {

/// `groups`: of channels of an image; 0: over the batch.
struct PlaneNorm {
  std::int64_t groups = 0;
  double eps = 0;
};

/// Whether one node has kernels for it, on the host or, over the batch, on a device with a grid.
bool has_plane_norm(const NDArray& x, const PlaneNorm& norm);
/// (x - mean) / sqrt(variance + eps) * weight + bias, either of which may be undefined on the host;
/// the moments go to `mean` and `variance`.
Tensor plane_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const PlaneNorm& norm,
                  NDArray* mean, NDArray* variance);

}  // namespace weft
