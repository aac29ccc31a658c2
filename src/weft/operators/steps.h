// SPDX-License-Identifier: Apache-2.0
#pragma once
// Evenly spaced numbers on devices with a grid.

#include <string>

#include "weft/ir/node.h"

namespace weft::operators {

inline constexpr int kStepsThreads = 256;

/// (out, start, step, count, blocks): out[i] = start + i * step, in int64 for integers, else in
/// float64, converted to `element`.
ir::PrimFunc steps_program(const std::string& element, bool integral);

}  // namespace weft::operators
