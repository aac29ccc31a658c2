// SPDX-License-Identifier: Apache-2.0
#pragma once
// Attention on the host, by heads and blocks of queries whose scores stay in the caches.

#include <array>

#include "weft/autograd/attention.h"

namespace weft::host {

/// Whether the functions below take these operands, whose mask is a view of four full axes.
bool has_attention(const NDArray& q, const NDArray& k, const NDArray& v, const AttentionOptions& o);
/// Results lie in memory as [batch, n, heads, width], which joins the heads without a copy. The
/// sums are undefined unless `want_sums`.
AttentionResult attention(const NDArray& q, const NDArray& k, const NDArray& v,
                          const AttentionOptions& o, bool want_sums);
std::array<NDArray, 3> attention_backward(const NDArray& g, const NDArray& q, const NDArray& k,
                                          const NDArray& v, const AttentionOptions& o);

}  // namespace weft::host
