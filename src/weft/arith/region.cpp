// SPDX-License-Identifier: Apache-2.0
// Boxes of indices: symbolic intervals, relaxation over loops, unions, cover; linear forms.

#include "weft/arith/analyzer.h"
#include "weft/arith/sum.h"
#include "weft/ir/build.h"
#include "weft/ir/compare.h"

namespace weft::arith {

using namespace ir;

std::optional<Linear> detect_linear(const Expr& e, const std::vector<Var>& vars) {
  Linear out;
  out.coeffs.assign(vars.size(), 0);
  Sum base;
  Sum sum = to_sum(simplify(e));
  base.constant = sum.constant;
  std::unordered_set<const VarNode*> set;
  for (const Var& v : vars) set.insert(v.get());
  for (const Monomial& m : sum.terms) {
    if (m.atoms.size() == 1 && m.atoms[0]->kind == ExprKind::var &&
        set.count(as<VarNode>(m.atoms[0]))) {
      for (std::size_t i = 0; i < vars.size(); ++i) {
        if (vars[i].get() == m.atoms[0].get()) out.coeffs[i] += m.coeff;
      }
      continue;
    }
    for (const Expr& atom : m.atoms) {
      if (uses_any(atom, set)) return std::nullopt;
    }
    base.add(m);
  }
  out.base = to_expr(base, e->dtype);
  return out;
}

namespace {

bool uses_domain(const Expr& e, const DomainMap& domain) {
  bool found = false;
  for_each_expr(e, [&](const Expr& x) {
    found = found || (x->kind == ExprKind::var && domain.count(as<VarNode>(x)));
  });
  return found;
}

SymbolicInterval interval_of(const Expr& e, const DomainMap& domain, const Analyzer& analyzer,
                             int depth);

SymbolicInterval interval_of_atom(const Expr& e, const DomainMap& domain, const Analyzer& analyzer,
                                  int depth) {
  if (!uses_domain(e, domain)) return {e, e};
  if (depth > 16) return {};
  if (const auto* v = as<VarNode>(e)) {
    const Range& r = domain.at(v);
    std::int64_t first = 0, count = 0;
    if (is_const_int(r.min, &first) && is_const_int(r.extent, &count))
      return {r.min, make_int(first + count - 1, r.min->dtype)};
    // The range's own ends may depend on other relaxed variables.
    SymbolicInterval low = interval_of(r.min, domain, analyzer, depth + 1);
    SymbolicInterval high = interval_of(r.min + r.extent - 1, domain, analyzer, depth + 1);
    return {low.min, high.max};
  }
  const auto* b = as<BinaryNode>(e);
  std::int64_t c;
  if (e->kind == ExprKind::floordiv && is_const_int(b->b, &c) && c > 0) {
    SymbolicInterval x = interval_of(b->a, domain, analyzer, depth + 1);
    return {x.min ? floordiv(x.min, b->b) : nullptr, x.max ? floordiv(x.max, b->b) : nullptr};
  }
  if (e->kind == ExprKind::floormod && is_const_int(b->b, &c) && c > 0) {
    SymbolicInterval x = interval_of(b->a, domain, analyzer, depth + 1);
    if (x.min && x.max && analyzer.prove_equal(floordiv(x.min, b->b), floordiv(x.max, b->b))) {
      return {floormod(x.min, b->b), floormod(x.max, b->b)};
    }
    return {make_int(0, e->dtype), make_int(c - 1, e->dtype)};
  }
  if (e->kind == ExprKind::min || e->kind == ExprKind::max) {
    SymbolicInterval x = interval_of(b->a, domain, analyzer, depth + 1),
                     y = interval_of(b->b, domain, analyzer, depth + 1);
    auto join = [&](const Expr& p, const Expr& q, bool lenient) -> Expr {
      if (!p || !q) return lenient ? (p ? p : q) : Expr();
      return make_binary(e->kind, p, q);
    };
    bool is_min = e->kind == ExprKind::min;
    return {join(x.min, y.min, !is_min), join(x.max, y.max, is_min)};
  }
  if (e->kind == ExprKind::select || (as<CallNode>(e) && as<CallNode>(e)->op == "if_then_else")) {
    const Expr& p = as<SelectNode>(e) ? as<SelectNode>(e)->a : as<CallNode>(e)->args[1];
    const Expr& q = as<SelectNode>(e) ? as<SelectNode>(e)->b : as<CallNode>(e)->args[2];
    SymbolicInterval x = interval_of(p, domain, analyzer, depth + 1),
                     y = interval_of(q, domain, analyzer, depth + 1);
    return {x.min && y.min ? min(x.min, y.min) : nullptr,
            x.max && y.max ? max(x.max, y.max) : nullptr};
  }
  Bounds bounds = analyzer.bounds(e);
  return {bounds.min == Bounds::kMin ? Expr() : make_int(bounds.min, e->dtype),
          bounds.max == Bounds::kMax ? Expr() : make_int(bounds.max, e->dtype)};
}

SymbolicInterval interval_of(const Expr& expr, const DomainMap& domain, const Analyzer& analyzer,
                             int depth) {
  Expr e = analyzer.simplify(expr);
  if (!uses_domain(e, domain)) return {e, e};
  if (!is_index_type(e->dtype)) return interval_of_atom(e, domain, analyzer, depth);
  Sum sum = to_sum(e);
  Expr low = make_int(sum.constant, e->dtype), high = low;
  for (const Monomial& m : sum.terms) {
    Expr whole = monomial_expr(m.atoms);
    SymbolicInterval x;
    if (m.atoms.size() == 1) {
      x = interval_of_atom(m.atoms[0], domain, analyzer, depth);
    } else if (!uses_domain(whole, domain)) {
      x = {whole, whole};
    } else {  // one relaxed factor times factors that are known not to be negative
      Expr relaxed, rest;
      for (const Expr& atom : m.atoms) {
        if (uses_domain(atom, domain) && !relaxed) relaxed = atom;
        else rest = rest ? rest * atom : atom;
      }
      if (!uses_domain(rest, domain) && analyzer.prove_at_least(rest, 0)) {
        SymbolicInterval r = interval_of_atom(relaxed, domain, analyzer, depth);
        x = {r.min ? r.min * rest : nullptr, r.max ? r.max * rest : nullptr};
      }
    }
    if (m.coeff < 0) std::swap(x.min, x.max);
    auto grow = [&](Expr& side, const Expr& term) {
      if (!side || !term) side = nullptr;
      else side = side + cast(e->dtype, term) * make_int(m.coeff, e->dtype);
    };
    grow(low, x.min);
    grow(high, x.max);
  }
  return {low ? analyzer.simplify(low) : low, high ? analyzer.simplify(high) : high};
}

}  // namespace

SymbolicInterval symbolic_interval(const Expr& e, const DomainMap& domain,
                                   const Analyzer& analyzer) {
  return interval_of(e, domain, analyzer, 0);
}

std::vector<Range> relax_region(const std::vector<Range>& region, const DomainMap& domain,
                                const Analyzer& analyzer) {
  std::vector<Range> out;
  for (const Range& r : region) {
    const SymbolicInterval low = symbolic_interval(r.min, domain, analyzer);
    SymbolicInterval high = low;
    if (!is_const_int_value(r.extent, 1))
      high = symbolic_interval(r.min + r.extent - 1, domain, analyzer);
    if (!low.min || !high.max) {
      out.push_back({nullptr, nullptr});
      continue;
    }
    out.push_back({low.min, analyzer.simplify(high.max - low.min + 1)});
  }
  return out;
}

std::vector<Range> union_regions(const std::vector<Range>& a, const std::vector<Range>& b,
                                 const Analyzer& analyzer) {
  std::vector<Range> out;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!a[i].min || !b[i].min) {
      out.push_back({nullptr, nullptr});
      continue;
    }
    Expr low = analyzer.simplify(min(a[i].min, b[i].min));
    Expr high = analyzer.simplify(max(a[i].min + a[i].extent, b[i].min + b[i].extent));
    out.push_back({low, analyzer.simplify(high - low)});
  }
  return out;
}

bool covers(const std::vector<Range>& outer, const std::vector<Range>& inner,
            const Analyzer& analyzer) {
  if (outer.size() != inner.size()) return false;
  for (std::size_t i = 0; i < outer.size(); ++i) {
    if (!outer[i].min || !inner[i].min) return false;
    if (!analyzer.prove(le(outer[i].min, inner[i].min))) return false;
    if (!analyzer.prove(le(inner[i].min + inner[i].extent, outer[i].min + outer[i].extent)))
      return false;
  }
  return true;
}

}  // namespace weft::arith
