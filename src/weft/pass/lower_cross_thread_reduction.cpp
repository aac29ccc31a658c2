// SPDX-License-Identifier: Apache-2.0
#include "weft/pass/lower_cross_thread_reduction.h"

#include <algorithm>

#include "weft/arith/analyzer.h"
#include "weft/base/error.h"
#include "weft/ir/atomic.h"
#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/ir/reduction_pattern.h"
#include "weft/ir/text.h"
#include "weft/ir/visit.h"

namespace weft::pass {

using namespace ir;

namespace {

/// Loops around a block, and the condition under which it runs: its own after those between.
struct Chain {
  std::vector<const ForNode*> loops;
  const BlockRealizeNode* realize = nullptr;
  Expr condition = make_bool(true);
};

Chain chain_of(const Stmt& s) {
  Chain out;
  const Stmt* at = &s;
  while (true) {
    if (const auto* loop = as<ForNode>(*at)) {
      out.loops.push_back(loop);
      at = &loop->body;
    } else if (const auto* branch = as<IfNode>(*at); branch && !branch->else_case) {
      out.condition = logical_and(out.condition, branch->condition);
      at = &branch->then_case;
    } else {
      break;
    }
  }
  out.realize = as<BlockRealizeNode>(*at);
  if (out.realize) out.condition = logical_and(out.condition, out.realize->predicate);
  return out;
}

bool feeds(const ForNode* loop, const BlockRealizeNode* realize, IterKind kind) {
  for (std::size_t i = 0; i < realize->iter_values.size(); ++i) {
    if (realize->block->iters[i].kind == kind && uses_var(realize->iter_values[i], loop->var.get()))
      return true;
  }
  return false;
}

class LowerCrossThread final : public Rewriter {
 public:
  LowerCrossThread(const TargetInfo& machine, const PrimFunc& f) : machine_(machine) {
    for (const Param& p : f->params)
      if (p.var) sizes_.insert(p.var.get());
  }

 protected:
  Stmt rewrite_for(const Stmt& s) override {
    const auto* loop = as<ForNode>(s);
    Chain chain = chain_of(s);
    if (chain.realize && feeds(loop, chain.realize, IterKind::reduce) && crosses(chain))
      return lower(chain);
    bool points = loop->for_kind == ForKind::bound;
    if (points) enclosing_.push_back(loop);
    Stmt out = Rewriter::rewrite_for(s);
    if (points) enclosing_.pop_back();
    return out;
  }

 private:
  bool crosses(const Chain& chain) const {
    const BlockNode& block = *chain.realize->block;
    if (!block.init && updates_atomically(block.body)) return false;  // needs no shares to join
    for (const ForNode* l : chain.loops) {
      const AxisInfo* row = l->for_kind == ForKind::bound ? machine_.axis(l->axis) : nullptr;
      if (row && row->reduces && feeds(l, chain.realize, IterKind::reduce)) return true;
    }
    return false;
  }

  [[noreturn]] static void refuse(std::string_view reason, const Block& block, std::string why) {
    throw Error(ErrorKind::lower, cat("lower.cross_thread.", reason),
                cat("block \"", block->name, "\" cannot be reduced across points: ", why));
  }

