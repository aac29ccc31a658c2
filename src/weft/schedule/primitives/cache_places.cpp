// SPDX-License-Identifier: Apache-2.0
#include "weft/schedule/primitives/cache_places.h"

#include <algorithm>

#include "weft/base/text.h"
#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/ir/regions.h"
#include "weft/schedule/analysis.h"
#include "weft/schedule/primitives/annotate.h"
#include "weft/schedule/primitives/cache.h"
#include "weft/schedule/primitives/cache_parts.h"
#include "weft/schedule/primitives/compute_at.h"

namespace weft::schedule {

using namespace ir;

Verdict CacheInplace::transform(const State& s, Outcome<Result>& out) const {
  Path path;
  WEFT_TRY(locate_inner(s, block, kName, path));
  const BlockRealizeNode* realize = path.realize();
  const BlockNode* node = realize->block.get();
  WEFT_TRY(check_buffer_index(s, kName, path, node->reads, read_buffer_index, "reads"));
  WEFT_TRY(check_scope(s, kName, storage_scope));
  const Buffer buffer = node->reads[static_cast<std::size_t>(read_buffer_index)].buffer;
  const BufferRegion* written = region_of(node->writes, buffer.get());
  if (!written) {
    Refusal r = refuse(s, "schedule.cache_inplace.buffer",
                       cat("cache_inplace: block ", name_of(node), " reads \"", buffer->name,
                           "\" but does not write it"),
                       realize);
    r.note("legal: buffers that the block reads and writes");
    r.repair(cat("sch.cache_read(block, ", read_buffer_index, ", \"", storage_scope, "\")"));
    return r;
  }
  auto stmts = statements(path.scope()->block->body);
  const std::size_t top = top_statement(stmts, path);
  for (const Leaf& leaf : leaves(stmts[top])) {
    if (leaf.block() == node ||
        (!reads(leaf.block(), buffer.get()) && !writes(leaf.block(), buffer.get())))
      continue;
    Refusal r = refuse(s, "schedule.cache_inplace.nest",
                       cat("cache_inplace: block ", name_of(leaf.block()), " in the nest of ",
                           name_of(node), " uses \"", buffer->name, "\", too"),
                       leaf.realize);
    r.note(
        "legal: nests in which only the block uses the buffer; cache_write before "
        "decompose_reduction");
    return r;
  }
  std::vector<const ForNode*> loops;
  for (const Leaf& leaf : leaves(stmts[top])) {
    if (leaf.block() == node) loops = leaf.loops;
  }
  arith::Analyzer analyzer;
  bind_path(analyzer, path);
  const auto exact =
      relax_exact(bound_region(*written, realize), loops, realize->predicate, analyzer);
  if (!exact) {
    Refusal r = refuse(s, "schedule.cache_inplace.inexact",
                       cat("cache_inplace: the part of \"", buffer->name, "\" that block ",
                           name_of(node), " writes is not provably a box"),
                       realize);
    r.note("legal: affine bindings whose predicates bound one index each");
    return r;
  }
  auto taken =
      relax(bound_region(node->reads[static_cast<std::size_t>(read_buffer_index)], realize), loops,
            realize->predicate, analyzer);
  for (std::size_t d = 0; d < taken.size(); ++d) {
    if (!taken[d].min || !taken[d].extent)
      taken[d] = {make_zero(buffer->shape[d]->dtype), buffer->shape[d]};
  }
  const Buffer cache = cache_of(buffer, storage_scope);
  std::uint64_t in = 0, back = 0;
  arith::Analyzer outside;
  bind_path(outside, path.prefix(path.scope_index()));
  const Stmt load_copy = copy_nest(buffer, cache, clip(taken, buffer, outside), cache->name, in);
  const Stmt store_copy =
      copy_nest(cache, buffer, clip(*exact, buffer, outside), cat(cache->name, "_back"), back);
  const Stmt changed = use_buffers(stmts[top], {node->id}, {{buffer.get(), cache}});
  stmts[top] = seq({load_copy, changed, store_copy});
  out.mod = add_to_scope(s, path, {cache}, seq(std::move(stmts)));
  out.result = {BlockRef{in}, BlockRef{back}};
  return std::nullopt;
}

// ---- cache_index

namespace {

/// Index expressions of a block, with how often each occurs.
struct IndexUses {
  std::vector<std::pair<Expr, std::int64_t>> found;

