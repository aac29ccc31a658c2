// SPDX-License-Identifier: Apache-2.0
#pragma once
// Common subexpressions. Index arithmetic that occurs several times under one statement is computed
// once, in a Let at the outermost place where its variables exist; within one store, values (loads
// among them) that occur several times are computed once before it. Only what is evaluated for
// certain moves: no arm of a lazy condition, no division that could fail. Runs last, so that no
// pass meets indices whose parts are hidden in variables.

#include "weft/ir/node.h"

namespace weft::pass {

ir::PrimFunc common_subexpression_elimination(const ir::PrimFunc& f);

}  // namespace weft::pass
