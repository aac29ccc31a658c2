// SPDX-License-Identifier: Apache-2.0
#include "weft/ir/regions.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "weft/ir/atomic.h"
#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/ir/visit.h"

namespace weft::ir {

namespace {

/// constant + sum of coeff * term; terms are variables or opaque expressions. A small normal form
/// so that `max - min` of a relaxed index is found to be a constant.
struct Linear {
  std::vector<std::pair<Expr, std::int64_t>> terms;
  std::int64_t constant = 0;

  void add(const Expr& e, std::int64_t coeff) {
    if (coeff == 0) return;
    std::int64_t v;
    if (is_const_int(e, &v)) {
      constant += v * coeff;
      return;
    }
    if (const auto* b = as<BinaryNode>(e)) {
      if (b->kind == ExprKind::add) return add(b->a, coeff), add(b->b, coeff);
      if (b->kind == ExprKind::sub) return add(b->a, coeff), add(b->b, -coeff);
      if (b->kind == ExprKind::mul && is_const_int(b->b, &v)) return add(b->a, coeff * v);
      if (b->kind == ExprKind::mul && is_const_int(b->a, &v)) return add(b->b, coeff * v);
    }
    for (std::size_t i = 0; i < terms.size(); ++i) {
      if (!same_expr(terms[i].first, e)) continue;
      terms[i].second += coeff;
      if (terms[i].second == 0) terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(i));
      return;
    }
    terms.emplace_back(e, coeff);
  }
};

/// b - a when it is a constant.
std::optional<std::int64_t> difference(const Expr& a, const Expr& b) {
  Linear l;
  l.add(b, 1);
  l.add(a, -1);
  if (!l.terms.empty()) return std::nullopt;
  return l.constant;
}

/// b - a in a readable form.
Expr subtract(const Expr& b, const Expr& a) {
  Linear l;
  l.add(b, 1);
  l.add(a, -1);
  Expr out;
  for (const auto& [term, coeff] : l.terms) {
    Expr t = coeff == 1 || coeff == -1 ? term : term * std::abs(coeff);
    out = !out ? (coeff > 0 ? t : make_zero(t->dtype) - t) : coeff > 0 ? out + t : out - t;
  }
  return out ? out + l.constant : make_int(l.constant, b->dtype);
}

struct Interval {
  Expr lo, hi;
};  // inclusive; null: unbounded

class Detector final : public Visitor {
 public:
  std::vector<BufferRegion> reads, writes;

  void touch(std::vector<BufferRegion>& list, const BufferRegion& access) {
    if (local_.count(access.buffer.get())) return;
    BufferRegion box{access.buffer, {}};
    for (std::size_t i = 0; i < access.region.size(); ++i) {
      const Range& r = access.region[i];
      Interval lo = bound(r.min);
      Interval size = bound(r.extent);
      bool whole = !lo.lo || !lo.hi || !size.hi;
      if (!whole) {
        box.region.push_back(
            {lo.lo, same_expr(lo.lo, lo.hi) ? size.hi : subtract(lo.hi + size.hi, lo.lo)});
      } else {
        const Expr& extent = access.buffer->shape[i];
        box.region.push_back({make_zero(extent->dtype), extent});
      }
    }
    for (BufferRegion& old : list) {
      if (!(old.buffer == box.buffer)) continue;
      for (std::size_t i = 0; i < box.region.size(); ++i)
        old.region[i] = join(old.region[i], box.region[i], box.buffer->shape[i]);
      return;
    }
    list.push_back(std::move(box));
  }

  static Range join(const Range& a, const Range& b, const Expr& whole) {
    auto low = difference(a.min, b.min);
    auto high = difference(a.min + a.extent, b.min + b.extent);
    if (!low || !high) {
      if (same_expr(a.min, b.min) && same_expr(a.extent, b.extent)) return a;
      return {make_zero(whole->dtype), whole};
    }
    Expr lo = *low < 0 ? b.min : a.min;
    Expr hi = *high > 0 ? b.min + b.extent : a.min + a.extent;
    return {lo, subtract(hi, lo)};
  }

