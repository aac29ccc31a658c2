// SPDX-License-Identifier: Apache-2.0
#pragma once
// Gradients of an element-wise operation towards several operands, on a device with a grid.

#include <functional>
#include <span>
#include <vector>

#include "weft/devices/grid.h"

namespace weft::device {

/// An operand that a gradient is for.
struct Operand {
  Dims shape;
  Elem elem = Elem::float32;
};

/// One kernel for all operands of the result's shape, and one sum for each that was broadcast to
/// it; `values` are those of all operands, in the shape of the result. Long ones are written to
/// memory before they are added up: sums write each part as often as it is used. `map.key` is that
/// of the values, below 2^18; `map.value` is not asked.
std::vector<NDArray> grid_gradients(const Ref<Device>& device, Map map, const Dims& shape,
                                    std::span<const Operand> operands, const MapValues& values,
                                    bool short_values = true);

}  // namespace weft::device
