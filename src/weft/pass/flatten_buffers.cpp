// SPDX-License-Identifier: Apache-2.0
#include "weft/pass/flatten_buffers.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "weft/arith/analyzer.h"
#include "weft/base/error.h"
#include "weft/ir/build.h"
#include "weft/ir/place.h"
#include "weft/ir/text.h"
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

  using Rewriter::rewrite;
  Stmt rewrite(const Stmt& s) override {
    const bool before = std::exchange(in_kernel_, in_kernel_ || (s && s->kind == StmtKind::launch));
    Stmt out = Rewriter::rewrite(s);
    in_kernel_ = before;
    return out;
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

  /// Memory whose size comes from arguments: a product that wraps around would be a small one.
  Stmt rewrite_allocate(const Stmt& s) override {
    const Buffer b = as<AllocateNode>(s)->buffer;
    Stmt out = Rewriter::rewrite_allocate(s);
    // Extents of 32 bits are multiplied as such.
    bool narrow = false, wide = false;
    for (const Expr& e : b->shape)
      if (!is_const_int(e)) (e->dtype.bits <= 32 ? narrow : wide) = true;
    narrow = narrow && !wide;
    const std::int64_t most =
        narrow ? std::numeric_limits<std::int32_t>::max()
               : std::numeric_limits<std::int64_t>::max() / std::max(b->dtype.total_bytes(), 1);
    std::int64_t largest = 1;
    bool fits = true;
    for (const Expr& e : b->shape) {
      const std::int64_t n = std::max<std::int64_t>(known_.value_bounds(e).max, 1);
      fits = fits && !__builtin_mul_overflow(largest, n, &largest) && largest <= most;
    }
    if (fits || in_kernel_) return out;
    Expr before = make_int(1), holds = make_bool(true);
    std::string shape;
    for (const Expr& e : b->shape) {
      const Expr n = cast(dtypes::int64, e);
      const Expr room = floordiv(make_int(most), max(before, make_int(1)));
      holds = logical_and(holds, le(n, room));
      before = before * n;
      shape += cat(shape.empty() ? "" : ", ", print(e));
    }
    const std::string text =
        cat("\"", b->name, "\" of shape (", shape, ") would take more than ",
            narrow ? "2^31 elements, which extents of int32 do not count" : "2^63 bytes");
    holds = arith::simplify(holds);
    if (std::int64_t value = 1; is_const_int(holds, &value) && value == 0)
      throw Error(ErrorKind::lower, "lower.allocate.bytes", text)
          .help("make the buffer smaller, or keep a part of it at a time");
    return seq({assert_stmt(holds, text), out});
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
    for (std::size_t i = 0; i < indices.size(); ++i) at = at + as_place(indices[i]) * strides[i];
    return at;
  }

  std::unordered_map<const BufferNode*, Buffer> flat_;
  std::vector<Buffer> kept_;  // keys stay alive
  arith::Analyzer known_;
  bool in_kernel_ = false;  // of a card, whose memory has constant sizes
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
