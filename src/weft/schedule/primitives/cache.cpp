// SPDX-License-Identifier: Apache-2.0
#include "weft/schedule/primitives/cache.h"

#include <algorithm>
#include <unordered_set>

#include "weft/base/text.h"
#include "weft/ir/atomic.h"
#include "weft/ir/build.h"
#include "weft/schedule/analysis.h"

namespace weft::schedule {
namespace {

using namespace ir;

/// Replaces buffers inside the chosen blocks of a scope only.
class UseCache final : public Rewriter {
 public:
  UseCache(std::unordered_set<std::uint64_t> blocks, BufferMap map)
      : blocks_(std::move(blocks)), map_(std::move(map)) {}
  Buffer rewrite_buffer(const Buffer& buffer) override {
    auto it = depth_ > 0 ? map_.find(buffer.get()) : map_.end();
    return it == map_.end() ? buffer : it->second;
  }
  Block rewrite_block(const Block& block) override {
    const bool chosen = blocks_.contains(block->id);
    if (!chosen && depth_ == 0 && !contains_chosen(block)) return block;
    depth_ += chosen ? 1 : 0;
    Block out = Rewriter::rewrite_block(block);
    depth_ -= chosen ? 1 : 0;
    return out;
  }

 private:
  bool contains_chosen(const Block& block) const {
    for (const Leaf& leaf : leaves(block->body)) {
      if (blocks_.contains(leaf.block()->id)) return true;
    }
    return false;
  }
  std::unordered_set<std::uint64_t> blocks_;
  BufferMap map_;
  int depth_ = 0;
};

Buffer cache_of(const Buffer& buffer, const std::string& scope) {
  std::string suffix = scope;
  std::replace(suffix.begin(), suffix.end(), '.', '_');
  auto cache = edit(buffer);
  cache->name = cat(buffer->name, "_", suffix);
  cache->scope = scope;
  cache->strides.clear();
  cache->elem_offset = nullptr;
  return cache;
}

/// for ax..: block name: to[v..] = from[v..] over `region`.
Stmt copy_nest(const Buffer& from, const Buffer& to, const std::vector<Range>& region,
               const std::string& name, std::uint64_t& id) {
  auto block = make_ref<BlockNode>();
  block->id = id = fresh_block_id();
  block->name = name;
  std::vector<Var> loops;
  Exprs indices, values;
  std::vector<std::pair<Var, Expr>> nest;
  for (std::size_t i = 0; i < region.size(); ++i) {
    const DType type = from->shape[i]->dtype;
    const Var iter = make_var(cat("v", i), type);
    block->iters.push_back({iter, {make_zero(type), from->shape[i]}, IterKind::spatial});
    indices.push_back(iter);
    const Var loop = make_var(cat("ax", i), type);
    nest.push_back({loop, region[i].extent});
    values.push_back(region[i].min + Expr(loop));
  }
  block->reads = {point_region(from, indices)};
  block->writes = {point_region(to, indices)};
  block->body = store(to, load(from, indices), indices);
  Stmt s = block_realize(values, make_bool(true), block);
  for (std::size_t i = nest.size(); i-- > 0;) {
    s = make_for(nest[i].first, make_zero(nest[i].first->dtype), nest[i].second, std::move(s));
  }
  return s;
}

/// The lowest place that follows the producer (`path`) and precedes all `others`.
std::size_t lowest_common(const Stmt& body, const Path& path,
                          const std::vector<const BlockNode*>& others) {
  std::size_t depth = path.nodes.size() - 1;
  for (const BlockNode* block : others) {
    auto other = find_block(body, block->id);
    std::size_t common = 0;
    while (common < depth && common < other->nodes.size() &&
           other->nodes[common] == path.nodes[common])
      ++common;
    depth = std::min(depth, common);
  }
  return depth;
}

/// Loops of the path from nodes[depth] (inclusive) down.
std::vector<const ForNode*> loops_from(const Path& path, std::size_t depth) {
  std::vector<const ForNode*> out;
  for (std::size_t i = depth; i + 1 < path.nodes.size(); ++i) {
    if (const auto* loop = as<ForNode>(path.nodes[i])) out.push_back(loop);
  }
  return out;
}

Stmt insert_after(const Stmt& at, const Stmt& what) { return seq({at, what}); }

const BufferRegion* region_of(const std::vector<BufferRegion>& regions, const BufferNode* buffer) {
  for (const BufferRegion& r : regions) {
    if (r.buffer.get() == buffer) return &r;
  }
  return nullptr;
}

Verdict check_index(const State& s, std::string_view step, const Path& path,
                    const std::vector<BufferRegion>& regions, std::int64_t index,
                    std::string_view verb) {
  if (index >= 0 && index < static_cast<std::int64_t>(regions.size())) return std::nullopt;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < regions.size(); ++i)
    names.push_back(cat(i, " = ", regions[i].buffer->name));
  Refusal r = refuse(
      s, cat("schedule.", step, ".index"),
      cat(step, " asks for buffer ", index, " that block ", name_of(path.realize()->block.get()),
          " ", verb, ", but it ", verb, " ", regions.size()),
      path.target().get());
  r.note(cat("legal: ", names.empty() ? std::string("none") : join(names)));
  return r;
}

/// The chosen consumers, each a block directly in the scope that reads the buffer.
Verdict check_consumers(const State& s, std::string_view step, const std::vector<Leaf>& scope,
                        const Buffer& buffer, const std::vector<BlockRef>& chosen) {
  for (const BlockRef& ref : chosen) {
    Path path;
    WEFT_TRY(locate(s, ref, path));
    const std::size_t i = index_of(scope, path.realize()->block.get());
    if (i != npos && reads(scope[i].block(), buffer.get())) continue;
    std::vector<std::string> names;
    for (const Leaf& leaf : scope) {
      if (reads(leaf.block(), buffer.get())) names.push_back(leaf.block()->name);
    }
    Refusal r = refuse(s, cat("schedule.", step, ".consumer"),
                       cat(step, " cannot redirect block ", name_of(path.realize()->block.get()),
                           ", which does not read \"", buffer->name, "\" here"),
                       path.target().get());
    r.note(cat("blocks that read \"", buffer->name, "\" in this scope: ", quoted(names)));
    return r;
  }
  return std::nullopt;
}

Verdict several_writers(const State& s, std::string_view step, const Buffer& buffer,
                        const std::vector<std::string>& writers, const void* culprit) {
  Refusal r = refuse(s, cat("schedule.", step, ".writers"),
                     cat(step, " needs at most one writer of \"", buffer->name,
                         "\" in the scope, but there are ", writers.size()),
                     culprit);
  r.note(cat("writers: ", quoted(writers)));
  return r;
}

/// Adds the cache to the scope's allocations and puts the edited body back.
IRModule finish(const State& s, const Path& path, const Buffer& cache, Stmt body) {
  const std::size_t at = path.scope_index();
  auto scope = edit(path.scope()->block);
  scope->alloc_buffers.push_back(cache);
  scope->body = std::move(body);
  return with_body(s.mod, path.func, replace(path, with_block(path.scope(), scope), at));
}

}  // namespace

