// SPDX-License-Identifier: Apache-2.0
#pragma once
// Convolutions whose windows have one place, and no margins: products of matrices. With steps they
// are those of the places that windows name.

#include "weft/devices/channels_last.h"

namespace weft::device {

bool of_one_place(const NDArray& weight, const Images& images);

/// warp_specialized_conv and its gradients (warp_specialized.h) of such windows without steps, of
/// 16-bit floats; false where the device has no kernel for it.
bool place_convolution(const NDArray& out, const NDArray& x, const NDArray& weight);
bool place_input_gradient(const NDArray& out, const NDArray& g, Upper& last, const NDArray& weight);
bool place_weight_gradient(const NDArray& out, const NDArray& g, Upper& last, const NDArray& x);

/// The places of x[n, c, ...] that windows with these steps (along y before x) name, `h` by `w` of
/// them; compact, x itself where that is all of it.
NDArray named_places(const NDArray& x, const std::int64_t (&step)[2], std::int64_t h,
                     std::int64_t w);
/// The adjoint: `places` where they belong in `out`, 0 elsewhere.
void spread_places(const NDArray& out, const NDArray& places, const std::int64_t (&step)[2]);

}  // namespace weft::device
