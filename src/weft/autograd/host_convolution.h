// SPDX-License-Identifier: Apache-2.0
#pragma once
// Convolutions of real floats on the host, 16-bit ones in float32: windows are laid out for a piece
// of the image at a time, in at most two megabytes for each thread, and multiplied; nothing of the
// windows' size is kept. Results depend neither on the number of threads nor on how many images are
// taken together.

#include "weft/autograd/convolution.h"

namespace weft {

bool host_has_convolution(const NDArray& x, const NDArray& weight);
/// x (n, c, h, w) and weight (o, c / groups, kh, kw) -> (n, o, w.out[0], w.out[1]).
NDArray host_conv2d(const NDArray& x, const NDArray& weight, const Conv& conv, const Window& w);
/// The gradient for x, of extents h x width; also the transposed convolution of g.
NDArray host_conv2d_input(const NDArray& g, const NDArray& weight, const Conv& conv,
                          const Window& w, std::int64_t h, std::int64_t width);
/// The gradient for the weights, of the given shape.
NDArray host_conv2d_weight(const NDArray& g, const NDArray& x, const Dims& shape, const Conv& conv,
                           const Window& w);

}  // namespace weft
