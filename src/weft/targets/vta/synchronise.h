// SPDX-License-Identifier: Apache-2.0
#pragma once
// Puts tokens on a stream that was recorded as if one unit ran it in order, so that the three
// stages may overlap and still compute the same. It looks at the data (which elements each
// instruction reads and writes), not at the order of statements, and orders two instructions only
// when nothing else already does. What it makes passes check().

#include "weft/targets/vta/program.h"

namespace weft::vta {

/// `stream` carries no tokens and ends with FINISH; `uops` is the arena that its LOADs of
/// micro-operations read. Inserts NOPs only where load and store must be ordered, which have no
/// tokens between them.
Stream synchronise(const Stream& stream, const std::vector<std::uint32_t>& uops, const Isa& isa);

}  // namespace weft::vta
