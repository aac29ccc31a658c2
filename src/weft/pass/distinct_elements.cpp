// SPDX-License-Identifier: Apache-2.0
#include "weft/pass/distinct_elements.h"

#include <algorithm>

#include "weft/arith/sum.h"
#include "weft/ir/build.h"
#include "weft/ir/visit.h"
#include "weft/pass/index_values.h"

namespace weft::pass {

using namespace ir;

namespace {

constexpr std::int64_t kDataReach = std::int64_t{1} << 20;

struct Term {
  std::int64_t coeff = 1, first = 0, last = 0;  // coeff * v, first <= v <= last
};

}  // namespace

struct DistinctElements::Form {
  Expr base;
  std::vector<std::int64_t> coeffs;  // of the group's axes
  std::vector<Term> loops;           // what low and high are made of
  int lanes = 1;
  std::int64_t low = 0, high = 0;               // offsets from loops and lanes
  std::int64_t points_min = 0, points_max = 0;  // sum over the axes
};

bool DistinctElements::conflict(const ElementAccess& x, const ElementAccess& y,
                                const std::unordered_set<const VarNode*>& open) const {
  if (!(x.buffer == y.buffer) || (!x.write && !y.write) ||
      (!x.atomic.empty() && x.atomic == y.atomic))
    return false;
  if (x.write && y.write && x.stmt == y.stmt)
    return false;  // each point ends with its own last write
  auto fx = form(x, open), fy = form(y, open);
  if (!fx || !fy) return true;
  Expr shift = analyzer.simplify(fy->base - fx->base);
  return !apart(shift, *fx, *fy) && !versions_apart(shift, *fx, *fy);
}

/// Do distinct points touch distinct elements? The difference y - x of the indices is
///     sum coeff * (point of y - point of x) + sum coeff * (u - v) + offset
/// where u and v run through one range: digits of a mixed radix, of which every one is 0 when
/// each outweighs all below it and the offset. Then the points are the same. A loop that does not
/// outweigh what is below counts as offset.
bool DistinctElements::apart(const Expr& shift, const Form& x, const Form& y) const {
  constexpr std::int64_t kLarge = std::int64_t{1} << 40;
  arith::Sum sum = arith::to_sum(shift);
  std::vector<Term> terms = y.loops;
  for (const Term& t : x.loops) terms.push_back({-t.coeff, t.first, t.last});
  for (const arith::Monomial& m : sum.terms) {
    arith::Bounds b = analyzer.bounds(arith::monomial_expr(m.atoms));
    if (!b.bounded() || b.min < -kLarge || b.max > kLarge) return false;
    terms.push_back({m.coeff, b.min, b.max});
  }
  std::int64_t low = sum.constant - (x.lanes - 1), high = sum.constant + (y.lanes - 1);
  struct Digit {
    std::int64_t coeff, extent;
    bool point;
  };
  std::vector<Digit> digits;
  std::int64_t reach_of_loops = 0;
  while (!terms.empty()) {
    Term t = terms.back();
    terms.pop_back();
    if (std::abs(t.coeff) > (std::int64_t{1} << 20)) return false;
    auto twin = std::find_if(terms.begin(), terms.end(), [&](const Term& o) {
      return o.coeff == -t.coeff && o.first == t.first && o.last == t.last;
    });
    if (twin == terms.end()) {
      low += std::min(t.coeff * t.first, t.coeff * t.last);
      high += std::max(t.coeff * t.first, t.coeff * t.last);
      continue;
    }
    terms.erase(twin);
    digits.push_back({std::abs(t.coeff), t.last - t.first + 1, false});
    reach_of_loops += digits.back().coeff * (digits.back().extent - 1);
  }
  if (y.points_min - x.points_max + low > reach_of_loops ||
      y.points_max - x.points_min + high < -reach_of_loops)
    return true;
  if (x.coeffs != y.coeffs) return false;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    std::int64_t n = 0;
    if (!is_const_int(axes_[i].extent, &n)) return false;
    digits.push_back({std::abs(x.coeffs[i]), n, true});
  }
  std::sort(digits.begin(), digits.end(),
            [](const Digit& a, const Digit& b) { return a.coeff < b.coeff; });
  std::int64_t offset = std::max(std::abs(low), std::abs(high));
  for (bool again = true; again;) {
    again = false;
    std::int64_t reach = offset + 1;  // everything below the next digit stays under this
    for (std::size_t i = 0; i < digits.size(); ++i) {
      if (digits[i].coeff < reach) {
        if (digits[i].point) return false;
        offset += digits[i].coeff * (digits[i].extent - 1);
        digits.erase(digits.begin() + static_cast<std::ptrdiff_t>(i));
        again = true;
        break;
      }
      reach += digits[i].coeff * (digits[i].extent - 1);
    }
  }
  return true;
}

/// shift = c * (a mod n) - c * (b mod n) + d where a - b is no multiple of n: two versions of a
/// pipelined buffer, at least c - |d| elements apart.
bool DistinctElements::versions_apart(const Expr& shift, const Form& x, const Form& y) const {
  arith::Sum sum = arith::to_sum(shift);
  if (sum.terms.size() != 2) return false;
  const arith::Monomial &p = sum.terms[0], &q = sum.terms[1];
  if (p.coeff != -q.coeff || p.atoms.size() != 1 || q.atoms.size() != 1) return false;
  const auto* a = as<BinaryNode>(p.atoms[0]);
  const auto* b = as<BinaryNode>(q.atoms[0]);
  std::int64_t n = 0, m = 0, apart = 0;
  if (!a || !b || a->kind != ExprKind::floormod || b->kind != ExprKind::floormod ||
      !is_const_int(a->b, &n) || !is_const_int(b->b, &m) || n != m || n <= 1)
    return false;
  if (!is_const_int(analyzer.simplify(a->a - b->a), &apart) || arith::floor_mod(apart, n) == 0)
    return false;
  const std::int64_t c = std::abs(p.coeff), d = sum.constant;
  return x.points_max + x.high - (y.points_min + y.low) - d < c &&
         y.points_max + y.high - (x.points_min + x.low) + d < c;
}

