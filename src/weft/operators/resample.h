// SPDX-License-Identifier: Apache-2.0
#pragma once
// Images of other sizes by linear interpolation between the two neighbours along each axis, and the
// adjoint, which adds each result's gradient to the elements that it was made of.

#include <array>
#include <string>

#include "weft/ir/node.h"

namespace weft::operators {

inline constexpr int kResampleThreads = 256;
inline constexpr int kResamplePlanes = 8;  // of one thread, which finds its neighbours once

struct ResampleSpec {
  std::string type = "float32";  // of the elements
  std::string sums = "float32";  // of the arithmetic
  bool narrow = true;            // positions fit 32 bits
  std::array<bool, 3> axes{};    // along which the size changes; others have extent 1
  bool adjoint = false;
};

/// main(x, out, blocks, position_blocks, positions, planes, then for each axis its extent in the
/// image, in the resized image, and `step`, `bias`): place i of the resized image lies at
/// max(i * step + bias, 0) of the image. x is the image and out the resized one; of the adjoint the
/// other way round. Both are (planes, axes...), compact; `positions` counts those of out's plane.
ir::PrimFunc resample_program(const ResampleSpec& spec);

}  // namespace weft::operators
