// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shrinks every allocation to the box its accesses really touch: accesses are relaxed over the
// loops inside the allocation and over the bound loops whose points share one instance of the
// memory; guards tighten the box. On machines whose shapes may vary the box of a partial tile is
// smaller. The box's origin is subtracted from the indices. "dim_align" annotations become strides
// afterwards.

#include "weft/ir/node.h"
#include "weft/pass/machine.h"

namespace weft::pass {

/// Runs after convert_blocks (opaque blocks speak through their regions).
ir::PrimFunc compact_buffers(const ir::PrimFunc& f, const Machine& machine);

}  // namespace weft::pass
