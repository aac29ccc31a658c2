// SPDX-License-Identifier: Apache-2.0
#pragma once
// Loops whose iterations run in step (bound to threads, lanes or virtual axes, vectorized) do each
// statement for all iterations before the next one. Where iterations hand values to each other
// through memory that all see, that may be another order than the loop's:
//     C[i] = A[i]; D[i] = C[3 - i]
// Such a bound loop is refused ("lower.axis.exchanged"), and a vectorized one becomes a serial one
// with the reason ("scalarised"). Pairs of accesses are proved to be of different elements where
// that is possible; what is left is run with concrete indices in the loop's order, and is accepted
// where every two uses of one element come in the same order in both. Places that data chooses are
// known to nobody: they are refused where another iteration may store, in loops whose iterations
// run in any order, too (of known places check_races finds those). Memory of a group is left to its
// barriers, and so is what barriers of the program separate.

#include <cstdint>

#include "weft/ir/node.h"
#include "weft/machine/target_info.h"

namespace weft::pass {

/// Runs after convert_blocks, while indices still are the program's own. `max_accesses` bounds the
/// run with concrete indices.
ir::PrimFunc check_exchanges(const ir::PrimFunc& f, const TargetInfo& machine,
                             std::int64_t max_accesses = 200'000);

}  // namespace weft::pass
