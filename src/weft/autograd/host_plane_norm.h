// SPDX-License-Identifier: Apache-2.0
#pragma once
// plane_norm.h on the host: planes a chunk at a time, in float32 or float64.

#include "weft/autograd/plane_norm.h"

namespace weft {

bool host_has_plane_norm(const NDArray& x);
struct HostNorm {
  NDArray y, mean, variance;
};
HostNorm host_plane_norm(const NDArray& x, const NDArray& weight, const NDArray& bias,
                         const PlaneNorm& norm);
/// Of x, weight and bias.
struct HostNormGradient {
  NDArray x, weight, bias;
};
HostNormGradient host_plane_norm_gradient(const NDArray& g, const NDArray& x, const NDArray& mean,
                                          const NDArray& variance, const NDArray& weight,
                                          const PlaneNorm& norm);

}  // namespace weft
