// SPDX-License-Identifier: Apache-2.0
#pragma once
// Points that tokens order (ir/roles.h) are run once before they are emitted, without arrays: who
// waits for ever, signals too often, or meets work that is in flight, is refused.

#include <string>

#include "weft/ir/node.h"

namespace weft {

/// Throws Error(verify, "verify.token"). What cannot be run, because a number is known only at run
/// time or it runs too long, is added to `notes`.
void prove_order(const ir::PrimFunc& lowered, const std::string& target, Json& notes);

}  // namespace weft
