// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "weft/base/text.h"
#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/ir/reduction_pattern.h"
#include "weft/ir/regions.h"
#include "weft/schedule/analysis.h"
#include "weft/schedule/primitives/reduction.h"
#include "weft/schedule/rebind.h"

namespace weft::schedule {
namespace {

using namespace ir;

bool used_by(const Leaf& leaf, const ForNode* loop, IterKind kind) {
  for (std::size_t i = 0; i < leaf.block()->iters.size(); ++i) {
    if (leaf.block()->iters[i].kind == kind &&
        uses_var(leaf.realize->iter_values[i], loop->var.get()))
      return true;
  }
  return false;
}

struct Plan {
  const State& s;
  Path target{}, path{};  // the loop; the block
  Leaf leaf{};
  std::vector<const ForNode*> chain{};  // loops that only the block stands in, outermost first
  std::size_t top = 0;                  // index of chain[0] in path.nodes
  ReductionPattern pattern{};
  std::size_t axis = 0;
};

Verdict check(Plan& p, std::int64_t factor_axis) {
  const ForNode* loop = p.target.loop();
  const auto under = leaves(p.target.target());
  if (under.size() != 1) {
    std::vector<std::string> names;
    for (const Leaf& leaf : under) names.push_back(leaf.block()->name);
    Refusal r = refuse(p.s, "schedule.rfactor.blocks",
                       cat("rfactor of ", name_of(loop),
                           " needs exactly one block under the loop, but there are ", under.size()),
                       loop);
    r.note(cat("found: ", quoted(names)));
    return r;
  }
  p.path = *find_block(p.s.mod, {under[0].block()->id});
  const auto scope = leaves(p.path.scope()->block->body);
  const std::size_t self = index_of(scope, p.path.realize()->block.get());
  p.leaf = scope[self];
  const BlockNode* block = p.leaf.block();
  arith::Analyzer analyzer;
  bind_path(analyzer, p.path);
  if (auto why = why_not_reduction(scope, p.leaf, analyzer, p.s.facts.get()); !why.empty()) {
    return refuse(p.s, "schedule.rfactor.block",
                  cat("rfactor: block ", name_of(block), " is not a reduction: ", why),
                  p.leaf.realize)
        .note(
            "legal: blocks with an init, affine bindings and S and R iterators, the only writers "
            "of their output");
  }
  if (auto why = why_not_pipeline(concerned(scope, self), p.s.facts.get()); !why.empty()) {
    return refuse(p.s, "schedule.rfactor.pipeline",
                  cat("rfactor of ", name_of(loop),
                      " needs a scope in which data only flows forward: ", why),
                  p.leaf.realize)
        .note("legal: scopes in which each buffer is finished before it is read");
  }
  if (loop->for_kind != ForKind::serial && loop->for_kind != ForKind::unrolled) {
    return refuse(p.s, "schedule.rfactor.kind",
                  cat("rfactor needs a serial loop, but ", name_of(loop), " is not"), loop)
        .note("legal: rfactor before parallel, vectorize or bind");
  }
  for (const ForNode* l : p.leaf.loops) {
    if (!used_by(p.leaf, l, IterKind::reduce) || !used_by(p.leaf, l, IterKind::spatial)) continue;
    return refuse(p.s, "schedule.rfactor.mixed",
                  cat("rfactor: loop ", name_of(l), " feeds spatial and reduction iterators of ",
                      name_of(block)),
                  l)
        .note("legal: loops that feed one kind of iterators");
  }
  if (!used_by(p.leaf, loop, IterKind::reduce)) {
    std::vector<const ForNode*> legal;
    for (const ForNode* l : p.leaf.loops) {
      if (used_by(p.leaf, l, IterKind::reduce)) legal.push_back(l);
    }
    Refusal r = refuse(
        p.s, "schedule.rfactor.loop",
        cat("rfactor: ", name_of(loop), " is not a reduction loop of ", name_of(block)), loop);
    r.note(cat("legal: ", quoted(loop_names(legal))));
    if (!legal.empty()) r.repair(cat("sch.rfactor(", legal.back()->var->name, ", 0)"));
    return r;
  }
  if (auto pattern = match_reduction(block)) {
    p.pattern = std::move(*pattern);
  } else {
    return refuse(p.s, "schedule.rfactor.combiner",
                  cat("rfactor finds no known combiner in block ", name_of(block)), p.leaf.realize)
        .note(
            "legal: C[...] = C[...] op value with op one of +, *, min, max; tuples of these; "
            "argmin "
            "and argmax; any combination of a block with the annotation \"commutative_reducer\"");
  }
  const auto ndim = static_cast<std::int64_t>(p.pattern.updates[0]->buffer->ndim());
  if (factor_axis < -ndim - 1 || factor_axis > ndim) {
    return refuse(p.s, "schedule.rfactor.axis",
                  cat("rfactor got factor_axis ", factor_axis, " for \"",
                      p.pattern.updates[0]->buffer->name, "\", which has ", ndim, " axes"),
                  p.leaf.realize)
        .note(cat("legal: ", -ndim - 1, " to ", ndim));
  }
  p.axis = static_cast<std::size_t>(factor_axis < 0 ? factor_axis + ndim + 1 : factor_axis);
  p.top = p.path.nodes.size() - 1;
  while (as<ForNode>(p.path.nodes[p.top - 1]))
    p.chain.insert(p.chain.begin(), as<ForNode>(p.path.nodes[--p.top]));
  for (const ForNode* l : p.leaf.loops) {
    const bool own = std::find(p.chain.begin(), p.chain.end(), l) != p.chain.end();
    if (own || !used_by(p.leaf, l, IterKind::reduce)) continue;
    return refuse(p.s, "schedule.rfactor.nest",
                  cat("rfactor: the reduction loop ", name_of(l), " of ", name_of(block),
                      " has other blocks inside"),
                  l)
        .note("legal: reductions whose loops hold nothing else");
  }
  return std::nullopt;
}

bool uses_any(const Expr& value, const std::vector<const ForNode*>& loops) {
  return std::any_of(loops.begin(), loops.end(),
                     [&](const ForNode* l) { return uses_var(value, l->var.get()); });
}

/// Loops that get iterators of their own: those of each iterator that is made of the loop, and of
/// each that shares one with such an iterator, because a loop's digits belong to one iterator.
std::vector<const ForNode*> spelled_out(const Plan& p, const ForNode* loop) {
  std::vector<const ForNode*> out = {loop};
  for (std::size_t known = 0; known != out.size();) {
    known = out.size();
    for (const Expr& value : p.leaf.realize->iter_values) {
      if (!uses_any(value, out)) continue;
      for (const ForNode* l : p.leaf.loops) {
        if (uses_var(value, l->var.get()) && std::find(out.begin(), out.end(), l) == out.end())
          out.push_back(l);
      }
    }
  }
  return out;
}

}  // namespace

Verdict RFactor::transform(const State& s, Outcome<Result>& out) const {
  Plan p{s};
  WEFT_TRY(locate(s, loop, p.target));
  WEFT_TRY(check(p, factor_axis));
  const ForNode* rf = p.target.loop();
  const BlockRealizeNode* realize = p.leaf.realize;
  const BlockNode* old = p.leaf.block();
  const std::vector<const StoreNode*>& updates = p.pattern.updates;
  const ReducerNode& reducer = *p.pattern.reducer;
  arith::Analyzer analyzer;
  bind_path(analyzer, p.path);

  // Terms of the predicate: each slice of the new axis must begin with a step that runs.
  VarMap first;
  for (const ForNode* l : p.leaf.loops) {
    if (l != rf && used_by(p.leaf, l, IterKind::reduce)) first[l->var.get()] = l->min;
  }
  Expr outer_predicate = make_bool(true);
  for (const Expr& part : conjuncts(realize->predicate)) {
    bool reduces = false, spatial = false;
    for (const ForNode* l : p.leaf.loops) {
      if (!uses_var(part, l->var.get())) continue;
      reduces |= used_by(p.leaf, l, IterKind::reduce);
      spatial |= !used_by(p.leaf, l, IterKind::reduce);
    }
    if (!reduces) {
      outer_predicate = both(outer_predicate, part);
    } else if (spatial || !analyzer.prove(substitute(part, first))) {
      return refuse(s, "schedule.rfactor.predicate",
                    cat("rfactor of ", name_of(rf), ": some parts of the reduction of ",
                        name_of(old), " may be empty"),
                    realize)
          .note("legal: factors that leave at least one step to every iteration of the loop");
    }
  }

  std::vector<Buffer> buffers;
  for (const StoreNode* u : updates) {
    auto partial = edit(u->buffer);
    partial->name = cat(u->buffer->name, "_rf");
    partial->strides.clear();
    partial->elem_offset = nullptr;
    partial->shape.insert(partial->shape.begin() + static_cast<std::ptrdiff_t>(p.axis), rf->extent);
    buffers.push_back(partial);
  }
  const Exprs& indices = updates[0]->indices;

  // The new block: the loop's iterator is spatial, iterators made of it are spelled out.
  const std::vector<const ForNode*> own = spelled_out(p, rf);
  const auto spelled = [&](const Expr& value) { return uses_any(value, own); };
  auto block = make_ref<BlockNode>();
  block->id = fresh_block_id();
  block->name = cat(old->name, "_rf");
  Exprs values;
  VarMap iters, loops;
  const Var slice = make_var(cat("v", rf->var->name), rf->var->dtype);
  loops[rf->var.get()] = slice;
  block->iters.push_back({slice, {rf->min, rf->extent}, IterKind::spatial});
  values.push_back(rf->var);
  for (std::size_t i = 0; i < old->iters.size(); ++i) {
    const IterVar& iter = old->iters[i];
    if (spelled(realize->iter_values[i])) {
      for (const ForNode* l : p.leaf.loops) {
        if (l == rf || loops.contains(l->var.get()) ||
            !uses_var(realize->iter_values[i], l->var.get()))
          continue;
        const Var var = make_var(cat("v", l->var->name), l->var->dtype);
        loops[l->var.get()] = var;
        block->iters.push_back({var, {l->min, l->extent}, IterKind::reduce});
        values.push_back(l->var);
      }
      iters[iter.var.get()] = substitute(realize->iter_values[i], loops);
      continue;
    }
    const Var var = make_var(iter.var->name, iter.var->dtype);
    iters[iter.var.get()] = var;
    block->iters.push_back({var, iter.dom, iter.kind});
    values.push_back(realize->iter_values[i]);
  }
  const auto sliced = [&](const Exprs& at, const VarMap& map, const Var& v) {
    Exprs list;
    for (const Expr& e : at) list.push_back(substitute(e, map));
    list.insert(list.begin() + static_cast<std::ptrdiff_t>(p.axis), v);
    return list;
  };
  const Exprs at = sliced(indices, iters, slice);
  std::vector<Stmt> starts;
  Exprs held, joining;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    starts.push_back(store(buffers[i], substitute(reducer.identity[i], iters), at));
    held.push_back(load(buffers[i], at));
    joining.push_back(substitute(p.pattern.rest[i], iters));
  }
  block->init = seq(std::move(starts));
  block->body = store_joined(reducer, buffers, held, joining, at);
  block->annotations = old->annotations;
  AccessRegions found = detect_block_regions(*block);
  block->reads = std::move(found.reads);
  block->writes = std::move(found.writes);
  Stmt first_nest = block_realize(std::move(values), realize->predicate, block);
  for (std::size_t i = p.chain.size(); i-- > 0;)
    first_nest = with_body(p.chain[i], std::move(first_nest));