  Stmt lower(const Chain& chain) {
    const Block& block = chain.realize->block;
    if (!block->init)
      refuse("init", block,
             "its initial value is not stored beside the update; do not decompose it");
    const auto pattern = match_reduction(block.get());
    if (!pattern)
      refuse("reducer", block,
             "its update is not out = combine(out, value) with +, *, min, max, and, or, argmin, "
             "argmax or a combination it vouches for (\"commutative_reducer\")");
    const Reducer& reducer = pattern->reducer;
    const std::size_t parts = pattern->updates.size();

    const ForNode* across = nullptr;
    std::unordered_set<const VarNode*> reducing;
    for (const ForNode* l : chain.loops) {
      if (feeds(l, chain.realize, IterKind::spatial))
        refuse("order", block,
               cat("spatial loop \"", l->var->name, "\" lies inside a reduction loop"));
      if (!feeds(l, chain.realize, IterKind::reduce) && !is_const_int_value(l->extent, 1))
        refuse("repeat", block,
               cat("loop \"", l->var->name, "\" repeats its terms and changes no iterator"));
      reducing.insert(l->var.get());
      if (l->for_kind != ForKind::bound) continue;
      if (across)
        refuse("axes", block,
               cat("two reduction loops are bound: \"", across->var->name, "\" and \"",
                   l->var->name, "\""));
      across = l;
    }
    // A result begins anew where its iterators have their first values.
    VarMap first;
    for (const ForNode* l : chain.loops) first[l->var.get()] = l->min;
    arith::Analyzer analyzer;
    for (std::size_t i = 0; i < block->iters.size(); ++i) {
      const IterVar& iter = block->iters[i];
      const Expr& value = chain.realize->iter_values[i];
      if (iter.kind == IterKind::reduce && uses_any(value, reducing) &&
          !analyzer.prove_equal(cast(dtypes::int64, substitute(value, first)),
                                cast(dtypes::int64, iter.dom.min)))
        refuse("first", block,
               cat("iterator \"", iter.var->name,
                   "\" does not begin with its first value, at which a sum begins anew"));
    }
    std::int64_t n = 0;
    if (!is_const_int(across->extent, &n))
      refuse("extent", block, cat("the extent of \"", across->var->name, "\" is not constant"));

    bool own = false;
    for_each_expr(chain.condition, [&](const Expr& e) {
      const auto* l = as<LoadNode>(e);
      for (const StoreNode* u : pattern->updates) own = own || (l && l->buffer == u->buffer);
    });
    if (own) refuse("reducer", block, "its condition reads what it updates");
    Expr everywhere = make_bool(true),
         inside = make_bool(true);  // the condition, without and with reduction loops
    split_predicate(chain.condition, reducing, everywhere, inside);
    const Expr at_first = arith::simplify(substitute(inside, first));
    if (is_const_int_value(at_first, 0))
      refuse("first", block,
             cat("its condition ", print(inside),
                 " leaves out the first step, which stores the "
                 "initial value"));
    // Where the condition at the first step is known only at run time, so is whether a result
    // begins anew. Sizes alone do not count: where they leave no step, a sum is its initial value.
    bool fresh = true;
    for_each_expr(at_first, [&](const Expr& e) {
      fresh = fresh && e->kind != ExprKind::load &&
              (e->kind != ExprKind::var || sizes_.count(as<VarNode>(e)) > 0);
    });
    Ref<BlockNode> results_block;
    // Results that each point keeps are worth a place inside the loops around them.
    const MemoryInfo* row = machine_.memory(pattern->updates[0]->buffer->scope);
    if (fresh && machine_.axis(across->axis)->joins() && row && row->is_private_to(across->axis))
      results_block = block_of_results(chain, inside, reducing);
    Expr in_block = everywhere;
    if (results_block) everywhere = make_bool(true);
    VarMap map;
    Exprs result_values;
    for (std::size_t i = 0; i < block->iters.size(); ++i) {
      const Expr& value = chain.realize->iter_values[i];
      Expr& to = map[block->iters[i].var.get()];
      to = value;
      if (!results_block || block->iters[i].kind != IterKind::spatial) continue;
      to = results_block->iters[result_values.size()].var;
      result_values.push_back(value);
    }
    // The shares of one row of points; other axes of the group have rows of their own. Neighbours
    // along the group's first axis store side by side.
    Exprs shape, row_index, fast_shape, fast_index;
    for (const ForNode* l : enclosing_) {
      const AxisInfo* axis = machine_.axis(l->axis);
      if (!axis || !axis->barrier || l->axis == across->axis) continue;
      const bool fast = axis < machine_.axis(across->axis);
      (fast ? fast_shape : shape).push_back(l->extent);
      (fast ? fast_index : row_index).push_back(Expr(l->var) - l->min);
    }
    shape.push_back(make_int(n));
    shape.insert(shape.end(), fast_shape.begin(), fast_shape.end());
    std::vector<Buffer> share, tree, trees;
    for (const StoreNode* u : pattern->updates) {
      const Buffer& b = u->buffer;
      share.push_back(make_buffer(b->name + "_share", b->dtype, {make_int(1)}, "local"));
    }
    // What is left after a step has a place of its own: no barrier parts its loads from its stores.
    const std::size_t axis_at = shape.size() - fast_shape.size() - 1;
    auto plant = [&](std::int64_t points) {
      shape[axis_at] = make_int(points);
      tree.clear();
      for (const StoreNode* u : pattern->updates)
        tree.push_back(make_buffer(u->buffer->name + "_tree", u->buffer->dtype, shape, "shared"));
      trees.insert(trees.end(), tree.begin(), tree.end());
    };
    Expr point = Expr(across->var) - across->min;
    auto at = [&](const Expr& p) {
      Exprs out = row_index;
      out.push_back(p);
      out.insert(out.end(), fast_index.begin(), fast_index.end());
      return out;
    };
    auto shares = [&] {
      Exprs out;
      for (const Buffer& b : share) out.push_back(load(b, {make_int(0)}));
      return out;
    };
    auto loads = [&](const Expr& p) {
      Exprs out;
      for (const Buffer& b : tree) out.push_back(load(b, at(p)));
      return out;
    };
    auto joined = [&](const Exprs& left, const Exprs& right) {
      VarMap sides;
      for (std::size_t k = 0; k < parts; ++k) {
        sides[reducer->lhs[k].get()] = left[k];
        sides[reducer->rhs[k].get()] = right[k];
      }
      Exprs out;
      for (const Expr& e : reducer->result) out.push_back(substitute(e, sides));
      return out;
    };

    Exprs values;
    for (const Expr& e : pattern->rest) values.push_back(substitute(e, map));
    const Exprs here(1, make_int(0));
    Stmt accumulate = store_all(share, joined(shares(), values), here);
    if (!is_const_int_value(inside, 1)) accumulate = if_then(inside, accumulate);
    for (std::size_t i = chain.loops.size(); i-- > 0;) {
      const ForNode* l = chain.loops[i];
      if (l != across)
        accumulate =
            make_for(l->var, l->min, l->extent, accumulate, l->for_kind, l->axis, l->annotations);
    }
    if (!is_const_int_value(everywhere, 1)) accumulate = if_then(everywhere, accumulate);
    // Each phase is a loop over the points of its own, so that the program also means the same
    // point by point.
    auto phase = [&](Stmt body) {
      Var var = make_var(across->var->name, across->var->dtype);
      return make_for(var, across->min, across->extent,
                      deep_copy(substitute(body, {{across->var.get(), var}})), ForKind::bound,
                      across->axis, across->annotations);
    };
    auto with_shares = [&](Stmt body) {
      for (std::size_t k = parts; k-- > 0;) body = allocate(share[k], std::move(body));
      return body;
    };
    Exprs target;
    for (const Expr& i : pattern->updates[0]->indices) target.push_back(substitute(i, map));
    std::vector<Buffer> results;
    for (const StoreNode* u : pattern->updates) results.push_back(u->buffer);
    // A start value that changes something joins once, at the end.
    auto finished = [&](const Exprs& all) {
      bool neutral = true;
      Exprs start;
      for (std::size_t k = 0; k < parts; ++k) {
        start.push_back(substitute(pattern->start[k], map));
        if (!fresh) start[k] = select(at_first, start[k], load(results[k], target));
        neutral = neutral && same_expr(start[k], reducer->identity[k]);
      }
      return store_all(results, neutral ? all : joined(start, all), target);
    };
    Expr guard = everywhere;
    if (!row || !row->is_private_to(across->axis))
      guard = logical_and(guard, eq(point, make_int(0)));
    auto guarded = [&](Stmt s) { return is_const_int_value(guard, 1) ? s : if_then(guard, s); };
    const Stmt clear = store_all(share, substitute_all(reducer->identity, map), here);
    const ExprKind kind = reducer->result[0]->kind;
    if (machine_.axis(across->axis)->joins()) {
      if (parts > 1 || !is_binary(kind))
        refuse("reducer", block,
               cat("axis \"", across->axis, "\" joins by one of +, *, min, max, and, or"));
      Expr whole = load(share[0], here);
      // One point has the whole; a launch of one point per row has no others that wait masked.
      if (n > 1)
        whole = call_typed(share[0]->dtype, "instruction", {make_string(join_name(kind)), whole});
      Stmt all =
          seq({clear, accumulate, store(share[0], whole, here), guarded(finished(shares()))});
      if (!results_block) return phase(with_shares(all));
      results_block->body = phase(with_shares(all));
      return block_realize(result_values, in_block, Block(results_block));
    }
    plant(n);
    std::vector<Stmt> steps{
        phase(with_shares(seq({clear, accumulate, store_all(tree, shares(), at(point))})))};
    // Each step leaves one share of up to eight: fewer barriers than halving, and the loads of one
    // point do not wait for each other.
    const bool everyone = row && row->is_private_to(across->axis);
    while (n > 1) {
      const std::int64_t left = joined_at_once(n);
      std::vector<Stmt> join{store_all(share, loads(point), here)};
      for (std::int64_t from = left; from < n; from += left) {
        Stmt one = store_all(share, joined(shares(), loads(point + from)), here);
        if (from + left > n) one = if_then(lt(point + from, make_int(n)), one);
        join.push_back(std::move(one));
      }
      const bool last = left == 1 && !everyone;
      if (!last) {
        plant(left);
        join.push_back(store_all(tree, shares(), at(point)));
      } else {
        join.push_back(guarded(finished(shares())));
      }
      steps.push_back(phase(with_shares(if_then(lt(point, make_int(left)), seq(std::move(join))))));
      if (last) break;
      n = left;
    }
    if (n == 1) steps.push_back(phase(guarded(finished(loads(make_int(0))))));
    Stmt out = seq(std::move(steps));
    for (std::size_t k = trees.size(); k-- > 0;) out = allocate(trees[k], std::move(out));
    return out;
  }

