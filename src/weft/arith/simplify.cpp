// SPDX-License-Identifier: Apache-2.0
// Canonical forms. Quotients and remainders by constants, with x = sum of terms and 0 <= r < g:
//   (c q + x) // c = q + x // c          (c q + x) % c = x % c
//   (g x + r) // c = x // (c / g)        (g x + r) % c = g (x % (c / g)) + r          g divides c
//   x // a // b = x // (a b)             x % (a b) // b = (x // b) % a
//   x % (a b) % b = x % b                c (x // c) + x % c = x
// Comparisons decide by the bounds of the difference and by known facts.

#include <algorithm>
#include <array>
#include <numeric>

#include "weft/arith/analyzer_impl.h"
#include "weft/ir/build.h"
#include "weft/ir/compare.h"

namespace weft::arith {

using namespace ir;

bool Analyzer::Impl::within(const Sum& s, std::int64_t low, std::int64_t high) const {
  Bounds b = sum_bounds(s);
  if (b.min >= low && b.max < high) return true;
  Sum below, above;  // low - s <= 0, s - high + 1 <= 0
  below.constant = low;
  below.add(s, -1);
  above.add(s, 1);
  above.constant += 1 - high;
  return never_positive(below) && never_positive(above);
}

namespace {

/// c (x // c) + x % c = x, and (x // a % b) a + x % a = x % (a b), inside a sum.
bool merge_pairs(Sum& sum) {
  for (std::size_t i = 0; i < sum.terms.size(); ++i) {
    if (sum.terms[i].atoms.size() != 1 || sum.terms[i].atoms[0]->kind != ExprKind::floormod)
      continue;
    const Monomial low = sum.terms[i];
    const auto* r = as<BinaryNode>(low.atoms[0]);
    std::int64_t c;
    if (!is_const_int(r->b, &c) || c <= 0) continue;
    for (std::size_t j = 0; j < sum.terms.size(); ++j) {
      if (i == j || sum.terms[j].atoms.size() != 1 || sum.terms[j].coeff != low.coeff * c) continue;
      const Monomial high = sum.terms[j];
      Expr atom = high.atoms[0], merged;
      std::int64_t outer = 0;
      const auto* q = as<BinaryNode>(atom);
      if (atom->kind == ExprKind::floormod && is_const_int(q->b, &outer) && as<BinaryNode>(q->a) &&
          q->a->kind == ExprKind::floordiv) {
        q = as<BinaryNode>(q->a);
      } else if (atom->kind != ExprKind::floordiv) {
        outer = -1;
      }
      if (outer >= 0 && is_const_int_value(q->b, c) && same_expr(q->a, r->a)) {
        merged = outer ? floormod(r->a, make_int(outer * c, r->a->dtype)) : r->a;
      } else if (atom->kind == ExprKind::floormod &&
                 as<BinaryNode>(low.atoms[0])->a->kind == ExprKind::var) {
        continue;
      }
      if (!merged && r->a->kind == ExprKind::floordiv) {
        // low = x // a % c and high = x // (a c) [% m]
        const auto* inner = as<BinaryNode>(r->a);
        std::int64_t a;
        const auto* h = as<BinaryNode>(atom);
        std::int64_t m = 0;
        if (atom->kind == ExprKind::floormod && is_const_int(h->b, &m) &&
            h->a->kind == ExprKind::floordiv)
          h = as<BinaryNode>(h->a);
        else if (atom->kind != ExprKind::floordiv) h = nullptr;
        if (h && is_const_int(inner->b, &a) && is_const_int_value(h->b, a * c) &&
            same_expr(h->a, inner->a)) {
          merged = m ? floormod(r->a, make_int(m * c, r->a->dtype)) : r->a;
        }
      }
      if (!merged) continue;
      Sum out;
      out.constant = sum.constant;
      for (std::size_t k = 0; k < sum.terms.size(); ++k) {
        if (k == std::min(i, j)) out.add(to_sum(merged), low.coeff);
        if (k != i && k != j) out.add(sum.terms[k]);
      }
      sum = out;
      return true;
    }
  }
  return false;
}

/// Splits into multiples of c and the rest (the constant's multiple goes with the former, divided
/// by c).
void split_multiples(const Sum& s, std::int64_t c, Sum* quotient, Sum* rest) {
  for (const Monomial& m : s.terms) {
    if (m.coeff % c == 0) quotient->add(Monomial{m.coeff / c, m.atoms});
    else rest->add(m);
  }
  quotient->constant = floor_div(s.constant, c);
  rest->constant = floor_mod(s.constant, c);
}

std::vector<std::int64_t> common_factors(const Sum& s, std::int64_t c) {
  std::vector<std::int64_t> out;
  for (const Monomial& m : s.terms) {
    std::int64_t g = std::gcd(m.coeff, c);
    if (g > 1 && g < c && std::find(out.begin(), out.end(), g) == out.end()) out.push_back(g);
  }
  std::sort(out.rbegin(), out.rend());
  return out;
}

}  // namespace

bool Analyzer::Impl::is_plain_sum(const Expr& e) const {
  const Expr* at = &e;
  if (e->kind == ExprKind::add || e->kind == ExprKind::sub) {
    const auto* b = as<BinaryNode>(e);
    std::int64_t constant = 0;
    if (is_const_int(b->b, &constant)) {
      if (constant <= 0) return false;
      at = &b->a;
    }
  }
  std::array<const ExprNode*, 16> seen{};
  for (std::size_t count = 0; count < seen.size(); ++count) {
    const auto* sum = (*at)->kind == ExprKind::add ? as<BinaryNode>(*at) : nullptr;
    const Expr& term = sum ? sum->b : *at;
    const auto* product = term->kind == ExprKind::mul ? as<BinaryNode>(term) : nullptr;
    const Expr& v = product ? product->a : term;
    std::int64_t coeff = 0;
    if (product && (!is_const_int(product->b, &coeff) || coeff <= 1)) return false;
    if (v->kind != ExprKind::var || v->dtype != e->dtype) return false;
    const auto known = vars.find(as<VarNode>(v));
    if (known != vars.end() && (known->second.value || known->second.bounds.is_point()))
      return false;
    const auto end = seen.begin() + static_cast<std::ptrdiff_t>(count);
    if (std::find(seen.begin(), end, v.get()) != end) return false;
    if (!sum) return true;
    seen[count] = v.get();
    at = &sum->a;
  }
  return false;
}

Sum Analyzer::Impl::simplify_sum(const Expr& e) const {
  Sum out;
  const auto* b = as<BinaryNode>(e);
  if (e->kind == ExprKind::add || e->kind == ExprKind::sub) {
    out = simplify_sum(b->a);
    out.add(simplify_sum(b->b), e->kind == ExprKind::add ? 1 : -1);
  } else if (e->kind == ExprKind::mul) {
    Sum x = simplify_sum(b->a), y = simplify_sum(b->b);
    if (x.terms.size() * y.terms.size() <= 16) {
      out = multiply(std::move(x), std::move(y));
    } else {
      out.terms.push_back({1, {to_expr(x, e->dtype) * to_expr(y, e->dtype)}});
    }
  } else if (e->kind == ExprKind::cast && is_index_type(as<CastNode>(e)->value->dtype) &&
             e->dtype.bits >= as<CastNode>(e)->value->dtype.bits) {
    // A widening cast of an index: exact as long as the narrow arithmetic did not overflow.
    return simplify_sum(as<CastNode>(e)->value);
  } else {
    return to_sum(simplify(e));
  }
  while (merge_pairs(out)) {
  }
  return out;
}

Expr Analyzer::Impl::divide(const Sum& a, const Sum& b, const Expr& ea, const Expr& eb,
                            DType type) const {
  if (!b.is_constant()) {
    // (d q + r) // d = q when 0 <= r < d, for a symbolic d of one term.
    if (b.terms.size() == 1 && b.constant == 0) {
      Sum quotient, rest;
      rest.constant = a.constant;
      for (const Monomial& m : a.terms) {
        Exprs left = m.atoms;
        bool divides = m.coeff % b.terms[0].coeff == 0;
        for (const Expr& atom : b.terms[0].atoms) {
          auto found = std::find_if(left.begin(), left.end(),
                                    [&](const Expr& x) { return same_expr(x, atom); });
          if (found == left.end()) divides = false;
          else left.erase(found);
        }
        if (!divides) rest.add(m);
        else if (left.empty()) quotient.constant += m.coeff / b.terms[0].coeff;
        else quotient.add(Monomial{m.coeff / b.terms[0].coeff, left});
      }
      Sum below, above;  // -r <= 0 and r - d + 1 <= 0
      below.add(rest, -1);
      above.add(rest, 1);
      above.add(b, -1);
      above.constant += 1;
      if (never_positive(below) && never_positive(above)) return to_expr(quotient, type);
    }
    return floordiv(ea, eb);
  }
  std::int64_t c = b.constant;
  if (c <= 0) return floordiv(ea, eb);
  Sum quotient, rest;
  split_multiples(a, c, &quotient, &rest);
  Bounds r = sum_bounds(rest);
  if (r.bounded() && floor_div(r.min, c) == floor_div(r.max, c)) {
    quotient.constant += floor_div(r.min, c);
    return to_expr(quotient, type);
  }
  if (within(rest, 0, c)) return to_expr(quotient, type);
  for (std::int64_t g : common_factors(rest, c)) {
    Sum upper, lower;
    split_multiples(rest, g, &upper, &lower);
    if (!within(lower, 0, g)) continue;
    Sum divisor;
    divisor.constant = c / g;
    quotient.add(to_sum(divide(upper, divisor, to_expr(upper, type), make_int(c / g, type), type)),
                 1);
    return to_expr(quotient, type);
  }
  if (rest.terms.size() == 1 && rest.constant == 0 && rest.terms[0].coeff == 1 &&
      rest.terms[0].atoms.size() == 1) {
    const Expr& atom = rest.terms[0].atoms[0];
    const auto* inner = as<BinaryNode>(atom);
    std::int64_t k;
    if (atom->kind == ExprKind::floordiv && is_const_int(inner->b, &k) && k > 0) {
      Sum divisor;
      divisor.constant = k * c;
      quotient.add(to_sum(divide(to_sum(inner->a), divisor, inner->a, make_int(k * c, type), type)),
                   1);
      return to_expr(quotient, type);
    }
    if (atom->kind == ExprKind::floormod && is_const_int(inner->b, &k) && k > 0 && k % c == 0) {
      Sum first, second;
      first.constant = c;
      second.constant = k / c;
      Expr q = divide(to_sum(inner->a), first, inner->a, make_int(c, type), type);
      quotient.add(to_sum(remainder(to_sum(q), second, q, make_int(k / c, type), type)), 1);
      return to_expr(quotient, type);
    }
  }
  quotient.add(Monomial{1, {floordiv(to_expr(rest, type), make_int(c, type))}});
  return to_expr(quotient, type);
}

Expr Analyzer::Impl::remainder(const Sum& a, const Sum& b, const Expr& ea, const Expr& eb,
                               DType type) const {
  if (!b.is_constant()) {
    Expr q = divide(a, b, ea, eb, type);
    if (q->kind == ExprKind::floordiv && same_expr(as<BinaryNode>(q)->b, eb))
      return floormod(ea, eb);
    Sum out = a;  // a - d (a // d)
    out.add(multiply(b, to_sum(q)), -1);
    return to_expr(out, type);
  }
  std::int64_t c = b.constant;
  if (c <= 0) return floormod(ea, eb);
  Sum quotient, rest;
  split_multiples(a, c, &quotient, &rest);
  Sum opened;  // k (x % m) = k x modulo c when c divides k m
  opened.constant = rest.constant;
  for (const Monomial& m : rest.terms) {
    std::int64_t n;
    if (m.atoms.size() == 1 && m.atoms[0]->kind == ExprKind::floormod &&
        is_const_int(as<BinaryNode>(m.atoms[0])->b, &n) && n > 0 && (m.coeff * n) % c == 0) {
      opened.add(to_sum(as<BinaryNode>(m.atoms[0])->a), m.coeff);
    } else {
      opened.add(m);
    }
  }
  if (opened.terms.size() != rest.terms.size() ||
      !std::equal(opened.terms.begin(), opened.terms.end(), rest.terms.begin(),
                  [](const Monomial& x, const Monomial& y) {
                    return x.coeff == y.coeff && same_atoms(x.atoms, y.atoms);
                  })) {
    return remainder(opened, b, to_expr(opened, type), eb, type);
  }
  Bounds r = sum_bounds(rest);
  if (r.bounded() && floor_div(r.min, c) == floor_div(r.max, c)) {
    rest.constant -= floor_div(r.min, c) * c;
    return to_expr(rest, type);
  }
  if (within(rest, 0, c)) return to_expr(rest, type);
  for (std::int64_t g : common_factors(rest, c)) {
    Sum upper, lower;
    split_multiples(rest, g, &upper, &lower);
    if (!within(lower, 0, g)) continue;
    Sum divisor, out = lower;
    divisor.constant = c / g;
    out.add(to_sum(remainder(upper, divisor, to_expr(upper, type), make_int(c / g, type), type)),
            g);
    return to_expr(out, type);
  }
  // Coefficients are not reduced modulo c: that would hide that the operand is a mixed-radix
  // number.
  return floormod(to_expr(rest, type), make_int(c, type));
}

bool Analyzer::Impl::known(const Expr& condition) const {
  for (const Expr& fact : facts) {
    if (same_expr(fact, condition)) return true;
  }
  return false;
}

Expr Analyzer::Impl::compare(ExprKind kind, const Expr& a, const Expr& b) const {
  DType type = a->dtype.bits >= b->dtype.bits ? a->dtype : b->dtype;
  if (kind == ExprKind::gt) return compare(ExprKind::lt, b, a);
  if (kind == ExprKind::ge) return compare(ExprKind::le, b, a);
  Sum d = to_sum(a);  // a - b
  d.add(to_sum(b), -1);
  if (kind == ExprKind::eq || kind == ExprKind::ne) {
    bool is_eq = kind == ExprKind::eq;
    Sum negative;
    negative.add(d, -1);
    if (d.is_constant()) return make_bool((d.constant == 0) == is_eq);
    Sum below = d, above = negative;  // d + 1 <= 0 or -d + 1 <= 0: different
    below.constant += 1;
    above.constant += 1;
    if (never_positive(below) || never_positive(above)) return make_bool(!is_eq);
    if (never_positive(d) && never_positive(negative)) return make_bool(is_eq);
    Modular m = modular(d);
    if (m.coeff > 1 && m.base != 0) return make_bool(!is_eq);
    return make_binary(kind, a, b);
  }
  Sum target = std::move(d);  // a < b: d + 1 <= 0
  if (kind == ExprKind::lt) target.constant += 1;
  if (never_positive(target)) return make_bool(true);
  Sum opposite;  // not (target <= 0): 1 - target <= 0
  opposite.add(target, -1);
  opposite.constant += 1;
  if (never_positive(opposite)) return make_bool(false);
  // g x + r + k <= 0 with 0 <= r + (k mod g) < g  is  x + k // g <= 0 (strictly below the next
  // multiple)
  std::int64_t best = 0;
  for (const Monomial& m : target.terms) {
    std::int64_t g = m.coeff < 0 ? -m.coeff : m.coeff;
    if (g > best && g > 1) {
      Sum upper, lower;
      Sum t = target;
      t.constant -= 1;  // target <= 0  is  t < 0
      split_multiples(t, g, &upper, &lower);
      if (upper.terms.size() < target.terms.size() + 1 && !upper.terms.empty() &&
          within(lower, 0, g)) {
        best = g;
      }
    }
  }
  if (best > 1) {
    Sum upper, lower, t = target;
    t.constant -= 1;
    split_multiples(t, best, &upper, &lower);
    // upper < 0
    Sum left, right;
    right.constant = -upper.constant;
    for (const Monomial& m : upper.terms)
      (m.coeff > 0 ? left : right).add(Monomial{m.coeff > 0 ? m.coeff : -m.coeff, m.atoms});
    return make_binary(ExprKind::lt, to_expr(left, type), to_expr(right, type));
  }
  return make_binary(kind, a, b);
}

namespace {
bool is_true(const Expr& e) { return is_const_int_value(e, 1); }
bool is_false(const Expr& e) { return is_const_int_value(e, 0); }

/// Rebuilds children with a function; keeps identity.
class Children final : public Rewriter {
 public:
  explicit Children(const std::function<Expr(const Expr&)>& f) : f_(f) {}
  Expr rewrite(const Expr& e) override { return e ? f_(e) : e; }
  Expr of(const Expr& e) {
    if (e->kind == ExprKind::load) return rewrite_load(e);
    if (e->kind == ExprKind::call) return rewrite_call(e);
    return rewrite_default(e);
  }

