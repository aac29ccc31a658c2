// SPDX-License-Identifier: Apache-2.0
#pragma once
// The value of a block of kBlock elements in loops of their own: what library calls are made of,
// each call, what is made of them. A loop of one call has a form for vectors; in one loop with
// everything else, compilers put calls under conditions or join sine and cosine to one call, which
// have none.

#include "weft/host/generate/builder.h"

namespace weft::generate {

/// `values` are of the element at `i`; around(body) puts the operands' elements in scope; finish
/// stores the values.
Stmt in_steps(const Var& i, const std::vector<Expr>& values,
              const std::function<Stmt(const Stmt&)>& around,
              const std::function<Stmt(const std::vector<Expr>&)>& finish);

}  // namespace weft::generate
