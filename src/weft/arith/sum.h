// SPDX-License-Identifier: Apache-2.0
#pragma once
// An integer expression as a sum of monomials: constant + sum of coeff * (atom * atom * ...). Atoms
// are expressions that arithmetic does not open (variables, quotients, remainders, min, max, loads,
// calls).

#include <cstdint>
#include <vector>

#include "weft/ir/node.h"

namespace weft::arith {

struct Monomial {
  std::int64_t coeff = 0;
  ir::Exprs atoms;  // not empty
};

struct Sum {
  std::vector<Monomial> terms;  // no two with the same atoms, no zero coefficients
  std::int64_t constant = 0;

  bool is_constant() const { return terms.empty(); }
  void add(Monomial m);
  void add(Sum other, std::int64_t factor);
  void scale(std::int64_t factor);
};

bool same_atoms(const ir::Exprs& a, const ir::Exprs& b);
/// Opens +, -, and * of signed integers of 32 or 64 bits; anything else is an atom.
Sum to_sum(const ir::Expr& e);
Sum multiply(Sum a, Sum b);
/// Back to an expression of type `type`; positive terms first, the constant last.
ir::Expr to_expr(const Sum& sum, DType type);
ir::Expr monomial_expr(const ir::Exprs& atoms);
/// Whether re-association is sound for the type (signed, at least 32 bits, scalar).
bool is_index_type(DType type);
std::int64_t floor_div(std::int64_t a, std::int64_t b);
inline std::int64_t floor_mod(std::int64_t a, std::int64_t b) { return a - floor_div(a, b) * b; }

}  // namespace weft::arith
