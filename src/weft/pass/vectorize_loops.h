// SPDX-License-Identifier: Apache-2.0
#pragma once
// Vectorized loops become vector statements (ramps and broadcasts). A loop that cannot, for a
// condition that differs between lanes, say, becomes an ordinary loop and says why in its
// annotation "scalarised", which emitters print.

#include "weft/ir/node.h"

namespace weft::pass {

/// Annotation of a loop inside of a vectorized one: its iterations are neighbours in memory, whose
/// products one instruction adds, or which are stored side by side.
inline constexpr const char* kNeighbours = "neighbours";

/// Runs on flat buffers. Loops of more than max_lanes lanes stay loops of vectors of max_lanes
/// where the extent divides, and are scalarised otherwise. With max_bytes, vectors of a loop's
/// widest type have at most so many bytes where the extent divides; a few of them are unrolled.
/// `masked`: loads under conditions that differ between lanes become masked ones.
ir::PrimFunc vectorize_loops(const ir::PrimFunc& f, int max_lanes, int max_bytes = 0,
                             bool masked = false);
/// Vectorized loops become serial loops marked "vectorize", for emitters whose compiler vectorizes
/// loops.
ir::PrimFunc keep_vector_loops(const ir::PrimFunc& f);

}  // namespace weft::pass