  // The old block: reduces the slices.
  VarMap fresh, kept;
  std::vector<std::pair<const ForNode*, Var>> nest;
  for (const ForNode* l : p.chain) {
    if (l != rf && used_by(p.leaf, l, IterKind::reduce)) continue;
    const Var var = make_var(l->var->name, l->var->dtype);
    fresh[l->var.get()] = var;
    nest.push_back({l, var});
  }
  auto last = edit(realize->block);
  last->iters.clear();
  Exprs bindings;
  const Var step = make_var(cat("v", rf->var->name), rf->var->dtype);
  last->iters.push_back({step, {rf->min, rf->extent}, IterKind::reduce});
  bindings.push_back(fresh.at(rf->var.get()));
  for (std::size_t i = 0; i < old->iters.size(); ++i) {
    const IterVar& iter = old->iters[i];
    if (iter.kind != IterKind::spatial) continue;
    const Var var = make_var(iter.var->name, iter.var->dtype);
    kept[iter.var.get()] = var;
    last->iters.push_back({var, iter.dom, iter.kind});
    bindings.push_back(substitute(realize->iter_values[i], fresh));
  }
  Exprs to, totals, slices;
  std::vector<Buffer> results;
  for (const Expr& e : indices) to.push_back(substitute(e, kept));
  for (std::size_t i = 0; i < updates.size(); ++i) {
    results.push_back(updates[i]->buffer);
    totals.push_back(load(results[i], to));
    slices.push_back(load(buffers[i], sliced(indices, kept, step)));
  }
  last->init = substitute(old->init, kept);
  last->body = store_joined(reducer, results, totals, slices, to);
  found = detect_block_regions(*last);
  last->reads = std::move(found.reads);
  last->writes = std::move(found.writes);
  Stmt second_nest = block_realize(std::move(bindings), substitute(outer_predicate, fresh), last);
  for (std::size_t i = nest.size(); i-- > 0;) {
    const auto& [l, var] = nest[i];
    second_nest = make_for(var, l->min, substitute(l->extent, fresh), std::move(second_nest),
                           l == rf ? ForKind::serial : l->for_kind, l == rf ? "" : l->axis);
  }

  const std::size_t scope_at = p.path.scope_index();
  const Stmt changed = replace(p.path, seq({first_nest, second_nest}), p.top);
  const auto place = find_block(changed, as<BlockRealizeNode>(p.path.nodes[scope_at])->block->id);
  auto scope = edit(place->realize()->block);
  scope->alloc_buffers.insert(scope->alloc_buffers.end(), buffers.begin(), buffers.end());
  out.mod = with_body(s.mod, p.path.func, replace(*place, with_block(place->realize(), scope)));
  out.result = {block->id};
  return std::nullopt;
}

}  // namespace weft::schedule