 private:
  const std::function<Expr(const Expr&)>& f_;
};
}  // namespace

Expr Analyzer::Impl::simplify(const Expr& e) const {
  if (!e) return e;
  switch (e->kind) {
    case ExprKind::int_imm:
    case ExprKind::float_imm:
    case ExprKind::string_imm: return e;
    case ExprKind::var: {
      auto found = vars.find(as<VarNode>(e));
      if (found == vars.end()) return e;
      if (found->second.value)
        return found->second.value->dtype == e->dtype ? found->second.value
                                                      : cast(e->dtype, found->second.value);
      if (found->second.bounds.is_point()) return make_int(found->second.bounds.min, e->dtype);
      return e;
    }
    default: break;
  }
  const auto* b = as<BinaryNode>(e);
  const auto wraps = [this](const Expr& x) { return of_values && may_wrap(x); };
  if (is_index_type(e->dtype) && b && !wraps(e)) {
    switch (e->kind) {
      case ExprKind::add:
      case ExprKind::sub:
      case ExprKind::mul: {
        if (is_plain_sum(e)) return e;
        Expr out = to_expr(simplify_sum(e), e->dtype);
        return same_expr(out, e) ? e : out;
      }
      case ExprKind::floordiv:
      case ExprKind::floormod:
      case ExprKind::div:
      case ExprKind::mod: {
        Sum x = simplify_sum(b->a), y = simplify_sum(b->b);
        Expr ex = to_expr(x, e->dtype), ey = to_expr(y, e->dtype);
        bool truncating = e->kind == ExprKind::div || e->kind == ExprKind::mod;
        if (truncating && (sum_bounds(x).min < 0 || sum_bounds(y).min <= 0))
          return make_binary(e->kind, ex, ey);
        bool quotient = e->kind == ExprKind::floordiv || e->kind == ExprKind::div;
        Expr out = quotient ? divide(x, y, ex, ey, e->dtype) : remainder(x, y, ex, ey, e->dtype);
        return same_expr(out, e) ? e : out;
      }
      case ExprKind::min:
      case ExprKind::max: {
        Expr x = simplify(b->a), y = simplify(b->b);
        if (wraps(x) || wraps(y)) return make_binary(e->kind, x, y);
        Sum d = to_sum(x), n;
        d.add(to_sum(y), -1);
        n.add(d, -1);
        bool is_min = e->kind == ExprKind::min;
        if (never_positive(d)) return is_min ? x : y;
        if (never_positive(n)) return is_min ? y : x;
        return x == b->a && y == b->b ? e : make_binary(e->kind, x, y);
      }
      default: break;
    }
  }
  if (e->kind == ExprKind::and_ || e->kind == ExprKind::or_) {
    Expr x = simplify(b->a);
    bool is_and = e->kind == ExprKind::and_;
    if (is_and ? is_false(x) : is_true(x)) return x;
    Expr y;
    if (is_true(x) || is_false(x)) {
      y = simplify(b->b);
    } else {
      Impl under = *this;  // the second operand matters only if the first does not decide
      under.assume(x, is_and);
      y = under.simplify(b->b);
    }
    return x == b->a && y == b->b ? e : make_binary(e->kind, x, y);
  }
  if (is_compare(e->kind) && is_index_type(b->a->dtype) && !wraps(b->a) && !wraps(b->b)) {
    if (known(e)) return make_bool(true);
    // What a choice leaves may be a number too large for the sums of `compare`.
    Expr x = simplify(b->a), y = simplify(b->b);
    Expr out = wraps(x) || wraps(y) ? make_binary(e->kind, x, y) : compare(e->kind, x, y);
    if (out->kind != ExprKind::int_imm && known(out)) return make_bool(true);
    return same_expr(out, e) ? e : out;
  }
  if (const auto* n = as<NotNode>(e)) {
    Expr x = simplify(n->a);
    ExprKind flipped = x->kind;
    switch (x->kind) {
      case ExprKind::lt: flipped = ExprKind::ge; break;
      case ExprKind::ge: flipped = ExprKind::lt; break;
      case ExprKind::le: flipped = ExprKind::gt; break;
      case ExprKind::gt: flipped = ExprKind::le; break;
      case ExprKind::eq: flipped = ExprKind::ne; break;
      case ExprKind::ne: flipped = ExprKind::eq; break;
      default: break;
    }
    if (flipped != x->kind && as<BinaryNode>(x)->a->dtype.is_integral())
      return make_binary(flipped, as<BinaryNode>(x)->a, as<BinaryNode>(x)->b);
    return x == n->a ? e : logical_not(x);
  }
  if (const auto* s = as<SelectNode>(e)) {
    Expr c = simplify(s->condition);
    if (is_true(c)) return simplify(s->a);
    if (is_false(c)) return simplify(s->b);
    Expr x = simplify(s->a), y = simplify(s->b);
    if (same_expr(x, y)) return x;
    return c == s->condition && x == s->a && y == s->b ? e : select(c, x, y);
  }
  if (const auto* c = as<CallNode>(e); c && c->op == "if_then_else") {
    Expr condition = simplify(c->args[0]);
    if (is_true(condition)) return simplify(c->args[1]);
    if (is_false(condition)) return simplify(c->args[2]);
    Impl yes = *this, no = *this;
    yes.assume(condition);
    no.assume(condition, false);
    Expr x = yes.simplify(c->args[1]), y = no.simplify(c->args[2]);
    return condition == c->args[0] && x == c->args[1] && y == c->args[2]
               ? e
               : if_then_else(condition, x, y);
  }
  if (e->kind == ExprKind::cast && is_index_type(e->dtype) &&
      is_index_type(as<CastNode>(e)->value->dtype)) {
    Expr v = simplify(as<CastNode>(e)->value);
    return v == as<CastNode>(e)->value ? e : cast(e->dtype, v);
  }
  const bool before = of_values;
  if (e->kind == ExprKind::load) of_values = false;  // what follows are indices
  std::function<Expr(const Expr&)> self = [this](const Expr& x) { return simplify(x); };
  Expr out = Children(self).of(e);
  of_values = before;
  if (const auto* c = as<CallNode>(out); c && c->op == "bitwise_xor") {
    std::int64_t x, y;
    const bool left = is_const_int(c->args[0], &x), right = is_const_int(c->args[1], &y);
    if (left && right) return make_int(x ^ y, out->dtype);
    if (left && x == 0) return c->args[1];
    if (right && y == 0) return c->args[0];
  }
  return out;
}

// ---- statements

namespace {
class SimplifyStmt final : public Rewriter {
 public:
  Analyzer analyzer;
  Expr rewrite(const Expr& e) override { return analyzer.simplify(e); }
  Stmt rewrite(const Stmt& s) override { return Rewriter::rewrite(s); }

