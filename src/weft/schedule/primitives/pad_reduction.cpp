// SPDX-License-Identifier: Apache-2.0
#include "weft/ir/build.h"
#include "weft/ir/reduction_pattern.h"
#include "weft/ir/regions.h"
#include "weft/schedule/analysis.h"
#include "weft/schedule/primitives/loop_checks.h"
#include "weft/schedule/primitives/reduction.h"

namespace weft::schedule {
namespace {

using namespace ir;

/// The iterator that the loop alone is bound to; npos when there is none.
std::size_t only_iterator(const BlockRealizeNode* realize, const ForNode* loop) {
  std::size_t found = npos;
  for (std::size_t i = 0; i < realize->iter_values.size(); ++i) {
    if (!uses_var(realize->iter_values[i], loop->var.get())) continue;
    if (found != npos || realize->iter_values[i].get() != loop->var.get()) return npos;
    found = i;
  }
  return found;
}

}  // namespace

Verdict PadReduction::transform(const State& s, Outcome<Result>& out) const {
  Path path;
  WEFT_TRY(locate(s, loop, path));
  const ForNode* old = path.loop();
  WEFT_TRY(check_plain_loop(s, kName, old));
  WEFT_TRY(check_starts_at_zero(s, kName, old));
  if (factor.value < 1)
    return refuse(s, "schedule.pad_reduction.factor",
                  cat("pad_reduction of ", name_of(old), " got the factor ", factor.value), old)
        .note("legal: factors of at least 1");
  const auto under = leaves(path.target());
  const BlockRealizeNode* realize = under.size() == 1 ? under[0].realize : nullptr;
  const std::size_t at = realize ? only_iterator(realize, old) : npos;
  const bool reduces = at != npos && realize->block->iters[at].kind == IterKind::reduce &&
                       realize->block->init && !uses_var(realize->predicate, old->var.get());
  const auto pattern = reduces ? match_reduction(realize->block.get()) : std::nullopt;
  if (!pattern)
    return refuse(s, "schedule.pad_reduction.block",
                  cat("pad_reduction needs one block under ", name_of(old),
                      ", a reduction with an init and a known combination, one of whose R "
                      "iterators is the loop and nothing else"),
                  old)
        .note("legal: loops of a reduction before they are split or fused");
  const IterVar iter = realize->block->iters[at];
  const DType type = old->var->dtype;
  const Expr multiple = make_int(factor.value, type);
  arith::Analyzer analyzer;
  bind_around(analyzer, path);
  const Expr extent = analyzer.simplify(
      floordiv(old->extent + make_int(factor.value - 1, type), multiple) * multiple);
  if (analyzer.prove_equal(extent, old->extent)) {
    out.mod = s.mod;
    return std::nullopt;
  }
  const Expr inside = lt(iter.var, old->extent);
  auto block = edit(realize->block);
  block->iters[at].dom.extent = extent;
  Exprs held, joining;
  std::vector<Buffer> targets;
  const Exprs& indices = pattern->updates[0]->indices;
  for (std::size_t i = 0; i < pattern->updates.size(); ++i) {
    targets.push_back(pattern->updates[i]->buffer);
    held.push_back(load(targets[i], indices));
    joining.push_back(if_then_else(inside, pattern->rest[i], pattern->reducer->identity[i]));
  }
  block->body = store_joined(*pattern->reducer, targets, held, joining, indices);
  AccessRegions found = detect_block_regions(*block);
  block->reads = std::move(found.reads);
  block->writes = std::move(found.writes);
  const auto inner = find_block(s.mod, {realize->block->id});
  const Stmt body = replace(*inner, with_block(realize, block));
  const auto place = find_loop(body, old->var.get());
  const ForNode* now = place->loop();
  out.mod = with_body(s.mod, path.func,
                      replace(*place, make_for(now->var, now->min, extent, now->body, now->for_kind,
                                               now->axis, now->annotations)));
  return std::nullopt;
}

}  // namespace weft::schedule
