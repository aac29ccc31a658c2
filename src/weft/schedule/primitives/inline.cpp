// SPDX-License-Identifier: Apache-2.0
#include "weft/schedule/primitives/inline.h"

#include <algorithm>

#include "weft/base/text.h"
#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/ir/regions.h"
#include "weft/ir/share.h"
#include "weft/schedule/analysis.h"
#include "weft/schedule/rebind.h"

namespace weft::schedule {
namespace {

using namespace ir;

/// Rebuilds the declared regions of every block whose body changed, or whose regions are out of
/// date.
class RegionRewriter : public Rewriter {
 public:
  Block rewrite_block(const Block& block) override {
    Stmt init = block->init ? rewrite(block->init) : nullptr;
    Stmt body = rewrite(block->body);
    if (init == block->init && body == block->body && !outdated(*block)) return block;
    auto out = edit(block);
    out->init = std::move(init);
    out->body = std::move(body);
    if (!block->iters.empty() || !block->reads.empty() || !block->writes.empty()) {
      AccessRegions found = detect_block_regions(*out);
      out->reads = std::move(found.reads);
      out->writes = std::move(found.writes);
    }
    return out;
  }

 protected:
  virtual bool outdated(const BlockNode&) const { return false; }
};

/// Loads of one buffer become an expression of the indices.
class InlineLoads final : public RegionRewriter {
 public:
  InlineLoads(const BufferNode* buffer, std::vector<const VarNode*> vars, Expr value)
      : buffer_(buffer), vars_(std::move(vars)), value_(std::move(value)) {}
  bool refused = false;  // an access that is no plain element load

 protected:
  /// A block may be said to read the buffer and load nothing of it: a choice was made since.
  bool outdated(const BlockNode& b) const override {
    return std::any_of(b.reads.begin(), b.reads.end(),
                       [&](const BufferRegion& r) { return r.buffer.get() == buffer_; });
  }
  Expr rewrite_load(const Expr& e) override {
    const auto* n = static_cast<const LoadNode*>(e.get());
    if (n->buffer.get() != buffer_) return Rewriter::rewrite_load(e);
    if (n->dtype.lanes != 1) refused = true;
    VarMap map;
    for (std::size_t i = 0; i < vars_.size(); ++i) {
      if (vars_[i]) map[vars_[i]] = rewrite(n->indices[i]);
    }
    return substitute(value_, map);
  }

