// SPDX-License-Identifier: Apache-2.0
#include "weft/stages/linear.h"

#include <algorithm>

#include "weft/ir/build.h"
#include "weft/ir/visit.h"

namespace weft::stages {

using namespace ir;

namespace {

using arith::floor_div;

Linear combine(Linear a, const Linear& b, std::int64_t factor) {
  a.base += factor * b.base;
  for (const auto& [v, c] : b.terms) {
    std::int64_t& mine = a.terms[v];
    mine += factor * c;
    if (mine == 0) a.terms.erase(v);
  }
  return a;
}

std::int64_t extent_of(const VarNode* v, const std::vector<Axis>& axes) {
  for (const Axis& a : axes) {
    if (a.var.get() == v) return a.extent;
  }
  return 1;
}

std::optional<Linear> divide(const Linear& a, std::int64_t d, bool quotient,
                             const std::vector<Axis>& axes, SplitWish* wish) {
  Linear whole{floor_div(a.base, d), {}}, rest{a.base - floor_div(a.base, d) * d, {}};
  for (const auto& [v, c] : a.terms) {
    if (c % d == 0) {
      whole.terms[v] = c / d;
    } else {
      rest.terms[v] = c;
    }
  }
  auto [low, high] = range_of(rest, axes);
  if (low >= 0 && high < d) return quotient ? whole : rest;
  for (const auto& [v, c] : rest.terms) {
    std::int64_t n = extent_of(v, axes);
    if (c <= 0 || d % c || rest.base % c) continue;
    std::int64_t factor = d / c, offset = rest.base / c;
    if (factor < 2) continue;
    if (wish) *wish = {v, factor, offset, offset == 0 && n % factor == 0 && n > factor};
    break;
  }
  return std::nullopt;
}

}  // namespace

std::int64_t Linear::coeff(const VarNode* v) const {
  auto found = terms.find(v);
  return found == terms.end() ? 0 : found->second;
}

std::pair<std::int64_t, std::int64_t> range_of(const Linear& l, const std::vector<Axis>& axes) {
  std::int64_t low = l.base, high = l.base;
  for (const auto& [v, c] : l.terms) (c > 0 ? high : low) += c * (extent_of(v, axes) - 1);
  return {low, high};
}

std::optional<Linear> linear(const Expr& e, const std::vector<Axis>& axes, SplitWish* wish) {
  if (const auto* imm = as<IntImmNode>(e)) return Linear{imm->value, {}};
  if (const auto* v = as<VarNode>(e)) {
    for (const Axis& a : axes) {
      if (a.var.get() == v) return a.extent == 1 ? Linear{} : Linear{0, {{v, 1}}};
    }
    return std::nullopt;
  }
  if (const auto* c = as<CastNode>(e)) {
    if (!c->dtype.is_integral() || !c->value->dtype.is_integral()) return std::nullopt;
    std::optional<Linear> x = linear(c->value, axes, wish);
    if (!x) return x;
    auto [low, high] = range_of(*x, axes);
    std::int64_t least = 0, most = 0;
    const bool fits = is_const_int(min_value(c->dtype), &least) &&
                      is_const_int(max_value(c->dtype), &most) && least <= low && high <= most;
    return fits ? x : std::nullopt;
  }
  Expr a, b;
  ExprKind kind = e->kind;
  if (const auto* bin = as<BinaryNode>(e)) {
    a = bin->a, b = bin->b;
  } else if (const auto* call = as<CallNode>(e); call && call->args.size() == 2) {
    std::int64_t n = 0;
    if (!is_const_int(call->args[1], &n)) return std::nullopt;
    std::optional<Linear> x = linear(call->args[0], axes, wish);
    if (!x) return std::nullopt;
    if (call->op == "shift_right" && n >= 0 && n < 62)
      return divide(*x, std::int64_t{1} << n, true, axes, wish);
    if (call->op == "bitwise_and" && n > 0 && ((n + 1) & n) == 0)
      return divide(*x, n + 1, false, axes, wish);
    if (call->op == "shift_left" && n >= 0 && n < 62)
      return combine(Linear{}, *x, std::int64_t{1} << n);
    return std::nullopt;
  } else {
    return std::nullopt;
  }
  std::optional<Linear> x = linear(a, axes, wish), y = x ? linear(b, axes, wish) : std::nullopt;
  if (!x || !y) return std::nullopt;
  switch (kind) {
    case ExprKind::add: return combine(*x, *y, 1);
    case ExprKind::sub: return combine(*x, *y, -1);
    case ExprKind::mul:
      if (y->terms.empty()) return combine(Linear{}, *x, y->base);
      if (x->terms.empty()) return combine(Linear{}, *y, x->base);
      return std::nullopt;
    case ExprKind::div:
    case ExprKind::mod:  // C's division agrees where nothing is negative
      if (range_of(*x, axes).first < 0) return std::nullopt;
      [[fallthrough]];
    case ExprKind::floordiv:
    case ExprKind::floormod:
      if (!y->terms.empty() || y->base <= 0) return std::nullopt;
      return divide(*x, y->base, kind == ExprKind::floordiv || kind == ExprKind::div, axes, wish);
    default: return std::nullopt;
  }
}

bool bounds_from(const Expr& condition, const std::vector<Linear>& indices,
                 const std::vector<Axis>& axes, std::vector<Bounds>& bounds) {
  if (const auto* both = as<BinaryNode>(condition); both && both->kind == ExprKind::and_) {
    return bounds_from(both->a, indices, axes, bounds) &&
           bounds_from(both->b, indices, axes, bounds);
  }
  if (const auto* call = as<CallNode>(condition)) {
    for (const Expr& part : call->args) {
      if (!bounds_from(part, indices, axes, bounds)) return false;
    }
    return call->op == "likely" || call->op == "bitwise_and";
  }
  auto never = [&] {  // holds nowhere: no index is inside
    if (!bounds.empty()) bounds[0] = {0, 0};
    return !bounds.empty();
  };
  if (const auto* imm = as<IntImmNode>(condition)) return imm->value != 0 || never();
  const auto* c = as<BinaryNode>(condition);
  if (!c) return false;
  std::optional<Linear> x = linear(c->a, axes, nullptr), y = linear(c->b, axes, nullptr);
  if (!x || !y) return false;
  // As f >= 0.
  Linear f;
  switch (c->kind) {
    case ExprKind::ge: f = combine(*x, *y, -1); break;
    case ExprKind::gt: f = combine(*x, *y, -1), f.base -= 1; break;
    case ExprKind::le: f = combine(*y, *x, -1); break;
    case ExprKind::lt: f = combine(*y, *x, -1), f.base -= 1; break;
    default: return false;
  }
  const auto [least, most] = range_of(f, axes);
  if (least >= 0) return true;
  if (most < 0) return never();
  for (std::size_t d = 0; d < indices.size(); ++d) {
    if (indices[d].terms.empty()) continue;
    Linear up = combine(f, indices[d], -1);  // f = index + k
    if (up.terms.empty()) {
      bounds[d].low = std::max(bounds[d].low, -up.base);
      return true;
    }
    Linear down = combine(f, indices[d], 1);  // f = k - index
    if (down.terms.empty()) {
      bounds[d].high = std::min(bounds[d].high, down.base + 1);
      return true;
    }
  }
  return false;
}

namespace {

/// The sum with widened indices opened: index arithmetic does not overflow.
arith::Sum through_casts(const Expr& e) {
  arith::Sum given = arith::to_sum(e), out;
  out.constant = given.constant;
  for (const arith::Monomial& m : given.terms) {
    arith::Sum product;
    product.constant = m.coeff;
    for (const Expr& atom : m.atoms) {
      const auto* c = as<CastNode>(atom);
      const bool widens = c && arith::is_index_type(c->dtype) &&
                          arith::is_index_type(c->value->dtype) &&
                          c->value->dtype.bits <= c->dtype.bits;
      arith::Sum factor;
      if (widens) factor = through_casts(c->value);
      else factor.add(arith::Monomial{1, {atom}});
      product = arith::multiply(product, factor);
    }
    out.add(product, 1);
  }
  return out;
}

}  // namespace

std::optional<LinearIn> linear_in(const Expr& e, const VarNode* v) {
  if (!arith::is_index_type(e->dtype)) return std::nullopt;
  LinearIn out;
  arith::Sum sum = through_casts(e);
  out.base.constant = sum.constant;
  for (const arith::Monomial& m : sum.terms) {
    Exprs rest;
    int found = 0;
    for (const Expr& atom : m.atoms) {
      if (atom.get() == v) {
        ++found;
      } else {
        if (uses_var(atom, v)) return std::nullopt;
        rest.push_back(atom);
      }
    }
    if (found > 1) return std::nullopt;
    if (found == 0) out.base.add(m);
    else if (rest.empty()) out.coeff.constant += m.coeff;
    else out.coeff.add(arith::Monomial{m.coeff, rest});
  }
  return out;
}

}  // namespace weft::stages
