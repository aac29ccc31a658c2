// SPDX-License-Identifier: Apache-2.0
#pragma once
// The largest element of windows on the host.

#include "weft/autograd/gpu/pool.h"

namespace weft {

/// x and the results are compact. `at` (int64) gets the place of each window's largest element in
/// its plane: of equals the first, NaN before all.
void host_pool_max(const PoolWindows& w, const NDArray& x, const NDArray& out, const NDArray& at);
/// out = zeros with each element of g added at its place.
void host_pool_spread(const PoolWindows& w, const NDArray& g, const NDArray& at,
                      const NDArray& out);
/// out = x's element at each place.
void host_pool_pick(const PoolWindows& w, const NDArray& x, const NDArray& at, const NDArray& out);

}  // namespace weft