 private:
  const BufferNode* buffer_;
  std::vector<const VarNode*> vars_;
  Expr value_;
};

bool has_match_buffer(const Stmt& s, const BufferNode* buffer) {
  bool found = false;
  for_each_stmt(s, [&](const Stmt& x) {
    if (const auto* realize = as<BlockRealizeNode>(x)) {
      for (const MatchBuffer& m : realize->block->match_buffers)
        found |= m.source.buffer.get() == buffer;
    }
  });
  return found;
}

/// A buffer given to a function rather than loaded from.
bool takes_address(const Stmt& s, const BufferNode* buffer) {
  bool found = false;
  for_each_expr(s, [&](const Expr& e) {
    const auto* c = as<CallNode>(e);
    if (!c || c->op != "address_of") return;
    for (const Expr& a : c->args) {
      const auto* l = as<LoadNode>(a);
      found |= l && l->buffer.get() == buffer;
    }
  });
  return found;
}

std::string slug(std::string_view step, std::string_view reason) {
  return cat("schedule.", step, ".", reason);
}

/// What both directions ask of the block that goes away: no init, a body of one store, everything
/// complete.
Verdict check_leaf(const State& s, std::string_view step, const Path& path,
                   const std::vector<Leaf>& scope, const StoreNode*& stored) {
  const BlockNode* block = path.realize()->block.get();
  if (block->init) {
    return refuse(s, slug(step, "init"),
                  cat(step, ": block ", name_of(block), " is a reduction with an init"),
                  path.realize())
        .note("legal: blocks without init")
        .repair(
            "sch.compute_at moves a reduction to its consumers, sch.reverse_compute_inline folds "
            "an element-wise consumer into it");
  }
  if (auto why = why_not_complete(scope, block); !why.empty()) {
    Refusal r =
        refuse(s, slug(step, "block"),
               cat(step, ": block ", name_of(block), " is not complete: ", why), path.realize());
    r.note(
        "legal: blocks with spatial iterators only, the only writers of their output, reading "
        "nothing they write");
    return r;
  }
  stored = as<StoreNode>(block->body);
  if (!stored || block->writes.size() != 1) {
    Refusal r = refuse(s, slug(step, "body"),
                       cat(step, ": the body of block ", name_of(block), " is not a single store"),
                       path.realize());
    r.note("legal: blocks of the form B[i, j] = expression");
    return r;
  }
  if (auto why = why_not_pipeline(scope, s.facts.get()); !why.empty()) {
    return refuse(s, slug(step, "pipeline"),
                  cat(step, " of ", name_of(block),
                      " needs a scope in which data only flows forward: ", why),
                  path.realize())
        .note("legal: scopes in which each buffer is finished before it is read");
  }
  return std::nullopt;
}

bool is_own(const Path& path, const Buffer& buffer) {
  const auto& own = path.scope()->block->alloc_buffers;
  return std::find(own.begin(), own.end(), buffer) != own.end();
}

/// The scope's body changed and one of its buffers gone.
IRModule finish(const State& s, const Path& path, const Buffer& gone, const Stmt& body) {
  const auto fresh = find_block(body, path.scope()->block->id);
  auto scope = edit(fresh->realize()->block);
  std::erase(scope->alloc_buffers, gone);
  return with_body(s.mod, path.func, replace(*fresh, with_block(fresh->realize(), scope)));
}

}  // namespace

/// Stages that read the one before twice double with each that is inlined.
constexpr std::int64_t kMostPlaces = 10000;

Verdict ComputeInline::transform(const State& s, Outcome<Result>& out) const {
  Path path;
  WEFT_TRY(locate_inner(s, block, kName, path));
  const auto scope = leaves(path.scope()->block->body);
  const BlockNode* producer = path.realize()->block.get();
  const StoreNode* stored = nullptr;
  WEFT_TRY(check_leaf(s, kName, path, scope, stored));
  const Buffer& buffer = stored->buffer;
  if (!is_own(path, buffer)) {
    Refusal r = refuse(s, "schedule.compute_inline.output",
                       cat("compute_inline: block ", name_of(producer), " writes \"", buffer->name,
                           "\", which is an output of its scope"),
                       path.realize());
    r.note("legal: blocks whose results only this scope uses");
    return r;
  }
  std::vector<const VarNode*> vars;
  for (const Expr& index : stored->indices) {
    const auto* v = as<VarNode>(index);
    const bool fixed = !v && used_vars(index).empty();
    const bool twice = v && std::find(vars.begin(), vars.end(), v) != vars.end();
    if ((!v && !fixed) || twice) {
      Refusal r = refuse(s, "schedule.compute_inline.index",
                         cat("compute_inline: block ", name_of(producer), " stores \"",
                             buffer->name, "\" at indices that are not distinct iterators"),
                         path.realize());
      r.note("legal: B[i, j] = ..., each index an iterator of its own");
      return r;
    }
    vars.push_back(v);
  }
  VarMap fixed;
  for (const IterVar& iter : producer->iters) {
    if (std::find(vars.begin(), vars.end(), iter.var.get()) != vars.end() ||
        !uses_var(stored->value, iter.var.get()))
      continue;
    if (!is_const_int_value(iter.dom.extent, 1)) {
      Refusal r =
          refuse(s, "schedule.compute_inline.index",
                 cat("compute_inline: the value of block ", name_of(producer), " depends on \"",
                     iter.var->name, "\", which does not index \"", buffer->name, "\""),
                 path.realize());
      r.note("legal: values that depend on the store's indices only");
      return r;
    }
    fixed[iter.var.get()] = iter.dom.min;
  }
  if (const std::int64_t places = tree_size(stored->value); places > kMostPlaces) {
    Refusal r = refuse(s, "schedule.compute_inline.size",
                       cat("compute_inline: the value of block ", name_of(producer),
                           " is a tree of ", places, " expressions, which each use would repeat"),
                       path.realize());
    r.note(cat("legal: values of at most ", kMostPlaces, " expressions"));
    return r;
  }
  const Stmt without = remove(path);
  if (!without) {
    return refuse(s, "schedule.compute_inline.only",
                  cat("compute_inline: block ", name_of(producer), " is the only one of its scope"),
                  path.realize())
        .note("legal: scopes with several blocks");
  }
  const Stmt& scope_body = find_block(without, path.scope()->block->id)->realize()->block->body;
  InlineLoads rewriter(buffer.get(), vars, substitute(stored->value, fixed));
  const Stmt body = rewriter.rewrite(scope_body);
  if (rewriter.refused || has_match_buffer(scope_body, buffer.get()) ||
      takes_address(scope_body, buffer.get()) || used_buffers(body).contains(buffer.get())) {
    Refusal r =
        refuse(s, "schedule.compute_inline.opaque",
               cat("compute_inline: \"", buffer->name, "\" is used other than by element loads"),
               path.realize());
    r.note("legal: buffers that are only loaded from, element by element");
    return r;
  }
  const auto at = find_block(without, path.scope()->block->id);
  auto changed = edit(at->realize()->block);
  changed->body = body;
  out.mod = finish(s, path, buffer, replace(*at, with_block(at->realize(), changed)));
  return std::nullopt;
}

Verdict ReverseComputeInline::transform(const State& s, Outcome<Result>& out) const {
  Path path;
  WEFT_TRY(locate_inner(s, block, kName, path));
  const auto scope = leaves(path.scope()->block->body);
  const BlockNode* consumer = path.realize()->block.get();
  const std::size_t self = index_of(scope, consumer);
  const StoreNode* stored = nullptr;
  WEFT_TRY(check_leaf(s, kName, path, scope, stored));
  const auto producers = producers_of(scope, self);
  if (producers.size() != 1) {
    std::vector<std::string> names;
    for (std::size_t i : producers) names.push_back(scope[i].block()->name);
    Refusal r = refuse(s, "schedule.reverse_compute_inline.producer",
                       cat("reverse_compute_inline: block ", name_of(consumer), " has ",
                           producers.size(), " producers"),
                       path.realize());
    r.note(cat("found: ", quoted(names)));
    r.note("legal: exactly one producer");
    return r;
  }
  const Leaf& from = scope[producers[0]];
  const BlockNode* producer = from.block();
  const auto* made = as<StoreNode>(producer->body);
  if (!made || producer->writes.size() != 1 || producer->init ||
      !why_not_complete(scope, producer).empty()) {
    Refusal r = refuse(s, "schedule.reverse_compute_inline.producer",
                       cat("reverse_compute_inline: the producer ", name_of(producer),
                           " is not a complete block with a single store"),
                       from.realize);
    r.note("legal: element-wise producers; a reduction's result is only final after its last step");
    return r;
  }
  const Buffer& buffer = made->buffer;
  if (!is_own(path, buffer) || consumers_of(scope, producers[0]).size() != 1) {
    Refusal r = refuse(s, "schedule.reverse_compute_inline.shared",
                       cat("reverse_compute_inline: \"", buffer->name, "\" is used by others than ",
                           name_of(consumer)),
                       path.realize());
    r.note("legal: a buffer of this scope that only the block reads");
    return r;
  }
  arith::Analyzer analyzer;
  bind_path(analyzer, path);
  arith::Analyzer produced;
  bind_loops(produced, from.loops);
  bind_iters(produced, producer);
  if (!covers_domain(scope[self], analyzer) || !covers_domain(from, produced)) {
    const Leaf& guilty = covers_domain(scope[self], analyzer) ? from : scope[self];
    Refusal r = refuse(s, "schedule.reverse_compute_inline.predicate",
                       cat("reverse_compute_inline: block ", name_of(guilty.block()),
                           " does not run its whole iteration domain, or not provably"),
                       guilty.realize);
    r.note("legal: blocks whose predicate says no more than their iterators' domains");
    return r;
  }
  // Every load of the buffer at the same bijective index.
  Exprs indices;
  bool same = !has_match_buffer(consumer->body, buffer.get()) &&
              !takes_address(consumer->body, buffer.get());
  for_each_expr(consumer->body, [&](const Expr& e) {
    const auto* l = as<LoadNode>(e);
    if (!l || l->buffer != buffer) return;
    if (indices.empty()) indices = l->indices;
    for (std::size_t i = 0; i < indices.size(); ++i)
      same = same && same_expr(indices[i], l->indices[i]);
  });
  std::vector<IterVar> iters;
  for (const IterVar& iter : consumer->iters) {
    if (!is_const_int_value(iter.dom.extent, 1)) iters.push_back(iter);
  }
  auto map =
      arith::detect_iter_map(indices, iters, make_bool(true), arith::MapLevel::bijective, analyzer);
  if (!same || indices.empty() || !map.ok()) {
    Refusal r = refuse(s, "schedule.reverse_compute_inline.index",
                       cat("reverse_compute_inline: block ", name_of(consumer), " does not read \"",
                           buffer->name, "\" once per element"),
                       path.realize());
    if (!map.ok()) r.note(cat("found: ", map.error));
    r.note("legal: one index that maps the block's iterators one to one");
    return r;
  }
  // Elements beyond what the producer makes (padding under a lazy choice) would have no one to
  // write them.
  arith::Analyzer reach;
  bind_iters(reach, consumer);
  for (std::size_t d = 0; d < indices.size(); ++d) {
    if (reach.prove(ge(indices[d], make_zero(indices[d]->dtype))) &&
        reach.prove(lt(indices[d], buffer->shape[d])))
      continue;
    Refusal r = refuse(
        s, "schedule.reverse_compute_inline.domain",
        cat("reverse_compute_inline: block ", name_of(consumer), " also makes elements for which ",
            name_of(producer), " makes nothing, or not provably none: its index ", d, " of \"",
            buffer->name, "\" leaves the buffer"),
        path.realize());
    r.note("legal: consumers that run through what the producer makes and no further");
    r.repair("sch.compute_inline of the producer");
    return r;
  }
  VarMap inverse;
  for (const IterVar& iter : consumer->iters) {
    if (is_const_int_value(iter.dom.extent, 1)) inverse[iter.var.get()] = iter.dom.min;
  }
  for (auto& [var, e] : arith::inverse_iter_map(map.indices, made->indices))
    inverse[var.get()] = produced.simplify(e);
  InlineLoads rewriter(buffer.get(), std::vector<const VarNode*>(buffer->ndim(), nullptr),
                       made->value);
  Exprs at;
  for (const Expr& e : stored->indices)
    at.push_back(produced.simplify(substitute(rewriter.rewrite(e), inverse)));
  // The producer's value moves in untouched: its iterators are not the consumer's.
  Expr value = rewriter.rewrite(substitute(stored->value, inverse));
  Stmt body = store(stored->buffer, std::move(value), std::move(at));
  Expr inside = make_bool(true);
  for (const IterVar& iter : consumer->iters) {
    const Expr& e = inverse.at(iter.var.get());
    for (const Expr& bound : {ge(e, iter.dom.min), lt(e, iter.dom.min + iter.dom.extent)}) {
      if (!produced.prove(bound)) inside = both(inside, produced.simplify(bound));
    }
  }
  if (!is_const_int_value(inside, 1)) body = if_then(inside, body);
  const Stmt without = remove(path);  // the producer stays
  const auto place = find_block(without, producer->id);
  auto merged = edit(place->realize()->block);
  merged->body = std::move(body);
  AccessRegions found = detect_block_regions(*merged);
  merged->reads = std::move(found.reads);
  merged->writes = std::move(found.writes);
  out.mod = finish(s, path, buffer, replace(*place, with_block(place->realize(), merged)));
  return std::nullopt;
}

}  // namespace weft::schedule
