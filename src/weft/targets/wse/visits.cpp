// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/wse/visits.h"

#include <algorithm>
#include <optional>

#include "weft/arith/analyzer.h"
#include "weft/arith/iter_map.h"
#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/ir/build.h"
#include "weft/ir/text.h"
#include "weft/ir/visit.h"

namespace weft::wse {

using namespace ir;

namespace {

[[noreturn]] void refuse(std::string_view slug, std::string message, std::string help = {}) {
  Error e(ErrorKind::lower, cat("wse.lower.", slug), std::move(message));
  if (!help.empty()) e.help(std::move(help));
  throw e;
}

std::string_view statement_name(StmtKind kind) {
  switch (kind) {
    case StmtKind::store: return "a store";
    case StmtKind::if_: return "an if with an else";
    case StmtKind::while_: return "a while loop";
    case StmtKind::let: return "a let";
    case StmtKind::assert_: return "an assertion";
    case StmtKind::evaluate: return "an evaluated call";
    case StmtKind::allocate: return "an allocation";
    case StmtKind::launch: return "a kernel launch";
    case StmtKind::async: return "an asynchronous statement";
    case StmtKind::wait: return "a wait";
    case StmtKind::collective: return "a collective";
    case StmtKind::seq:
    case StmtKind::for_:
    case StmtKind::block_realize: break;
  }
  return "a statement";
}

class Collector {
 public:
  explicit Collector(std::vector<Buffer>* temporaries) : temporaries_(temporaries) {}

  void walk(const Stmt& s) {
    switch (s->kind) {
      case StmtKind::seq:
        for (const Stmt& c : as<SeqNode>(s)->stmts) walk(c);
        return;
      case StmtKind::for_: return loop(as<ForNode>(s));
      case StmtKind::if_:
        if (const auto* i = as<IfNode>(s); !i->else_case) {
          conditions_.push_back(substitute(i->condition, outer_));
          walk(i->then_case);
          conditions_.pop_back();
          return;
        }
        break;
      case StmtKind::block_realize: return realize(as<BlockRealizeNode>(s));
      default: break;
    }
    refuse("statement", cat(statement_name(s->kind), " outside blocks"),
           "legal outside blocks are loops, sequences and if without else");
  }

  std::vector<Leaf> leaves;

 private:
  void loop(const ForNode* f) {
    const std::size_t before = leaves.size();
    loops_.push_back(f);
    walk(f->body);
    loops_.pop_back();
    if (leaves.size() - before > 1) {
      refuse("fused",
             cat("loop ", f->var->name, " holds ", leaves.size() - before, " blocks (",
                 leaves[before].block->name, ", ", leaves[before + 1].block->name,
                 " ...); each block needs loops of its own"),
             "leave out compute_at; the target places blocks itself");
    }
  }

  void realize(const BlockRealizeNode* r) {
    const Block& block = r->block;
    if (!block->execution.axis.empty())
      refuse("execution", cat("block ", block->name, " is given to a part of axis ",
                              block->execution.axis, "; a wafer's PEs all run every block"));
    if (!block->match_buffers.empty())
      refuse(
          "match_buffer",
          cat("block ", block->name, " matches buffer ", block->match_buffers.front().buffer->name,
              " to a region; blocks reach their buffers themselves"),
          "index the source buffer directly");
    for (const Buffer& b : block->alloc_buffers) temporaries_->push_back(b);
    const std::size_t mark = conditions_.size();
    conditions_.push_back(substitute(r->predicate, outer_));
    Exprs values;
    for (const Expr& v : r->iter_values) values.push_back(substitute(v, outer_));
    bool leaf = true;
    for_each_stmt(block->body,
                  [&](const Stmt& c) { leaf = leaf && c->kind != StmtKind::block_realize; });
    if (leaf) {
      leaves.push_back({block, loops_, std::move(values), conditions_});
    } else {
      if (block->init)
        refuse("init", cat("block ", block->name, " holds blocks and an init"),
               "decompose the reduction first");
      VarMap saved = outer_;
      for (std::size_t k = 0; k < values.size(); ++k) outer_[block->iters[k].var.get()] = values[k];
      walk(block->body);
      outer_ = std::move(saved);
    }
    conditions_.resize(mark);
  }

