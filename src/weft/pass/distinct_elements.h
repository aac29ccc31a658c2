// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether different points of some axes touch different elements of a buffer, proved from the two
// indices: both are base + T(point) + offset with the same T, injective with gaps that hold the
// offsets; or their ranges over all points are disjoint.

#include <optional>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "weft/arith/analyzer.h"
#include "weft/ir/node.h"

namespace weft::pass {

/// A loop around an access.
struct AccessLoop {
  ir::Var var;
  ir::Range range;
};

struct ElementAccess {
  ir::Buffer buffer;
  ir::Expr index;  // scalar; lanes are in `lanes`
  int lanes = 1;
  bool write = false;
  std::string_view atomic;  // an update in one step: in any order with others of its kind
  const ir::StmtNode* stmt = nullptr;
  std::vector<AccessLoop> loops;  // serial loops around it that the points run through
};

class DistinctElements {
 public:
  explicit DistinctElements(std::vector<ir::LaunchAxis> axes = {}) : axes_(std::move(axes)) {}

  arith::Analyzer analyzer;                        // knows the ranges of axes and loops
  std::unordered_set<const ir::VarNode*> tainted;  // variables that differ between points

  /// May x (earlier) and y (later) touch one element from different points? Loops in `open` have
  /// one value for both; all other loops run independently.
  bool conflict(const ElementAccess& x, const ElementAccess& y,
                const std::unordered_set<const ir::VarNode*>& open) const;

 protected:
  std::vector<ir::LaunchAxis> axes_;  // of more than one point

 private:
  struct Form;
  bool apart(const ir::Expr& shift, const Form& x, const Form& y) const;
  bool versions_apart(const ir::Expr& shift, const Form& x, const Form& y) const;
  ir::Expr widen(const ir::Expr& e, const ir::VarMap& wide) const;
  std::optional<Form> form(const ElementAccess& a,
                           const std::unordered_set<const ir::VarNode*>& open) const;
};

}  // namespace weft::pass
