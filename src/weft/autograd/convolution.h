// SPDX-License-Identifier: Apache-2.0
#pragma once
// Convolution and its transpose over Tensors: from views and matrix products where a device has no
// program of its own, so that every device with those has convolutions, and gradients of any order
// come with them. Layouts are PyTorch's: x (n, c, h, w); one-dimensional ones are the case h = kh
// = 1.

#include <array>

#include "weft/autograd/tensor.h"

namespace weft {

using Pair = std::array<std::int64_t, 2>;  // for the rows and for the columns

struct Conv {
  Pair stride{1, 1}, padding{0, 0}, dilation{1, 1};
  Pair output_padding{0, 0};  // of the transpose: rows and columns added at the far end
  std::int64_t groups = 1;
};

/// Windows of kernel[0] x kernel[1] elements at every stride; out[i]: how many along an axis.
struct Window {
  Pair kernel{1, 1}, stride{1, 1}, dilation{1, 1}, out{0, 0};
};
/// (n, c, h, w) -> a view (n, c, out[0], out[1], kernel[0], kernel[1]).
Tensor windows(const Tensor& x, const Window& window);
/// The transpose of windows: overlapping windows add up in zeros of `shape` (n, c, h, w).
Tensor fold(const Tensor& x, const Dims& shape, const Window& window);

/// x (n, c, h, w), weight (o, c / groups, kh, kw) -> (n, o, oh, ow). Throws Error(shape,
/// "array.conv2d.shape"), Error(value, "array.conv2d.option").
Tensor conv2d(const Tensor& x, const Tensor& weight, const Conv& conv);
/// The transpose of conv2d: x (n, c, h, w), weight (c, o / groups, kh, kw) -> (n, o, oh, ow) with
/// oh = (h - 1) stride + dilation (kh - 1) + 1 + output_padding - 2 padding. Throws Error(shape,
/// "array.conv_transpose2d.shape"), Error(value, "array.conv_transpose2d.option").
Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Conv& conv);
/// Gradients for x and weight, undefined for one that requires none, of conv2d or of its transpose
/// weighted by g; the convolution itself is not computed. Throws Error(shape,
/// "array.conv2d.shape") where g has another shape than it, and what it throws.
std::vector<Tensor> convolution_gradients(const Tensor& g, const Tensor& x, const Tensor& weight,
                                          const Conv& conv, bool transposed);

}  // namespace weft
