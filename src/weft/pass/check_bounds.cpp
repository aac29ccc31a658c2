// SPDX-License-Identifier: Apache-2.0
#include "weft/pass/check_bounds.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "weft/arith/analyzer.h"
#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/ir/build.h"
#include "weft/ir/share.h"
#include "weft/ir/text.h"
#include "weft/ir/visit.h"

namespace weft::pass {

using namespace ir;

namespace {

constexpr std::int64_t kMostPlaces = 10000;  // of an expression that is simplified

class CheckBounds final : public Visitor {
 public:
  explicit CheckBounds(const PrimFunc& f) : f_(f) {}

  using Visitor::visit;
  void visit(const Expr& e) override {
    if (perhaps_) return;  // nothing inside is certain to run
    if (const auto* s = as<SelectNode>(e)) return visit(s->condition);
    if (const auto* l = as<LetNode>(e)) {
      visit(l->value);
      know(l->var, l->value);
      return visit(l->body);
    }
    if (e->kind == ExprKind::and_ || e->kind == ExprKind::or_) return visit(as<BinaryNode>(e)->a);
    Visitor::visit(e);
  }

  void visit(const Stmt& s) override {
    if (perhaps_) return;
    switch (s->kind) {
      case StmtKind::let: {
        const auto* l = as<LetStmtNode>(s);
        visit(l->value);
        know(l->var, l->value);
        return visit(l->body);
      }
      case StmtKind::while_: return visit(as<WhileNode>(s)->condition);
      case StmtKind::assert_:  // what follows runs where it holds
        visit(as<AssertNode>(s)->condition);
        perhaps_ = true;
        return;
      default: Visitor::visit(s);
    }
  }

 protected:
  void visit_if(const IfNode* s) override { visit(s->condition); }

  void visit_for(const ForNode* s) override {
    visit(s->min);
    visit(s->extent);
    const Expr min = at(s->min), extent = at(s->extent);
    if (!analyzer_.prove(ge(extent, make_int(1, extent->dtype)))) return;
    std::int64_t first = 0, count = 0;
    if (is_const_int(min, &first) && is_const_int(extent, &count))
      ranges_.push_back({s->var, first, count});
    analyzer_.bind(s->var, {min, extent});
    visit(s->body);
    if (!ranges_.empty() && ranges_.back().var == s->var) ranges_.pop_back();
  }

  void visit_launch(const LaunchNode* s) override {
    for (const LaunchAxis& axis : s->axes) {
      std::int64_t count = 0;
      if (!is_const_int(axis.extent, &count) || count < 1) return;
      ranges_.push_back({axis.var, 0, count});
      analyzer_.bind(axis.var, {make_int(0, axis.var->dtype), make_int(count, axis.var->dtype)});
    }
    visit(s->body);
  }

  void visit_block_realize(const BlockRealizeNode* s) override {
    for (const Expr& v : s->iter_values) visit(v);
    visit(s->predicate);
    if (!is_const_int_value(s->predicate, 1) || !s->block->execution.axis.empty()) return;
    for (std::size_t i = 0; i < s->iter_values.size(); ++i) {
      const Var& var = s->block->iters[i].var;
      values_[var.get()] = cast(var->dtype, at(s->iter_values[i]));
    }
    // Regions are declarations; a match's own buffer is looked at where it is used.
    if (s->block->init) visit(s->block->init);
    visit(s->block->body);
  }

  void visit_call(const CallNode* e) override {
    if (e->op == "if_then_else") return visit(e->args[0]);
    if (e->op == "address_of" || e->op == "masked_load") return;  // an address is no access
    Visitor::visit_call(e);
  }

  void visit_load(const LoadNode* e) override {
    Visitor::visit_load(e);
    check(e->buffer, e->indices, e);
  }

  void visit_store(const StoreNode* s) override {
    Visitor::visit_store(s);
    check(s->buffer, s->indices, s);
  }

 private:
  Expr at(const Expr& e) const {
    return analyzer_.simplify(values_.empty() ? e : substitute(e, values_));
  }