Verdict CacheRead::transform(const State& s, Outcome<Result>& out) const {
  Path path;
  WEFT_TRY(locate_inner(s, block, kName, path));
  const BlockNode* reader = path.realize()->block.get();
  WEFT_TRY(check_index(s, kName, path, reader->reads, read_buffer_index, "reads"));
  WEFT_TRY(check_scope(s, kName, storage_scope));
  const Buffer buffer = reader->reads[static_cast<std::size_t>(read_buffer_index)].buffer;
  const Stmt& body = path.scope()->block->body;
  const auto scope = leaves(body);
  WEFT_TRY(check_consumers(s, kName, scope, buffer, consumer_blocks));

  std::vector<std::string> writers;
  const Leaf* writer = nullptr;
  for (const Leaf& leaf : scope) {
    if (!writes(leaf.block(), buffer.get())) continue;
    writers.push_back(leaf.block()->name);
    writer = &leaf;
  }
  if (writers.size() > 1) return several_writers(s, kName, buffer, writers, writer->realize);

  std::unordered_set<std::uint64_t> chosen;
  std::vector<const BlockNode*> consumers;
  for (std::size_t i = 0; i < scope.size(); ++i) {
    const BlockNode* b = scope[i].block();
    if (!reads(b, buffer.get()) || (writer && b == writer->block())) continue;
    const bool listed = std::any_of(consumer_blocks.begin(), consumer_blocks.end(),
                                    [&](BlockRef r) { return r.id == b->id; });
    if (!consumer_blocks.empty() && !listed) continue;
    chosen.insert(b->id);
    consumers.push_back(b);
    if (auto why = writer ? why_not_covered(scope, i, s.facts.get()) : std::string();
        !why.empty()) {
      Refusal r =
          refuse(s, "schedule.cache_read.not_covered",
                 cat("cache_read of \"", buffer->name, "\" would copy unfinished data: ", why),
                 scope[i].realize);
      r.note("legal: buffers that are written completely before they are read");
      return r;
    }
  }
  if (consumers.empty()) {
    return refuse(s, "schedule.cache_read.consumer",
                  cat("cache_read finds no block to read a copy of \"", buffer->name,
                      "\": ", name_of(reader), " also writes it"),
                  path.target().get())
        .note("legal: buffers that the block only reads");
  }

  const Buffer cache = cache_of(buffer, storage_scope);
  std::uint64_t id = 0;
  Stmt changed;
  if (writer) {
    auto producer = find_block(body, writer->block()->id);
    const std::size_t depth = lowest_common(body, *producer, consumers);
    arith::Analyzer analyzer;
    bind_path(analyzer, path.prefix(path.scope_index()));
    bind_loops(analyzer, writer->loops);
    const auto region =
        relax(bound_region(*region_of(writer->block()->writes, buffer.get()), writer->realize),
              loops_from(*producer, depth), writer->realize->predicate, analyzer);
    const Stmt copy = copy_nest(buffer, cache, clip(region, buffer, analyzer), cache->name, id);
    changed = replace(*producer, insert_after(producer->nodes[depth], copy), depth);
  } else {
    const BufferRegion* declared = region_of(path.scope()->block->reads, buffer.get());
    const auto region = declared && !path.scope()->iter_values.empty() ? declared->region
                                                                       : full_region(buffer).region;
    arith::Analyzer analyzer;
    bind_path(analyzer, path.prefix(path.scope_index()));
    changed =
        seq({copy_nest(buffer, cache, clip(region, buffer, analyzer), cache->name, id), body});
  }
  changed = UseCache(std::move(chosen), {{buffer.get(), cache}}).rewrite(changed);
  out.mod = finish(s, path, cache, std::move(changed));
  out.result = {id};
  return std::nullopt;
}

