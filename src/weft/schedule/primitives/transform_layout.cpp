// SPDX-License-Identifier: Apache-2.0
#include "weft/schedule/primitives/transform_layout.h"

#include <algorithm>
#include <numeric>

#include "weft/base/text.h"
#include "weft/ir/build.h"
#include "weft/ir/regions.h"
#include "weft/ir/text.h"
#include "weft/schedule/analysis.h"
#include "weft/schedule/primitives/annotate.h"
#include "weft/schedule/tree.h"

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

struct Layout {
  Exprs shape;
  std::vector<arith::IterSum> indices;  // without what outputs are swizzled by
  std::vector<Var> outputs;
  Exprs swizzles;     // output i is its digit ^ swizzles[i], a function of other outputs; or null
  std::string error;  // empty: one to one

  /// The digits at a place of the new layout.
  Exprs digits(const Exprs& at) const {
    VarMap values;
    for (std::size_t i = 0; i < at.size(); ++i) values[outputs[i].get()] = at[i];
    Exprs out = at;
    for (std::size_t i = 0; i < at.size(); ++i) {
      if (swizzles[i]) out[i] = call("bitwise_xor", {at[i], substitute(swizzles[i], values)});
    }
    return out;
  }
};

/// digit ^ other: the operands; else the index alone.
std::pair<Expr, Expr> swizzle_of(const Expr& index) {
  const auto* c = as<CallNode>(index);
  if (!c || c->op != "bitwise_xor") return {index, nullptr};
  return {c->args[0], c->args[1]};
}

/// Why the layout's outputs, swizzled by `others`, may not be one to one; fills the swizzles.
std::string swizzle(Layout& layout, const Exprs& others) {
  arith::Analyzer analyzer;
  Exprs outputs;
  for (std::size_t i = 0; i < others.size(); ++i) {
    layout.outputs.push_back(make_var(cat("o", i)));
    outputs.push_back(layout.outputs.back());
    analyzer.bind(layout.outputs.back(), Range{make_int(0), layout.shape[i]});
  }
  layout.swizzles.resize(others.size());
  if (std::all_of(others.begin(), others.end(), [](const Expr& e) { return !e; })) return {};
  VarMap inputs;
  for (const auto& [var, value] : arith::inverse_iter_map(layout.indices, outputs))
    inputs[var.get()] = value;
  for (std::size_t i = 0; i < others.size(); ++i) {
    if (!others[i]) continue;
    std::int64_t extent = 0;
    if (!is_const_int(layout.shape[i], &extent) || (extent & (extent - 1)))
      return cat("the digit that index ", i, " swizzles has extent ", print(layout.shape[i]),
                 ", which is no power of two");
    const Expr by = analyzer.simplify(substitute(others[i], inputs));
    const arith::Bounds bounds = analyzer.bounds(by);
    if (bounds.min < 0 || bounds.max >= extent)
      return cat("index ", i, " swizzles a digit below ", extent, " by ", print(others[i]),
                 ", which may be larger");
    for (std::size_t j = 0; j < others.size(); ++j) {
      if (others[j] && uses_var(by, layout.outputs[j].get()))
        return cat("index ", i, " is swizzled by what index ", j, ", itself swizzled, tells");
    }
    layout.swizzles[i] = by;
  }
  return {};
}

Layout layout_of(const IndexMap& map, const Exprs& extents) {
  std::vector<IterVar> inputs;
  arith::Analyzer analyzer;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    inputs.push_back(
        {map.inputs[i], {make_zero(map.inputs[i]->dtype), extents[i]}, IterKind::spatial});
    analyzer.bind(inputs.back().var, inputs.back().dom);
  }
  Exprs digits, others;
  for (const Expr& e : map.outputs) {
    const auto& [digit, other] = swizzle_of(e);
    digits.push_back(digit);
    others.push_back(other);
  }
  auto found =
      arith::detect_iter_map(digits, inputs, make_bool(true), arith::MapLevel::bijective, analyzer);
  Layout out;
  out.error = found.error;
  for (const auto& sum : found.indices) {
    Expr extent = make_const(1, dtypes::int64);
    for (const auto& split : sum.splits) extent = extent + (split.extent - 1) * split.scale;
    if (!is_const_int_value(sum.base, 0)) out.error = "an index has an offset";
    out.shape.push_back(analyzer.simplify(extent));
  }
  out.indices = std::move(found.indices);
  if (out.error.empty()) out.error = swizzle(out, others);
  return out;
}

