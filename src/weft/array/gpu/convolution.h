// SPDX-License-Identifier: Apache-2.0
#pragma once
// Convolutions and their gradients on devices with blocks and threads: any stride, padding and
// dilation of each axis, and groups. Windows are read in place. One contraction for each remainder
// of the stride computes the gradient towards the input, which is also the transposed convolution.
// Groups of few channels, and results of few channels, have kernels of their own.

#include "weft/array/ops/convolution.h"

namespace weft {

bool card_has_convolution(const NDArray& x, const NDArray& weight);
/// x (n, c, h, w) and weight (o, c / groups, kh, kw) -> (n, o, w.out[0], w.out[1]).
NDArray card_conv2d(const NDArray& x, const NDArray& weight, const Conv& conv, const Window& w);
/// The gradient for x, of extents h x width; also the transposed convolution of g.
NDArray card_conv2d_input(const NDArray& g, const NDArray& weight, const Conv& conv,
                          const Window& w, std::int64_t h, std::int64_t width);
/// The gradient for the weights, of the given shape.
NDArray card_conv2d_weight(const NDArray& g, const NDArray& x, const Dims& shape, const Conv& conv,
                           const Window& w);

namespace device {

/// out[n, g * outs + o, y, x] = sum over c, i, j of
/// from[n, g * ins + c, y * step + i * gap - before, ...] * weight[g, o, c, i, j]; what lies
/// outside of `from` is 0. `weight` is a view of five axes.
struct DirectConvolution {
  Pair step{1, 1}, gap{1, 1}, before{0, 0};
};
/// `out` and `from` are views of four axes.
void direct_convolution(const NDArray& out, const NDArray& from, const NDArray& weight,
                        const DirectConvolution& d);
/// The gradient towards the weights: out[g, o, c, i, j] = sum over n, y, x of
/// by[n, g * outs + o, y, x] * from[n, g * ins + c, y * step + i * gap - before, ...]; compact.
void direct_weights(const NDArray& out, const NDArray& by, const NDArray& from,
                    const DirectConvolution& d);

}  // namespace device
}  // namespace weft
