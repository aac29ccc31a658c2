// SPDX-License-Identifier: Apache-2.0
#pragma once
// Expressions whose parts occur many times. A node that is used twice is one node to its maker and
// two to everything that walks a tree: x = x + x, twenty times over, has 21 nodes and a million
// places. bind_shared names such parts, so that the tree is about as large as the nodes are many.

#include <functional>
#include <utility>
#include <vector>

#include "weft/ir/node.h"

namespace weft::ir {

/// Calls f on every node once, however often it occurs: at its first place, parents before
/// children.
void for_each_distinct_expr(const Expr& e, const std::function<void(const Expr&)>& f);

/// Places in the tree below e, e included; at most 2^40.
std::int64_t tree_size(const Expr& e);

/// `lets` in order, each value in terms of the variables before it, then e in terms of all.
struct Shared {
  std::vector<std::pair<Var, Expr>> lets;
  Expr body;
};

/// Names what occurs several times in a tree of more than 1000 places that is at least twice as
/// large as its nodes are many; other expressions are returned as they are. Parts of an index and
/// parts that only one arm of an if_then_else needs keep their places: computing those early would
/// be an access that the arm's condition forbids.
Shared bind_shared(const Expr& e);

/// then(values), where what they use more than once and choices stand in variables. Truth values
/// stay in place: a comparison is no more than an instruction, and vectors hold it as a mask.
Stmt with_shared(const Exprs& values, const std::function<Stmt(const Exprs&)>& then);

/// then(values as variables).
Stmt with_values(const Exprs& values, const std::function<Stmt(const Exprs&)>& then);

}  // namespace weft::ir
