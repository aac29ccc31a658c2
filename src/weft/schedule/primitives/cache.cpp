// SPDX-License-Identifier: Apache-2.0
#include "weft/schedule/primitives/cache.h"

#include <algorithm>
#include <unordered_set>

#include "weft/base/text.h"
#include "weft/ir/atomic.h"
#include "weft/ir/build.h"
#include "weft/schedule/analysis.h"
#include "weft/schedule/primitives/cache_parts.h"

namespace weft::schedule {
namespace {

using namespace ir;

/// The lowest place that follows the producer (`path`) and precedes all `others`.
std::size_t lowest_common(const Stmt& body, const Path& path,
                          const std::vector<const BlockNode*>& others) {
  std::size_t depth = 0;  // of the one that shares most loops with the producer, which comes first
  for (const BlockNode* block : others) {
    auto other = find_block(body, block->id);
    std::size_t common = 0;
    while (common + 1 < path.nodes.size() && common < other->nodes.size() &&
           other->nodes[common] == path.nodes[common])
      ++common;
    depth = std::max(depth, common);
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

}  // namespace

Verdict CacheRead::transform(const State& s, Outcome<Result>& out) const {
  Path path;
  WEFT_TRY(locate_inner(s, block, kName, path));
  const BlockNode* reader = path.realize()->block.get();
  WEFT_TRY(check_buffer_index(s, kName, path, reader->reads, read_buffer_index, "reads"));
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

  const auto& allocated = path.scope()->block->alloc_buffers;
  const bool own = std::find(allocated.begin(), allocated.end(), buffer) != allocated.end();
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
    if (writer && i < index_of(scope, writer->block())) {
      Refusal r = refuse(s, "schedule.cache_read.before",
                         cat("cache_read of \"", buffer->name, "\": block ", name_of(b),
                             " reads what it held before ", name_of(writer->block()), " writes it"),
                         scope[i].realize);
      r.note("legal: readers behind the writer, or buffers that the scope does not write");
      r.repair("list the readers behind the writer as consumer_blocks");
      return r;
    }
    // A nest that is through has made all that there is of a buffer of the scope's own.
    const bool through = !writer || (own && (writer->loops.empty() || scope[i].loops.empty() ||
                                             writer->loops[0] != scope[i].loops[0]));
    if (auto why = through ? std::string() : why_not_covered(scope, i, s.facts.get(), buffer.get());
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
  changed = use_buffers(changed, std::move(chosen), {{buffer.get(), cache}});
  out.mod = add_to_scope(s, path, {cache}, std::move(changed));
  out.result = {id};
  return std::nullopt;
}

Verdict CacheWrite::transform(const State& s, Outcome<Result>& out) const {
  Path path;
  WEFT_TRY(locate_inner(s, block, kName, path));
  const BlockRealizeNode* realize = path.realize();
  const BlockNode* writer = realize->block.get();
  WEFT_TRY(check_buffer_index(s, kName, path, writer->writes, write_buffer_index, "writes"));
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

  if (reads(writer, buffer.get()) || updates_atomically(writer->body, buffer.get())) {
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
    if (auto why = why_not_covered(scope, i, s.facts.get(), buffer.get()); !why.empty()) {
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
  changed = use_buffers(changed, std::move(chosen), {{buffer.get(), cache}});
  out.mod = add_to_scope(s, path, {cache}, std::move(changed));
  out.result = {id};
  return std::nullopt;
}

}  // namespace weft::schedule