  void add(const Expr& e, const std::unordered_set<const VarNode*>& iters) {
    if (e->kind == ExprKind::var || e->kind == ExprKind::int_imm || !e->dtype.is_int() ||
        !e->dtype.is_scalar())
      return;
    bool plain = true;
    for_each_expr(e, [&](const Expr& x) {
      plain = plain && x->kind != ExprKind::load && x->kind != ExprKind::call &&
              x->kind != ExprKind::let;
    });
    const auto vars = used_vars(e);
    plain = plain && !vars.empty() &&
            std::all_of(vars.begin(), vars.end(), [&](const VarNode* v) { return iters.count(v); });
    if (!plain) return;
    for (auto& [known, count] : found) {
      if (same_expr(known, e)) {
        ++count;
        return;
      }
    }
    found.push_back({e, 1});
  }
};

class UseIndices final : public Rewriter {
 public:
  explicit UseIndices(const std::vector<std::pair<Expr, Expr>>& map) : map_(map) {}
  using Rewriter::rewrite;
  Expr rewrite(const Expr& e) override {
    if (inside_ > 0) {
      for (const auto& [from, to] : map_) {
        if (same_expr(e, from)) return to;
      }
    }
    return Rewriter::rewrite(e);
  }

 protected:
  Expr rewrite_load(const Expr& e) override {
    const auto* l = as<LoadNode>(e);
    return load(l->buffer, indices(l->indices));
  }
  Stmt rewrite_store(const Stmt& s) override {
    const auto* t = as<StoreNode>(s);
    return store(t->buffer, rewrite(t->value), indices(t->indices));
  }

