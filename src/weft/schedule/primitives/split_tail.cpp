// SPDX-License-Identifier: Apache-2.0
#include "weft/schedule/primitives/split_tail.h"

#include <algorithm>

#include "weft/base/text.h"
#include "weft/ir/build.h"
#include "weft/ir/regions.h"
#include "weft/schedule/analysis.h"
#include "weft/schedule/primitives/partition.h"
#include "weft/schedule/rebind.h"

namespace weft::schedule {

using namespace ir;

Stmt SplitTail::nest(Stmt body) const {
  for (std::size_t i = vars.size(); i-- > 0;)
    body = make_for(vars[i], make_zero(vars[i]->dtype), extents[i], std::move(body));
  return body;
}

namespace {

/// At least one whole tile, or nothing could be peeled or shifted.
Verdict check_whole_tile(const State& s, const SplitTail& split, std::string_view tail) {
  const ForNode* old = split.path.loop();
  arith::Analyzer analyzer;
  bind_around(analyzer, split.path);
  if (analyzer.prove(ge(old->extent, split.tile))) return std::nullopt;
  std::int64_t extent = 0;
  Refusal r = refuse(
      s, "schedule.split.tile",
      cat("split of ", name_of(old), " with tail \"", tail, "\" needs a whole tile, which the ",
          is_const_int(old->extent, &extent) ? cat(extent, " iterations do not fill")
                                             : std::string("symbolic extent is not "
                                                           "proven to fill")),
      old);
  r.note("legal: inner factors whose product is at most the extent");
  r.repair(cat("sch.split(", old->var->name, ", ..., tail=\"guard\")"));
  return r;
}

/// The new loops around the path's loop, for bindings.
std::vector<IterVar> loops_of(const SplitTail& split, const Exprs& extents) {
  std::vector<IterVar> out = as_iters(split.path.loops());
  for (std::size_t i = 0; i < split.vars.size(); ++i)
    out.push_back(
        {split.vars[i], {make_zero(split.vars[i]->dtype), extents[i]}, IterKind::spatial});
  return out;
}

}  // namespace

Verdict split_peeled(const State& s, const SplitTail& split, IRModule& out) {
  WEFT_TRY(check_whole_tile(s, split, "peel"));
  const ForNode* old = split.path.loop();
  const DType type = old->var->dtype;
  arith::Analyzer analyzer;
  bind_around(analyzer, split.path);
  SplitTail whole = split;
  whole.extents[0] = analyzer.simplify(floordiv(old->extent, split.tile));
  const Expr done = analyzer.simplify(whole.extents[0] * split.tile);
  const VarMap map{{old->var.get(), split.index}};
  const Stmt main = whole.nest(Rebinder(loops_of(whole, whole.extents), map).rewrite(old->body));
  const Stmt tail = loop_part(split.path, make_var(cat(old->var->name, "_tail"), type), done,
                              analyzer.simplify(old->extent - done), "_tail");
  out = with_body(s.mod, split.path.func, replace(split.path, seq({main, tail})));
  return std::nullopt;
}

// ---- round_up

namespace {

Refusal rounded_refusal(const State& s, const SplitTail& split, const void* culprit,
                        std::string_view slug, std::string why, std::string legal) {
  Refusal r = refuse(s, std::string(slug),
                     cat("split of ", name_of(split.path.loop()), " with tail \"round_up\": ", why),
                     culprit);
  r.note(cat("legal: ", legal));
  r.repair(cat("sch.split(", split.path.loop()->var->name, ", ..., tail=\"peel\")"));
  return r;
}

/// Loads that an iterator's new values may take out of a buffer, beyond its end or before its
/// start, count 0 there.
class GuardLoads final : public Rewriter {
 public:
  explicit GuardLoads(arith::Analyzer& analyzer) : analyzer_(analyzer) {}

 protected:
  Stmt rewrite_for(const Stmt& s) override {
    const auto* loop = as<ForNode>(s);
    const arith::Analyzer::Scope inside(analyzer_);
    analyzer_.bind(loop->var, Range{loop->min, loop->extent});
    return Rewriter::rewrite_for(s);
  }
  Expr rewrite_load(const Expr& e) override {
    const Expr changed = Rewriter::rewrite_load(e);
    const auto* l = as<LoadNode>(changed);
    Expr inside = make_bool(true);
    for (std::size_t d = 0; d < l->indices.size(); ++d) {
      const Expr& index = l->indices[d];
      for (const Expr& fits : {ge(index, make_zero(index->dtype)), lt(index, l->buffer->shape[d])})
        if (!analyzer_.prove(fits)) inside = both(inside, fits);
    }
    return is_const_int_value(inside, 1) ? changed
                                         : if_then_else(inside, changed, make_zero(l->dtype));
  }

