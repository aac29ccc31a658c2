// SPDX-License-Identifier: Apache-2.0
#include "weft/ir/share.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "weft/base/text.h"
#include "weft/ir/build.h"
#include "weft/ir/visit.h"

namespace weft::ir {

namespace {

constexpr std::int64_t kLarge = 1000;   // places of a tree that is left alone
constexpr std::int64_t kLeast = 8;      // places of a part that is worth a name
constexpr std::size_t kMostLets = 400;  // what walks statements calls itself once for each
constexpr std::int64_t kUncounted = std::int64_t{1} << 40;

/// The children of one node.
class Children final : public Visitor {
 public:
  using Visitor::visit;
  std::vector<Expr> of(const Expr& e) {
    found_.clear();
    Visitor::visit(e);
    return std::move(found_);
  }
  void visit(const Expr& e) override {
    if (e) found_.push_back(e);
  }

 private:
  std::vector<Expr> found_;
};

using Sizes = std::unordered_map<const ExprNode*, std::int64_t>;

std::int64_t sized(const Expr& e, Sizes& sizes) {
  if (auto known = sizes.find(e.get()); known != sizes.end()) return known->second;
  std::int64_t total = 1;
  for (const Expr& child : Children().of(e))
    total = std::min(kUncounted, total + sized(child, sizes));
  sizes[e.get()] = total;
  return total;
}

/// Parts that are evaluated whenever the whole is: no arms, no indices, nothing below a binding.
std::vector<Expr> always(const Expr& e) {
  if (e->kind == ExprKind::load || e->kind == ExprKind::let || e->kind == ExprKind::reduce)
    return {};
  if (const auto* c = as<CallNode>(e); c && c->op == "if_then_else") return {c->args[0]};
  return Children().of(e);
}

class Binder final : public Rewriter {
 public:
  using Rewriter::rewrite;
  Binder(const Expr& e, const Sizes& sizes) {
    count(e);
    std::int64_t least = kLeast;
    for (;; least *= 4) {
      chosen_.clear();
      for (const Expr& part : order_) {
        if (uses_[part.get()] > 1 && sizes.at(part.get()) >= least) chosen_.insert(part.get());
      }
      if (chosen_.size() <= kMostLets) break;
    }
  }

  Shared bound(const Expr& e) {
    Shared out;
    for (const Expr& part : order_) {  // children before parents
      if (!chosen_.count(part.get()) || part == e) continue;
      Expr value = rewrite(part);
      Var name = make_var(cat("part", out.lets.size()), value->dtype);
      done_[part.get()] = name;
      out.lets.emplace_back(name, value);
    }
    out.body = rewrite(e);
    return out;
  }

  Expr rewrite(const Expr& e) override {
    if (!e) return e;
    if (auto known = done_.find(e.get()); known != done_.end()) return known->second;
    // What is kept may use fewer names than a later place could: none that is not in scope there.
    return done_[e.get()] = Rewriter::rewrite(e);
  }

 private:
  void count(const Expr& e) {
    if (++uses_[e.get()] > 1) return;
    for (const Expr& part : always(e)) count(part);
    order_.push_back(e);
  }

  std::unordered_map<const ExprNode*, int> uses_;
  std::unordered_set<const ExprNode*> chosen_;
  std::unordered_map<const ExprNode*, Expr> done_;
  std::vector<Expr> order_;
};

}  // namespace

void for_each_distinct_expr(const Expr& e, const std::function<void(const Expr&)>& f) {
  std::unordered_set<const ExprNode*> seen;
  std::vector<Expr> open{e};
  Children children;
  while (!open.empty()) {
    Expr next = std::move(open.back());
    open.pop_back();
    if (!next || !seen.insert(next.get()).second) continue;
    f(next);
    std::vector<Expr> below = children.of(next);
    for (std::size_t i = below.size(); i-- > 0;) open.push_back(std::move(below[i]));
  }
}

std::int64_t tree_size(const Expr& e) {
  Sizes sizes;
  return e ? sized(e, sizes) : 0;
}

Shared bind_shared(const Expr& e) {
  Sizes sizes;
  const std::int64_t places = sized(e, sizes);
  if (places <= kLarge || places < 2 * static_cast<std::int64_t>(sizes.size())) return {{}, e};
  return Binder(e, sizes).bound(e);
}

namespace {

/// How often each node is used by others, itself walked once.
class Uses final : public Visitor {
 public:
  std::unordered_map<const ExprNode*, int> counts;
  using Visitor::visit;
  void visit(const Expr& e) override {
    if (counts[e.get()]++ == 0) Visitor::visit(e);
  }
};

class Naming final : public Rewriter {
 public:
  explicit Naming(const Uses& uses) : uses_(uses) {}
  std::vector<std::pair<Var, Expr>> names;
  using Rewriter::rewrite;
  Expr rewrite(const Expr& e) override {
    if (auto found = done_.find(e.get()); found != done_.end()) return found->second;
    Expr out = Rewriter::rewrite(e);
    const bool inner = as<BinaryNode>(e) || as<CallNode>(e) || as<SelectNode>(e) || as<CastNode>(e);
    // Choices stand for themselves: a compiler makes no vectors of those inside each other.
    const bool named = uses_.counts.at(e.get()) > 1 || as<SelectNode>(e);
    if (inner && !e->dtype.is_bool() && named) {
      Var v = make_var(cat("t", names.size()), e->dtype);
      names.emplace_back(v, out);
      out = v;
    }
    return done_.emplace(e.get(), out).first->second;
  }

 private:
  const Uses& uses_;
  std::unordered_map<const ExprNode*, Expr> done_;
};

}  // namespace

Stmt with_shared(const Exprs& values, const std::function<Stmt(const Exprs&)>& then) {
  Uses uses;
  for (const Expr& v : values) uses.visit(v);
  Naming naming(uses);
  Exprs named;
  for (const Expr& v : values) named.push_back(naming.rewrite(v));
  Stmt body = then(named);
  for (std::size_t k = naming.names.size(); k-- > 0;)
    body = let_stmt(naming.names[k].first, naming.names[k].second, body);
  return body;
}

Stmt with_values(const Exprs& values, const std::function<Stmt(const Exprs&)>& then) {
  std::vector<Var> vars;
  Exprs names;
  for (std::size_t k = 0; k < values.size(); ++k) {
    vars.push_back(make_var(cat("x", k), values[k]->dtype));
    names.push_back(vars.back());
  }
  Stmt body = then(names);
  for (std::size_t k = values.size(); k-- > 0;) body = let_stmt(vars[k], values[k], body);
  return body;
}

}  // namespace weft::ir
