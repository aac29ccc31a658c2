// SPDX-License-Identifier: Apache-2.0
#pragma once
// Run-time checks of places. Before each statement that reads or writes an element whose place is
// not provably inside its buffer stands an assertion that it is. Left as they are: addresses,
// masked loads, indices that are vectors in the program, and loops that an instruction replaces.

#include "weft/ir/node.h"

namespace weft::pass {

ir::PrimFunc assert_bounds(const ir::PrimFunc& f);

}  // namespace weft::pass
