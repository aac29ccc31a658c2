// SPDX-License-Identifier: Apache-2.0
#pragma once
// The innermost blocks of a tensor program with everything around them, for targets that plan
// whole blocks instead of lowering loops. Refusals are Error(lower, "stages.…").

#include <optional>
#include <string>
#include <vector>

#include "weft/ir/node.h"

namespace weft::stages {

/// A block without blocks inside, and what is around it, outermost loop first. Iterators of outer
/// blocks are replaced by their bindings.
struct Leaf {
  ir::Block block;
  std::vector<const ir::ForNode*> loops;
  ir::Exprs iter_values;
  ir::Exprs conditions;    // of realizations and of `if` statements without `else`
  std::size_t around = 0;  // how many of the loops lie outside the block that holds this one
};

/// The leaves in program order, and the buffers allocated around them. Refuses statements outside
/// blocks, loops around more than one block, matched buffers, and blocks given to a part of an
/// axis.
std::vector<Leaf> collect_leaves(const ir::Stmt& body, std::vector<ir::Buffer>* temporaries);

/// The leaf of a nest of loops around one block without conditions; absent for any other statement.
std::optional<Leaf> single_leaf(const ir::Stmt& nest);

/// For each loop the iterator that is bound to it and to nothing else. Absent when some loop or
/// iterator has another binding.
std::optional<std::vector<const ir::IterVar*>> iterators_of_loops(const Leaf& leaf);

/// The constant that `e` is; refuses ("stages.symbolic") with `what` otherwise.
std::int64_t constant_of(const ir::Expr& e, const std::string& what);

}  // namespace weft::stages
