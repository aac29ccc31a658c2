// SPDX-License-Identifier: Apache-2.0
#pragma once
// Indexing, sorting and running sums over Tensors, with their gradients.

#include "weft/autograd/tensor.h"

namespace weft {

/// Entries at positions that differ from line to line; indices have x's rank and broadcast with x
/// except along `axis`.
Tensor take_along_axis(const Tensor& x, const NDArray& indices, int axis);
/// A sorted copy; equal elements keep their order, and each passes its own gradient back.
Tensor sort(const Tensor& x, int axis, bool descending);
/// Inclusive running sum.
Tensor cumulative_sum(const Tensor& x, int axis);
/// x with `values` added at x[i0, i1, ...]; equal indices add up. x itself stays as it is.
Tensor scatter_add(const Tensor& x, std::vector<NDArray> indices, const Tensor& values);

}  // namespace weft
