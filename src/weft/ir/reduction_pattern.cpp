// SPDX-License-Identifier: Apache-2.0
#include "weft/ir/reduction_pattern.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/ir/intrinsics.h"
#include "weft/ir/reducers.h"
#include "weft/ir/share.h"
#include "weft/ir/visit.h"

namespace weft::ir {

namespace {

constexpr std::int64_t kMostPlaces = 10000;  // of a value that is looked through

/// Stores at the end of Lets; values have the Lets' values put in. False on any other form.
bool stores_of(const Stmt& s, std::vector<const StoreNode*>& out, Exprs& values) {
  VarMap lets;
  Stmt at = s;
  while (const auto* l = as<LetStmtNode>(at)) {
    lets[l->var.get()] = substitute(l->value, lets);
    at = l->body;
  }
  std::vector<Stmt> list{at};
  if (const auto* q = as<SeqNode>(at)) list = q->stmts;
  for (const Stmt& child : list) {
    const auto* t = as<StoreNode>(child);
    if (!t) return false;
    // A value computed after an earlier store would see the new element.
    bool stale = false;
    for_each_expr(t->value, [&](const Expr& e) {
      const auto* l = as<LoadNode>(e);
      for (const StoreNode* before : out) stale = stale || (l && l->buffer == before->buffer);
    });
    if (stale) return false;
    out.push_back(t);
    values.push_back(substitute(t->value, lets));
    if (tree_size(values.back()) > kMostPlaces) return false;
  }
  return true;
}

bool loads_from(const Expr& e, const BufferNode* b) {
  bool found = false;
  for_each_expr(e, [&](const Expr& x) {
    const auto* l = as<LoadNode>(x);
    found = found || (l && l->buffer.get() == b);
  });
  return found;
}

/// The body as store_joined writes it: a Let for each joining value, then one for each result. The
/// joining values may be anything then, constants too, and a result may use all of them.
struct Joined {
  Exprs rest;     // the joining values
  Exprs results;  // of the stores, in terms of `rhs` and of loads
  std::vector<Var> rhs;
};
std::optional<Joined> joined_form(const Stmt& body, const std::vector<const StoreNode*>& updates) {
  Joined out;
  VarMap lets;
  Stmt at = body;
  for (std::size_t i = 0; i < updates.size(); ++i) {
    const auto* l = as<LetStmtNode>(at);
    if (!l || l->var->dtype != updates[i]->buffer->dtype) return std::nullopt;
    for (const StoreNode* u : updates) {
      if (loads_from(l->value, u->buffer.get())) return std::nullopt;
    }
    out.rest.push_back(substitute(l->value, lets));
    out.rhs.push_back(make_var("y", l->var->dtype));
    lets[l->var.get()] = out.rhs.back();
    at = l->body;
  }
  for (; as<LetStmtNode>(at); at = as<LetStmtNode>(at)->body)
    lets[as<LetStmtNode>(at)->var.get()] = substitute(as<LetStmtNode>(at)->value, lets);
  for (const StoreNode* u : updates) {
    out.results.push_back(substitute(u->value, lets));
    if (tree_size(out.results.back()) > kMostPlaces) return std::nullopt;
  }
  return out;
}

bool same_indices(const Exprs& a, const Exprs& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!same_expr(a[i], b[i])) return false;
  }
  return true;
}

/// Loads of the accumulated elements become lhs; the largest parts without them become leaves.
class Abstract final : public Rewriter {
 public:
  /// `rhs`: variables that stand for what joins already.
  Abstract(const std::vector<const StoreNode*>& updates, const std::vector<Var>& lhs,
           const std::vector<Var>* rhs = nullptr)
      : updates_(updates), lhs_(lhs), rhs_(rhs) {}
  struct Leaf {
    Expr expr;
    Var var;
  };
  std::vector<Leaf> leaves;
  bool reads_elsewhere = false;  // an accumulated buffer at other indices

