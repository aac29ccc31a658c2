// SPDX-License-Identifier: Apache-2.0
#pragma once
// Turns the alloc_buffers of blocks into Allocate statements at the deepest place that encloses
// every use: the least common ancestor, but never inside a loop that carries values of the buffer
// from one iteration to the next (a reduction), and outside all bound loops for a memory that all
// points of the axes share. Alignments asked for by "buffer_dim_align" become the allocation's
// "dim_align" annotation.

#include "weft/ir/node.h"
#include "weft/machine/target_info.h"

namespace weft::pass {

ir::PrimFunc place_allocations(const ir::PrimFunc& f, const TargetInfo& machine);

}  // namespace weft::pass
