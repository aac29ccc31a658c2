// SPDX-License-Identifier: Apache-2.0
#pragma once
// The check every back end begins with.

#include "weft/base/error.h"
#include "weft/ir/node.h"
#include "weft/target/target.h"

namespace weft {

/// Refuses element types, bound axes and memory scopes that the target's table does not list.
Verdict accepts_rows(const ir::PrimFunc& f, const TargetInfo& info);

/// What `build` would refuse: the verifier's and the bounds checker's findings and the target's own
/// rules, function by function, before any lowering; functions that place loops themselves (bound,
/// parallel, vectorized) are lowered. Throws Error for an unknown target.
Verdict accepts(const ir::IRModule& m, std::string_view target);

}  // namespace weft
