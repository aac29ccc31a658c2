// SPDX-License-Identifier: Apache-2.0
#include "weft/arith/sum.h"

#include "weft/ir/build.h"
#include "weft/ir/compare.h"

namespace weft::arith {

using namespace ir;

bool is_index_type(DType t) { return t.is_int() && t.bits >= 32 && t.lanes == 1; }

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  std::int64_t q = a / b;
  return (a % b != 0 && (a % b < 0) != (b < 0)) ? q - 1 : q;
}

bool same_atoms(const Exprs& a, const Exprs& b) {
  if (a.size() != b.size()) return false;
  if (a.size() == 1) return same_expr(a[0], b[0]);
  std::vector<bool> used(b.size(), false);
  for (const Expr& x : a) {
    bool found = false;
    for (std::size_t j = 0; j < b.size() && !found; ++j) {
      if (!used[j] && same_expr(x, b[j])) used[j] = found = true;
    }
    if (!found) return false;
  }
  return true;
}

void Sum::add(Monomial m) {
  if (m.coeff == 0) return;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    if (!same_atoms(terms[i].atoms, m.atoms)) continue;
    terms[i].coeff += m.coeff;
    if (terms[i].coeff == 0) terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(i));
    return;
  }
  terms.push_back(std::move(m));
}

void Sum::add(Sum other, std::int64_t factor) {
  other.scale(factor);
  constant += other.constant;
  if (terms.empty()) {
    terms = std::move(other.terms);
    return;
  }
  for (Monomial& m : other.terms) add(std::move(m));
}

void Sum::scale(std::int64_t factor) {
  constant *= factor;
  if (factor == 0) terms.clear();
  for (Monomial& m : terms) m.coeff *= factor;
}

Sum multiply(Sum a, Sum b) {
  if (a.is_constant()) std::swap(a, b);
  if (b.is_constant()) {
    a.scale(b.constant);
    return a;
  }
  Sum out;
  out.constant = a.constant * b.constant;
  for (const Monomial& m : a.terms) out.add(Monomial{m.coeff * b.constant, m.atoms});
  for (const Monomial& m : b.terms) out.add(Monomial{m.coeff * a.constant, m.atoms});
  for (const Monomial& x : a.terms) {
    for (const Monomial& y : b.terms) {
      Monomial product{x.coeff * y.coeff, x.atoms};
      product.atoms.insert(product.atoms.end(), y.atoms.begin(), y.atoms.end());
      out.add(std::move(product));
    }
  }
  return out;
}

Sum to_sum(const Expr& e) {
  Sum out;
  if (const auto* i = as<IntImmNode>(e)) {
    out.constant = i->value;
    return out;
  }
  if (is_index_type(e->dtype)) {
    const auto* b = as<BinaryNode>(e);
    if (e->kind == ExprKind::add || e->kind == ExprKind::sub) {
      out = to_sum(b->a);
      out.add(to_sum(b->b), e->kind == ExprKind::add ? 1 : -1);
      return out;
    }
    if (e->kind == ExprKind::mul) {
      Sum x = to_sum(b->a), y = to_sum(b->b);
      if (x.terms.size() * y.terms.size() <= 16) return multiply(std::move(x), std::move(y));
    }
  }
  out.terms.emplace_back();
  out.terms[0].coeff = 1;
  out.terms[0].atoms.push_back(e);
  return out;
}

Expr monomial_expr(const Exprs& atoms) {
  Expr out = atoms[0];
  for (std::size_t i = 1; i < atoms.size(); ++i) out = out * atoms[i];
  return out;
}

namespace {

/// Whether `type` holds -number; it does not where number is the least of the type.
bool has_opposite(std::int64_t number, DType type) {
  return number != (type.bits >= 64 ? INT64_MIN : -(std::int64_t{1} << (type.bits - 1)));
}

}  // namespace

Expr to_expr(const Sum& sum, DType type) {
  Expr out;
  auto widened = [&](const Exprs& atoms) {
    Expr m = monomial_expr(atoms);
    return m->dtype == type ? m : cast(type, m);
  };
  for (const Monomial& m : sum.terms) {
    if (m.coeff < 0) continue;
    Expr term = m.coeff == 1 ? widened(m.atoms) : widened(m.atoms) * make_int(m.coeff, type);
    out = out ? out + term : term;
  }
  bool constant_done = false;
  if (!out && sum.constant > 0) {
    out = make_int(sum.constant, type);
    constant_done = true;
  }
  for (const Monomial& m : sum.terms) {
    if (m.coeff >= 0) continue;
    if (!out) {
      out = widened(m.atoms) * make_int(m.coeff, type);
    } else if (!has_opposite(m.coeff, type)) {
      out = out + widened(m.atoms) * make_int(m.coeff, type);
    } else {
      out = out - (m.coeff == -1 ? widened(m.atoms) : widened(m.atoms) * make_int(-m.coeff, type));
    }
  }
  if (!out) return make_int(sum.constant, type);
  if (constant_done || sum.constant == 0) return out;
  return sum.constant > 0 || !has_opposite(sum.constant, type)
             ? out + make_int(sum.constant, type)
             : out - make_int(-sum.constant, type);
}

}  // namespace weft::arith