/// The value as an int64 with casts of integers out of the way. Index arithmetic does not wrap:
/// an index that did would lie outside its buffer.
Expr DistinctElements::widen(const Expr& e, const VarMap& wide) const {
  const DType index = dtypes::int64;
  std::int64_t n = 0;
  if (is_const_int(e, &n)) return make_int(n);
  if (const auto* v = as<VarNode>(e)) {
    auto found = wide.find(v);
    return found == wide.end() ? cast(index, e) : found->second;
  }
  const auto* c = as<CastNode>(e);
  if (c && c->value->dtype.is_int()) {
    const int bits = e->dtype.bits;
    bool fits = c->value->dtype.bits <= bits;
    if (!fits) {
      const arith::Bounds b = analyzer.bounds(c->value);
      const std::int64_t most = std::int64_t{1} << (bits - 1);
      fits = b.bounded() && b.min >= -most && b.max < most;
    }
    if (fits) return widen(c->value, wide);
  }
  if (e->dtype.is_int()) {
    const auto* b = as<BinaryNode>(e);
    switch (e->kind) {
      case ExprKind::add: return widen(b->a, wide) + widen(b->b, wide);
      case ExprKind::sub: return widen(b->a, wide) - widen(b->b, wide);
      case ExprKind::mul: return widen(b->a, wide) * widen(b->b, wide);
      case ExprKind::floordiv: return floordiv(widen(b->a, wide), widen(b->b, wide));
      case ExprKind::floormod: return floormod(widen(b->a, wide), widen(b->b, wide));
      default: break;
    }
  }
  return cast(index, e);
}

std::optional<DistinctElements::Form> DistinctElements::form(
    const ElementAccess& a, const std::unordered_set<const VarNode*>& open) const {
  std::vector<Var> vars;
  for (const LaunchAxis& axis : axes_) vars.push_back(axis.var);
  std::vector<const AccessLoop*> free;
  for (const AccessLoop& l : a.loops) {
    if (open.count(l.var.get())) continue;
    free.push_back(&l);
    vars.push_back(l.var);
  }
  std::unordered_set<const VarNode*> set;
  VarMap wide;
  for (Var& v : vars) {
    set.insert(v.get());
    if (v->dtype != dtypes::int64) {
      const Var as_index = make_var(v->name, dtypes::int64);
      wide[v.get()] = as_index;
      v = as_index;
      set.insert(v.get());
    }
  }
  // Parts that depend on data, or on a point's digits, but have bounds are like loops: any value
  // of their range.
  std::vector<Term> data;
  Expr index = a.index;
  auto known = [&](const Expr& e) {
    return !reads_memory(e) && arith::detect_linear(widen(e, wide), vars);
  };
  if (!known(index)) {
    const auto* widened = as<CastNode>(index);
    if (widened && widened->value->dtype.is_int()) index = widened->value;
    const arith::Sum sum = arith::to_sum(index);
    index = make_int(sum.constant, index->dtype);
    for (const arith::Monomial& m : sum.terms) {
      const Expr part = arith::monomial_expr(m.atoms);
      if (known(part)) {
        index = index + part * m.coeff;
        continue;
      }
      const arith::Bounds b = analyzer.bounds(part);
      if (!b.bounded() || b.min < -kDataReach || b.max > kDataReach) return std::nullopt;
      data.push_back({m.coeff, b.min, b.max});
    }
    index = cast(a.index->dtype, index);
  }
  auto linear = arith::detect_linear(widen(index, wide), vars);
  if (!linear) return std::nullopt;
  if (uses_any(linear->base, set) || uses_any(linear->base, tainted)) return std::nullopt;
  if (reads_memory(linear->base)) return std::nullopt;
  Form out;
  out.base = linear->base;
  for (const Term& t : data) {
    out.loops.push_back(t);
    out.low += std::min(t.coeff * t.first, t.coeff * t.last);
    out.high += std::max(t.coeff * t.first, t.coeff * t.last);
  }
  for (std::size_t i = 0; i < vars.size(); ++i) {
    std::int64_t c = linear->coeffs[i], n = 0, low = 0;
    bool axis = i < axes_.size();
    const Expr& extent = axis ? axes_[i].extent : free[i - axes_.size()]->range.extent;
    if (axis) out.coeffs.push_back(c);
    if (c == 0) continue;
    arith::Bounds size = analyzer.bounds(extent);
    if (size.max == arith::Bounds::kMax || size.max > (std::int64_t{1} << 40)) return std::nullopt;
    n = size.max;
    if (!axis && !is_const_int(free[i - axes_.size()]->range.min, &low)) return std::nullopt;
    std::int64_t first = c * low, last = c * (low + std::max<std::int64_t>(n, 1) - 1);
    if (!axis) out.loops.push_back({c, low, low + std::max<std::int64_t>(n, 1) - 1});
    (axis ? out.points_min : out.low) += std::min(first, last);
    (axis ? out.points_max : out.high) += std::max(first, last);
  }
  out.high += a.lanes - 1;
  out.lanes = a.lanes;
  return out;
}

}  // namespace weft::pass
