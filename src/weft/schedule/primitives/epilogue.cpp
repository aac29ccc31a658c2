// SPDX-License-Identifier: Apache-2.0
#include "weft/schedule/primitives/epilogue.h"

#include <algorithm>

#include "weft/base/text.h"
#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/ir/reduction_pattern.h"
#include "weft/ir/regions.h"
#include "weft/schedule/analysis.h"

namespace weft::schedule {
namespace {

using namespace ir;

Refusal refusal(const State& s, std::string_view slug, std::string why, std::string legal,
                const void* culprit) {
  return refuse(s, cat("schedule.fuse_reduction_epilogue.", slug),
                cat("fuse_reduction_epilogue: ", why), culprit)
      .note(cat("legal: ", legal));
}

/// a OP b with exactly one side a load of `buffer`: the other side. Null otherwise.
Expr joined_with(const Expr& value, ExprKind op, const Buffer& buffer, const LoadNode*& own) {
  const auto* b = as<BinaryNode>(value);
  if (!b || value->kind != op) return nullptr;
  const auto is_own = [&](const Expr& e) {
    const auto* l = as<LoadNode>(e);
    return l && l->buffer == buffer;
  };
  if (is_own(b->a) == is_own(b->b)) return nullptr;
  own = as<LoadNode>(is_own(b->a) ? b->a : b->b);
  const Expr& rest = is_own(b->a) ? b->b : b->a;
  bool again = false;
  for_each_expr(rest, [&](const Expr& e) { again |= is_own(e); });
  return again ? nullptr : rest;
}

}  // namespace

Verdict FuseReductionEpilogue::transform(const State& s, Outcome<Result>& out) const {
  Path path, last;
  WEFT_TRY(locate_inner(s, reduction_block, kName, path));
  WEFT_TRY(locate_inner(s, epilogue_block, kName, last));
  const BlockNode* reduction = path.realize()->block.get();
  const BlockNode* epilogue = last.realize()->block.get();
  if (path.scope() != last.scope())
    return refusal(s, "scope",
                   cat("blocks ", name_of(reduction), " and ", name_of(epilogue),
                       " stand in different scopes"),
                   "two blocks of one scope", last.realize());
  const auto scope = leaves(path.scope()->block->body);
  const std::size_t first = index_of(scope, reduction), second = index_of(scope, epilogue);
  arith::Analyzer analyzer, behind;
  bind_path(analyzer, path);
  bind_path(behind, last);
  const auto pattern = match_reduction(reduction);
  if (auto why = why_not_reduction(scope, scope[first], analyzer);
      !why.empty() || !pattern || pattern->updates.size() != 1)
    return refusal(s, "reduction",
                   cat("block ", name_of(reduction), " is not a reduction of one value",
                       why.empty() ? "" : ": ", why),
                   "reductions with an init and one accumulator; before decompose_reduction",
                   path.realize());
  const StoreNode* update = pattern->updates[0];
  const Buffer& buffer = update->buffer;
  const auto consumers = consumers_of(scope, first);
  const auto& own = path.scope()->block->alloc_buffers;
  if (consumers != std::vector<std::size_t>{second} ||
      std::find(own.begin(), own.end(), buffer) == own.end())
    return refusal(s, "consumer",
                   cat("block ", name_of(epilogue), " is not the only reader of \"", buffer->name,
                       "\", or that is an output"),
                   "an intermediate result that the epilogue alone reads", last.realize());
  const auto* stored = as<StoreNode>(epilogue->body);
  const Expr combined = pattern->reducer->result[0];
  const LoadNode* loaded = nullptr;
  const Expr rest = stored ? joined_with(stored->value, combined->kind, buffer, loaded) : nullptr;
  if (!rest || !why_not_complete(scope, epilogue).empty())
    return refusal(s, "operator",
                   cat("block ", name_of(epilogue), " does not join \"", buffer->name,
                       "\" with a value by the reduction's operator"),
                   "D[...] = C[...] OP value, OP that of the reduction (+, *, min, max)",
                   last.realize());
  if (stored->buffer->dtype != buffer->dtype)
    return refusal(s, "dtype",
                   cat("\"", buffer->name, "\" is ", to_string(buffer->dtype), " and \"",
                       stored->buffer->name, "\" is ", to_string(stored->buffer->dtype)),
                   "results of the accumulator's type", last.realize());
  // Both index by iterators, one each: the epilogue's by the reduction's.
  VarMap map;
  bool plain = true;
  for (std::size_t d = 0; d < loaded->indices.size(); ++d) {
    const auto* there = as<VarNode>(loaded->indices[d]);
    const auto* here = as<VarNode>(update->indices[d]);
    plain = plain && there && here && map.emplace(there, update->indices[d]).second;
  }
  for (const IterVar& iter : epilogue->iters) {
    const auto at = map.find(iter.var.get());
    if (at == map.end()) {
      plain = plain && is_const_int_value(iter.dom.extent, 1);
      map[iter.var.get()] = iter.dom.min;
      continue;
    }
    for (const IterVar& own_iter : reduction->iters) {
      if (own_iter.var.get() == at->second.get())
        plain = plain && own_iter.kind == IterKind::spatial &&
                analyzer.prove_equal(own_iter.dom.min, iter.dom.min) &&
                analyzer.prove_equal(own_iter.dom.extent, iter.dom.extent);
    }
  }
  if (!plain || !covers_domain(scope[second], behind) || !covers_domain(scope[first], analyzer))
    return refusal(s, "index",
                   cat("the iterators of ", name_of(epilogue), " and ", name_of(reduction),
                       " do not run through \"", buffer->name, "\" one for one"),
                   "C[vi, vj] written and read at plain iterators of equal domains, no predicates",
                   last.realize());
  for (const BufferRegion& r : epilogue->reads) {
    for (std::size_t k = first; k < scope.size(); ++k) {
      if (r.buffer == buffer || k == second || !writes(scope[k].block(), r.buffer.get())) continue;
      return refusal(
          s, "late",
          cat("\"", r.buffer->name, "\", which ", name_of(epilogue), " reads, is written by ",
              name_of(scope[k].block()), " after ", name_of(reduction)),
          "values that stand before the reduction does", scope[k].realize);
    }
  }
  for (std::size_t k = first; k < second; ++k) {
    if (reads(scope[k].block(), stored->buffer.get()))
      return refusal(s, "late",
                     cat("\"", stored->buffer->name, "\" is read by ", name_of(scope[k].block()),
                         " before the epilogue"),
                     "outputs that are read afterwards only", scope[k].realize);
  }
  Exprs at;
  for (const Expr& e : stored->indices) at.push_back(analyzer.simplify(substitute(e, map)));
  const Buffer target = stored->buffer;
  auto fused = edit(path.realize()->block);
  const VarMap operands{{pattern->reducer->lhs[0].get(), pattern->start[0]},
                        {pattern->reducer->rhs[0].get(), substitute(rest, map)}};
  fused->init = store(target, analyzer.simplify_value(substitute(combined, operands)), at);
  fused->body =
      store_joined(*pattern->reducer, {target}, {load(target, at)}, {pattern->rest[0]}, at);
  AccessRegions found = detect_block_regions(*fused);
  fused->reads = std::move(found.reads);
  fused->writes = std::move(found.writes);
  const Stmt without = remove(last);
  const auto place = find_block(without, reduction->id);
  Path inner = *place;
  inner.func = path.func;
  const Stmt whole = replace(inner, with_block(inner.realize(), fused));
  const auto again = find_block(whole, path.scope()->block->id);
  auto outer = edit(again->realize()->block);
  std::erase(outer->alloc_buffers, buffer);
  out.mod = with_body(s.mod, path.func, replace(*again, with_block(again->realize(), outer)));
  return std::nullopt;
}

}  // namespace weft::schedule
