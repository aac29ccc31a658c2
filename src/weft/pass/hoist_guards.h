// SPDX-License-Identifier: Apache-2.0
#pragma once
// Guards of tiles that a split cut short move out of the tile's loops. A guard is a conjunct of a
// condition, linear in the loops inside some loop L. Where its worst case over those loops holds,
// the guard holds for the whole tile, so L's body becomes
//
//   if (worst cases of all guards) { body without the guards } else { body }
//
// Whole tiles then run without conditions and keep their vectors; only the last one asks. In the
// else branch a loop of constant extent ends where its guard can no longer hold, so that a tail
// whose length is known is as long as it has to be.

#include "weft/ir/node.h"

namespace weft::pass {

/// For machines whose loops a processor runs one after the other. Loops bound to an axis stay as
/// they are. Bodies are copied up to a fixed number of statements for each function.
ir::PrimFunc hoist_guards(const ir::PrimFunc& f);

}  // namespace weft::pass