  using Rewriter::rewrite;
  Expr rewrite(const Expr& e) override {
    if (const auto* l = as<LoadNode>(e)) {
      for (std::size_t i = 0; i < updates_.size(); ++i) {
        if (l->buffer != updates_[i]->buffer) continue;
        if (same_indices(l->indices, updates_[i]->indices)) return lhs_[i];
        reads_elsewhere = true;
      }
    }
    if (e->kind == ExprKind::int_imm || e->kind == ExprKind::float_imm) return e;
    if (rhs_ && !accumulates(e)) {
      bool known = true;  // of what joins and of constants alone
      for_each_expr(e, [&](const Expr& x) {
        const auto* v = as<VarNode>(x);
        known = known && x->kind != ExprKind::load &&
                (!v || std::any_of(rhs_->begin(), rhs_->end(),
                                   [&](const Var& y) { return y.get() == v; }));
      });
      if (known) return e;
    }
    if (!accumulates(e)) {
      for (const Leaf& leaf : leaves) {
        if (same_expr(leaf.expr, e)) return leaf.var;
      }
      leaves.push_back({e, make_var("y", e->dtype)});
      return leaves.back().var;
    }
    // Both arms are values that are there by now.
    const Expr out = Rewriter::rewrite(e);
    const auto* c = as<CallNode>(out);
    const bool choice = c && c->op == "if_then_else" && is_pure(c->args[1]) && is_pure(c->args[2]);
    return choice ? select(c->args[0], c->args[1], c->args[2]) : out;
  }

 private:
  bool accumulates(const Expr& e) const {
    bool found = false;
    for_each_expr(e, [&](const Expr& x) {
      const auto* l = as<LoadNode>(x);
      for (const StoreNode* u : updates_) found = found || (l && l->buffer == u->buffer);
    });
    return found;
  }
  const std::vector<const StoreNode*>& updates_;
  const std::vector<Var>& lhs_;
  const std::vector<Var>* rhs_;
};

bool is_joining(ExprKind kind) {
  return kind == ExprKind::add || kind == ExprKind::mul || kind == ExprKind::min ||
         kind == ExprKind::max || kind == ExprKind::and_ || kind == ExprKind::or_;
}

Expr identity_of(ExprKind op, DType type) {
  switch (op) {
    case ExprKind::mul: return make_const(1, type);
    case ExprKind::min: return max_value(type);
    case ExprKind::max: return min_value(type);
    case ExprKind::and_: return make_bool(true);
    case ExprKind::or_: return make_bool(false);
    default: return make_zero(type);
  }
}

/// The leaf that joins component i: the only one, or the arm of its select that is not lhs.
Var partner(const Expr& result, const Var& lhs, const std::vector<Abstract::Leaf>& leaves) {
  if (const auto* s = as<SelectNode>(result)) {
    const Expr& other = s->a == Expr(lhs) ? s->b : s->a;
    if (!(s->a == Expr(lhs)) && !(s->b == Expr(lhs))) return nullptr;
    for (const auto& leaf : leaves) {
      if (other == Expr(leaf.var)) return leaf.var;
    }
    return nullptr;
  }
  Var found;
  for (const auto& leaf : leaves) {
    if (!uses_var(result, leaf.var.get())) continue;
    if (found) return nullptr;
    found = leaf.var;
  }
  return found;
}

/// x OP y on the values of (index, value) pairs, with or without the index deciding ties.
bool is_arg_choice(const ReducerNode& r) {
  if (r.result.size() != 2) return false;
  const auto* index = as<SelectNode>(r.result[0]);
  const auto* value = as<SelectNode>(r.result[1]);
  if (!index || !value || !same_expr(index->condition, value->condition)) return false;
  bool keeps_left = index->a == Expr(r.lhs[0]) && index->b == Expr(r.rhs[0]) &&
                    value->a == Expr(r.lhs[1]) && value->b == Expr(r.rhs[1]);
  bool keeps_right = index->a == Expr(r.rhs[0]) && index->b == Expr(r.lhs[0]) &&
                     value->a == Expr(r.rhs[1]) && value->b == Expr(r.lhs[1]);
  if (!keeps_left && !keeps_right) return false;
  auto compares = [&](const Expr& e, std::size_t component) {
    const auto* b = as<BinaryNode>(e);
    bool ordered = b && (e->kind == ExprKind::lt || e->kind == ExprKind::le ||
                         e->kind == ExprKind::gt || e->kind == ExprKind::ge);
    if (!ordered) return false;
    const Expr x = r.lhs[component], y = r.rhs[component];
    return (b->a == x && b->b == y) || (b->a == y && b->b == x);
  };
  const Expr& c = index->condition;
  if (compares(c, 1)) return true;
  const auto* either = as<BinaryNode>(c);  // better, or as good with the smaller index
  if (!either || c->kind != ExprKind::or_ || !compares(either->a, 1)) return false;
  const auto* tie = as<BinaryNode>(either->b);
  if (!tie || either->b->kind != ExprKind::and_ || !compares(tie->b, 0)) return false;
  const auto* equal = as<BinaryNode>(tie->a);
  const Expr x = r.lhs[1], y = r.rhs[1];
  return equal && tie->a->kind == ExprKind::eq &&
         ((equal->a == x && equal->b == y) || (equal->a == y && equal->b == x));
}

