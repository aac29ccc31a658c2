// SPDX-License-Identifier: Apache-2.0
#pragma once
// Normalisation of each channel (axis 1) over a batch, with its gradient: two sums and one map
// each.

#include "weft/array/ops.h"

namespace weft::device {

struct BatchNorm {
  NDArray y, mean, variance;
};
struct BatchNormGradient {
  NDArray x, weight, bias;
};

/// Whether there are kernels for x's device, type and shape.
bool has_batch_norm(const NDArray& x);
/// (x - mean) / sqrt(variance + eps) * weight + bias; weight and bias hold a number for each
/// channel.
BatchNorm batch_norm(const NDArray& x, const NDArray& weight, const NDArray& bias, double eps);
BatchNormGradient batch_norm_gradient(const NDArray& g, const NDArray& x, const NDArray& mean,
                                      const NDArray& variance, const NDArray& weight, double eps);

}  // namespace weft::device
