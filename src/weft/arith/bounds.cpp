// SPDX-License-Identifier: Apache-2.0
// Ranges of variables, constraints, constant bounds and congruences.

#include <algorithm>
#include <bit>
#include <numeric>

#include "weft/arith/analyzer_impl.h"
#include "weft/ir/build.h"
#include "weft/ir/compare.h"

namespace weft::arith {

using namespace ir;

namespace {

constexpr std::int64_t kMin = Bounds::kMin, kMax = Bounds::kMax;

/// The exact sum or product where 64 bits hold it, else the nearer unknown.
std::int64_t clamped_sum(std::int64_t a, std::int64_t b) {
  std::int64_t v;
  if (__builtin_add_overflow(a, b, &v)) return a < 0 ? kMin : kMax;
  return v;
}
std::int64_t clamped_product(std::int64_t a, std::int64_t b) {
  std::int64_t v;
  if (__builtin_mul_overflow(a, b, &v)) return (a < 0) == (b < 0) ? kMax : kMin;
  return v;
}

std::int64_t plus(std::int64_t a, std::int64_t b) {
  if (a == kMin || b == kMin) return kMin;
  if (a == kMax || b == kMax) return kMax;
  return clamped_sum(a, b);
}
std::int64_t plus_max(std::int64_t a, std::int64_t b) {  // for upper ends: unknown is kMax
  if (a == kMax || b == kMax) return kMax;
  return a == kMin || b == kMin ? kMin : clamped_sum(a, b);
}

Bounds add(Bounds a, Bounds b) { return {plus(a.min, b.min), plus_max(a.max, b.max)}; }

std::int64_t times(std::int64_t a, std::int64_t b) {
  if (a == 0 || b == 0) return 0;
  if (a == kMin || a == kMax || b == kMin || b == kMax) return (a < 0) == (b < 0) ? kMax : kMin;
  return clamped_product(a, b);
}

Bounds multiply(Bounds a, Bounds b) {
  std::int64_t c[4] = {times(a.min, b.min), times(a.min, b.max), times(a.max, b.min),
                       times(a.max, b.max)};
  return {*std::min_element(c, c + 4), *std::max_element(c, c + 4)};
}

Bounds scale(Bounds a, std::int64_t c) { return multiply(a, {c, c}); }

Bounds type_bounds(DType t) {
  if (t.is_bool()) return {0, 1};
  if (t.is_int() && t.bits < 64) return {-(1ll << (t.bits - 1)), (1ll << (t.bits - 1)) - 1};
  if (t.is_uint() && t.bits < 64) return {0, (1ll << t.bits) - 1};
  return {};
}

Bounds intersect(Bounds a, Bounds b) { return {std::max(a.min, b.min), std::min(a.max, b.max)}; }

}  // namespace

Bounds Analyzer::Impl::atom_bounds(const Expr& e, int depth) const {
  if (depth > 32) return {};
  switch (e->kind) {
    case ExprKind::int_imm: return {as<IntImmNode>(e)->value, as<IntImmNode>(e)->value};
    case ExprKind::var: {
      auto found = vars.find(as<VarNode>(e));
      if (found == vars.end()) {
        Bounds out = type_bounds(e->dtype);
        for (const Sum& fact : at_most_zero) {  // c - k v <= 0
          if (fact.terms.size() == 1 && fact.terms[0].atoms.size() == 1 &&
              fact.terms[0].atoms[0].get() == e.get() && fact.terms[0].coeff < 0)
            out.min = std::max(out.min, -floor_div(-fact.constant, -fact.terms[0].coeff));
        }
        return out;
      }
      if (found->second.value) return bounds(found->second.value);
      return found->second.bounds;
    }
    case ExprKind::cast: {
      const Expr& v = as<CastNode>(e)->value;
      if (!(v->dtype.is_integral() || v->dtype.is_bool()) ||
          !(e->dtype.is_integral() || e->dtype.is_bool()))
        return type_bounds(e->dtype);
      Bounds inner = bounds(v), outer = type_bounds(e->dtype);
      return inner.min >= outer.min && inner.max <= outer.max ? inner : outer;
    }
    case ExprKind::floordiv:
    case ExprKind::div: {
      if (!e->dtype.is_integral()) return {};
      const auto* b = as<BinaryNode>(e);
      Bounds x = bounds(b->a), y = bounds(b->b);
      if (y.min <= 0) return {};
      if (e->kind == ExprKind::div && x.min < 0) return {};
      auto q = [](std::int64_t v, std::int64_t d) {
        return v == kMin || v == kMax ? v : floor_div(v, d);
      };
      std::int64_t c[4] = {q(x.min, y.min), q(x.max, y.min),
                           y.max == kMax ? (x.min < 0 ? -1 : 0) : q(x.min, y.max),
                           y.max == kMax ? (x.max < 0 ? -1 : 0) : q(x.max, y.max)};
      return {*std::min_element(c, c + 4), *std::max_element(c, c + 4)};
    }
    case ExprKind::floormod:
    case ExprKind::mod: {
      if (!e->dtype.is_integral()) return {};
      const auto* b = as<BinaryNode>(e);
      Bounds x = bounds(b->a), y = bounds(b->b);
      if (y.min <= 0) return {};
      if (e->kind == ExprKind::mod && x.min < 0)
        return {-std::max<std::int64_t>(y.max - 1, 0), y.max == kMax ? kMax : y.max - 1};
      if (x.min >= 0 && x.max < y.min) return x;
      if (y.is_point() && x.bounded() && floor_div(x.min, y.min) == floor_div(x.max, y.min)) {
        return {floor_mod(x.min, y.min), floor_mod(x.max, y.min)};
      }
      std::int64_t top = y.max == kMax ? kMax : y.max - 1;
      if (x.min >= 0) top = std::min(top, x.max);
      return {0, top};
    }
    case ExprKind::min: {
      Bounds x = bounds(as<BinaryNode>(e)->a), y = bounds(as<BinaryNode>(e)->b);
      return {std::min(x.min, y.min), std::min(x.max, y.max)};
    }
    case ExprKind::max: {
      Bounds x = bounds(as<BinaryNode>(e)->a), y = bounds(as<BinaryNode>(e)->b);
      return {std::max(x.min, y.min), std::max(x.max, y.max)};
    }
    case ExprKind::select: {
      Bounds x = bounds(as<SelectNode>(e)->a), y = bounds(as<SelectNode>(e)->b);
      return {std::min(x.min, y.min), std::max(x.max, y.max)};
    }
    case ExprKind::call: {
      const auto* c = as<CallNode>(e);
      if (c->op == "if_then_else") {
        Bounds x = bounds(c->args[1]), y = bounds(c->args[2]);
        return {std::min(x.min, y.min), std::max(x.max, y.max)};
      }
      if (c->op == "likely") return bounds(c->args[0]);
      std::int64_t k;
      if (c->op == "shift_right" && is_const_int(c->args[1], &k) && k >= 0 && k < 63) {
        Bounds x = bounds(c->args[0]);
        auto shift = [&](std::int64_t v) { return v == kMin || v == kMax ? v : v >> k; };
        return {shift(x.min), shift(x.max)};
      }
      if (c->op == "bitwise_and" && is_const_int(c->args[1], &k) && k >= 0) return {0, k};
      if (c->op == "bitwise_xor" || c->op == "bitwise_or") {  // no bit above the higher one's
        Bounds x = bounds(c->args[0]), y = bounds(c->args[1]);
        const std::int64_t top = std::max(x.max, y.max);
        if (x.min < 0 || y.min < 0 || top == kMax) return type_bounds(e->dtype);
        const int bits = std::bit_width(static_cast<std::uint64_t>(top));
        return {0, static_cast<std::int64_t>((1ull << bits) - 1)};
      }
      return type_bounds(e->dtype);
    }
    case ExprKind::add:
    case ExprKind::sub:
    case ExprKind::mul: {
      const auto* b = as<BinaryNode>(e);
      Bounds x = bounds(b->a), y = bounds(b->b), t = type_bounds(e->dtype);
      Bounds r = e->kind == ExprKind::add   ? add(x, y)
                 : e->kind == ExprKind::sub ? add(x, scale(y, -1))
                                            : multiply(x, y);
      return r.min >= t.min && r.max <= t.max ? r : t;
    }
    default: return type_bounds(e->dtype);
  }
}

Bounds Analyzer::Impl::sum_bounds(const Sum& sum) const {
  Bounds out{sum.constant, sum.constant};
  for (const Monomial& m : sum.terms) {
    Bounds term = atom_bounds(m.atoms[0]);
    for (std::size_t i = 1; i < m.atoms.size(); ++i) term = multiply(term, atom_bounds(m.atoms[i]));
    out = add(out, scale(term, m.coeff));
  }
  return out;
}

Bounds Analyzer::Impl::bounds(const Expr& e) const {
  if (!is_index_type(e->dtype)) return atom_bounds(e);
  Sum sum = to_sum(e);
  Bounds out = sum_bounds(sum);
  if (sum.terms.empty() || at_most_zero.empty() || fact_depth >= 2) return out;
  ++fact_depth;
  // One known fact f <= 0 added to the sum, times the factor that cancels a shared variable.
  for (const Sum& fact : at_most_zero) {
    for (const Monomial& m : sum.terms) {
      for (const Monomial& f : fact.terms) {
        if (!same_atoms(m.atoms, f.atoms) || m.coeff % f.coeff != 0) continue;
        std::int64_t k = m.coeff / f.coeff;
        Sum rest = sum;  // sum = rest + k * fact
        rest.add(fact, -k);
        Bounds r = sum_bounds(rest);
        if (k > 0) out.max = std::min(out.max, r.max);
        else out.min = std::max(out.min, r.min);
      }
    }
  }
  --fact_depth;
  return out;
}

Modular Analyzer::Impl::modular_atom(const Expr& e) const {
  if (const auto* i = as<IntImmNode>(e)) return {0, i->value};
  if (const auto* v = as<VarNode>(e)) {
    auto found = vars.find(v);
    if (found != vars.end()) {
      if (found->second.value) return modular(to_sum(found->second.value));
      if (found->second.bounds.is_point()) return {0, found->second.bounds.min};
    }
  }
  if (const auto* cast = as<CastNode>(e)) {  // to a wider type: the same number
    const DType from = cast->value->dtype;
    if (is_index_type(from) && is_index_type(e->dtype) && from.bits <= e->dtype.bits)
      return modular(to_sum(cast->value));
  }
  std::int64_t c;
  if (e->kind == ExprKind::floormod && is_const_int(as<BinaryNode>(e)->b, &c) && c > 0) {
    Modular m = modular(to_sum(as<BinaryNode>(e)->a));
    if (m.coeff == 0) return {0, floor_mod(m.base, c)};
    std::int64_t g = std::gcd(m.coeff, c);
    return {g, floor_mod(m.base, g)};
  }
  if (e->kind == ExprKind::floordiv && is_const_int(as<BinaryNode>(e)->b, &c) && c > 0) {
    Modular m = modular(to_sum(as<BinaryNode>(e)->a));
    if (m.coeff == 0) return {0, floor_div(m.base, c)};
    if (m.coeff % c == 0) return {m.coeff / c, floor_mod(floor_div(m.base, c), m.coeff / c)};
  }
  return {};
}

Modular Analyzer::Impl::modular(const Sum& sum) const {
  std::int64_t coeff = 0, base = sum.constant;
  for (const Monomial& m : sum.terms) {
    Modular t{0, 1};
    for (const Expr& atom : m.atoms) {
      Modular a = modular_atom(atom);
      // (p x + q)(r y + s) = multiple of gcd(pr, ps, rq) + qs
      std::int64_t g = std::gcd(std::gcd(t.coeff * a.coeff, t.coeff * a.base), a.coeff * t.base);
      t = {g, t.base * a.base};
    }
    coeff = std::gcd(coeff, m.coeff * t.coeff);
    base += m.coeff * t.base;
  }
  coeff = coeff < 0 ? -coeff : coeff;
  return coeff == 0 ? Modular{0, base} : Modular{coeff, floor_mod(base, coeff)};
}

namespace {

/// k c (x // c) is at most k x, and at most k (x - c + 1) for k < 0: `sum` with that in the place
/// of one such term. False when it has none.
bool without_quotient(const Sum& sum, Sum& out) {
  for (const Monomial& m : sum.terms) {
    const auto* b = m.atoms.size() == 1 ? as<BinaryNode>(m.atoms[0]) : nullptr;
    std::int64_t c = 0;
    if (!b || b->kind != ExprKind::floordiv || !is_const_int(b->b, &c) || c <= 0 || m.coeff % c)
      continue;
    const std::int64_t k = m.coeff / c;
    Sum atom = to_sum(m.atoms[0]), number = to_sum(b->a);
    if (k < 0) number.constant -= c - 1;
    out = sum;
    out.add(atom, -m.coeff);
    out.add(number, k);
    return true;
  }
  return false;
}

/// g T + c <= 0 says the same of integers as T + ceil(c / g) <= 0. Whether there is such a g.
bool divide_by_common_factor(Sum& fact) {
  std::int64_t g = 0;
  for (const Monomial& m : fact.terms) g = std::gcd(g, m.coeff);
  if (g <= 1) return false;
  for (Monomial& m : fact.terms) m.coeff /= g;
  fact.constant = -floor_div(-fact.constant, g);
  return true;
}

/// Without a common term the largest value of a - k b is no less than that of a, where b <= 0.
bool have_common_term(const Sum& a, const Sum& b) {
  for (const Monomial& x : a.terms)
    for (const Monomial& y : b.terms)
      if (same_atoms(x.atoms, y.atoms)) return true;
  return false;
}

}  // namespace

bool Analyzer::Impl::never_positive(const Sum& sum) const {
  if (sum_bounds(sum).max <= 0) return true;
  if (Sum rest; without_quotient(sum, rest) && never_positive(rest)) return true;
  for (const Sum& fact : at_most_zero) {  // sum = rest + k fact, k > 0, rest <= 0
    if (!have_common_term(sum, fact)) continue;
    for (std::int64_t k : {std::int64_t{1}, std::int64_t{0}}) {
      if (k == 0) {
        for (const Monomial& m : sum.terms) {
          for (const Monomial& f : fact.terms) {
            if (same_atoms(m.atoms, f.atoms) && m.coeff % f.coeff == 0 && m.coeff / f.coeff > 1)
              k = m.coeff / f.coeff;
          }
        }
        if (k == 0) break;
      }
      Sum rest = sum;
      rest.add(fact, -k);
      if (sum_bounds(rest).max <= 0) return true;
      for (const Sum& second : at_most_zero) {
        if (!have_common_term(rest, second)) continue;
        Sum more = rest;
        more.add(second, -1);
        if (sum_bounds(more).max <= 0) return true;
      }
    }
  }
  return false;
}

void Analyzer::Impl::assume(const Expr& condition, bool holds) {
  if (!condition) return;
  const auto* b = as<BinaryNode>(condition);
  if (const auto* n = as<NotNode>(condition)) return assume(n->a, !holds);
  if (const auto* c = as<CallNode>(condition)) {
    if (c->op == "likely") return assume(c->args[0], holds);
  }
  if (condition->kind == (holds ? ExprKind::and_ : ExprKind::or_)) {
    assume(b->a, holds);
    assume(b->b, holds);
    return;
  }
  facts.push_back(holds ? condition : logical_not(condition));
  if (!b || !is_compare(condition->kind) || !is_index_type(b->a->dtype)) return;
  if (may_wrap(b->a) || may_wrap(b->b)) return;
  Expr a = simplify(b->a), c = simplify(b->b);
  ExprKind kind = condition->kind;
  if (!holds) {
    switch (kind) {
      case ExprKind::lt: kind = ExprKind::ge; break;
      case ExprKind::le: kind = ExprKind::gt; break;
      case ExprKind::gt: kind = ExprKind::le; break;
      case ExprKind::ge: kind = ExprKind::lt; break;
      case ExprKind::eq: kind = ExprKind::ne; break;
      default: kind = ExprKind::eq;
    }
  }
  Sum difference = to_sum(a);  // a - c
  difference.add(to_sum(c), -1);
  auto push = [&](std::int64_t sign, std::int64_t offset) {
    Sum fact;
    fact.add(difference, sign);
    fact.constant += offset;
    at_most_zero.push_back(fact);
    // A fact about one variable tightens its range: coeff * v + constant <= 0.
    if (fact.terms.size() == 1 && fact.terms[0].atoms.size() == 1) {
      const auto* v = as<VarNode>(fact.terms[0].atoms[0]);
      auto found = v ? vars.find(v) : vars.end();
      if (found != vars.end()) {
        std::int64_t k = fact.terms[0].coeff;
        Bounds limit;
        if (k > 0) limit.max = floor_div(-fact.constant, k);
        else limit.min = -floor_div(-fact.constant, -k);  // -|k| v + c <= 0: v >= ceil(c / |k|)
        found->second.bounds = intersect(found->second.bounds, limit);
      }
    }
  };
  if (kind == ExprKind::lt) push(1, 1);
  if (kind == ExprKind::le) push(1, 0);
  if (kind == ExprKind::gt) push(-1, 1);
  if (kind == ExprKind::ge) push(-1, 0);
  if (kind == ExprKind::eq) push(1, 0), push(-1, 0);
}

// ---- the public face

Analyzer::Analyzer() : impl_(std::make_unique<Impl>()) {}
Analyzer::~Analyzer() = default;

void Analyzer::bind(const Var& var, const Range& range) {
  Expr low = impl_->simplify(range.min), extent = impl_->simplify(range.extent);
  if (is_const_int_value(extent, 1)) return bind(var, low);
  std::int64_t first = 0, count = 0;
  constexpr std::int64_t kPlain = INT32_MAX / 2;  // of any type without overflow
  if (is_const_int(low, &first) && is_const_int(extent, &count) && std::abs(first) < kPlain &&
      count < kPlain) {
    impl_->vars[var.get()] = {{first, first + std::max<std::int64_t>(count - 1, 0)}, nullptr};
    return;
  }
  Bounds lo = impl_->bounds(low);
  Expr last = impl_->simplify(low + extent - 1);
  Bounds hi = impl_->bounds(last);
  impl_->vars[var.get()] = {{lo.min, std::max(hi.max, lo.min)}, nullptr};
  auto fact = [&](const Expr& a, const Expr& b) {  // a - b <= 0
    Sum s = to_sum(a);
    s.add(to_sum(b), -1);
    divide_by_common_factor(s);
    if (!s.is_constant()) impl_->at_most_zero.push_back(s);
  };
  if (!is_const_int(last)) fact(var, last);
  if (!is_const_int(low)) fact(low, var);
  // 8 n iterations: n is at least 1.
  Sum least = to_sum(make_int(1, extent->dtype));
  least.add(to_sum(extent), -1);
  if (divide_by_common_factor(least) || extent->kind == ExprKind::var)
    impl_->at_most_zero.push_back(least);
  // 8 (x // c) iterations: x is at least c.
  if (least.terms.size() == 1 && least.constant == 1 && least.terms[0].coeff == -1 &&
      least.terms[0].atoms.size() == 1) {
    const auto* whole = as<BinaryNode>(least.terms[0].atoms[0]);
    std::int64_t of = 0;
    if (whole && whole->kind == ExprKind::floordiv && is_const_int(whole->b, &of) && of > 0)
      fact(whole->b, whole->a);
  }
  // With x // c iterations from 0 on: c * var <= x - c.
  const auto* parts = as<BinaryNode>(extent);
  std::int64_t c = 0;
  if (parts && parts->kind == ExprKind::floordiv && is_const_int(parts->b, &c) && c > 0 &&
      is_const_int_value(low, 0)) {
    fact(var * parts->b, parts->a - parts->b);
  }
}

void Analyzer::bind(const Var& var, const Expr& value) {
  impl_->vars[var.get()] = {{}, impl_->simplify(value)};
}

Analyzer::Constraint::Constraint(Analyzer& analyzer, const Expr& condition) : analyzer_(analyzer) {
  saved_ = std::make_unique<Impl>(*analyzer_.impl_);
  analyzer_.impl_->assume(condition);
}

Analyzer::Constraint::~Constraint() { *analyzer_.impl_ = *saved_; }

Analyzer::Scope::Scope(Analyzer& analyzer)
    : analyzer_(analyzer), known_(analyzer.impl_->at_most_zero.size()) {}

Analyzer::Scope::~Scope() {
  auto& known = analyzer_.impl_->at_most_zero;
  known.erase(known.begin() + static_cast<std::ptrdiff_t>(known_), known.end());
}

Bounds Analyzer::bounds(const Expr& e) const {
  Bounds out = impl_->bounds(e);
  if (e->kind == ExprKind::int_imm) return out;
  Expr simple = impl_->simplify(e);
  return intersect(out, impl_->bounds(simple));
}

Modular Analyzer::modular(const Expr& e) const {
  return impl_->modular(to_sum(impl_->simplify(e)));
}
Expr Analyzer::simplify(const Expr& e) const { return e ? impl_->simplify(e) : e; }

Expr Analyzer::simplify_value(const Expr& e) const {
  impl_->of_values = true;
  Expr out = simplify(e);
  impl_->of_values = false;
  return out;
}

void Analyzer::hold_data(const Var& var) { impl_->data.insert(var.get()); }

Bounds Analyzer::value_bounds(const Expr& e) const {
  return is_index_type(e->dtype) && impl_->may_wrap(e) ? type_bounds(e->dtype) : bounds(e);
}

bool Analyzer::prove(const Expr& condition) const {
  return is_const_int_value(impl_->simplify(condition), 1);
}

bool Analyzer::prove_equal(const Expr& a, const Expr& b) const {
  if (same_expr(a, b)) return true;
  if (!is_index_type(a->dtype) || !is_index_type(b->dtype))
    return same_expr(impl_->simplify(a), impl_->simplify(b));
  Expr difference = impl_->simplify(a - b);
  if (is_const_int_value(difference, 0)) return true;
  return prove(eq(a, b));
}

Expr simplify(const Expr& e) { return Analyzer().simplify(e); }

}  // namespace weft::arith