Verdict CacheWrite::transform(const State& s, Outcome<Result>& out) const {
  Path path;
  WEFT_TRY(locate_inner(s, block, kName, path));
  const BlockRealizeNode* realize = path.realize();
  const BlockNode* writer = realize->block.get();
  WEFT_TRY(check_index(s, kName, path, writer->writes, write_buffer_index, "writes"));
  WEFT_TRY(check_scope(s, kName, storage_scope));
  const BufferRegion written = writer->writes[static_cast<std::size_t>(write_buffer_index)];
  const Buffer& buffer = written.buffer;
  const Stmt& body = path.scope()->block->body;
  const auto scope = leaves(body);
  WEFT_TRY(check_consumers(s, kName, scope, buffer, consumer_blocks));
  std::vector<std::string> writers;
  for (const Leaf& leaf : scope) {
    if (writes(leaf.block(), buffer.get())) writers.push_back(leaf.block()->name);
  }
  if (writers.size() > 1) return several_writers(s, kName, buffer, writers, realize);

  if (reads(writer, buffer.get()) || adds_atomically(writer->body, buffer.get())) {
    Refusal r = refuse(s, "schedule.cache_write.accumulates",
                       cat("cache_write: block ", name_of(writer), " adds to what \"", buffer->name,
                           "\" held before, which a fresh copy would not hold"),
                       realize);
    r.note(
        "legal: blocks that do not read what they write; cache_write before decompose_reduction or "
        "blockize");
    return r;
  }

  std::unordered_set<std::uint64_t> chosen = {writer->id};
  std::vector<const BlockNode*> rest;
  for (std::size_t i = 0; i < scope.size(); ++i) {
    const BlockNode* b = scope[i].block();
    if (b == writer || !reads(b, buffer.get())) continue;
    if (auto why = why_not_covered(scope, i, s.facts.get()); !why.empty()) {
      Refusal r = refuse(
          s, "schedule.cache_write.not_covered",
          cat("cache_write of \"", buffer->name, "\" would hand over unfinished data: ", why),
          scope[i].realize);
      r.note("legal: buffers that are written completely before they are read");
      return r;
    }
    const bool listed = std::any_of(consumer_blocks.begin(), consumer_blocks.end(),
                                    [&](BlockRef r) { return r.id == b->id; });
    if (listed) {
      chosen.insert(b->id);
    } else {
      rest.push_back(b);
    }
  }
  const Buffer cache = cache_of(buffer, storage_scope);
  std::uint64_t id = 0;
  const auto inner = find_block(body, writer->id);
  std::size_t depth = 0;  // without readers: behind everything in the scope
  if (!rest.empty()) depth = lowest_common(body, *inner, rest);
  arith::Analyzer analyzer;
  bind_path(analyzer, path);
  // What was not written must not be copied out: other iterations may own it.
  const auto exact = relax_exact(bound_region(written, realize), loops_from(*inner, depth),
                                 realize->predicate, analyzer);
  if (!exact) {
    Refusal r = refuse(s, "schedule.cache_write.inexact",
                       cat("cache_write: the part of \"", buffer->name, "\" that block ",
                           name_of(writer), " writes is not provably a box"),
                       realize);
    r.note(
        "legal: affine bindings whose predicates bound one index each; cache_write before the "
        "loops are reshaped");
    return r;
  }
  const auto region = clip(*exact, buffer, analyzer);
  const Stmt copy = copy_nest(cache, buffer, region, cache->name, id);
  Stmt changed = replace(*inner, insert_after(inner->nodes[depth], copy), depth);
  changed = UseCache(std::move(chosen), {{buffer.get(), cache}}).rewrite(changed);
  out.mod = finish(s, path, cache, std::move(changed));
  out.result = {id};
  return std::nullopt;
}

}  // namespace weft::schedule