 private:
  arith::Analyzer& analyzer_;
};

/// The iterator of the leaf that the loop alone is; npos and a reason otherwise.
std::size_t own_iterator(const Leaf& leaf, const ForNode* loop, std::string& why) {
  std::size_t found = npos;
  for (std::size_t i = 0; i < leaf.block()->iters.size(); ++i) {
    if (!uses_var(leaf.realize->iter_values[i], loop->var.get())) continue;
    const IterVar& iter = leaf.block()->iters[i];
    if (leaf.realize->iter_values[i].get() != loop->var.get() || found != npos) {
      why = cat("it is not one iterator of block ", name_of(leaf.block()), " as it is");
      return npos;
    }
    if (iter.kind != IterKind::spatial) {
      why = cat("it feeds the reduction iterator \"", iter.var->name, "\" of block ",
                name_of(leaf.block()), "; sch.pad_reduction rounds reductions up");
      return npos;
    }
    if (!is_const_int_value(iter.dom.min, 0)) {
      why = cat("the iterator \"", iter.var->name, "\" does not start at 0");
      return npos;
    }
    found = i;
  }
  if (found == npos) why = cat("block ", name_of(leaf.block()), " does not use it");
  return found;
}

}  // namespace

Verdict split_rounded_up(const State& s, const SplitTail& split, IRModule& out) {
  const ForNode* old = split.path.loop();
  arith::Analyzer analyzer;
  bind_around(analyzer, split.path);
  const Expr rounded = analyzer.simplify(split.extents[0] * split.tile);
  BufferMap grown;
  const auto under = leaves(old->body);
  std::vector<std::pair<std::uint64_t, std::size_t>> changed;
  for (const Leaf& leaf : under) {
    std::string why;
    const std::size_t at = own_iterator(leaf, old, why);
    if (at == npos || uses_var(leaf.realize->predicate, old->var.get()))
      return rounded_refusal(
          s, split, leaf.realize, "schedule.split.round_up.iterator",
          at == npos ? why : cat("block ", name_of(leaf.block()), " has a predicate on it"),
          "loops that are one spatial iterator of every block below");
    changed.push_back({leaf.block()->id, at});
    const VarNode* iter = leaf.block()->iters[at].var.get();
    for (const BufferRegion& w : leaf.block()->writes) {
      const bool own =
          std::any_of(split.path.nodes.begin(), split.path.nodes.end(), [&](const Stmt& n) {
            const auto* r = as<BlockRealizeNode>(n);
            return r && std::find(r->block->alloc_buffers.begin(), r->block->alloc_buffers.end(),
                                  w.buffer) != r->block->alloc_buffers.end();
          });
      std::size_t axis = npos;
      bool plain = own;
      for (std::size_t d = 0; d < w.region.size(); ++d) {
        if (w.region[d].min.get() == iter && is_const_int_value(w.region[d].extent, 1)) axis = d;
        else if (uses_var(w.region[d].min, iter)) plain = false;
      }
      if (!plain || axis == npos)
        return rounded_refusal(
            s, split, leaf.realize, "schedule.split.round_up.output",
            own ? cat("block ", name_of(leaf.block()), " does not write \"", w.buffer->name,
                      "\" at the iterator itself")
                : cat("block ", name_of(leaf.block()), " writes \"", w.buffer->name,
                      "\", which the function does not allocate"),
            "intermediate buffers that the blocks index by the iterator; "
            "sch.cache_write makes one");
      Buffer& entry = grown[w.buffer.get()];
      auto bigger = edit(entry ? entry : w.buffer);
      bigger->shape[axis] = analyzer.simplify(max(bigger->shape[axis], rounded));
      entry = bigger;
    }
  }
  // Iterators and buffers grow first; then the loop is split without a guard.
  const VarMap map{{old->var.get(), split.index}};
  Stmt body = Rebinder(loops_of(split, split.extents), map).rewrite(old->body);
  Stmt nest = split.nest(std::move(body));
  for (const auto& [id, at] : changed) {
    const auto inner = find_block(nest, id);
    auto block = edit(inner->realize()->block);
    block->iters[at].dom.extent = rounded;
    nest = replace(*inner, with_block(inner->realize(), block));
  }
  Stmt whole = replace_buffers(replace(split.path, nest), grown);
  for (const auto& [id, at] : changed) {
    const auto inner = find_block(whole, id);
    auto block = edit(inner->realize()->block);
    arith::Analyzer ranges;
    bind_iters(ranges, block.get());
    block->body = GuardLoads(ranges).rewrite(block->body);
    if (block->init) block->init = GuardLoads(ranges).rewrite(block->init);
    AccessRegions found = detect_block_regions(*block);
    block->reads = std::move(found.reads);
    block->writes = std::move(found.writes);
    whole = replace(*inner, with_block(inner->realize(), block));
  }
  out = with_body(s.mod, split.path.func, std::move(whole));
  return std::nullopt;
}

// ---- shift_inwards

namespace {

/// Why running iterations of the loop once more would change what a block under it leaves; empty:
/// it would not.
std::string why_not_repeatable(const std::vector<Leaf>& under, std::size_t index,
                               const ForNode* loop) {
  const Leaf& leaf = under[index];
  const BlockNode* block = leaf.block();
  const std::string name = name_of(block);
  for (std::size_t i = 0; i < block->iters.size(); ++i) {
    if (block->iters[i].kind == IterKind::spatial) continue;
    if (uses_var(leaf.realize->iter_values[i], loop->var.get()))
      return cat("the loop feeds the reduction iterator \"", block->iters[i].var->name,
                 "\" of block ", name);
    for (const VarNode* v : used_vars(leaf.realize->iter_values[i])) {
      const bool inside = std::any_of(leaf.loops.begin(), leaf.loops.end(),
                                      [&](const ForNode* l) { return l->var.get() == v; });
      if (!inside) return cat("loops of the reduction ", name, " stand outside");
    }
  }
  for (const BufferRegion& w : block->writes) {
    if (!reads(block, w.buffer.get())) continue;
    // A decomposed reduction starts again where its init stands inside, too.
    const bool restarted = std::any_of(
        under.begin(), under.begin() + static_cast<std::ptrdiff_t>(index), [&](const Leaf& l) {
          return writes(l.block(), w.buffer.get()) && !reads(l.block(), w.buffer.get());
        });
    if (!restarted || !is_update(block)) return cat("block ", name, " adds to what it wrote");
  }
  for (std::size_t later = index + 1; later < under.size(); ++later) {
    for (const BufferRegion& w : under[later].block()->writes) {
      if (reads(block, w.buffer.get()) && !writes(block, w.buffer.get()))
        return cat("block ", name, " reads \"", w.buffer->name, "\", which ",
                   name_of(under[later].block()), " overwrites afterwards");
    }
  }
  return {};
}

}  // namespace

Verdict split_shifted(const State& s, const SplitTail& split, IRModule& out) {
  WEFT_TRY(check_whole_tile(s, split, "shift_inwards"));
  const ForNode* old = split.path.loop();
  const auto under = leaves(old->body);
  for (std::size_t i = 0; i < under.size(); ++i) {
    const std::string why = why_not_repeatable(under, i, old);
    if (why.empty()) continue;
    Refusal r = refuse(s, "schedule.split.repeated",
                       cat("split of ", name_of(old),
                           " with tail \"shift_inwards\" would run iterations twice, but ", why),
                       under[i].realize);
    r.note("legal: loops over blocks that write the same again when they run again");
    r.repair(cat("sch.split(", old->var->name, ", ..., tail=\"peel\")"));
    return r;
  }
  const DType type = old->var->dtype;
  Expr within = make_zero(type);
  for (std::size_t i = 1; i < split.vars.size(); ++i)
    within = within * split.extents[i] + Expr(split.vars[i]);
  arith::Analyzer analyzer;
  bind_around(analyzer, split.path);
  const Expr first =
      min(Expr(split.vars[0]) * split.tile, analyzer.simplify(old->extent - split.tile));
  const VarMap map{{old->var.get(), first + within}};
  Stmt body = Rebinder(loops_of(split, split.extents), map).rewrite(old->body);
  out = with_body(s.mod, split.path.func, replace(split.path, split.nest(std::move(body))));
  return std::nullopt;
}

}  // namespace weft::schedule
