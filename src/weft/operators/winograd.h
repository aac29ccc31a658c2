// SPDX-License-Identifier: Apache-2.0
#pragma once
// Convolutions of 3 x 3 windows at every place by Winograd's method F(4 x 4, 3 x 3): tiles of 6 x 6
// places and the windows are transformed, 36 products over channels take the place of the windows',
// and the result is transformed back, 4 x 4 places a tile. 36 multiplications do what 144 did.
// Errors in float32 are a few times those of plain sums (about 4e-6 of the result at 512 channels).

#include <string>

#include "weft/ir/node.h"

namespace weft::operators {

inline constexpr int kWinogradThreads = 128;
inline constexpr int kWinogradTile = 4, kWinogradProducts = 36;

/// main(weight, out, blocks, size, results, summed, result_step, summed_step): out[p, result,
/// channel] for `size` = results * summed windows; `weight` has compact windows at the steps of
/// both channels. `turned`: windows are turned around, as gradients towards the input need them.
ir::PrimFunc winograd_weights(bool turned, bool narrow);

/// main(x, out, blocks, size, pitch, images, across, down, channels, h, w, before_y, before_x, x_n,
/// x_c, x_y, x_x): out[p, channel, tile] for `size` = channels * pitch; images * down * across
/// tiles count. x is h x w at its own strides, with zeros around it. `upper`: 4 x 4 places of a
/// result's gradient instead, for the gradient towards the windows; then before_* are 0.
ir::PrimFunc winograd_input(bool upper, bool narrow);

/// main(sums, out, blocks, size, pitch, images, across, down, channels, h, w): from
/// sums[p, channel, tile] to compact images out[n, channel, h, w]. `whole`: w is 4 * across.
ir::PrimFunc winograd_output(bool whole, bool narrow);

/// main(sums, out, blocks, size): from the products of `size` pairs of channels, sums[p, pair], to
/// the gradient of their windows out[pair, 3, 3].
ir::PrimFunc winograd_windows(bool narrow);

}  // namespace weft::operators
