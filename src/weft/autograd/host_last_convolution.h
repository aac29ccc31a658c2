// SPDX-License-Identifier: Apache-2.0
#pragma once
// Convolutions of real floats on the host whose images have the channels of a place side by side
// (channels last): nothing is turned, and results have that order too.

#include "weft/autograd/convolution.h"

namespace weft {

/// Images (n, c, h, w) whose memory is (n, h, w, c), and only that.
bool is_channels_last(const NDArray& x);
/// As those of host_convolution.h; x or g is_channels_last.
NDArray last_conv2d(const NDArray& x, const NDArray& weight, const Conv& conv, const Window& w);
NDArray last_conv2d_input(const NDArray& g, const NDArray& weight, const Conv& conv,
                          const Window& w, std::int64_t h, std::int64_t width);
NDArray last_conv2d_weight(const NDArray& g, const NDArray& x, const Dims& shape, const Conv& conv,
                           const Window& w);

}  // namespace weft