  std::vector<Buffer>* temporaries_;
  std::vector<const ForNode*> loops_;
  Exprs conditions_;
  VarMap outer_;
};

std::int64_t constant(const Expr& e, const std::string& what) {
  if (const auto* i = as<IntImmNode>(arith::simplify(e))) return i->value;
  refuse("symbolic", cat(what, " is not a constant; the wafer needs constant extents"));
}

/// A loop with constant range.
struct Loop {
  const ForNode* node;
  std::int64_t min, extent;
};

/// One term of an iterator's binding: `scale` times the loop's count from 0.
struct Digit {
  std::size_t loop;
  std::int64_t scale;
  bool reversed = false;  // the loop runs against the iterator
};

class Solver {
 public:
  Solver(const Leaf& leaf, std::int32_t width, std::int32_t height)
      : leaf_(leaf), block_(*leaf.block), width_(width), height_(height) {}

  Visits run() {
    for (const ForNode* f : leaf_.loops) {
      const std::string what = cat("loop ", f->var->name, " around block ", block_.name);
      Loop l{f, constant(f->min, cat("the start of ", what)),
             constant(f->extent, cat("the extent of ", what))};
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
    for (const Expr& c : leaf_.conditions) conjuncts(c, &open);
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
    if (axis != "pe.x" && axis != "pe.y")
      refuse("axis", cat(what, " is bound to \"", axis, "\", which a wafer does not have"),
             "legal are pe.x and pe.y");
    const std::int64_t limit = axis == "pe.x" ? width_ : height_;
    if (l.extent > limit)
      refuse("axis", cat(what, " has extent ", l.extent, " on \"", axis, "\", which has ", limit),
             "split the loop, or take a larger rectangle");
    for (const Loop& other : loops_) {
      if (other.node->for_kind == ForKind::bound && other.node->axis == axis)
        refuse("axis", cat(what, " is bound to \"", axis, "\", as loop ", other.node->var->name,
                           " around it already is"));
    }
  }

  static void conjuncts(const Expr& e, Exprs* out) {
    if (e->kind == ExprKind::and_) {
      conjuncts(as<BinaryNode>(e)->a, out);
      conjuncts(as<BinaryNode>(e)->b, out);
    } else if (const auto* c = as<CallNode>(e); c && c->op == "likely") {
      conjuncts(c->args[0], out);
    } else {
      out->push_back(e);
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
          refuse("repeat", cat("block ", block_.name, " runs under the condition ", print(c),
                               " on loop ", vars_[k]->name, ", which no iterator is bound to"));
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
        digits.push_back({k, std::abs(c), c < 0});
      }
      std::stable_sort(digits.begin(), digits.end(),
                       [](const Digit& a, const Digit& b) { return a.scale > b.scale; });
      std::int64_t span = 1;
      for (std::size_t d = digits.size(); d-- > 0;) {
        if (digits[d].scale < span) return false;
        span += digits[d].scale * (loops_[digits[d].loop].extent - 1);
      }
      starts_.push_back(start);
      digits_.push_back(std::move(digits));
    }
    return true;
  }

  /// What must hold of the iterators so that some iteration visits them; `shown` is what an error
  /// names.
  void add(const Expr& condition, const Expr& shown) {
    for (const VarNode* v : used_vars(condition)) {
      if (std::none_of(block_.iters.begin(), block_.iters.end(),
                       [&](const IterVar& i) { return i.var.get() == v; }))
        refuse("condition", cat("block ", block_.name, " runs under the condition ", print(shown),
                                ", which depends on ", v->name, " and not on its iterators alone"));
    }
    Expr simple = analyzer_.simplify(condition);
    if (const auto* known = as<IntImmNode>(simple)) {
      out_.never |= known->value == 0;
      return;
    }
    if (!analyzer_.prove(simple)) out_.conditions.push_back(std::move(simple));
  }

