// SPDX-License-Identifier: Apache-2.0
#include "weft/pass/common_subexpression_elimination.h"

#include <algorithm>

#include "weft/ir/atomic.h"
#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/ir/intrinsics.h"
#include "weft/ir/visit.h"

namespace weft::pass {

using namespace ir;

namespace {

using VarSet = std::unordered_set<const VarNode*>;

bool is_lazy(const CallNode* c) { return c && c->op == "if_then_else"; }

/// Operands of e that are evaluated whenever e is.
std::vector<const Expr*> certain_operands(const Expr& e) {
  if (const auto* b = as<BinaryNode>(e)) {
    if (e->kind == ExprKind::and_ || e->kind == ExprKind::or_) return {&b->a};
    return {&b->a, &b->b};
  }
  if (const auto* c = as<CastNode>(e)) return {&c->value};
  if (const auto* n = as<NotNode>(e)) return {&n->a};
  if (const auto* r = as<RampNode>(e)) return {&r->base, &r->stride};
  if (const auto* b = as<BroadcastNode>(e)) return {&b->value};
  if (const auto* s = as<SelectNode>(e)) return {&s->condition, &s->a, &s->b};
  std::vector<const Expr*> out;
  if (const auto* l = as<LoadNode>(e)) {
    for (const Expr& i : l->indices) out.push_back(&i);
  } else if (const auto* c = as<CallNode>(e)) {
    if (is_lazy(c)) return {&c->args[0]};
    if (c->op == "masked_load" || c->op == "address_of") return {};
    if (is_atomic(c->op)) return {&c->args[1]};  // its element is read by the store
    for (const Expr& a : c->args) out.push_back(&a);
  }
  return out;
}

/// Replaces chosen classes of equal expressions, largest first.
class Classes {
 public:
  /// What may be merged: index arithmetic without loads (anywhere), or any value of one statement.
  Classes(bool indices, const VarSet& inner) : indices_(indices), inner_(inner) {}

  void count(const Expr& e) {
    if (!e) return;
    if (candidate(e)) ++of(e).count;
    for (const Expr* operand : certain_operands(e)) count(*operand);
  }
  /// Quotients that a loop would compute in every iteration.
  void count_repeated(const Expr& e) {
    if (!e) return;
    if (is_quotient(e) && candidate(e)) of(e).repeated = true;
    for (const Expr* operand : certain_operands(e)) count_repeated(*operand);
  }

  /// After count: keeps the classes that occur twice outside of larger ones.
  void choose(const Exprs& roots) {
    for (const Expr& root : roots) use(root);
    for (auto& [hash, list] : classes_) {
      for (Class& c : list) c.chosen = c.uses >= 2 || c.repeated;
    }
  }

  bool any() const {
    for (const auto& [hash, list] : classes_) {
      for (const Class& c : list) {
        if (c.chosen) return true;
      }
    }
    return false;
  }

  /// The variable for e when its class was chosen; null otherwise. Makes the Let at first use.
  Expr variable(const Expr& e) {
    if (!candidate(e)) return nullptr;
    Class* c = find(e);
    if (!c || !c->chosen) return nullptr;
    if (!c->var) c->var = make_var(name(), e->dtype);
    return c->var;
  }

  /// Chosen expressions, small ones first: a larger one may use a smaller one's variable.
  std::vector<std::pair<Var, Expr>> lets() const {
    std::vector<const Class*> found;
    for (const auto& [hash, list] : classes_) {
      for (const Class& c : list) {
        if (c.chosen && c.var) found.push_back(&c);
      }
    }
    std::sort(found.begin(), found.end(), [](const Class* a, const Class* b) {
      return a->size != b->size ? a->size < b->size : a->order < b->order;
    });
    std::vector<std::pair<Var, Expr>> out;
    for (const Class* c : found) out.emplace_back(c->var, c->expr);
    return out;
  }

 private:
  struct Class {
    Expr expr;
    int count = 0, uses = 0, size = 0, order = 0;
    bool repeated = false, chosen = false;
    Var var;
  };

  /// A division of integers by what is known at run time.
  static bool is_quotient(const Expr& e) {
    switch (e->kind) {
      case ExprKind::div:
      case ExprKind::mod:
      case ExprKind::floordiv:
      case ExprKind::floormod: return e->dtype.is_integral() && !is_const_int(as<BinaryNode>(e)->b);
      default: return false;
    }
  }

  std::string name() const { return indices_ ? "at" : "value"; }