  /// A block with the iterators of results and no body yet, and their values; none where the terms
  /// depend on loops further out. A loop around it that gives these iterators their values hands
  /// nothing from one step to the next (place_allocations).
  static Ref<BlockNode> block_of_results(const Chain& chain, const Expr& inside,
                                         const std::unordered_set<const VarNode*>& reducing) {
    auto own = [&](const Expr& e) {
      const auto used = used_vars(e);
      return std::all_of(used.begin(), used.end(),
                         [&](const VarNode* v) { return reducing.count(v) > 0; });
    };
    auto out = make_ref<BlockNode>();
    bool good = own(inside);
    for (const ForNode* l : chain.loops) good = good && own(l->min) && own(l->extent);
    for (std::size_t i = 0; i < chain.realize->iter_values.size(); ++i) {
      const IterVar& iter = chain.realize->block->iters[i];
      if (iter.kind == IterKind::spatial)
        out->iters.push_back({make_var(iter.var->name, iter.var->dtype), iter.dom, iter.kind});
      else good = good && own(chain.realize->iter_values[i]);
    }
    auto whole = [](const std::vector<BufferRegion>& regions) {
      std::vector<BufferRegion> all;
      for (const BufferRegion& r : regions) {
        all.push_back({r.buffer, {}});
        for (const Expr& n : r.buffer->shape) all.back().region.push_back({make_int(0), n});
      }
      return all;
    };
    out->reads = whole(chain.realize->block->reads);
    out->writes = whole(chain.realize->block->writes);
    out->id = fresh_block_id();
    out->name = chain.realize->block->name;
    return good ? out : nullptr;
  }

