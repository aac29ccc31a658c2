// SPDX-License-Identifier: Apache-2.0
#pragma once
// Attention on devices with a grid, by the programs of weft/operators/attention.h.

#include "weft/autograd/attention.h"

namespace weft::device {

/// Types, widths and the device are of a kind that the programs know.
bool has_attention(const NDArray& q, const NDArray& k, const NDArray& v,
                   const AttentionOptions& options);
AttentionResult grid_attention(const NDArray& q, const NDArray& k, const NDArray& v,
                               const AttentionOptions& options);
std::array<NDArray, 3> grid_attention_backward(const NDArray& g, const NDArray& q, const NDArray& k,
                                               const NDArray& v, const AttentionResult& result,
                                               const AttentionOptions& options);

}  // namespace weft::device