  void digits_to_conditions() {
    if (bound_) out_.parts.resize(block_.iters.size());
    for (std::size_t i = 0; i < digits_.size(); ++i) {
      const Expr v = block_.iters[i].var;
      Expr rest = starts_[i] == 0 ? v : v - starts_[i];
      for (std::size_t d = 0; d < digits_[i].size(); ++d) {
        const Digit& digit = digits_[i][d];
        const Loop& l = loops_[digit.loop];
        Expr count = digit.scale == 1 ? rest : floordiv(rest, make_int(digit.scale, rest->dtype));
        count = analyzer_.simplify(count);
        rest = digit.scale == 1 ? make_int(0, rest->dtype)
                                : floormod(rest, make_int(digit.scale, rest->dtype));
        add(ge(count, make_int(0, count->dtype)), v);
        add(lt(count, make_int(l.extent, count->dtype)), v);
        Expr at = digit.reversed ? make_int(l.min + l.extent - 1, count->dtype) - count
                  : l.min == 0   ? count
                                 : count + l.min;
        counts_[vars_[digit.loop].get()] = cast(vars_[digit.loop]->dtype, at);
      }
      add(eq(rest, make_int(0, rest->dtype)), v);
      if (bound_) part(i);
    }
    for (std::size_t k = 0; k < loops_.size(); ++k) {
      if (loops_[k].extent == 1) counts_[vars_[k].get()] = make_int(loops_[k].min, vars_[k]->dtype);
    }
  }

  static Spread axis_of(const Loop& l) {
    if (l.node->for_kind != ForKind::bound) return Spread::none;
    return l.node->axis == "pe.x" ? Spread::x : Spread::y;
  }

  /// The PEs that bound loops give iterator i to.
  void part(std::size_t i) {
    const std::vector<Digit>& digits = digits_[i];
    BoundPart& out = out_.parts[i];
    std::size_t bound = 0;
    for (const Digit& d : digits) bound += axis_of(loops_[d.loop]) != Spread::none;
    if (bound == 0) return;
    auto wrong = [&](const std::string& why) {
      refuse("axis",
             cat("iterator ", block_.iters[i].var->name, " of block ", block_.name, " is bound to ",
                 print(leaf_.iter_values[i]), ", where ", why),
             "legal are i, i * n + j with loop i on pe.x or pe.y, and (y * width + x) * n + j");
    };
    if (starts_[i] != 0) wrong("the first PE does not have element 0");
    for (std::size_t d = 0; d < bound; ++d) {
      if (axis_of(loops_[digits[d].loop]) == Spread::none || digits[d].reversed)
        wrong("a loop over PEs is not the outermost part, in rising order");
    }
    out.spread = axis_of(loops_[digits[0].loop]);
    out.chunk = digits[0].scale;
    if (bound == 1) return;
    const Loop& inner = loops_[digits[1].loop];
    if (out.spread != Spread::y || inner.extent != width_ ||
        digits[0].scale != digits[1].scale * width_)
      wrong("loops on both axes do not go over all PEs row by row");
    out = {Spread::xy, digits[1].scale};
  }

  /// Bindings with quotients and remainders, as of fused loops: every point of the domain once.
  bool bijective(const Exprs& conditions) {
    if (bound_)
      refuse("axis", cat("block ", block_.name,
                         " has a loop over PEs around it, but binds its "
                         "iterators to ",
                         printed_values(), ", which is no sum of loops"));
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
  std::int32_t width_, height_;
  bool bound_ = false;
  std::vector<Loop> loops_;
  std::vector<Var> vars_;
  arith::Analyzer analyzer_;
  std::vector<std::vector<Digit>> digits_;
  std::vector<std::int64_t> starts_;
  VarMap counts_;  // loops as expressions of the iterators
  Visits out_;
};

}  // namespace

std::vector<Leaf> collect_leaves(const Stmt& body, std::vector<Buffer>* temporaries) {
  Collector c(temporaries);
  c.walk(body);
  return std::move(c.leaves);
}

Visits visits_of(const Leaf& leaf, std::int32_t width, std::int32_t height) {
  return Solver(leaf, width, height).run();
}

}  // namespace weft::wse
