// SPDX-License-Identifier: Apache-2.0
#pragma once
// State of an Analyzer, shared by bounds.cpp and simplify.cpp.

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "weft/arith/analyzer.h"
#include "weft/arith/sum.h"

namespace weft::arith {

struct Analyzer::Impl {
  struct VarInfo {
    Bounds bounds;
    ir::Expr value;  // substituted when set
  };
  std::unordered_map<const ir::VarNode*, VarInfo> vars;
  std::vector<Sum> at_most_zero;  // known facts: sum <= 0
  std::vector<ir::Expr> facts;    // known true conditions of other forms

  std::unordered_set<const ir::VarNode*> data;  // variables that hold data
  mutable bool of_values = false;               // a value is simplified: data may wrap

  mutable int fact_depth = 0;  // facts may mention what they bound: limit the nesting

  Bounds sum_bounds(const Sum& sum) const;  // interval of each term, added
  Bounds atom_bounds(const ir::Expr& e, int depth = 0) const;
  Bounds bounds(const ir::Expr& e) const;
  Modular modular(const Sum& sum) const;
  Modular modular_atom(const ir::Expr& e) const;
  /// sum <= 0 for all values?
  bool never_positive(const Sum& sum) const;
  void assume(const ir::Expr& condition, bool holds = true);

  /// Whether arithmetic on data inside e may leave its type (wrap.cpp).
  bool may_wrap(const ir::Expr& e) const;

  ir::Expr simplify(const ir::Expr& e) const;
  /// A sum as simplify writes it, of distinct variables that are not known.
  bool is_plain_sum(const ir::Expr& e) const;
  Sum simplify_sum(
      const ir::Expr& e) const;  // operands simplified, quotient/remainder pairs merged
  ir::Expr divide(const Sum& a, const Sum& b, const ir::Expr& ea, const ir::Expr& eb,
                  DType type) const;
  ir::Expr remainder(const Sum& a, const Sum& b, const ir::Expr& ea, const ir::Expr& eb,
                     DType type) const;
  ir::Expr compare(ir::ExprKind kind, const ir::Expr& a, const ir::Expr& b) const;
  bool known(const ir::Expr& condition) const;
  bool within(const Sum& s, std::int64_t low, std::int64_t high) const;  // low <= s < high
};

}  // namespace weft::arith