  bool candidate(const Expr& e) const {
    if (!e->dtype.is_scalar() || e->dtype.is_handle()) return false;
    if (indices_ && (!e->dtype.is_integral() || e->dtype.is_bool())) return false;
    switch (e->kind) {
      case ExprKind::var:
      case ExprKind::int_imm:
      case ExprKind::float_imm:
      case ExprKind::string_imm:
      case ExprKind::let:
      case ExprKind::reduce: return false;
      case ExprKind::cast: {  // a widened variable costs nothing
        const Expr& v = as<CastNode>(e)->value;
        if (indices_ && v->kind == ExprKind::var) return false;
        break;
      }
      default: break;
    }
    if (const auto* c = as<CallNode>(e); c && (c->op == "nontemporal" || is_atomic(c->op)))
      return false;
    return safe(e);
  }

  /// A positive number, or the larger of one and something else.
  static bool is_positive(const Expr& e) {
    std::int64_t n = 0;
    if (is_const_int(e, &n)) return n > 0;
    if (const auto* c = as<CastNode>(e); c && c->value->dtype.is_int() && e->dtype.is_int())
      return e->dtype.bits >= c->value->dtype.bits && is_positive(c->value);
    const auto* b = e->kind == ExprKind::max ? as<BinaryNode>(e) : nullptr;
    return b && (is_positive(b->a) || is_positive(b->b));
  }

  /// Without effects, failures, and (for indices) memory; no variable of inner statements.
  bool safe(const Expr& e) const {
    auto [it, fresh] = safe_.try_emplace(e.get(), true);
    if (!fresh) return it->second;
    bool good = true;
    for_each_expr(e, [&](const Expr& x) {
      switch (x->kind) {
        case ExprKind::let:
        case ExprKind::reduce: good = false; return;
        case ExprKind::var: good = good && !inner_.count(as<VarNode>(x)); return;
        case ExprKind::load: good = good && !indices_; return;
        case ExprKind::div:
        case ExprKind::mod:
        case ExprKind::floordiv:
        case ExprKind::floormod: {
          const auto* b = as<BinaryNode>(x);
          if (b->a->dtype.is_float()) return;
          good = good && is_positive(b->b);
          return;
        }
        case ExprKind::call: {
          const auto* c = as<CallNode>(x);
          const Intrinsic* row = find_intrinsic(c->op);
          good = good && row && row->effect == IntrinsicEffect::pure && !is_lazy(c) &&
                 c->op != "address_of";
          return;
        }
        default: return;
      }
    });
    return safe_[e.get()] = good;
  }

  void use(const Expr& e) {
    if (!e) return;
    if (candidate(e)) {
      Class& c = of(e);
      if (c.count >= 2 && c.uses++ > 0) return;  // the rest is counted where it is computed
    }
    for (const Expr* operand : certain_operands(e)) use(*operand);
  }

  Class* find(const Expr& e) {
    auto found = classes_.find(hash(e));
    if (found == classes_.end()) return nullptr;
    for (Class& c : found->second) {
      if (same_expr(c.expr, e)) return &c;
    }
    return nullptr;
  }
  Class& of(const Expr& e) {
    if (Class* c = find(e)) return *c;
    Class fresh;
    fresh.expr = e;
    fresh.order = order_++;
    for_each_expr(e, [&](const Expr&) { ++fresh.size; });
    kept_.push_back(e);
    auto& list = classes_[hash(e)];
    list.push_back(std::move(fresh));
    return list.back();
  }
  std::uint64_t hash(const Expr& e) {
    auto [it, fresh] = hashes_.try_emplace(e.get(), 0);
    if (fresh) it->second = structural_hash(e);
    return it->second;
  }

  bool indices_;
  const VarSet& inner_;
  int order_ = 0;
  std::unordered_map<std::uint64_t, std::vector<Class>> classes_;
  std::unordered_map<const ExprNode*, std::uint64_t> hashes_;
  mutable std::unordered_map<const ExprNode*, bool> safe_;
  Exprs kept_;
};

/// Puts variables for chosen expressions; parents before children.
class Substitute final : public Rewriter {
 public:
  explicit Substitute(Classes& classes) : classes_(classes) {}
  using Rewriter::rewrite;
  Expr rewrite(const Expr& e) override {
    if (!e) return e;
    if (Expr v = e.get() == skip_ ? nullptr : classes_.variable(e)) return v;
    return Rewriter::rewrite(e);
  }
  /// The value of a Let: e itself stays, what is inside is replaced.
  Expr inside(const Expr& e) {
    skip_ = e.get();
    Expr out = Rewriter::rewrite(e);
    skip_ = nullptr;
    return out;
  }

