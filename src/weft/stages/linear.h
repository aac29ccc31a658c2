// SPDX-License-Identifier: Apache-2.0
#pragma once
// Index expressions as sums of iterators times whole numbers, and the iterators of a block as axes
// that can be split. Divisions by constants are exact or ask for a split.

#include <map>
#include <optional>
#include <vector>

#include "weft/arith/sum.h"
#include "weft/ir/node.h"

namespace weft::stages {

/// base + sum of coeff * variable.
struct Linear {
  std::int64_t base = 0;
  std::map<const ir::VarNode*, std::int64_t> terms;
  std::int64_t coeff(const ir::VarNode* v) const;
  bool operator==(const Linear&) const = default;
};

/// An iterator of the block: 0 .. extent.
struct Axis {
  ir::Var var;
  std::int64_t extent = 1;
  bool reduce = false;
};

/// What would make an index linear: `var` as outer * factor + inner - offset. `exact`: the new axes
/// cover the old one and nothing else.
struct SplitWish {
  const ir::VarNode* var = nullptr;
  std::int64_t factor = 0, offset = 0;
  bool exact = false;
};

/// Nothing when `e` is no such sum; `wish` then may say which split would help.
std::optional<Linear> linear(const ir::Expr& e, const std::vector<Axis>& axes, SplitWish* wish);

/// Smallest and largest value over the axes.
std::pair<std::int64_t, std::int64_t> range_of(const Linear& l, const std::vector<Axis>& axes);

/// low <= index < high, from a conjunction of comparisons that all bound `index` (as linear forms);
/// false when some part bounds something else.
struct Bounds {
  std::int64_t low, high;
};
bool bounds_from(const ir::Expr& condition, const std::vector<Linear>& indices,
                 const std::vector<Axis>& axes, std::vector<Bounds>& bounds);

/// coeff * v + base, with symbolic coefficients: strides of run-time shapes stay what they are.
struct LinearIn {
  arith::Sum coeff, base;
  bool constant(std::int64_t value) const { return coeff.is_constant() && coeff.constant == value; }
};

/// Absent when e is no such sum (v inside a quotient, say).
std::optional<LinearIn> linear_in(const ir::Expr& e, const ir::VarNode* v);

}  // namespace weft::stages
