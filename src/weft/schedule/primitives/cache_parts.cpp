// SPDX-License-Identifier: Apache-2.0
#include "weft/schedule/primitives/cache_parts.h"

#include <algorithm>

#include "weft/base/text.h"
#include "weft/ir/build.h"
#include "weft/schedule/analysis.h"

namespace weft::schedule {

using namespace ir;

namespace {

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

}  // namespace

Stmt use_buffers(const Stmt& body, std::unordered_set<std::uint64_t> blocks, BufferMap map) {
  return UseCache(std::move(blocks), std::move(map)).rewrite(body);
}

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

const BufferRegion* region_of(const std::vector<BufferRegion>& regions, const BufferNode* buffer) {
  for (const BufferRegion& r : regions) {
    if (r.buffer.get() == buffer) return &r;
  }
  return nullptr;
}

Verdict check_buffer_index(const State& s, std::string_view step, const Path& path,
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

IRModule add_to_scope(const State& s, const Path& path, const std::vector<Buffer>& buffers,
                      Stmt body) {
  const std::size_t at = path.scope_index();
  auto scope = edit(path.scope()->block);
  scope->alloc_buffers.insert(scope->alloc_buffers.end(), buffers.begin(), buffers.end());
  scope->body = std::move(body);
  return with_body(s.mod, path.func, replace(path, with_block(path.scope(), scope), at));
}

std::size_t top_statement(const std::vector<Stmt>& stmts, const Path& path) {
  const std::size_t at = path.scope_index();
  for (std::size_t i = 0; i < stmts.size(); ++i) {
    for (std::size_t k = at + 1; k < path.nodes.size(); ++k) {
      if (path.nodes[k] == stmts[i]) return i;
    }
  }
  return npos;
}

bool touches(const Stmt& s, const BufferNode* buffer, bool reading, bool writing) {
  for (const Leaf& leaf : leaves(s)) {
    if (reading && reads(leaf.block(), buffer)) return true;
    if (writing && writes(leaf.block(), buffer)) return true;
  }
  return false;
}

}  // namespace weft::schedule