  /// The values of e while the variables bound inside the statement run.
  Interval bound(const Expr& e) {
    if (e->dtype.lanes > 1) {
      if (const auto* r = as<RampNode>(e)) {
        Interval base = bound(r->base);
        std::int64_t step;
        if (!base.lo || !base.hi || !is_const_int(r->stride, &step)) return {};
        std::int64_t span = step * (r->dtype.lanes - 1);
        return {span < 0 ? base.lo + span : base.lo, span > 0 ? base.hi + span : base.hi};
      }
      if (const auto* b = as<BroadcastNode>(e)) return bound(b->value);
      return {};
    }
    if (!mentions_inner(e)) return {e, e};
    if (const auto* v = as<VarNode>(e)) {
      auto found = domain_.find(v);
      return found == domain_.end() ? Interval{} : found->second;
    }
    if (const auto* c = as<CastNode>(e); c && e->dtype.is_integral()) {
      Interval x = bound(c->value);
      return x.lo && x.hi ? Interval{cast(e->dtype, x.lo), cast(e->dtype, x.hi)} : Interval{};
    }
    const auto* b = as<BinaryNode>(e);
    if (!b) return {};
    Interval x = bound(b->a), y = bound(b->b);
    if (!x.lo || !x.hi || !y.lo || !y.hi) {
      std::int64_t n;
      if (b->kind == ExprKind::floormod && is_const_int(b->b, &n) && n > 0)
        return {make_zero(e->dtype), make_int(n - 1, e->dtype)};
      return {};
    }
    std::int64_t v;
    switch (b->kind) {
      case ExprKind::add: return {x.lo + y.lo, x.hi + y.hi};
      case ExprKind::sub: return {x.lo - y.hi, x.hi - y.lo};
      case ExprKind::mul:
        if (is_const_int(b->a, &v)) std::swap(x, y);
        else if (!is_const_int(b->b, &v)) return {};
        return v >= 0 ? Interval{x.lo * v, x.hi * v} : Interval{x.hi * v, x.lo * v};
      case ExprKind::floordiv:
        if (!is_const_int(b->b, &v) || v <= 0) return {};
        return {floordiv(x.lo, b->b), floordiv(x.hi, b->b)};
      case ExprKind::floormod: {
        if (!is_const_int(b->b, &v) || v <= 0) return {};
        std::int64_t lo, hi;  // stays inside one period: an exact shift
        if (is_const_int(x.lo, &lo) && is_const_int(x.hi, &hi) && lo >= 0 && lo / v == hi / v)
          return {make_int(lo % v, e->dtype), make_int(hi % v, e->dtype)};
        return {make_zero(e->dtype), make_int(v - 1, e->dtype)};
      }
      case ExprKind::min: return {min(x.lo, y.lo), min(x.hi, y.hi)};
      case ExprKind::max: return {max(x.lo, y.lo), max(x.hi, y.hi)};
      default: return {};
    }
  }

  void bind(const Var& v, const Expr& lo, const Expr& extent) {
    Interval a = bound(lo), n = bound(extent);
    inner_.insert(v.get());
    domain_[v.get()] = a.lo && a.hi && n.hi ? Interval{a.lo, a.hi + n.hi - 1} : Interval{};
  }

