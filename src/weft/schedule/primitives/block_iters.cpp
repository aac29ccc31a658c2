// SPDX-License-Identifier: Apache-2.0
#include "weft/schedule/primitives/block_iters.h"

#include <algorithm>

#include "weft/base/text.h"
#include "weft/ir/build.h"
#include "weft/ir/text.h"
#include "weft/schedule/analysis.h"

namespace weft::schedule {

using namespace ir;

Verdict ReorderBlockIterVar::transform(const State& s, Outcome<Result>& out) const {
  Path path;
  WEFT_TRY(locate_inner(s, block, kName, path));
  const BlockRealizeNode* realize = path.realize();
  const std::size_t n = realize->block->iters.size();
  std::vector<std::int64_t> sorted = new_order;
  std::sort(sorted.begin(), sorted.end());
  bool permutation = sorted.size() == n;
  for (std::size_t i = 0; permutation && i < n; ++i)
    permutation = sorted[i] == static_cast<std::int64_t>(i);
  if (!permutation) {
    std::vector<std::string> given;
    for (std::int64_t i : new_order) given.push_back(cat(i));
    Refusal r = refuse(s, "schedule.reorder_block_iter_var.order",
                       cat("reorder_block_iter_var of ", name_of(realize->block.get()), " got [",
                           join(given), "] for its ", n, " iterators"),
                       realize);
    r.note(
        cat("legal: a list that holds each of 0 to ", static_cast<std::int64_t>(n) - 1, " once"));
    return r;
  }
  auto changed = edit(realize->block);
  Exprs values;
  for (std::size_t i = 0; i < n; ++i) {
    const auto from = static_cast<std::size_t>(new_order[i]);
    changed->iters[i] = realize->block->iters[from];
    values.push_back(realize->iter_values[from]);
  }
  auto placed = make_ref<BlockRealizeNode>(std::move(values), realize->predicate, changed);
  placed->line = realize->line;
  out.mod = with_body(s.mod, path.func, replace(path, placed));
  return std::nullopt;
}

std::optional<OwnNest> own_nest(const Path& path, std::string& why) {
  const BlockRealizeNode* realize = path.realize();
  if (!is_const_int_value(realize->predicate, 1)) {
    why = "it has a predicate";
    return std::nullopt;
  }
  OwnNest out;
  out.loops.assign(realize->block->iters.size(), nullptr);
  std::size_t found = 0;
  out.top = path.nodes.size() - 1;
  while (found < out.loops.size()) {
    const auto* loop = out.top > 0 ? as<ForNode>(path.nodes[out.top - 1]) : nullptr;
    if (!loop) {
      why = cat("only ", found, " of its ", out.loops.size(),
                " iterators are loops that it has to itself");
      return std::nullopt;
    }
    std::size_t which = npos, uses = 0;
    for (std::size_t i = 0; i < out.loops.size(); ++i) {
      if (realize->iter_values[i].get() == loop->var.get()) which = i;
      uses += uses_var(realize->iter_values[i], loop->var.get()) ? 1 : 0;
    }
    if (which == npos || uses != 1) {
      why = cat("loop ", name_of(loop), " is not bound to one iterator as it is");
      return std::nullopt;
    }
    arith::Analyzer analyzer;
    const IterVar& iter = realize->block->iters[which];
    if (!is_const_int_value(loop->min, 0) || !is_const_int_value(iter.dom.min, 0) ||
        !analyzer.prove_equal(loop->extent, iter.dom.extent)) {
      why = cat("loop ", name_of(loop), " does not run the whole domain of its iterator");
      return std::nullopt;
    }
    out.loops[which] = loop;
    ++found;
    --out.top;
  }
  return out;
}

Verdict TransformBlockLayout::transform(const State& s, Outcome<Result>& out) const {
  Path path;
  WEFT_TRY(locate_inner(s, block, kName, path));
  const BlockRealizeNode* realize = path.realize();
  const BlockNode* old = realize->block.get();
  std::string why;
  const auto nest = own_nest(path, why);
  if (!nest) {
    Refusal r = refuse(s, "schedule.transform_block_layout.nest",
                       cat("transform_block_layout of ", name_of(old), ": ", why), realize);
    r.note(
        "legal: blocks whose iterators are the loops of a nest of their own; transform before "
        "split, fuse and compute_at");
    return r;
  }
  for (const ForNode* loop : nest->loops) {
    if (loop->for_kind == ForKind::serial && loop->annotations.empty()) continue;
    Refusal r =
        refuse(s, "schedule.transform_block_layout.kind",
               cat("transform_block_layout of ", name_of(old), " would drop what loop ",
                   name_of(loop), " is: bound, parallel, vectorized, unrolled or annotated"),
               loop);
    r.note("legal: plain loops; transform first, then choose kinds");
    return r;
  }
  if (index_map.inputs.size() != old->iters.size() || index_map.outputs.empty()) {
    Refusal r = refuse(s, "schedule.transform_block_layout.rank",
                       cat("transform_block_layout of ", name_of(old), ", which has ",
                           old->iters.size(), " iterators, got a map of ", index_map.inputs.size()),
                       realize);
    r.note(cat("legal: maps of ", old->iters.size(), " indices to at least one"));
    return r;
  }
  std::vector<IterVar> inputs;
  arith::Analyzer analyzer;
  for (std::size_t i = 0; i < old->iters.size(); ++i) {
    inputs.push_back({index_map.inputs[i], old->iters[i].dom, IterKind::spatial});
    analyzer.bind(inputs.back().var, inputs.back().dom);
  }
  const auto map = arith::detect_iter_map(index_map.outputs, inputs, make_bool(true),
                                          arith::MapLevel::bijective, analyzer);
  std::string error = map.error;
  for (const arith::IterSum& sum : map.indices) {
    if (error.empty() && !is_const_int_value(sum.base, 0)) error = "an index has an offset";
  }
  if (!error.empty()) {
    Refusal r = refuse(s, "schedule.transform_block_layout.bijective",
                       cat("transform_block_layout of ", name_of(old), " by ", index_map.text(),
                           " is not one to one: ", error),
                       realize);
    r.note("legal: maps whose factors divide the iterators' extents, each digit used once");
    return r;
  }
  auto changed = edit(realize->block);
  changed->iters.clear();
  std::vector<std::pair<Var, Expr>> loops;
  Exprs outputs, values;
  arith::Analyzer inside;
  for (std::size_t k = 0; k < index_map.outputs.size(); ++k) {
    Expr extent = make_const(1, dtypes::int64);
    for (const auto& split : map.indices[k].splits)
      extent = extent + (split.extent - 1) * split.scale;
    extent = analyzer.simplify(extent);
    std::optional<IterKind> kind;
    bool mixed = false;
    for (std::size_t i = 0; i < old->iters.size(); ++i) {
      if (!uses_var(index_map.outputs[k], index_map.inputs[i].get())) continue;
      mixed |= kind && *kind != old->iters[i].kind;
      kind = old->iters[i].kind;
    }
    if (mixed) {
      Refusal r = refuse(s, "schedule.transform_block_layout.kinds",
                         cat("transform_block_layout of ", name_of(old), ": the new iterator ",
                             print(index_map.outputs[k]), " joins spatial and reduction iterators"),
                         realize);
      r.note("legal: outputs each made of spatial iterators only or of reduction iterators only");
      return r;
    }
    const Var var = make_var(cat("v", k)), loop = make_var(cat("ax", k));
    const Range dom{make_zero(var->dtype), extent};
    changed->iters.push_back({var, dom, kind.value_or(IterKind::spatial)});
    inside.bind(var, dom);
    outputs.push_back(var);
    loops.push_back({loop, extent});
    values.push_back(loop);
    out.result.push_back({loop});
  }
  VarMap back;
  for (std::size_t i = 0; i < old->iters.size(); ++i)
    back[old->iters[i].var.get()] = make_zero(old->iters[i].var->dtype);  // extent 1: in no digit
  for (const auto& [var, value] : arith::inverse_iter_map(map.indices, outputs)) {
    for (std::size_t i = 0; i < old->iters.size(); ++i) {
      if (index_map.inputs[i].get() == var.get())
        back[old->iters[i].var.get()] = inside.simplify(value);
    }
  }
  for (BufferRegion& r : changed->reads) r = substitute(r, back);
  for (BufferRegion& r : changed->writes) r = substitute(r, back);
  for (MatchBuffer& m : changed->match_buffers) m.source = substitute(m.source, back);
  changed->body = substitute(old->body, back);
  if (old->init) changed->init = substitute(old->init, back);
  // (group * 4 + digit) // 4 is the group: what reads it no longer moves with the digit.
  const Stmt simple = arith::simplify(block_realize(values, make_bool(true), changed));
  const auto* realized = as<BlockRealizeNode>(simple);
  Stmt body = block_realize(std::move(values), make_bool(true),
                            realized ? realized->block : Block(changed));
  for (std::size_t i = loops.size(); i-- > 0;)
    body = make_for(loops[i].first, make_zero(dtypes::int64), loops[i].second, std::move(body));
  out.mod = with_body(s.mod, path.func, replace(path, std::move(body), nest->top));
  return std::nullopt;
}

}  // namespace weft::schedule
