// SPDX-License-Identifier: Apache-2.0
#pragma once
// The check every back end begins with.

#include "weft/base/error.h"
#include "weft/ir/node.h"
#include "weft/target/target.h"

namespace weft {

/// Refuses element types, bound axes and memory scopes that the target's table does not list.
Verdict accepts_rows(const ir::PrimFunc& f, const TargetInfo& info, const std::string& target);

}  // namespace weft
