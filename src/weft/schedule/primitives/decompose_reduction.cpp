// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "weft/base/text.h"
#include "weft/ir/build.h"
#include "weft/ir/regions.h"
#include "weft/schedule/analysis.h"
#include "weft/schedule/primitives/reduction.h"
#include "weft/schedule/rebind.h"

namespace weft::schedule {
namespace {

using namespace ir;

/// Loops that the bindings of iterators of a kind use.
std::vector<const ForNode*> loops_of(const Leaf& leaf, IterKind kind) {
  std::vector<const ForNode*> out;
  for (const ForNode* loop : leaf.loops) {
    for (std::size_t i = 0; i < leaf.block()->iters.size(); ++i) {
      if (leaf.block()->iters[i].kind == kind &&
          uses_var(leaf.realize->iter_values[i], loop->var.get())) {
        out.push_back(loop);
        break;
      }
    }
  }
  return out;
}

bool contains(const std::vector<const ForNode*>& loops, const ForNode* loop) {
  return std::find(loops.begin(), loops.end(), loop) != loops.end();
}

Verdict check(const State& s, const Path& path, const Path& target, const Leaf& leaf,
              const std::vector<Leaf>& scope) {
  const ForNode* loop = target.loop();
  if (!contains(leaf.loops, loop)) {
    Refusal r = refuse(s, "schedule.decompose_reduction.loop",
                       cat("decompose_reduction of ", name_of(leaf.block()), " at ", name_of(loop),
                           ", which is not around the block"),
                       loop);
    r.note(cat("loops around it: ", quoted(loop_names(leaf.loops))));
    return r;
  }
  arith::Analyzer analyzer;
  bind_path(analyzer, path);
  // Blocks that add further steps afterwards (the tail of a peeled reduction) may stay.
  std::vector<Leaf> others;
  for (const Leaf& other : scope) {
    const bool adds = is_update(other.block()) && other.block()->writes.size() == 1 &&
                      leaf.block()->writes.size() == 1 &&
                      other.block()->writes[0].buffer == leaf.block()->writes[0].buffer;
    const bool later = index_of(scope, other.block()) > index_of(scope, leaf.block());
    if (!adds || !later) others.push_back(other);
  }
  if (auto why = why_not_reduction(others, leaf, analyzer, s.facts.get()); !why.empty()) {
    Refusal r = refuse(
        s, "schedule.decompose_reduction.block",
        cat("decompose_reduction: block ", name_of(leaf.block()), " is not a reduction: ", why),
        leaf.realize);
    r.note(
        "legal: blocks with an init, affine bindings and S and R iterators, the only writers of "
        "their output");
    if (is_update(leaf.block()))
      r.note(cat("found: ", name_of(leaf.block()),
                 " accumulates without an init: its reduction has been decomposed already"));
    return r;
  }
  const auto reduce = loops_of(leaf, IterKind::reduce);
  for (const ForNode* outer : leaf.loops) {
    if (outer == loop) break;
    if (!contains(reduce, outer)) continue;
    Refusal r =
        refuse(s, "schedule.decompose_reduction.height",
               cat("decompose_reduction of ", name_of(leaf.block()), " at ", name_of(loop),
                   " would initialise in every iteration of the reduction loop ", name_of(outer)),
               outer);
    std::vector<const ForNode*> legal;
    for (const ForNode* l : leaf.loops) {
      legal.push_back(l);
      if (l == outer) break;
    }
    r.note(cat("legal: ", quoted(loop_names(legal))));
    return r;
  }
  if (auto why = why_repeated(leaf, loop, analyzer); !why.empty()) {
    Refusal r = refuse(
        s, "schedule.decompose_reduction.repeated",
        cat("decompose_reduction of ", name_of(leaf.block()), " at ", name_of(loop),
            " would initialise once for several runs of the reduction, or not provably for one: ",
            why),
        loop);
    r.note("legal: loops below which every loop is used completely by the block's iterators");
    return r;
  }
  return std::nullopt;
}

}  // namespace

Verdict DecomposeReduction::transform(const State& s, Outcome<Result>& out) const {
  Path path, target;
  WEFT_TRY(locate_inner(s, block, kName, path));
  WEFT_TRY(locate(s, loop, target));
  const auto scope = leaves(path.scope()->block->body);
  const Leaf& leaf = scope[index_of(scope, path.realize()->block.get())];
  WEFT_TRY(check(s, path, target, leaf, scope));
  const BlockRealizeNode* realize = path.realize();
  const BlockNode* old = realize->block.get();

  // The initialisation: spatial iterators only, over copies of the loops they use.
  auto spatial = loops_of(leaf, IterKind::spatial);
  const auto reduce = loops_of(leaf, IterKind::reduce);
  for (const ForNode* l :
       leaf.loops) {  // loops that only the predicate mentions stay around the initialisation
    if (!contains(spatial, l) && !contains(reduce, l) && uses_var(realize->predicate, l->var.get()))
      spatial.push_back(l);
  }
  const auto below_from = std::find(leaf.loops.begin(), leaf.loops.end(), target.loop());
  const std::vector<const ForNode*> below(below_from, leaf.loops.end());
  VarMap loop_map, iter_map;
  std::vector<std::pair<const ForNode*, Var>> copies;
  for (const ForNode* l : below) {
    if (!contains(spatial, l)) continue;
    const Var var = make_var(cat(l->var->name, "_init"), l->var->dtype);
    loop_map[l->var.get()] = var;
    copies.push_back({l, var});
  }
  VarMap in_predicate = loop_map;  // a loop that runs once and is gone is its only value there
  for (const ForNode* l : below) {
    if (!contains(spatial, l) && is_const_int_value(l->extent, 1))
      in_predicate[l->var.get()] = l->min;
  }
  Expr predicate = make_bool(true);
  for (const Expr& part : conjuncts(realize->predicate)) {
    bool lost = false, kept = false;
    for (const ForNode* l : leaf.loops) {
      if (is_const_int_value(l->extent, 1) || !uses_var(part, l->var.get())) continue;
      const bool gone = contains(below, l) && !contains(spatial, l);
      lost |= gone;
      kept |= !gone;
    }
    if (lost && kept) {
      Refusal r = refuse(s, "schedule.decompose_reduction.predicate",
                         cat("decompose_reduction of ", name_of(old),
                             " finds a predicate that ties spatial and reduction loops together"),
                         realize);
      r.note("legal: predicates each term of which uses only spatial or only reduction loops");
      return r;
    }
    if (!lost) predicate = both(predicate, substitute(part, in_predicate));
  }
  auto init = make_ref<BlockNode>();
  init->id = fresh_block_id();
  init->name = cat(old->name, "_init");
  Exprs values;
  for (std::size_t i = 0; i < old->iters.size(); ++i) {
    const IterVar& iter = old->iters[i];
    if (iter.kind != IterKind::spatial) continue;
    const Var var = make_var(cat(iter.var->name, "_init"), iter.var->dtype);
    iter_map[iter.var.get()] = var;
    init->iters.push_back({var, iter.dom, iter.kind});
    values.push_back(substitute(realize->iter_values[i], loop_map));
  }
  for (const BufferRegion& w : old->writes) init->writes.push_back(substitute(w, iter_map));
  init->body = substitute(deep_copy(old->init), iter_map);
  init->reads = detect_block_regions(*init).reads;
  init->annotations = old->annotations;
  Stmt nest = block_realize(std::move(values), std::move(predicate), init);
  for (std::size_t i = copies.size(); i-- > 0;) {
    const auto& [l, var] = copies[i];
    nest = make_for(var, l->min, substitute(l->extent, loop_map), std::move(nest), l->for_kind,
                    l->axis);
  }

  auto update = edit(realize->block);
  update->name = cat(old->name, "_update");
  update->init = nullptr;
  update->reads.clear();
  for (const BufferRegion& w : old->writes) update->reads.push_back(w);
  for (const BufferRegion& r : old->reads) {
    const bool known = std::any_of(old->writes.begin(), old->writes.end(),
                                   [&](const BufferRegion& w) { return w.buffer == r.buffer; });
    if (!known) update->reads.push_back(r);
  }
  const Stmt body = replace(path, with_block(realize, update));
  const auto place = find_loop(body, target.loop()->var.get());
  out.mod = with_body(s.mod, path.func, replace(*place, seq({nest, place->target()})));
  out.result = {init->id};
  return std::nullopt;
}

}  // namespace weft::schedule