  /// What an index may be made of. Values of values may repeat until they are too large to look at;
  /// such a variable stays one of which nothing is known.
  void know(const Var& var, const Expr& value) {
    if (!value->dtype.is_integral() || !value->dtype.is_scalar()) return;
    const Expr whole = values_.empty() ? value : substitute(value, values_);
    if (tree_size(whole) <= kMostPlaces) values_[var.get()] = analyzer_.simplify(whole);
  }

  /// The least and the greatest value that the index takes; loops with constant ranges take all of
  /// theirs, so that a linear index takes both ends.
  struct Reach {
    arith::Bounds bounds;
    bool exact = false;
  };
  Reach reach(const Expr& index) const {
    std::vector<Var> vars;
    std::vector<const Taken*> taken;
    for (const Taken& t : ranges_) {
      if (!uses_var(index, t.var.get())) continue;
      vars.push_back(t.var);
      taken.push_back(&t);
    }
    const auto linear = arith::detect_linear(index, vars);
    std::int64_t base = 0;
    if (!linear || !is_const_int(linear->base, &base)) return {analyzer_.bounds(index)};
    __extension__ using Wide = __int128;
    Wide low = base, high = base;
    for (std::size_t i = 0; i < vars.size(); ++i) {
      const Wide c = linear->coeffs[i], a = c * taken[i]->first;
      const Wide b = a + c * (taken[i]->count - 1);
      low += std::min(a, b);
      high += std::max(a, b);
    }
    using Limits = std::numeric_limits<std::int64_t>;
    if (low <= Limits::min() || high >= Limits::max()) return {};
    return {{static_cast<std::int64_t>(low), static_cast<std::int64_t>(high)}, true};
  }

  void check(const Buffer& b, const Exprs& indices, const void* culprit) const {
    for (std::size_t i = 0; i < indices.size() && i < b->ndim(); ++i) {
      if (!indices[i]->dtype.is_scalar()) continue;
      const Expr index = at(indices[i]), extent = at(b->shape[i]);
      const Reach got = reach(index);
      std::int64_t n = 0;
      const bool fixed = is_const_int(extent, &n);
      const std::int64_t low = got.exact ? got.bounds.min : got.bounds.max;
      const std::int64_t high = got.exact ? got.bounds.max : got.bounds.min;
      // Views of the array library begin inside a storage and go back from there; these have
      // extents that are known at run time only.
      const bool below = fixed && low < 0;
      const bool beyond = fixed ? high >= n : analyzer_.prove(ge(index, extent));
      if (!below && !beyond) continue;
      std::string range = got.bounds.is_point() ? cat("is ", got.bounds.min)
                          : got.exact ? cat("goes from ", got.bounds.min, " to ", got.bounds.max)
                                      : cat("is ", print(index));
      PrintOptions options;
      options.culprit = culprit;
      options.header = false;
      options.context = 3;
      std::string text = print(f_, options);
      if (!text.empty()) text.pop_back();
      Error error(ErrorKind::verify, "verify.bounds",
                  cat("index ", i, " of \"", b->name, "\" ", range, ", ",
                      below ? "below 0" : "beyond the end", ": dimension ", i, " of \"", b->name,
                      "\" has extent ", print(extent)));
      error.at(cat("in \"", f_->name, "\""), text);
      throw error.help(cat("indices of this dimension are 0 to ",
                           fixed ? std::to_string(n - 1) : cat(print(extent), " - 1"),
                           "; guard the access, or make the buffer larger"));
    }
  }

  /// A variable that takes `count` values from `first` on.
  struct Taken {
    Var var;
    std::int64_t first = 0, count = 0;
  };

  const PrimFunc& f_;
  arith::Analyzer analyzer_;
  VarMap values_;
  std::vector<Taken> ranges_;
  bool perhaps_ = false;
};

}  // namespace

void check_bounds(const PrimFunc& f) {
  if (f->body) CheckBounds(f).visit(f->body);
}

}  // namespace weft::pass
