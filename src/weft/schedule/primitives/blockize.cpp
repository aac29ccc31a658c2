// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "weft/base/text.h"
#include "weft/ir/build.h"
#include "weft/ir/regions.h"
#include "weft/schedule/analysis.h"
#include "weft/schedule/primitives/tensorize.h"
#include "weft/schedule/rebind.h"

namespace weft::schedule {
namespace {

using namespace ir;

/// A region with the inner iterators run over their domains.
BufferRegion outer_region(const BufferRegion& region, const std::vector<IterVar>& inner,
                          const arith::Analyzer& analyzer) {
  arith::DomainMap domain;
  for (const IterVar& iter : inner) domain[iter.var.get()] = iter.dom;
  return {region.buffer, arith::relax_region(region.region, domain, analyzer)};
}

/// Consecutive nests as one block over the loops that surround all of them.
Verdict wrap_blocks(const State& s, const std::vector<BlockRef>& blocks, Outcome<BlockRef>& out) {
  if (blocks.empty())
    return refuse(s, "schedule.blockize.empty", "blockize got an empty list of blocks")
        .note("legal: a loop, or at least one block");
  std::vector<Path> paths(blocks.size());
  for (std::size_t i = 0; i < blocks.size(); ++i)
    WEFT_TRY(locate_inner(s, blocks[i], Blockize::kName, paths[i]));
  // The deepest node that all paths share.
  std::size_t common = 0;
  while (std::all_of(paths.begin(), paths.end(), [&](const Path& p) {
    return common + 1 < p.nodes.size() && p.nodes[common] == paths[0].nodes[common] &&
           p.func == paths[0].func;
  }))
    ++common;
  const auto apart = [&](std::string_view why) {
    std::vector<std::string> names;
    for (const Path& p : paths) names.push_back(p.realize()->block->name);
    Refusal r = refuse(s, "schedule.blockize.siblings",
                       cat("blockize of ", quoted(names), ": ", why), paths[0].target().get());
    r.note("legal: blocks of one scope whose nests stand one after the other, in that order");
    return r;
  };
  if (common == 0 || paths[0].scope() == nullptr) return apart("they share no scope");
  const std::size_t place = common - 1;  // index of the deepest common node
  const Stmt& parent = paths[0].nodes[place];
  for (const Path& p : paths) {
    if (p.scope_index() != paths[0].scope_index() || p.scope_index() > place)
      return apart("they do not stand in one scope");
  }
  const auto* list = as<SeqNode>(parent);
  std::vector<Stmt> stmts = list ? list->stmts : std::vector<Stmt>{paths[0].nodes[common]};
  std::vector<std::size_t> at;
  for (const Path& p : paths) {
    auto found = std::find(stmts.begin(), stmts.end(), p.nodes[common]);
    if (found == stmts.end()) return apart("their nests are no neighbours");
    const auto index = static_cast<std::size_t>(found - stmts.begin());
    if (!at.empty() && index != at.back() + 1) return apart("something stands between them");
    at.push_back(index);
  }
  std::vector<Stmt> body(stmts.begin() + static_cast<std::ptrdiff_t>(at.front()),
                         stmts.begin() + static_cast<std::ptrdiff_t>(at.back()) + 1);
  std::vector<Leaf> inside;
  for (const Stmt& stmt : body) {
    for (Leaf& leaf : leaves(stmt)) inside.push_back(std::move(leaf));
  }
  auto block = make_ref<BlockNode>();
  block->id = fresh_block_id();
  block->name = cat(inside[0].block()->name, "_group");
  Exprs values;
  VarMap map;
  for (std::size_t i = paths[0].scope_index() + 1; i <= place; ++i) {
    const auto* loop = as<ForNode>(paths[0].nodes[i]);
    if (!loop) continue;
    IterKind kind = IterKind::spatial;
    bool used = false;
    for (const Leaf& leaf : inside) {
      for (std::size_t k = 0; k < leaf.realize->iter_values.size(); ++k) {
        if (!uses_var(leaf.realize->iter_values[k], loop->var.get())) continue;
        used = true;
        const IterKind own = leaf.block()->iters[k].kind;
        if (own != IterKind::spatial) kind = own;
      }
    }
    for (const Stmt& stmt : body) used = used || free_vars(stmt).count(loop->var.get()) > 0;
    if (!used) continue;
    const Var var = make_var(cat("v", loop->var->name), loop->var->dtype);
    map[loop->var.get()] = var;
    block->iters.push_back({var, {loop->min, loop->extent}, kind});
    values.push_back(loop->var);
  }
  block->body = substitute(seq(std::move(body)), map);
  AccessRegions found = detect_block_regions(*block);
  block->reads = std::move(found.reads);
  block->writes = std::move(found.writes);
  const std::uint64_t id = block->id;
  stmts.erase(stmts.begin() + static_cast<std::ptrdiff_t>(at.front()),
              stmts.begin() + static_cast<std::ptrdiff_t>(at.back()) + 1);
  stmts.insert(stmts.begin() + static_cast<std::ptrdiff_t>(at.front()),
               block_realize(std::move(values), nullptr, block));
  const Stmt changed =
      list ? replace(paths[0], seq(std::move(stmts)), place) : replace(paths[0], stmts[0], common);
  out.mod = with_body(s.mod, paths[0].func, changed);
  out.result = {id};
  return std::nullopt;
}

}  // namespace

Verdict Blockize::transform(const State& s, Outcome<Result>& out) const {
  if (const auto* blocks = std::get_if<std::vector<BlockRef>>(&target))
    return wrap_blocks(s, *blocks, out);
  Path top;
  WEFT_TRY(locate(s, std::get<LoopRef>(target), top));
  const auto under = leaves(top.target());
  const bool chain = [&] {
    Stmt at = top.target();
    while (const auto* loop = as<ForNode>(at)) at = loop->body;
    return at->kind == StmtKind::block_realize;
  }();
  if (under.size() != 1 || !chain) {
    std::vector<std::string> names;
    for (const Leaf& leaf : under) names.push_back(leaf.block()->name);
    Refusal r =
        refuse(s, "schedule.blockize.blocks",
               cat("blockize of ", name_of(top.loop()),
                   " needs a perfect nest around one block, but finds ", under.size(), " blocks"),
               top.loop());
    r.note(cat("found: ", quoted(names)));
    return r;
  }
  const Path path = *find_block(s.mod, {under[0].block()->id});
  const BlockRealizeNode* realize = path.realize();
  const BlockNode* old = realize->block.get();
  const auto loops = path.loops();
  std::vector<Var> inner_loops;
  for (const ForNode* loop : under[0].loops) inner_loops.push_back(loop->var);
  for (const ForNode* loop : under[0].loops) {
    for (const ForNode* outside : loops) {
      const VarNode* v = outside->var.get();
      const bool inside =
          std::find(under[0].loops.begin(), under[0].loops.end(), outside) != under[0].loops.end();
      if (inside || (!uses_var(loop->min, v) && !uses_var(loop->extent, v))) continue;
      Refusal r = refuse(
          s, "schedule.blockize.extent",
          cat("blockize of ", name_of(top.loop()), ": the range of ", name_of(loop),
              " changes with ", name_of(outside), ", which would stand outside the new block"),
          loop);
      r.note("legal: nests whose loops have the same ranges wherever they are run");
      return r;
    }
  }
  arith::Analyzer analyzer;
  bind_path(analyzer, path);
  const auto parts = arith::subspace_divide(realize->iter_values, as_iters(loops), inner_loops,
                                            realize->predicate, analyzer);
  if (!parts) {
    Refusal r = refuse(s, "schedule.blockize.divide",
                       cat("blockize of ", name_of(top.loop()), ": the iterators of ", name_of(old),
                           " do not divide into tiles and elements of tiles"),
                       realize);
    r.note(
        "legal: bindings of the form outer * extent + inner, inner made of the loops inside only");
    return r;
  }
  if (old->init) {
    arith::Analyzer facts;
    bind_path(facts, path);
    Leaf leaf = under[0];
    if (auto why = why_repeated(leaf, top.loop(), facts); !why.empty()) {
      Refusal r = refuse(s, "schedule.blockize.repeated",
                         cat("blockize of ", name_of(top.loop()),
                             " would initialise once for several runs of the reduction ",
                             name_of(old), ", or not provably for one: ", why),
                         realize);
      r.note("legal: nests every loop of which is used completely by the block's iterators");
      return r;
    }
  }
  // Terms of the predicate on outer loops stay outside, those on inner loops go inside; a term on
  // both has become a bound on whole tiles.
  Expr outer_predicate = make_bool(true), inner_predicate = make_bool(true);
  bool divided = false;
  for (const Expr& part : conjuncts(realize->predicate)) {
    bool inside = false, outside = false;
    for (const ForNode* loop : loops) {
      if (!uses_var(part, loop->var.get())) continue;
      const bool in =
          std::find(under[0].loops.begin(), under[0].loops.end(), loop) != under[0].loops.end();
      (in ? inside : outside) = true;
    }
    if (inside && outside) {
      divided = true;
    } else {
      Expr& side = inside ? inner_predicate : outer_predicate;
      side = both(side, part);
    }
  }
  if (divided) {
    if (is_const_int_value(parts->back().outer, 1)) {
      Refusal r = refuse(s, "schedule.blockize.predicate",
                         cat("blockize of ", name_of(top.loop()), ": the predicate of ",
                             name_of(old), " cuts through tiles"),
                         realize);
      r.note("legal: predicates that keep or drop whole tiles");
      return r;
    }
    outer_predicate = both(outer_predicate, parts->back().outer);
  }
  auto outer = make_ref<BlockNode>();
  outer->id = fresh_block_id();
  outer->name = cat(old->name, "_o");
  auto inner = edit(realize->block);
  inner->iters.clear();
  Exprs outer_values, inner_values;
  VarMap map;
  for (std::size_t i = 0; i < old->iters.size(); ++i) {
    const IterVar& iter = old->iters[i];
    const DType type = iter.var->dtype;
    const auto& part = (*parts)[i];
    const Expr origin = iter.dom.min;
    // A nest that covers part of the domain (at an offset) counts tiles of the whole domain.
    Expr tiles = part.outer_extent;
    if (!analyzer.prove(logical_and(ge(part.outer, make_zero(type)), lt(part.outer, tiles)))) {
      tiles =
          analyzer.simplify(floordiv(iter.dom.extent + part.inner_extent - 1, part.inner_extent));
    }
    Expr tile;
    if (!preserve_unit_iters && is_const_int_value(tiles, 1)) {
      tile = make_zero(type);
    } else {
      const Var var = make_var(cat(iter.var->name, "_o"), type);
      outer->iters.push_back({var, {make_zero(type), tiles}, iter.kind});
      outer_values.push_back(
          is_const_int_value(origin, 0)
              ? part.outer
              : analyzer.simplify(part.outer - floordiv(origin, part.inner_extent)));
      tile = var;
      analyzer.bind(var, Range{make_zero(type), tiles});
    }
    Expr element;
    if (!preserve_unit_iters && is_const_int_value(part.inner_extent, 1)) {
      element = make_zero(type);
    } else {
      const Var var = make_var(cat(iter.var->name, "_i"), type);
      inner->iters.push_back({var, {make_zero(type), part.inner_extent}, iter.kind});
      inner_values.push_back(part.inner);
      element = var;
      analyzer.bind(var, Range{make_zero(type), part.inner_extent});
    }
    map[iter.var.get()] = analyzer.simplify(origin + tile * part.inner_extent + element);
  }
  for (BufferRegion& r : inner->reads) r = substitute(r, map);
  for (BufferRegion& w : inner->writes) w = substitute(w, map);
  inner->body = substitute(inner->body, map);
  for (const BufferRegion& r : inner->reads)
    outer->reads.push_back(outer_region(r, inner->iters, analyzer));
  for (const BufferRegion& w : inner->writes)
    outer->writes.push_back(outer_region(w, inner->iters, analyzer));
  if (old->init) {
    // The initialisation of a whole tile, over copies of the loops that spatial iterators use.
    auto start = make_ref<BlockNode>();
    start->id = fresh_block_id();
    start->name = cat(old->name, "_init");
    VarMap iters, copies;
    Exprs values;
    for (std::size_t i = 0; i < inner->iters.size(); ++i) {
      const IterVar& iter = inner->iters[i];
      if (iter.kind != IterKind::spatial) continue;
      const Var var = make_var(iter.var->name, iter.var->dtype);
      iters[iter.var.get()] = var;
      start->iters.push_back({var, iter.dom, iter.kind});
      values.push_back(inner_values[i]);
    }
    for (const BufferRegion& w : inner->writes) start->writes.push_back(substitute(w, iters));
    start->body = substitute(substitute(deep_copy(old->init), map), iters);
    start->reads = detect_block_regions(*start).reads;
    std::vector<std::pair<const ForNode*, Var>> nest;
    for (const ForNode* loop : under[0].loops) {
      bool used = false, reduces = false;
      for (const Expr& v : values) used |= uses_var(v, loop->var.get());
      for (std::size_t i = 0; i < inner->iters.size(); ++i) {
        reduces |=
            inner->iters[i].kind == IterKind::reduce && uses_var(inner_values[i], loop->var.get());
      }
      if (!used && (reduces || !uses_var(inner_predicate, loop->var.get()))) continue;
      nest.push_back({loop, make_var(loop->var->name, loop->var->dtype)});
      copies[loop->var.get()] = nest.back().second;
    }
    for (Expr& v : values) v = substitute(v, copies);
    Expr init_predicate = make_bool(true);
    for (const Expr& part : conjuncts(inner_predicate)) {
      const Expr kept = substitute(part, copies);
      bool reduces = false;
      for (const ForNode* loop : under[0].loops) reduces |= uses_var(kept, loop->var.get());
      if (!reduces) init_predicate = both(init_predicate, kept);
    }
    Stmt body = block_realize(std::move(values), init_predicate, start);
    for (std::size_t i = nest.size(); i-- > 0;)
      body = make_for(nest[i].second, nest[i].first->min, nest[i].first->extent, std::move(body));
    outer->init = std::move(body);
    inner->init = nullptr;
    inner->reads.insert(inner->reads.begin(), inner->writes.begin(), inner->writes.end());
  }
  Stmt body = block_realize(std::move(inner_values), inner_predicate, inner);
  for (std::size_t i = under[0].loops.size(); i-- > 0;)
    body = with_body(under[0].loops[i], std::move(body));
  outer->body = std::move(body);
  const std::uint64_t id = outer->id;
  out.mod = with_body(s.mod, top.func,
                      replace(top, block_realize(std::move(outer_values), outer_predicate, outer)));
  out.result = {id};
  return std::nullopt;
}

}  // namespace weft::schedule