  using Visitor::visit;
  void visit(const Expr& e) override {
    if (const auto* l = as<LetNode>(e)) {
      visit(l->value);
      bind_value(l->var, l->value);
      visit(l->body);
      return;
    }
    Visitor::visit(e);
  }
  void visit(const Stmt& s) override {
    if (const auto* l = as<LetStmtNode>(s)) {
      visit(l->value);
      bind_value(l->var, l->value);
      visit(l->body);
      return;
    }
    if (const auto* c = as<CollectiveNode>(s)) {
      touch(reads, c->src);
      touch(writes, c->dst);
    }
    Visitor::visit(s);
  }
  void visit_load(const LoadNode* l) override {
    touch(reads, point_region(l->buffer, l->indices));
    Visitor::visit_load(l);
  }
  void visit_store(const StoreNode* s) override {
    if (const CallNode* c = as_atomic(s)) {  // reading its element is part of the store
      for (const Expr& i : s->indices) visit(i);
      visit(c->args[1]);
    } else {
      Visitor::visit_store(s);
    }
    touch(writes, point_region(s->buffer, s->indices));
  }
  void visit_for(const ForNode* s) override {
    visit(s->min), visit(s->extent);
    bind(s->var, s->min, s->extent);
    visit(s->body);
  }
  void visit_launch(const LaunchNode* s) override {
    for (const LaunchAxis& axis : s->axes) {
      visit(axis.extent);
      bind(axis.var, make_zero(axis.extent->dtype), axis.extent);
    }
    visit(s->body);
  }
  void visit_allocate(const AllocateNode* s) override {
    local_.insert(s->buffer.get());
    visit(s->body);
  }
  void visit_block_realize(const BlockRealizeNode* s) override {
    for (const Expr& v : s->iter_values) visit(v);
    visit(s->predicate);
    VarMap map;
    for (std::size_t i = 0; i < s->iter_values.size(); ++i)
      map[s->block->iters[i].var.get()] = s->iter_values[i];
    for (const BufferRegion& r : s->block->reads) touch(reads, substitute(r, map));
    for (const BufferRegion& r : s->block->writes) touch(writes, substitute(r, map));
  }
  void exclude(const Buffer& b) { local_.insert(b.get()); }

 private:
  bool mentions_inner(const Expr& e) {
    bool found = false;
    for_each_expr(e, [&](const Expr& x) {
      if (const auto* v = as<VarNode>(x)) found = found || inner_.count(v);
      if (const auto* l = as<LoadNode>(x))
        found = found || l != nullptr;  // a value from memory is no bound
    });
    return found;
  }
  void bind_value(const Var& v, const Expr& value) {
    inner_.insert(v.get());
    domain_[v.get()] =
        value->dtype.is_integral() && value->dtype.is_scalar() ? bound(value) : Interval{};
  }

  std::unordered_map<const VarNode*, Interval> domain_;
  std::unordered_set<const VarNode*> inner_;
  std::unordered_set<const BufferNode*> local_;
};

}  // namespace

Expr linear_difference(const Expr& b, const Expr& a) { return subtract(b, a); }

AccessRegions detect_access_regions(const Stmt& s) {
  Detector d;
  d.visit(s);
  return {std::move(d.reads), std::move(d.writes)};
}

AccessRegions detect_block_regions(const BlockNode& block) {
  Detector d;
  for (const Buffer& b : block.alloc_buffers) d.exclude(b);
  d.visit(block.init);
  d.visit(block.body);
  AccessRegions out;
  auto move = [&](std::vector<BufferRegion>& from, std::vector<BufferRegion>& to) {
    for (BufferRegion& r : from) {
      BufferRegion access = r;
      for (const MatchBuffer& m : block.match_buffers) {
        if (m.buffer == r.buffer) access = m.source;
      }
      bool known = std::any_of(to.begin(), to.end(),
                               [&](const BufferRegion& x) { return x.buffer == access.buffer; });
      if (!known) to.push_back(std::move(access));
    }
  };
  move(d.reads, out.reads);
  move(d.writes, out.writes);
  if (block.init) {
    std::erase_if(out.reads, [&](const BufferRegion& r) {
      return std::any_of(out.writes.begin(), out.writes.end(),
                         [&](const BufferRegion& w) { return w.buffer == r.buffer; });
    });
  }
  return out;
}

}  // namespace weft::ir
