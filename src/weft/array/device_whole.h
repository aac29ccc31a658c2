// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products and convolutions of 16-bit floats by a kernel of threads in roles
// (device_whole_kernel.h): which tile, into how many parts, which tensors.

#include <vector>

#include "weft/array/device_grid.h"
#include "weft/array/ops/scaled_matmul.h"
#include "weft/rules/gemm_tensor_core.h"

namespace weft::device {

/// Whether the device copies in bulk and multiplies whole tiles of operands of this type.
bool has_whole_product(const Ref<Device>& device, Elem elem);

/// Whether it multiplies tiles of float8 operands.
bool has_scaled_product(const Ref<Device>& device);

/// What the rule for products is told of the device.
rules::GemmMachine gemm_machine(const Grid& grid);

/// Whether the device can copy tiles of this operand in bulk as it lies.
bool reads_in_bulk(const NDArray& x);

/// out[b, m, n] = sum over k of a[b, m, k] * b[b, k, n] as grid_product; false where the device has
/// no kernel for it or the operands need more batch axes than it knows. `measured`: instead of the
/// choice. `scaled`: what the sums are multiplied by and what is added to them; float8 operands are
/// of this form, and no batches are then.
bool whole_product(const NDArray& out, const NDArray& a, const NDArray& b,
                   const rules::GemmDecisions* measured = nullptr,
                   const ProductScales* scaled = nullptr);

/// Images [n, channels, y, x] and windows' steps and margins along y and x.
struct Images {
  std::int64_t step[2] = {1, 1}, before[2] = {0, 0};
};
/// out[n, o, y, x] = sum over c, i, j of x[n, c, y * step + i - before, ...] * weight[o, c, i, j];
/// what lies outside of x is 0. `out` of the wanted extents, all of one 16-bit type.
void whole_conv(const NDArray& out, const NDArray& x, const NDArray& weight, const Images& images);
/// The gradient of the convolution above with steps 1 towards x: weights are turned around.
void whole_conv_input(const NDArray& out, const NDArray& g, const NDArray& weight,
                      const Images& images);
/// The gradient towards the weights, [o, c, i, j], from g[n, o, y, x].
void whole_conv_weight(const NDArray& out, const NDArray& g, const NDArray& x,
                       const Images& images);

}  // namespace weft::device
