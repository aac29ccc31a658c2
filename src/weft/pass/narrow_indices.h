// SPDX-License-Identifier: Apache-2.0
#pragma once
// int64 index arithmetic becomes int32 where bounds prove that no intermediate result leaves the
// range. What cannot be proved (run-time extents) stays 64 bits wide.

#include "weft/ir/node.h"

namespace weft::pass {

ir::PrimFunc narrow_indices(const ir::PrimFunc& f);

}  // namespace weft::pass
