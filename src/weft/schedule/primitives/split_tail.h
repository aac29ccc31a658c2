// SPDX-License-Identifier: Apache-2.0
#pragma once
// What split does with the last tile where factors do not divide the extent.

#include "weft/schedule/state.h"

namespace weft::schedule {

struct SplitTail {
  Path path;                  // to the loop that is split
  std::vector<ir::Var> vars;  // the new loops, outermost first
  ir::Exprs extents;
  ir::Expr index;  // the old variable by the new ones
  ir::Expr tile;   // iterations of one run of the outermost loop

  ir::Stmt nest(ir::Stmt body) const;
};

Verdict split_peeled(const State& s, const SplitTail& split, ir::IRModule& out);
Verdict split_rounded_up(const State& s, const SplitTail& split, ir::IRModule& out);
Verdict split_shifted(const State& s, const SplitTail& split, ir::IRModule& out);

}  // namespace weft::schedule
