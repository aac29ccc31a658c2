// SPDX-License-Identifier: Apache-2.0
#include "weft/stages/visits.h"

#include <algorithm>
#include <optional>

#include "weft/arith/analyzer.h"
#include "weft/arith/iter_map.h"
#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/ir/build.h"
#include "weft/ir/text.h"
#include "weft/ir/visit.h"
#include "weft/stages/conditions.h"

namespace weft::stages {

using namespace ir;

namespace {

[[noreturn]] void refuse(std::string_view slug, std::string message, std::string help) {
  throw Error(ErrorKind::lower, cat("stages.", slug), std::move(message)).help(std::move(help));
}

/// A loop with constant range.
struct Loop {
  const ForNode* node;
  std::int64_t min, extent;
};

class Solver {
 public:
  Solver(const Leaf& leaf, const std::vector<BoundAxis>& axes)
      : leaf_(leaf), block_(*leaf.block), axes_(axes) {}

  Visits run() {
    for (const ForNode* f : leaf_.loops) {
      const std::string what = cat("loop ", f->var->name, " around block ", block_.name);
      Loop l{f, constant_of(f->min, cat("the start of ", what)),
             constant_of(f->extent, cat("the extent of ", what))};
      if (l.extent <= 0) out_.never = true;
      check_axis(l);
      vars_.push_back(f->var);
      loops_.push_back(l);
    }
    if (out_.never) return out_;
    for (const IterVar& i : block_.iters) analyzer_.bind(i.var, i.dom);
    arith::Analyzer loops;
    for (const Loop& l : loops_)
      loops.bind(l.node->var,
                 {make_int(l.min, l.node->var->dtype), make_int(l.extent, l.node->var->dtype)});
    Exprs conditions, open;
    for (const Expr& c : leaf_.conditions) {
      for (Expr& part : conjuncts(c)) open.push_back(std::move(part));
    }
    for (const Expr& c : open) {
      Expr simple = loops.simplify(c);
      if (const auto* known = as<IntImmNode>(simple)) {
        if (known->value) continue;
        out_.never = true;
        return out_;
      }
      conditions.push_back(std::move(simple));
    }
    repeats(conditions);
    if (linear()) {
      digits_to_conditions();
      for (const Expr& c : conditions) add(substitute(c, counts_), c);
    } else if (!bijective(conditions)) {
      refuse("binding",
             cat("block ", block_.name, " binds its iterators to ", printed_values(),
                 ", from which the points it visits cannot be told"),
             "let each loop appear in one binding, as a sum of loops times constants that do not "
             "overlap");
    }
    return out_;
  }

 private:
  std::string printed_values() const {
    std::string out;
    for (const Expr& v : leaf_.iter_values) out += cat(out.empty() ? "" : ", ", print(v));
    return out;
  }

  void check_axis(const Loop& l) {
    if (l.node->for_kind != ForKind::bound) return;
    bound_ = true;
    const std::string& axis = l.node->axis;
    const std::string what = cat("loop ", l.node->var->name, " around block ", block_.name);
    auto known = std::find_if(axes_.begin(), axes_.end(),
                              [&](const BoundAxis& a) { return a.name == axis; });
    if (known == axes_.end()) {
      std::vector<std::string> names;
      for (const BoundAxis& a : axes_) names.push_back(a.name);
      refuse("axis",
             cat(what, " is bound to \"", axis, "\", which the machine does not give to blocks"),
             names.empty() ? "leave out bind; the target divides blocks itself"
                           : cat("legal are ", join(names)));
    }
    if (l.extent > known->limit)
      refuse("axis",
             cat(what, " has extent ", l.extent, " on \"", axis, "\", which has ", known->limit),
             "split the loop, or take a larger machine");
    for (const Loop& other : loops_) {
      if (other.node->for_kind == ForKind::bound && other.node->axis == axis)
        refuse("axis",
               cat(what, " is bound to \"", axis, "\", as loop ", other.node->var->name,
                   " around it already is"),
               "bind one of the two");
    }
  }

