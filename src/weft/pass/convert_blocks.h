// SPDX-License-Identifier: Apache-2.0
#pragma once
// Blocks to plain loops: iterators are replaced by their bindings, predicates become guards. A
// block stays, as an opaque one without iterators, only where it matches sub-buffers or hides
// addresses: there its regions are still needed (compact_buffers, lower_match_buffers).

#include "weft/ir/node.h"

namespace weft::pass {

/// Runs after lower_init and place_allocations.
ir::PrimFunc convert_blocks(const ir::PrimFunc& f);

/// Views of constant shape become indices of what they show, before anything asks which elements a
/// statement touches; the others wait until buffers lie where they will (lower_match_buffers).
ir::PrimFunc lower_plain_matches(const ir::PrimFunc& f);

/// Replaces accesses of matched sub-buffers by accesses of their sources and drops the last blocks.
ir::PrimFunc lower_match_buffers(const ir::PrimFunc& f);

}  // namespace weft::pass
