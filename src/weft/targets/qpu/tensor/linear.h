// SPDX-License-Identifier: Apache-2.0
#pragma once
// Index expressions as coefficient * variable + base, with symbolic coefficients: strides of
// run-time shapes stay what they are.

#include <optional>
#include <vector>

#include "weft/arith/sum.h"
#include "weft/ir/node.h"

namespace weft::qpu::tensor {

struct LinearIn {
  arith::Sum coeff, base;
  bool constant(std::int64_t value) const { return coeff.is_constant() && coeff.constant == value; }
};

/// Absent when e is no such sum (v inside a quotient, say).
std::optional<LinearIn> linear_in(const ir::Expr& e, const ir::VarNode* v);

/// The conditions that `e` joins by "and".
std::vector<ir::Expr> conjuncts(const ir::Expr& e);
ir::Expr join_conditions(const std::vector<ir::Expr>& list);
/// x < y as y - x, x <= y as y - x + 1 (and mirrored): e holds exactly where the result is > 0.
/// Null for other expressions.
ir::Expr slack(const ir::Expr& e);
bool has_loads(const ir::Expr& e);

}  // namespace weft::qpu::tensor