using Values = std::unordered_map<const VarNode*, double>;

/// Exact for the small integers it is used with; absent for what it does not know.
std::optional<double> evaluate(const Expr& e, const Values& values) {
  if (const auto* v = as<VarNode>(e)) {
    auto found = values.find(v);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  }
  if (const auto* c = as<IntImmNode>(e)) return static_cast<double>(c->value);
  if (const auto* c = as<FloatImmNode>(e)) return c->value;
  if (const auto* c = as<CastNode>(e)) {
    auto x = evaluate(c->value, values);
    return x && !e->dtype.is_float() ? std::optional(std::trunc(*x)) : x;
  }
  if (const auto* n = as<NotNode>(e)) {
    auto x = evaluate(n->a, values);
    return x ? std::optional(*x == 0 ? 1.0 : 0.0) : x;
  }
  if (const auto* s = as<SelectNode>(e)) {
    auto c = evaluate(s->condition, values);
    return c ? evaluate(*c != 0 ? s->a : s->b, values) : c;
  }
  const auto* b = as<BinaryNode>(e);
  if (!b) return std::nullopt;
  auto x = evaluate(b->a, values), y = evaluate(b->b, values);
  if (!x || !y) return std::nullopt;
  switch (e->kind) {
    case ExprKind::add: return *x + *y;
    case ExprKind::sub: return *x - *y;
    case ExprKind::mul: return *x * *y;
    case ExprKind::min: return std::min(*x, *y);
    case ExprKind::max: return std::max(*x, *y);
    case ExprKind::eq: return *x == *y;
    case ExprKind::ne: return *x != *y;
    case ExprKind::lt: return *x < *y;
    case ExprKind::le: return *x <= *y;
    case ExprKind::gt: return *x > *y;
    case ExprKind::ge: return *x >= *y;
    case ExprKind::and_: return *x != 0 && *y != 0;
    case ExprKind::or_: return *x != 0 || *y != 0;
    default: return std::nullopt;
  }
}

/// A promise is believed unless samples disprove it: joining must be associative and commutative,
/// and the start value must change nothing.
bool disproved(const ReducerNode& r) {
  using Tuple = std::vector<double>;
  const std::size_t n = r.lhs.size();
  auto join = [&](const Tuple& a, const Tuple& b) -> std::optional<Tuple> {
    Values values;
    for (std::size_t i = 0; i < n; ++i) {
      values[r.lhs[i].get()] = a[i];
      values[r.rhs[i].get()] = b[i];
    }
    Tuple out;
    for (const Expr& e : r.result) {
      auto v = evaluate(e, values);
      if (!v) return std::nullopt;
      out.push_back(*v);
    }
    return out;
  };
  Tuple start;
  for (const Expr& e : r.identity) {
    auto v = evaluate(e, {});
    if (!v) return false;
    start.push_back(*v);
  }
  std::vector<Tuple> samples;
  for (int s : {-3, 0, 1, 2, 5, 7}) {
    Tuple t;
    for (std::size_t i = 0; i < n; ++i) t.push_back(s + 2 * static_cast<int>(i) * (s % 3));
    samples.push_back(std::move(t));
  }
  for (const Tuple& a : samples) {
    auto same = join(start, a);
    if (same && *same != a) return true;
    for (const Tuple& b : samples) {
      auto ab = join(a, b), ba = join(b, a);
      if (ab && ba && *ab != *ba) return true;
      for (const Tuple& c : samples) {
        auto bc = join(b, c);
        if (!ab || !bc) continue;
        auto left = join(*ab, c), right = join(a, *bc);
        if (left && right && *left != *right) return true;
      }
    }
  }
  return false;
}

}  // namespace