  /// Loops that no binding uses run the block again with the same iterators.
  void repeats(const Exprs& conditions) {
    bool reads_own = false, init = block_.init != nullptr;
    const BufferNode* written = nullptr;
    for_each_stmt(block_.body, [&](const Stmt& s) {
      if (const auto* t = as<StoreNode>(s)) written = t->buffer.get();
    });
    for_each_expr(block_.body, [&](const Expr& e) {
      if (const auto* l = as<LoadNode>(e)) reads_own |= l->buffer.get() == written;
    });
    bool inside_reduction = false;
    for (std::size_t k = 0; k < loops_.size(); ++k) {
      const VarNode* var = vars_[k].get();
      bool used = false, reduces = false;
      for (std::size_t i = 0; i < leaf_.iter_values.size(); ++i) {
        if (!uses_var(leaf_.iter_values[i], var)) continue;
        used = true;
        reduces |= block_.iters[i].kind == IterKind::reduce;
      }
      inside_reduction |= reduces;
      if (used || loops_[k].extent == 1) continue;
      for (const Expr& c : conditions) {
        if (uses_var(c, var))
          refuse("repeat",
                 cat("block ", block_.name, " runs under the condition ", print(c), " on loop ",
                     vars_[k]->name, ", which no iterator is bound to"),
                 "let the condition use loops that iterators are bound to");
      }
      // With an init, a round outside the reduction's loops begins anew.
      if (reads_own && (!init || inside_reduction))
        refuse("repeat",
               cat("loop ", vars_[k]->name, " repeats block ", block_.name, " ", loops_[k].extent,
                   " times, which updates ", written->name, " each time"),
               "bind a reduction iterator to the loop");
    }
  }

  /// Each binding as a sum of loops times constants, every loop in one binding only.
  bool linear() {
    std::vector<int> uses(vars_.size(), 0);
    std::vector<Binding> out;
    for (std::size_t i = 0; i < leaf_.iter_values.size(); ++i) {
      auto l = arith::detect_linear(leaf_.iter_values[i], vars_);
      const auto* base = l ? as<IntImmNode>(arith::simplify(l->base)) : nullptr;
      if (!base) return false;
      std::int64_t start = base->value;
      std::vector<Digit> digits;
      for (std::size_t k = 0; k < vars_.size(); ++k) {
        const std::int64_t c = l->coeffs[k];
        if (c == 0) continue;
        start += c * loops_[k].min;
        if (loops_[k].extent == 1) continue;
        if (++uses[k] > 1) return false;
        if (c < 0) {
          if (block_.iters[i].kind == IterKind::reduce && block_.init) return false;
          start += c * (loops_[k].extent - 1);
        }
        digits.push_back({loops_[k].node, loops_[k].min, loops_[k].extent, std::abs(c), c < 0});
      }
      std::stable_sort(digits.begin(), digits.end(),
                       [](const Digit& a, const Digit& b) { return a.scale > b.scale; });
      std::int64_t span = 1;
      for (std::size_t d = digits.size(); d-- > 0;) {
        if (digits[d].scale < span) return false;
        span += digits[d].scale * (digits[d].extent - 1);
      }
      out.push_back({start, std::move(digits)});
    }
    out_.bindings = std::move(out);
    return true;
  }

  /// What must hold of the iterators so that some iteration visits them; `shown` is what an error
  /// names.
  void add(const Expr& condition, const Expr& shown) {
    for (const VarNode* v : used_vars(condition)) {
      if (std::none_of(block_.iters.begin(), block_.iters.end(),
                       [&](const IterVar& i) { return i.var.get() == v; }))
        refuse("condition",
               cat("block ", block_.name, " runs under the condition ", print(shown),
                   ", which depends on ", v->name, " and not on its iterators alone"),
               "let the condition depend on the block's iterators");
    }
    Expr simple = analyzer_.simplify(condition);
    if (const auto* known = as<IntImmNode>(simple)) {
      out_.never |= known->value == 0;
      return;
    }
    if (!analyzer_.prove(simple)) out_.conditions.push_back(std::move(simple));
  }

