// SPDX-License-Identifier: Apache-2.0
#pragma once
// Conditions as lists of comparisons.

#include <vector>

#include "weft/ir/conjuncts.h"
#include "weft/ir/node.h"

namespace weft::stages {

ir::Expr join_conditions(const std::vector<ir::Expr>& list);
/// x < y as y - x, x <= y as y - x + 1 (and mirrored): e holds exactly where the result is > 0.
/// Null for other expressions.
ir::Expr slack(const ir::Expr& e);
bool has_loads(const ir::Expr& e);

}  // namespace weft::stages
