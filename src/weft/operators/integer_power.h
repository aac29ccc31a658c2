// SPDX-License-Identifier: Apache-2.0
#pragma once
// Integers to integer powers on devices with a grid, by squaring.

#include <string>

#include "weft/ir/node.h"

namespace weft::operators {

inline constexpr int kPowerThreads = 256;

/// (x, y, out, blocks, count): out[i] = x[i] to the power y[i] >= 0, of one integer type, wrapped.
ir::PrimFunc integer_power(const std::string& element);

}  // namespace weft::operators