  void digits_to_conditions() {
    for (std::size_t i = 0; i < out_.bindings.size(); ++i) {
      const auto& [start, digits] = out_.bindings[i];
      const Expr v = block_.iters[i].var;
      Expr rest = start == 0 ? v : v - start;
      for (const Digit& digit : digits) {
        Expr count = digit.scale == 1 ? rest : floordiv(rest, make_int(digit.scale, rest->dtype));
        count = analyzer_.simplify(count);
        rest = digit.scale == 1 ? make_int(0, rest->dtype)
                                : floormod(rest, make_int(digit.scale, rest->dtype));
        add(ge(count, make_int(0, count->dtype)), v);
        add(lt(count, make_int(digit.extent, count->dtype)), v);
        Expr at = digit.reversed   ? make_int(digit.min + digit.extent - 1, count->dtype) - count
                  : digit.min == 0 ? count
                                   : count + digit.min;
        counts_[digit.loop->var.get()] = cast(digit.loop->var->dtype, at);
      }
      add(eq(rest, make_int(0, rest->dtype)), v);
    }
    for (std::size_t k = 0; k < loops_.size(); ++k) {
      if (loops_[k].extent == 1) counts_[vars_[k].get()] = make_int(loops_[k].min, vars_[k]->dtype);
    }
  }

  /// Bindings with quotients and remainders, as of fused loops: every point of the domain once.
  bool bijective(const Exprs& conditions) {
    if (bound_)
      refuse("axis",
             cat("block ", block_.name, " has a bound loop around it, but binds its iterators to ",
                 printed_values(), ", which is no sum of loops"),
             "let each iterator be a sum of loops times constants");
    std::vector<IterVar> loops;
    VarMap shift;
    Exprs values;
    for (const Loop& l : loops_) {
      if (l.extent == 1) {
        shift[l.node->var.get()] = make_int(l.min, l.node->var->dtype);
        continue;
      }
      bool used = std::any_of(leaf_.iter_values.begin(), leaf_.iter_values.end(),
                              [&](const Expr& v) { return uses_var(v, l.node->var.get()); });
      if (!used) continue;  // repeats() has judged it
      if (l.min != 0) shift[l.node->var.get()] = l.node->var + l.min;
      loops.push_back(
          {l.node->var, {make_int(0, l.node->var->dtype), make_int(l.extent, l.node->var->dtype)}});
    }
    for (const Expr& v : leaf_.iter_values) values.push_back(substitute(v, shift));
    Expr all = make_bool(true);
    for (const Expr& c : conditions) all = logical_and(all, substitute(c, shift));
    arith::Analyzer plain;
    auto map = arith::detect_iter_map(values, loops, all, arith::MapLevel::bijective, plain);
    if (!map.ok()) return false;
    Exprs outputs;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const arith::IterSum& sum = map.indices[i];
      Expr extent = sum.splits.empty() ? make_int(1) : sum.splits[0].scale * sum.splits[0].extent;
      if (!plain.prove_equal(sum.base, make_int(0, sum.base->dtype)) ||
          !plain.prove_equal(extent, block_.iters[i].dom.extent))
        return false;
      outputs.push_back(block_.iters[i].var);
    }
    // The conditions must hold at every point: else the map has them wrong.
    VarMap inverse;
    for (auto& [var, e] : arith::inverse_iter_map(map.indices, outputs)) inverse[var.get()] = e;
    return analyzer_.prove(substitute(all, inverse));
  }

  const Leaf& leaf_;
  const BlockNode& block_;
  const std::vector<BoundAxis>& axes_;
  bool bound_ = false;
  std::vector<Loop> loops_;
  std::vector<Var> vars_;
  arith::Analyzer analyzer_;
  VarMap counts_;  // loops as expressions of the iterators
  Visits out_;
};

}  // namespace

Visits visits_of(const Leaf& leaf, const std::vector<BoundAxis>& axes) {
  return Solver(leaf, axes).run();
}

}  // namespace weft::stages