/// Each extent as a multiple of the constants that divide expressions of its index.
Exprs rounded_up(const IndexMap& map, const Exprs& extents) {
  Exprs out;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    std::int64_t factor = 1;
    for (const Expr& e : map.outputs) {
      for_each_expr(e, [&](const Expr& x) {
        const auto* b = as<BinaryNode>(x);
        std::int64_t n = 0;
        const bool divides = b && (x->kind == ExprKind::floordiv || x->kind == ExprKind::floormod);
        if (divides && is_const_int(b->b, &n) && n > 0 && uses_var(b->a, map.inputs[i].get()))
          factor = std::lcm(factor, n);
      });
    }
    out.push_back(arith::simplify(floordiv(extents[i] + (factor - 1), make_int(factor)) * factor));
  }
  return out;
}

bool touches(const Stmt& s, const Buffer& b, bool writes) {
  bool found = false;
  for_each_stmt(s, [&](const Stmt& t) {
    const auto* realize = as<BlockRealizeNode>(t);
    if (!realize) return;
    for (const BufferRegion& r : writes ? realize->block->writes : realize->block->reads)
      found = found || r.buffer == b;
  });
  return found;
}

/// The body with a block that stores `value` to the elements outside of the old shape, after the
/// last statement that writes the buffer. Nothing writes it: the body itself. Null: no place.
Stmt fill_padding(const Stmt& body, const Buffer& buffer, const IndexMap& map, const Layout& layout,
                  const Exprs& old_shape, const Expr& value) {
  if (!touches(body, buffer, true)) return body;
  auto block = make_ref<BlockNode>();
  block->id = fresh_block_id();
  block->name = cat(buffer->name, "_pad");
  std::vector<Var> loops;
  Exprs at, bindings;
  for (std::size_t i = 0; i < buffer->ndim(); ++i) {
    loops.push_back(make_var(cat("p", i)));
    const Var v = make_var(cat("v", i));
    block->iters.push_back({v, {make_int(0), buffer->shape[i]}, IterKind::spatial});
    at.push_back(v);
    bindings.push_back(loops.back());
  }
  Exprs outputs;
  for (const Var& l : loops) outputs.push_back(l);
  Expr outside = make_bool(false);
  arith::Analyzer analyzer;
  for (std::size_t i = 0; i < loops.size(); ++i)
    analyzer.bind(loops[i], Range{make_int(0), buffer->shape[i]});
  for (const auto& [var, expr] : arith::inverse_iter_map(layout.indices, layout.digits(outputs))) {
    for (std::size_t i = 0; i < map.inputs.size(); ++i) {
      if (map.inputs[i] == var)
        outside = logical_or(outside, analyzer.simplify(ge(expr, old_shape[i])));
    }
  }
  block->body = store(buffer, value, at);
  block->writes = {point_region(buffer, at)};
  Stmt nest = block_realize(bindings, analyzer.simplify(outside), block);
  for (std::size_t i = loops.size(); i-- > 0;)
    nest = make_for(loops[i], make_int(0), buffer->shape[i], nest);

  // The scope that allocates the buffer, or the root for a parameter.
  class Insert final : public Rewriter {
   public:
    Insert(const Buffer& b, Stmt n) : buffer(b), nest(std::move(n)) {}
    const Buffer& buffer;
    Stmt nest;
    bool done = false, stuck = false, first = true;
    Block rewrite_block(const Block& old) override {
      const bool root = std::exchange(first, false);
      bool own = std::find(old->alloc_buffers.begin(), old->alloc_buffers.end(), buffer) !=
                 old->alloc_buffers.end();
      if (!own && root) {
        bool inner = false;
        for_each_stmt(old->body, [&](const Stmt& t) {
          const auto* r = as<BlockRealizeNode>(t);
          if (!r) return;
          const auto& list = r->block->alloc_buffers;
          inner = inner || std::find(list.begin(), list.end(), buffer) != list.end();
        });
        own = !inner;  // a parameter
      }
      if (!own || done) return Rewriter::rewrite_block(old);
      std::vector<Stmt> list = statements(old->body);
      for (std::size_t i = list.size(); i-- > 0;) {
        if (!touches(list[i], buffer, true)) continue;
        bool reads = touches(list[i], buffer, false);
        std::size_t writers = 0;
        for (const Leaf& leaf : leaves(list[i])) {
          for (const BufferRegion& r : leaf.block()->writes) writers += r.buffer == buffer;
        }
        if (reads && leaves(list[i]).size() > writers) stuck = true;
        list.insert(list.begin() + static_cast<std::ptrdiff_t>(i) + 1, nest);
        break;
      }
      done = true;
      auto out = edit(old);
      out->body = seq(std::move(list));
      return out;
    }
  } insert(buffer, nest);
  Stmt out = insert.rewrite(body);
  return insert.done && !insert.stuck ? out : nullptr;
}

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
  if (!pad_value.is_null() && !pad_value.is_number()) {
    return refuse(s, "schedule.transform_layout.pad_value",
                  cat("transform_layout of \"", old->name, "\" got pad_value ", pad_value.dump(),
                      ", which is not a number"),
                  path.target().get())
        .note("legal: None or a number");
  }
  Layout layout = layout_of(index_map, old->shape);
  const bool pads = !layout.error.empty() && !pad_value.is_null();
  Exprs padded;
  if (pads) {
    padded = rounded_up(index_map, old->shape);
    layout = layout_of(index_map, padded);
  }
  if (!layout.error.empty()) {
    std::vector<std::string> extents;
    for (const Expr& e : old->shape) extents.push_back(print(e));
    Refusal r = refuse(s, "schedule.transform_layout.bijective",
                       cat("transform_layout of \"", old->name, "\" by ", index_map.text(),
                           " is not one to one: ", layout.error),
                       path.target().get());
    r.note(cat("found: the shape is (", join(extents), ")"));
    r.note(pads ? "legal: maps that are one to one when extents are rounded up to multiples of "
                  "their factors"
                : "legal: maps whose factors divide the extents, or a pad_value for what they add");
    return r;
  }
  auto changed = edit(old);
  changed->shape = layout.shape;
  changed->strides.clear();
  changed->elem_offset = nullptr;
  const Buffer fresh = changed;
  auto func = edit(f);
  for (Param& p : func->params) {
    if (p.buffer == old) p.buffer = fresh;
  }
  func->body = Relayout(index_map, old, fresh).rewrite(f->body);
  if (pads) {
    const Expr value = pad_value.is_int() ? make_const(pad_value.as_int(), fresh->dtype)
                                          : make_const(pad_value.as_double(), fresh->dtype);
    Stmt body = fill_padding(func->body, fresh, index_map, layout, old->shape, value);
    if (!body) {
      return refuse(s, "schedule.transform_layout.place",
                    cat("transform_layout of \"", old->name,
                        "\" with padding: the nest that writes it also reads it, so there is no "
                        "place for the padding"),
                    path.target().get())
          .note("legal: before compute_at joins the writer with its readers");
    }
    func->body = body;
  }
  auto module = make_ref<IRModuleNode>(*s.mod);
  for (auto& [name, g] : module->functions) {
    if (name == path.func) g = func;
  }
  out.mod = module;
  return std::nullopt;
}

}  // namespace weft::schedule
