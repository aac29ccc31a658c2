// SPDX-License-Identifier: Apache-2.0
#pragma once
// Attention: softmax(scale q k' + mask) v of q [batch, heads, n, width], k [batch, key heads, m,
// width] and v [batch, key heads, m, value width]. The key heads divide the heads, which share them
// in order. No array of n x m elements for all heads at once is made, neither here nor for the
// gradients, unless it is small.

#include <array>

#include "weft/autograd/tensor.h"

namespace weft {

struct AttentionOptions {
  NDArray mask;  // broadcasts to [batch, heads, n, m]: bool, true where a key is seen; else added
  NDArray padding;    // bool [batch, m]: true where a key is seen
  NDArray lengths;    // int32 [batch]: keys from here on are not seen
  bool band = false;  // query i sees keys i + low to i + high
  std::int64_t low = 0, high = 0;
  double scale = 1;
  double dropout = 0;  // of weights; what is kept is scaled
  std::uint64_t seed = 0;
};

struct AttentionResult {
  NDArray out, sums;  // sums: natural logarithm of the sum of exponentials, float32 or float64
};

/// One type and device for all operands. A query that sees no key gives 0, and sums of -inf. The
/// sums may be undefined unless `want_sums`.
AttentionResult attention_forward(const NDArray& q, const NDArray& k, const NDArray& v,
                                  const AttentionOptions& options, bool want_sums = true);
/// Gradients of q, k, v for the gradient of out.
std::array<NDArray, 3> attention_backward(const NDArray& g, const NDArray& q, const NDArray& k,
                                          const NDArray& v, const AttentionResult& result,
                                          const AttentionOptions& options);
/// `added`: a mask that may require a gradient; it then is part of a graph that holds all weights.
/// Throws Error(shape | type, "nn.attention.*").
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& added,
                 const AttentionOptions& options);

}  // namespace weft
