// SPDX-License-Identifier: Apache-2.0
#pragma once
// plane_norm.h on the host: planes a piece at a time that stays in the first cache, in float64 or
// float32, to which 16-bit floats are widened on the way.

#include "weft/autograd/plane_norm.h"

namespace weft {

bool host_has_plane_norm(const NDArray& x);
struct HostNorm {
  NDArray y, mean, variance;
};
/// weight and bias may be undefined; mean and variance are of the type that is computed with.
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
