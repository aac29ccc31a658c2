// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products and convolutions of 16-bit floats, and of float32 in pieces (devices/pieces.h), by
// kernels of threads in roles: which tile, into how many parts, which tensors.

#include <vector>

#include "weft/devices/grid.h"
#include "weft/devices/scaled_matmul.h"
#include "weft/rules/gemm_tensor_core.h"

namespace weft::device {

/// The decisions of least expected time. Hundreds of candidates are compared: what was chosen is
/// kept, for each thread.
rules::GemmDecisions gemm_choice(const Grid& grid, const rules::GemmShape& shape);
/// Those that a tuner found for this product on this device, else the same.
rules::GemmDecisions tuned_gemm(const Ref<Device>& device, const rules::GemmShape& shape);

/// Whether the device copies in bulk and multiplies whole tiles of operands of this type.
bool has_warp_specialized_product(const Ref<Device>& device, Elem elem);

/// Whether it multiplies tiles of float8 operands.
bool has_scaled_product(const Ref<Device>& device);

/// Whether the device can copy tiles of this operand in bulk as it lies.
bool reads_in_bulk(const NDArray& x);

/// Whether tiles, with the copies that the operands need, are expected to take less time than
/// multiplications by threads.
bool prefers_product(const NDArray& out, const NDArray& a, const NDArray& b);

/// out[b, m, n] = sum over k of a[b, m, k] * b[b, k, n], all of one rank with equal leading extents
/// (strides of 0 for broadcast ones); `out` is compact, of the operands' type or float32. False
/// where the device has no kernel for it. `measured`: instead of the choice. `scaled`: what the
/// sums are multiplied by and what is added to them; float8 operands are of this form, and no
/// batches are then.
bool warp_specialized_product(const NDArray& out, const NDArray& a, const NDArray& b,
                              const rules::GemmDecisions* measured = nullptr,
                              const ProductScales* scaled = nullptr);

/// Images [n, channels, y, x] and windows' steps, margins and gaps along y and x. Each group of
/// channels has as many results as another; float32 has one group.
struct Images {
  std::int64_t step[2] = {1, 1}, before[2] = {0, 0}, gap[2] = {1, 1}, groups = 1;
};
/// out[n, o, y, x] = sum over c, i, j of x[n, c, y * step + i * gap - before, ...] * weight[o, c,
/// i, j], c of the channels of o's group; what lies outside of x is 0. `out` of the wanted extents,
/// all of one 16-bit type, or float32.
void warp_specialized_conv(const NDArray& out, const NDArray& x, const NDArray& weight,
                           const Images& images);
/// Its gradients from g[n, o, y, x]: towards x, and towards the weights [o, c, i, j]; compact, null
/// where not asked for.
void warp_specialized_conv_gradients(const NDArray* input, const NDArray* weights, const NDArray& g,
                                     const NDArray& x, const NDArray& weight, const Images& images);

/// A convolution and its two gradients.
enum class ConvolutionOf : std::uint8_t { results, images, weights };
/// Extents of a convolution, channels and results of one group: along y before x.
struct ConvolutionSize {
  std::int64_t images = 1, channels = 1, results = 1;
  std::int64_t image[2] = {1, 1}, window[2] = {1, 1}, places[2] = {1, 1};
};
/// Whether a convolution by tiles, of float32 in pieces, is expected to take less time than one by
/// threads: `microseconds`, 0 for a contraction.
bool prefers_tiles(const Ref<Device>& device, Elem elem, ConvolutionOf which,
                   const ConvolutionSize& size, const Images& images, double microseconds);

}  // namespace weft::device
