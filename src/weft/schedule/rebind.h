// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rewrites the bindings of every block under a changed loop: substitutes the old loop variables,
// adds a predicate, and simplifies what results knowing all loops around each block.

#include <vector>

#include "weft/arith/analyzer.h"
#include "weft/arith/iter_map.h"
#include "weft/ir/conjuncts.h"
#include "weft/schedule/tree.h"

namespace weft::schedule {

class Rebinder final : public ScopeRewriter {
 public:
  /// `outer`: the loops around the statement to be rewritten, new ones included. `condition` null:
  /// none.
  Rebinder(const std::vector<ir::IterVar>& outer, const ir::VarMap& map,
           ir::Expr condition = nullptr);

 protected:
  ir::Stmt rewrite_for(const ir::Stmt& s) override;
  ir::Stmt rewrite_block_realize(const ir::Stmt& s) override;

 private:
  std::vector<ir::IterVar> loops_;
  arith::Analyzer analyzer_;
  ir::Expr condition_;
};

/// a and b, without literal truths.
ir::Expr both(const ir::Expr& a, const ir::Expr& b);
/// Simplified bindings of one realize among loops.
ir::Exprs simplify_bindings(const ir::Exprs& values, const std::vector<ir::IterVar>& loops,
                            const ir::Expr& predicate, const arith::Analyzer& analyzer);

}  // namespace weft::schedule