  /// How many shares are left of n after one step: the fewest steps that join at most eight, and
  /// of these about equal ones.
  static std::int64_t joined_at_once(std::int64_t n) {
    constexpr std::int64_t kMost = 8;
    auto steps = [&](std::int64_t width) {
      int count = 0;
      for (std::int64_t m = n; m > 1; m = (m + width - 1) / width) ++count;
      return count;
    };
    std::int64_t width = 2;
    while (steps(width) > steps(kMost)) width *= 2;
    return (n + width - 1) / width;
  }

  static Exprs substitute_all(const Exprs& list, const VarMap& map) {
    Exprs out;
    for (const Expr& e : list) out.push_back(substitute(e, map));
    return out;
  }

  /// Several values are all computed before any is stored.
  static Stmt store_all(const std::vector<Buffer>& buffers, const Exprs& values,
                        const Exprs& indices) {
    if (buffers.size() == 1) return store(buffers[0], values[0], indices);
    std::vector<Var> names;
    std::vector<Stmt> stores;
    for (std::size_t k = 0; k < buffers.size(); ++k) {
      names.push_back(make_var(buffers[k]->name + "_v", values[k]->dtype));
      stores.push_back(store(buffers[k], names[k], indices));
    }
    Stmt out = seq(std::move(stores));
    for (std::size_t k = buffers.size(); k-- > 0;) out = let_stmt(names[k], values[k], out);
    return out;
  }

  static std::string join_name(ExprKind kind) {
    switch (kind) {
      case ExprKind::add: return "reduce.add";
      case ExprKind::mul: return "reduce.mul";
      case ExprKind::min: return "reduce.min";
      case ExprKind::max: return "reduce.max";
      case ExprKind::and_: return "reduce.and";
      default: return "reduce.or";
    }
  }

  static void split_predicate(const Expr& e, const std::unordered_set<const VarNode*>& reducing,
                              Expr& outside, Expr& inside) {
    const auto* b = as<BinaryNode>(e);
    if (b && b->kind == ExprKind::and_) {
      split_predicate(b->a, reducing, outside, inside);
      split_predicate(b->b, reducing, outside, inside);
    } else if (uses_any(e, reducing)) {
      inside = logical_and(inside, e);
    } else {
      outside = logical_and(outside, e);
    }
  }

  const TargetInfo& machine_;
  std::vector<const ForNode*> enclosing_;
  std::unordered_set<const VarNode*> sizes_;  // parameters of the function
};

}  // namespace

PrimFunc lower_cross_thread_reduction(const PrimFunc& f, const TargetInfo& machine) {
  Stmt body = LowerCrossThread(machine, f).rewrite(f->body);
  if (body == f->body) return f;
  auto out = edit(f);
  out->body = body;
  return out;
}

}  // namespace weft::pass
