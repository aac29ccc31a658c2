// SPDX-License-Identifier: Apache-2.0
#include "weft/schedule/primitives/transform_layout.h"

#include "weft/base/text.h"
#include "weft/ir/build.h"
#include "weft/ir/regions.h"
#include "weft/ir/text.h"
#include "weft/schedule/analysis.h"
#include "weft/schedule/primitives/annotate.h"

namespace weft::schedule {
namespace {

using namespace ir;

/// Maps every access to one buffer; blocks tell the ranges that simplify the new indices.
class Relayout final : public Rewriter {
 public:
  Relayout(const IndexMap& map, Buffer from, Buffer to)
      : map_(map), from_(std::move(from)), to_(std::move(to)) {}
  Buffer rewrite_buffer(const Buffer& b) override { return b == from_ ? to_ : b; }
  Block rewrite_block(const Block& block) override {
    bind_iters(analyzer_, block.get());
    const Stmt init = block->init ? rewrite(block->init) : nullptr;
    const Stmt body = rewrite(block->body);
    bool listed = false;
    for (const auto* list : {&block->reads, &block->writes}) {
      for (const BufferRegion& r : *list) listed |= r.buffer == from_;
    }
    bool allocated = false;
    for (const Buffer& b : block->alloc_buffers) allocated |= b == from_;
    if (init == block->init && body == block->body && !listed && !allocated) return block;
    auto out = edit(block);
    out->init = init;
    out->body = body;
    for (Buffer& b : out->alloc_buffers) b = rewrite_buffer(b);
    if (listed) {
      const AccessRegions found = detect_block_regions(*out);
      replace(out->reads, found.reads);
      replace(out->writes, found.writes);
    }
    return out;
  }

 protected:
  Expr rewrite_load(const Expr& e) override {
    const auto* n = static_cast<const LoadNode*>(e.get());
    if (n->buffer != from_) return Rewriter::rewrite_load(e);
    return load(to_, mapped(n->indices));
  }
  Stmt rewrite_store(const Stmt& s) override {
    const auto* n = static_cast<const StoreNode*>(s.get());
    if (n->buffer != from_) return Rewriter::rewrite_store(s);
    return store(to_, rewrite(n->value), mapped(n->indices));
  }
  Stmt rewrite_for(const Stmt& s) override {
    const auto* loop = static_cast<const ForNode*>(s.get());
    analyzer_.bind(loop->var, Range{loop->min, loop->extent});
    return Rewriter::rewrite_for(s);
  }

 private:
  Exprs mapped(const Exprs& indices) {
    VarMap values;
    for (std::size_t i = 0; i < indices.size(); ++i)
      values[map_.inputs[i].get()] = rewrite(indices[i]);
    Exprs out;
    for (const Expr& e : map_.outputs) out.push_back(analyzer_.simplify(substitute(e, values)));
    return out;
  }
  void replace(std::vector<BufferRegion>& regions, const std::vector<BufferRegion>& found) {
    for (BufferRegion& r : regions) {
      if (r.buffer != from_) continue;
      r = full_region(to_);
      for (const BufferRegion& f : found) {
        if (f.buffer == to_) r = f;
      }
    }
  }
  const IndexMap& map_;
  Buffer from_, to_;
  arith::Analyzer analyzer_;
};

}  // namespace

Verdict TransformLayout::transform(const State& s, Outcome<Result>& out) const {
  Path path;
  WEFT_TRY(locate_inner(s, block, kName, path));
  Buffer old;
  WEFT_TRY(choose_buffer(s, kName, path.realize(), buffer, old));
  if (index_map.inputs.size() != old->ndim() || index_map.outputs.empty()) {
    Refusal r = refuse(s, "schedule.transform_layout.rank",
                       cat("transform_layout of \"", old->name, "\", which has ", old->ndim(),
                           " axes, got a map of ", index_map.inputs.size()),
                       path.target().get());
    r.note(cat("legal: maps of ", old->ndim(), " indices to at least one"));
    return r;
  }
  const PrimFunc f = s.mod->find(path.func);
  for (const auto& stmt : {f->body}) {
    bool viewed = false;
    for_each_stmt(stmt, [&](const Stmt& x) {
      if (const auto* realize = as<BlockRealizeNode>(x)) {
        for (const MatchBuffer& m : realize->block->match_buffers)
          viewed |= m.source.buffer == old || m.buffer == old;
      }
    });
    if (!viewed) continue;
    return refuse(s, "schedule.transform_layout.view",
                  cat("transform_layout of \"", old->name, "\", of which a block takes a view"),
                  path.target().get())
        .note("legal: buffers without match_buffer views; transform before tensorize");
  }
  std::vector<IterVar> inputs;
  for (std::size_t i = 0; i < old->ndim(); ++i)
    inputs.push_back({index_map.inputs[i],
                      {make_zero(index_map.inputs[i]->dtype), old->shape[i]},
                      IterKind::spatial});
  arith::Analyzer analyzer;
  for (const IterVar& v : inputs) analyzer.bind(v.var, v.dom);
  const auto map = arith::detect_iter_map(index_map.outputs, inputs, make_bool(true),
                                          arith::MapLevel::bijective, analyzer);
  std::string why = map.error;
  Exprs shape;
  for (const auto& sum : map.indices) {
    Expr extent = make_const(1, dtypes::int64);
    for (const auto& split : sum.splits) extent = extent + (split.extent - 1) * split.scale;
    if (!is_const_int_value(sum.base, 0)) why = "an index has an offset";
    shape.push_back(analyzer.simplify(extent));
  }
  if (!why.empty()) {
    std::vector<std::string> extents;
    for (const Expr& e : old->shape) extents.push_back(print(e));
    Refusal r = refuse(s, "schedule.transform_layout.bijective",
                       cat("transform_layout of \"", old->name, "\" by ", index_map.text(),
                           " is not one to one: ", why),
                       path.target().get());
    r.note(cat("found: the shape is (", join(extents), ")"));
    r.note(
        pad_value.is_null()
            ? "legal: maps whose factors divide the extents"
            : "legal: maps whose factors divide the extents; layouts with padding are not written");
    return r;
  }
  auto changed = edit(old);
  changed->shape = shape;
  changed->strides.clear();
  changed->elem_offset = nullptr;
  const Buffer fresh = changed;
  auto func = edit(f);
  for (Param& p : func->params) {
    if (p.buffer == old) p.buffer = fresh;
  }
  func->body = Relayout(index_map, old, fresh).rewrite(f->body);
  auto module = make_ref<IRModuleNode>(*s.mod);
  for (auto& [name, g] : module->functions) {
    if (name == path.func) g = func;
  }
  out.mod = module;
  return std::nullopt;
}

}  // namespace weft::schedule
