// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "weft/ir/node.h"

namespace weft::ir {

/// The conditions that `e` joins by "and", without literal truths; likely(c) counts as c.
Exprs conjuncts(const Expr& e);

}  // namespace weft::ir