std::optional<ReductionPattern> match_reduction(const BlockNode* block) {
  if (!block->init) return std::nullopt;
  ReductionPattern out;
  std::vector<const StoreNode*> inits;
  Exprs values, starts;
  if (!stores_of(block->body, out.updates, values) || !stores_of(block->init, inits, starts) ||
      inits.size() != out.updates.size())
    return std::nullopt;
  const std::size_t n = out.updates.size();
  Exprs identity(n);
  for (std::size_t i = 0; i < n; ++i) {
    if (!same_indices(out.updates[i]->indices, out.updates[0]->indices)) return std::nullopt;
    for (std::size_t k = 0; k < n; ++k) {
      if (inits[k]->buffer == out.updates[i]->buffer &&
          same_indices(inits[k]->indices, out.updates[i]->indices))
        identity[i] = starts[k];
    }
    if (!identity[i]) return std::nullopt;
  }
  auto reducer = make_ref<ReducerNode>();
  for (std::size_t i = 0; i < n; ++i)
    reducer->lhs.push_back(make_var("x", out.updates[i]->buffer->dtype));
  const Json* vouched = find_annotation(block->annotations, kCommutative);
  const bool vouches = vouched && ((vouched->is_bool() && vouched->as_bool()) ||
                                   (vouched->is_int() && vouched->as_int() != 0));
  if (std::optional<Joined> form;
      vouches && n > 1 && (form = joined_form(block->body, out.updates))) {
    Abstract abstract(out.updates, reducer->lhs, &form->rhs);
    Exprs results;
    for (const Expr& v : form->results) results.push_back(abstract.rewrite(v));
    if (!abstract.reads_elsewhere && abstract.leaves.empty()) {
      reducer->result = std::move(results);
      reducer->rhs = std::move(form->rhs);
      reducer->identity = identity;
      if (!is_arg_choice(*reducer) && disproved(*reducer)) return std::nullopt;
      out.rest = std::move(form->rest);
      out.start = std::move(identity);
      out.reducer = reducer;
      return out;
    }
  }
  Abstract abstract(out.updates, reducer->lhs);
  for (const Expr& v : values) reducer->result.push_back(abstract.rewrite(v));
  if (abstract.leaves.empty() && n == 1) {  // a constant joins: counting
    if (const auto* b = as<BinaryNode>(reducer->result[0]); b && is_joining(b->kind)) {
      const bool left = b->a == Expr(reducer->lhs[0]);
      abstract.leaves.push_back({left ? b->b : b->a, make_var("y", b->a->dtype)});
      const Expr y = abstract.leaves[0].var;
      reducer->result[0] = left ? make_binary(b->kind, b->a, y) : make_binary(b->kind, y, b->b);
    }
  }
  if (abstract.reads_elsewhere || abstract.leaves.size() != n) return std::nullopt;
  for (std::size_t i = 0; i < n; ++i) {
    Var y = partner(reducer->result[i], reducer->lhs[i], abstract.leaves);
    if (!y || y->dtype != reducer->lhs[i]->dtype ||
        std::find(reducer->rhs.begin(), reducer->rhs.end(), y) != reducer->rhs.end())
      return std::nullopt;
    reducer->rhs.push_back(y);
    for (const auto& leaf : abstract.leaves) {
      if (leaf.var == y) out.rest.push_back(leaf.expr);
    }
  }
  out.start = identity;
  bool by_operators = true;
  for (std::size_t i = 0; i < n; ++i) {
    const auto* b = as<BinaryNode>(reducer->result[i]);
    const Expr x = reducer->lhs[i], y = reducer->rhs[i];
    by_operators = by_operators && b && is_joining(b->kind) &&
                   ((b->a == x && b->b == y) || (b->a == y && b->b == x));
  }
  if (by_operators) {
    for (std::size_t i = 0; i < n; ++i)
      identity[i] = identity_of(reducer->result[i]->kind, reducer->lhs[i]->dtype);
  } else if (!is_arg_choice(*reducer) && !vouches) {
    return std::nullopt;
  } else {
    reducer->identity = identity;
    if (!is_arg_choice(*reducer) && disproved(*reducer)) return std::nullopt;
  }
  reducer->identity = std::move(identity);
  out.reducer = reducer;
  return out;
}

Stmt store_joined(const ReducerNode& reducer, const std::vector<Buffer>& targets, const Exprs& lhs,
                  const Exprs& rhs, const Exprs& at) {
  VarMap sides;
  std::vector<Var> joining;  // combinations of several values name them several times
  for (std::size_t i = 0; i < lhs.size(); ++i) {
    sides[reducer.lhs[i].get()] = lhs[i];
    joining.push_back(make_var(cat("x_", targets[i]->name), rhs[i]->dtype));
    sides[reducer.rhs[i].get()] = targets.size() == 1 ? rhs[i] : Expr(joining[i]);
  }
  if (targets.size() == 1) return store(targets[0], substitute(reducer.result[0], sides), at);
  std::vector<Var> names;
  std::vector<Stmt> stores;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    names.push_back(make_var(cat("v_", targets[i]->name), targets[i]->dtype));
    stores.push_back(store(targets[i], names[i], at));
  }
  Stmt out = seq(std::move(stores));
  for (std::size_t i = targets.size(); i-- > 0;)
    out = let_stmt(names[i], substitute(reducer.result[i], sides), out);
  for (std::size_t i = targets.size(); i-- > 0;) out = let_stmt(joining[i], rhs[i], out);
  return out;
}

}  // namespace weft::ir
