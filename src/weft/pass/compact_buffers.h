// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shrinks every allocation to the box its accesses really touch: accesses are relaxed over the
// loops inside the allocation and over the bound loops whose points share one instance of the
// memory; guards tighten the box. The box's origin is subtracted from the indices. "dim_align"
// annotations become strides afterwards.

#include "weft/ir/node.h"
#include "weft/machine/target_info.h"

namespace weft::pass {

/// Runs after convert_blocks (opaque blocks speak through their regions). `varying_shapes`: extents
/// may depend on the loops around a buffer, so that the box of a partial tile is smaller.
ir::PrimFunc compact_buffers(const ir::PrimFunc& f, const TargetInfo& machine,
                             bool varying_shapes = false);

}  // namespace weft::pass