 private:
  Classes& classes_;
  const ExprNode* skip_ = nullptr;
};

Stmt with_lets(Classes& classes, Substitute& substitute, Stmt body) {
  // A Let's own value may bring smaller chosen expressions into use: until nothing is added.
  std::vector<std::pair<Var, Expr>> lets;
  std::unordered_map<const VarNode*, Expr> values;
  for (std::size_t known = static_cast<std::size_t>(-1); known != values.size();) {
    known = values.size();
    lets = classes.lets();
    for (const auto& [var, value] : lets) {
      if (!values.count(var.get())) values[var.get()] = substitute.inside(value);
    }
  }
  for (std::size_t i = lets.size(); i-- > 0;)
    body = let_stmt(lets[i].first, values.at(lets[i].first.get()), std::move(body));
  return body;
}

/// Every expression of s that is evaluated by statements of s, and the variables bound in s.
void roots_of(const Stmt& s, Exprs& roots, VarSet& bound) {
  for_each_stmt(s, [&](const Stmt& t) {
    switch (t->kind) {
      case StmtKind::store: {
        const auto* x = as<StoreNode>(t);
        roots.push_back(x->value);
        for (const Expr& i : x->indices) roots.push_back(i);
        return;
      }
      case StmtKind::for_:
        bound.insert(as<ForNode>(t)->var.get());
        roots.push_back(as<ForNode>(t)->min);
        roots.push_back(as<ForNode>(t)->extent);
        return;
      case StmtKind::if_: roots.push_back(as<IfNode>(t)->condition); return;
      case StmtKind::let:
        bound.insert(as<LetStmtNode>(t)->var.get());
        roots.push_back(as<LetStmtNode>(t)->value);
        return;
      case StmtKind::evaluate: roots.push_back(as<EvaluateNode>(t)->value); return;
      default: return;
    }
  });
  for (const Expr& root : Exprs(roots)) {
    for_each_expr(root, [&](const Expr& e) {
      if (const auto* l = as<LetNode>(e)) bound.insert(l->var.get());
    });
  }
}

class Merge final : public Rewriter {
 public:
  using Rewriter::rewrite;

  /// s with its common index arithmetic computed before it, then the same inside.
  Stmt region(const Stmt& s) {
    if (!s) return s;
    Exprs roots;
    VarSet bound;
    roots_of(s, roots, bound);
    Classes classes(true, bound);
    for (const Expr& root : roots) classes.count(root);
    for_each_stmt(s, [&](const Stmt& t) {
      if (const auto* loop = as<ForNode>(t)) {
        Exprs inside;
        VarSet own;
        roots_of(loop->body, inside, own);
        for (const Expr& root : inside) classes.count_repeated(root);
      }
    });
    classes.choose(roots);
    if (!classes.any()) return rewrite(s);
    Substitute substitute(classes);
    Stmt body = substitute.rewrite(s);
    return with_lets(classes, substitute, rewrite(body));
  }

 protected:
  Stmt rewrite_for(const Stmt& s) override {
    const auto* t = as<ForNode>(s);
    Stmt body = region(t->body);
    return body == t->body
               ? s
               : make_for(t->var, t->min, t->extent, body, t->for_kind, t->axis, t->annotations);
  }

  Stmt rewrite_store(const Stmt& s) override {
    const auto* t = as<StoreNode>(s);
    if (!t->value->dtype.is_scalar()) return s;
    VarSet none;
    Classes classes(false, none);
    classes.count(t->value);
    classes.choose({t->value});
    if (!classes.any()) return s;
    Substitute substitute(classes);
    const CallNode* atomic = as_atomic(t);
    Expr value = atomic ? call_typed(atomic->dtype, atomic->op,
                                     {atomic->args[0], substitute.rewrite(atomic->args[1])})
                        : substitute.rewrite(t->value);
    return with_lets(classes, substitute, store(t->buffer, value, t->indices));
  }
};

/// The whole body of a function without launches, else the bodies of its launches.
class Kernels final : public Rewriter {
 protected:
  Stmt rewrite_default(const Stmt& s) override {
    const auto* launch = as<LaunchNode>(s);
    if (!launch) return Rewriter::rewrite_default(s);
    Stmt body = Merge().region(launch->body);
    return body == launch->body ? s : make_ref<const LaunchNode>(launch->name, launch->axes, body);
  }
};

}  // namespace

PrimFunc common_subexpression_elimination(const PrimFunc& f) {
  bool launches = false;
  for_each_stmt(f->body, [&](const Stmt& s) { launches |= s->kind == StmtKind::launch; });
  Stmt body = launches ? Kernels().rewrite(f->body) : Merge().region(f->body);
  if (body == f->body) return f;
  auto out = edit(f);
  out->body = body;
  return out;
}

}  // namespace weft::pass
