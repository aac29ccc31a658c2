// SPDX-License-Identifier: Apache-2.0
#pragma once
// Convolutions whose groups have one channel of the image each, on the host.

#include "weft/autograd/phases.h"

namespace weft {

/// Extents and steps of a depthwise convolution: o is c times the results of a channel.
struct Depthwise : Places {
  std::int64_t n, c, o;
};

/// out (n, o, oh, ow) of x (n, c, h, w) and weight (o, 1, kh, kw); all compact.
template <typename T>
void depthwise_forward(const Depthwise& s, const T* x, const T* weight, T* out);
/// The gradient for x, of out's gradient g.
template <typename T>
void depthwise_input(const Depthwise& s, const T* g, const T* weight, T* x);
/// The gradient for the weights.
template <typename T>
void depthwise_weight(const Depthwise& s, const T* g, const T* x, T* weight);

}  // namespace weft
