// SPDX-License-Identifier: Apache-2.0
#pragma once
// int64 index arithmetic becomes int32 where bounds prove that no intermediate result leaves the
// range. What cannot be proved (run-time extents) stays 64 bits wide, unless the function has the
// attribute kNarrowPositions: then its caller vouches that extents, strides and every position that
// the kernels compute, those of tiles beyond an edge included, fit 32 bits.

#include "weft/ir/node.h"

namespace weft::pass {

inline constexpr const char* kNarrowPositions = "narrow_positions";

ir::PrimFunc narrow_indices(const ir::PrimFunc& f);

}  // namespace weft::pass