 private:
  Exprs indices(const Exprs& list) {
    ++inside_;
    Exprs out;
    for (const Expr& e : list) out.push_back(rewrite(e));
    --inside_;
    return out;
  }
  const std::vector<std::pair<Expr, Expr>>& map_;
  int inside_ = 0;
};

void collect_indices(const BlockNode* block, IndexUses& uses) {
  std::unordered_set<const VarNode*> iters;
  for (const IterVar& iter : block->iters) iters.insert(iter.var.get());
  for (const Stmt& part : {block->init, block->body}) {
    if (!part) continue;
    for_each_expr(part, [&](const Expr& e) {
      if (const auto* l = as<LoadNode>(e)) {
        for (const Expr& i : l->indices) uses.add(i, iters);
      }
    });
    for_each_stmt(part, [&](const Stmt& x) {
      if (const auto* t = as<StoreNode>(x)) {
        for (const Expr& i : t->indices) uses.add(i, iters);
      }
    });
  }
}

}  // namespace

Verdict CacheIndex::transform(const State& s, Outcome<Result>& out) const {
  Path path;
  WEFT_TRY(locate_inner(s, block, kName, path));
  WEFT_TRY(check_scope(s, kName, storage_scope));
  const BlockNode* node = path.realize()->block.get();
  IndexUses uses;
  collect_indices(node, uses);
  std::int64_t most = 0;
  for (const auto& [e, count] : uses.found) most = std::max(most, count);
  std::erase_if(uses.found, [&](const auto& row) { return row.second < cse_thresh; });
  if (uses.found.empty()) {
    Refusal r = refuse(s, "schedule.cache_index.none",
                       cat("cache_index of ", name_of(node),
                           " finds no index expression that is "
                           "used ",
                           std::max<std::int64_t>(cse_thresh, 1), " times"),
                       path.target().get());
    r.note(cat("found: ", most, " uses of the most used expression of iterators"));
    r.note("legal: blocks with indices that are more than an iterator, such as A[vi // 2]");
    return r;
  }
  std::vector<Buffer> buffers;
  std::vector<Stmt> stmts;
  std::vector<std::pair<Expr, Expr>> map;
  for (const auto& [value, count] : uses.found) {
    const std::string name = cat(node->name, "_index", buffers.size());
    auto maker = make_ref<BlockNode>();
    maker->id = fresh_block_id();
    maker->name = name;
    Exprs shape, here, there, values;
    VarMap iters;
    std::vector<std::pair<Var, Expr>> nest;
    for (const IterVar& iter : node->iters) {
      if (!uses_var(value, iter.var.get())) continue;
      const Var v = make_var(cat("v", nest.size()), iter.var->dtype);
      const Var loop = make_var(cat("ax", nest.size()), iter.var->dtype);
      const Range dom{make_zero(v->dtype), iter.dom.extent};
      maker->iters.push_back({v, dom, IterKind::spatial});
      iters[iter.var.get()] = Expr(v) + iter.dom.min;
      here.push_back(v);
      there.push_back(Expr(iter.var) - iter.dom.min);
      shape.push_back(iter.dom.extent);
      values.push_back(loop);
      nest.push_back({loop, iter.dom.extent});
    }
    const Buffer buffer = make_buffer(name, value->dtype, shape, storage_scope);
    maker->body = store(buffer, substitute(value, iters), here);
    maker->writes = {point_region(buffer, here)};
    Stmt made = block_realize(std::move(values), make_bool(true), maker);
    for (std::size_t i = nest.size(); i-- > 0;)
      made = make_for(nest[i].first, make_zero(nest[i].first->dtype), nest[i].second, made);
    stmts.push_back(made);
    buffers.push_back(buffer);
    map.push_back({value, load(buffer, there)});
    out.result.push_back({maker->id});
  }
  auto changed = edit(path.realize()->block);
  UseIndices use(map);
  changed->body = use.rewrite(node->body);
  if (node->init) changed->init = use.rewrite(node->init);
  AccessRegions regions = detect_block_regions(*changed);
  changed->reads = std::move(regions.reads);
  changed->writes = std::move(regions.writes);
  const Stmt whole = replace(path, with_block(path.realize(), changed));
  Path inner = *find_block(whole, node->id);
  inner.func = path.func;
  stmts.push_back(inner.scope()->block->body);
  out.mod = add_to_scope(s, inner, buffers, seq(std::move(stmts)));
  return std::nullopt;
}

// ---- read_at, write_at

namespace {

/// One step after another on the module that the one before made.
template <typename S>
Verdict then(State& s, const S& step, Outcome<typename S::Result>& out) {
  WEFT_TRY(step.transform(s, out));
  if (out.mod) s.mod = out.mod;
  return std::nullopt;
}

}  // namespace

Verdict ReadAt::transform(const State& s, Outcome<Result>& out) const {
  State now = s;
  WEFT_TRY(then(now, CacheRead{block, read_buffer_index, storage_scope, {block}}, out));
  Outcome<Done> done;
  WEFT_TRY(then(now, ComputeAt{out.result, loop}, done));
  WEFT_TRY(then(now, Annotate{out.result, "auto_copy", Json(1)}, done));
  out.mod = now.mod;
  return std::nullopt;
}

Verdict WriteAt::transform(const State& s, Outcome<Result>& out) const {
  State now = s;
  WEFT_TRY(then(now, CacheWrite{block, write_buffer_index, storage_scope, {}}, out));
  Outcome<Done> done;
  WEFT_TRY(then(now, ReverseComputeAt{out.result, loop}, done));
  WEFT_TRY(then(now, Annotate{out.result, "auto_copy", Json(1)}, done));
  out.mod = now.mod;
  return std::nullopt;
}

}  // namespace weft::schedule
