// SPDX-License-Identifier: Apache-2.0
#pragma once
// Refuses a program that certainly reads or writes beyond a buffer: `A[12]` of ten elements, or
// `A[i + 3]` of ten for i below eight. Only what runs whenever the function is called is examined;
// what stands under a condition, a predicate or a loop that may have no iteration is left alone.

#include "weft/ir/node.h"

namespace weft::pass {

/// Throws Error(verify, "verify.bounds") with the index, the values it takes, and the extent.
void check_bounds(const ir::PrimFunc& f);

}  // namespace weft::pass
