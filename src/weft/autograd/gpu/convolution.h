// SPDX-License-Identifier: Apache-2.0
#pragma once
// Convolutions and their gradients on devices with blocks and threads: any stride, padding and
// dilation of each axis, and groups. Windows are read in place. One contraction for each remainder
// of the stride computes the gradient towards the input, which is also the transposed convolution.
// Groups of few channels, and results of few channels, have kernels of their own.

#include "weft/autograd/convolution.h"
#include "weft/devices/warp_specialized.h"

namespace weft {

bool card_has_convolution(const NDArray& x, const NDArray& weight);
device::Images images_of(const Conv& conv);
/// x (n, c, h, w) and weight (o, c / groups, kh, kw) -> (n, o, w.out[0], w.out[1]).
NDArray card_conv2d(const NDArray& x, const NDArray& weight, const Conv& conv, const Window& w);
/// The gradient for x, of extents h x width; also the transposed convolution of g.
NDArray card_conv2d_input(const NDArray& g, const NDArray& weight, const Conv& conv,
                          const Window& w, std::int64_t h, std::int64_t width);
/// The gradient for the weights, of the given shape.
NDArray card_conv2d_weight(const NDArray& g, const NDArray& x, const Dims& shape, const Conv& conv,
                           const Window& w);
/// Both gradients of x and weight.
void card_conv2d_gradients(NDArray& dx, NDArray& dw, const NDArray& g, const NDArray& x,
                           const NDArray& weight, const Conv& conv);

namespace device {

/// Steps, gaps and margins of windows.
struct Windows {
  Pair stride{1, 1}, dilation{1, 1}, padding{0, 0};
};
/// Into how many parts the channels that are summed are cut, so that enough threads are at work:
/// `each` of them a part, and `rest` beside.
struct StripParts {
  std::int64_t count = 1, each = 0, rest = 0;
};
StripParts strip_parts(const Grid& grid, std::int64_t threads, std::int64_t summed,
                       std::int64_t groups);
/// The convolution by strips of places (operators/convolution.h): out[n, g * outs + o, y, x] = sum
/// over c, i, j of from[n, g * ins + c, y * stride + i * dilation - padding, ...] *
/// weight[g * outs + o, c, i, j]; what lies outside of `from` is 0. `transposed`: its adjoint
/// towards the input, of weight[g * ins + c, o, i, j]. out and weight are compact.
void strip_convolution(const NDArray& out, const NDArray& from, const NDArray& weight,
                       std::int64_t groups, const Windows& w, bool transposed);
/// The gradient towards the weights: out[g * outs + o, c, i, j] = sum over n, y, x of
/// by[n, g * outs + o, y, x] * from[n, g * ins + c, y * stride + i * dilation - padding, ...];
/// compact. False where the window is too large for a thread's registers.
bool strip_weights(const NDArray& out, const NDArray& by, const NDArray& from, std::int64_t groups,
                   const Windows& w);

/// Windows of x[n, c, y, x] as rows of matrices, [n, c * window, places].
NDArray window_rows(const NDArray& x, const Pair& kernel, const Pair& out, const Windows& w);

/// By Winograd's method (operators/winograd.h), float32: out[n, r, y, x] = sum over c and windows
/// of 3 x 3 of from[n, c, y + i - before, ...] * weight[r, c, i, j]; `turned`: times weight[c, r, 2
/// - i, 2 - j]. out is compact. False, and nothing done, where the products of a contraction are
/// expected to take less time.
bool winograd_convolution(const NDArray& out, const NDArray& from, const NDArray& weight,
                          const Pair& before, bool turned);
/// The gradient towards the windows, out[o, c, 3, 3] (compact), from g[n, o, y, x].
bool winograd_weights(const NDArray& out, const NDArray& g, const NDArray& from,
                      const Pair& before);

}  // namespace device
}  // namespace weft
