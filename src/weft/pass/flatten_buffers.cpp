// SPDX-License-Identifier: Apache-2.0
#include "weft/pass/flatten_buffers.h"

#include "weft/arith/analyzer.h"
#include "weft/ir/build.h"
#include "weft/ir/visit.h"

namespace weft::pass {

using namespace ir;

namespace {

class Flatten final : public Rewriter {
 public:
  Buffer rewrite_buffer(const Buffer& b) override {
    auto& flat = flat_[b.get()];
    if (flat) return flat;
    kept_.push_back(b);
    Exprs strides = strides_of(b);
    Expr size = make_int(1);
    for (std::size_t i = 0; i < b->ndim(); ++i) size = size + (b->shape[i] - 1) * strides[i];
    if (b->strides.empty()) {
      size = make_int(1);
      for (const Expr& e : b->shape) size = size * e;
    }
    auto copy = edit(b);
    copy->shape = {arith::simplify(size)};
    copy->strides.clear();
    copy->elem_offset = nullptr;
    flat = copy;
    return flat;
  }

  BufferRegion rewrite_region(const BufferRegion& region) override {
    Exprs mins, extents, strides = strides_of(region.buffer);
    Expr length = make_int(1);
    for (std::size_t i = 0; i < region.region.size(); ++i) {
      mins.push_back(rewrite(region.region[i].min));
      length = length + (rewrite(region.region[i].extent) - 1) * strides[i];
    }
    return {rewrite_buffer(region.buffer),
            {{flat_index(region.buffer, mins), arith::simplify(length)}}};
  }

 protected:
  Expr rewrite_load(const Expr& e) override {
    const auto* l = as<LoadNode>(e);
    bool changed = false;
    Exprs indices = rewrite_all(l->indices, &changed);
    Expr at = flat_index(l->buffer, indices);
    Buffer buffer = rewrite_buffer(l->buffer);
    return make_ref<const LoadNode>(l->dtype, std::move(buffer), Exprs{std::move(at)});
  }

  Stmt rewrite_store(const Stmt& s) override {
    const auto* t = as<StoreNode>(s);
    bool changed = false;
    Exprs indices = rewrite_all(t->indices, &changed);
    Expr at = flat_index(t->buffer, indices);
    Expr value = rewrite(t->value);
    return make_ref<const StoreNode>(rewrite_buffer(t->buffer), std::move(value),
                                     Exprs{std::move(at)});
  }

 private:
  static Expr flat_index(const Buffer& b, const Exprs& indices) {
    Exprs strides = strides_of(b);
    Expr at = make_int(0);
    for (std::size_t i = 0; i < indices.size(); ++i) at = at + indices[i] * strides[i];
    return at;
  }

  std::unordered_map<const BufferNode*, Buffer> flat_;
  std::vector<Buffer> kept_;  // keys stay alive
};

}  // namespace

PrimFunc flatten_buffers(const PrimFunc& f) {
  Flatten rewriter;
  auto out = edit(f);
  std::unordered_set<const VarNode*> known;
  for (const Param& p : f->params) known.insert(p.var.get());
  std::vector<Var> symbols;
  auto add = [&](const Exprs& list) {
    for (const Expr& e : list) {
      for_each_expr(e, [&](const Expr& x) {
        if (const auto* v = as<VarNode>(x); v && known.insert(v).second) symbols.emplace_back(v);
      });
    }
  };
  for (const Param& p : f->params) {
    if (!p.buffer) continue;
    add(p.buffer->shape);
    add(p.buffer->strides);
    if (p.buffer->elem_offset) add({p.buffer->elem_offset});
  }
  for (Param& p : out->params) {
    if (p.buffer) p.buffer = rewriter.rewrite_buffer(p.buffer);
  }
  out->body = rewriter.rewrite(f->body);
  for (const Var& v : symbols) out->params.push_back({v, nullptr});
  return out;
}

}  // namespace weft::pass