 protected:
  Stmt rewrite_store(const Stmt& s) override {
    const auto* t = as<StoreNode>(s);
    bool changed = false;
    Exprs indices = rewrite_all(t->indices, &changed);
    Expr value = analyzer.simplify_value(t->value);
    return !changed && value == t->value ? s : store(t->buffer, value, std::move(indices));
  }
  Stmt rewrite_let(const LetStmtNode* t, const Stmt& s) {
    Expr value = analyzer.simplify_value(t->value);
    bool data = false;
    for_each_expr(value, [&](const Expr& x) { data = data || x->kind == ExprKind::load; });
    if (data) analyzer.hold_data(t->var);
    Stmt body = rewrite(t->body);
    return value == t->value && body == t->body ? s : let_stmt(t->var, value, body);
  }
  Stmt rewrite_for(const Stmt& s) override {
    const auto* t = as<ForNode>(s);
    Expr lo = rewrite(t->min), extent = rewrite(t->extent);
    if (analyzer.prove(le(extent, make_int(0, extent->dtype)))) return seq({});
    std::int64_t k;
    bool keeps = is_const_int(extent, &k) && k == 1;  // one trip: the variable is known
    const Analyzer::Scope inside(analyzer);
    if (keeps) analyzer.bind(t->var, lo);
    else analyzer.bind(t->var, Range{lo, extent});
    Stmt body = rewrite(t->body);
    if (lo == t->min && extent == t->extent && body == t->body) return s;
    return make_for(t->var, lo, extent, body, t->for_kind, t->axis, t->annotations);
  }
  Stmt rewrite_if(const Stmt& s) override {
    const auto* t = as<IfNode>(s);
    Expr c = analyzer.simplify_value(t->condition);
    if (is_true(c)) return rewrite(t->then_case);
    if (is_false(c)) return t->else_case ? rewrite(t->else_case) : seq({});
    Stmt yes, no;
    {
      Analyzer::Constraint scope(analyzer, c);
      yes = rewrite(t->then_case);
    }
    if (t->else_case) {
      Analyzer::Constraint scope(analyzer, logical_not(c));
      no = rewrite(t->else_case);
    }
    return c == t->condition && yes == t->then_case && no == t->else_case ? s : if_then(c, yes, no);
  }
  Stmt rewrite_block_realize(const Stmt& s) override {
    const auto* t = as<BlockRealizeNode>(s);
    bool changed = false;
    Exprs values = rewrite_all(t->iter_values, &changed);
    Expr predicate = analyzer.simplify_value(t->predicate);
    // Inside, iterators are known by their domains only: bindings stay outside the block.
    const Analyzer::Scope inside(analyzer);
    for (const IterVar& iter : t->block->iters) {
      if (is_const_int_value(iter.dom.extent, 1)) continue;
      analyzer.bind(iter.var, iter.dom);
    }
    Block block = rewrite_block(t->block);
    if (!changed && predicate == t->predicate && block == t->block) return s;
    return block_realize(std::move(values), predicate, block);
  }
  Stmt rewrite_default(const Stmt& s) override {
    if (const auto* t = as<LetStmtNode>(s)) return rewrite_let(t, s);
    if (const auto* t = as<LaunchNode>(s)) {
      const Analyzer::Scope inside(analyzer);
      for (const LaunchAxis& axis : t->axes)
        analyzer.bind(axis.var, Range{make_int(0, axis.extent->dtype), axis.extent});
      return Rewriter::rewrite_default(s);
    }
    return Rewriter::rewrite_default(s);
  }
};
}  // namespace

Stmt simplify(const Stmt& s) { return SimplifyStmt().rewrite(s); }

}  // namespace weft::arith
