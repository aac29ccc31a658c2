// SPDX-License-Identifier: Apache-2.0
// The boxes of buffers that a stage's accesses reach, and views for indices that are not linear.
#include <algorithm>

#include "weft/arith/analyzer.h"
#include "weft/ir/build.h"
#include "weft/ir/text.h"
#include "weft/ir/visit.h"
#include "weft/stages/conditions.h"
#include "weft/targets/wse/lowering.h"
#include "weft/targets/wse/view.h"

namespace weft::wse {

using namespace ir;

bool Lowering::linear(const Stage& s, const Exprs& indices) {
  std::vector<Var> vars;
  for (const StageIter& i : s.iters) vars.push_back(i.var);
  return std::all_of(indices.begin(), indices.end(), [&](const Expr& e) {
    auto l = arith::detect_linear(e, vars);
    return l && as<IntImmNode>(arith::simplify(l->base));
  });
}

Buffer Lowering::view(const Stage& s, const Buffer& b, Exprs* indices, bool spatial) {
  std::vector<Var> used;
  StageBuffer v;
  for (const StageIter& i : s.iters) {
    bool here = spatial && !i.reduce;
    for (const Expr& e : *indices) {
      for_each_expr(e, [&](const Expr& x) { here |= x.get() == i.var.get(); });
    }
    if (!here) continue;
    used.push_back(i.var);
    v.shape.push_back(i.extent);
  }
  v.index = Json::array();
  for (std::size_t d = 0; d < indices->size(); ++d) {
    std::string why;
    Json index = index_to_json(arith::simplify((*indices)[d]), used, &why);
    if (index.is_null()) {
      refuse("index",
             cat("block ", s.name, " reaches ", b->name, " in dimension ", d,
                 " through an index that depends on ", why),
             "let each index depend on nothing but the block's iterators");
    }
    v.index.push_back(std::move(index));
  }
  v.view_of = static_cast<std::ptrdiff_t>(buffer_index(b));
  for (const Expr& e : *indices)
    v.name += cat(v.name.empty() ? cat(b->name, "[") : ", ", print(arith::simplify(e)));
  v.name += "]";
  v.dtype = b->dtype;
  v.param = false;
  Exprs shape, at;
  for (std::size_t k = 0; k < used.size(); ++k) {
    shape.push_back(make_int(v.shape[k]));
    at.push_back(used[k]);
  }
  Buffer seen = v.buffer = make_buffer(cat(b->name, "_seen"), b->dtype, shape);
  *indices = std::move(at);
  out_.buffers.push_back(std::move(v));
  return seen;
}

Expr Lowering::with_views(const Stage& s, const Expr& e) {
  struct Views final : Rewriter {
    Lowering& lowering;
    const Stage& s;
    Views(Lowering& l, const Stage& stage) : lowering(l), s(stage) {}
    Expr rewrite_load(const Expr& x) override {
      const auto* l = as<LoadNode>(x);
      Exprs indices = l->indices;
      const bool by_data = std::any_of(indices.begin(), indices.end(), stages::has_loads);
      if (!by_data && linear(s, indices)) return x;
      if (by_data) {  // what decides may itself be read through a view
        for (Expr& index : indices) {
          if (stages::has_loads(index)) index = rewrite(index);
          else if (!linear(s, {index}))
            refuse("index",
                   cat("block ", s.name, " reaches ", l->buffer->name, " through ", print(index),
                       " beside an index that data decide"),
                   "let the other indices be sums of the block's iterators times constants");
        }
        return load(l->buffer, indices);
      }
      Buffer seen = lowering.view(s, l->buffer, &indices, false);
      return load(seen, indices);
    }
  };
  return Views(*this, s).rewrite(e);
}

void Lowering::access(Stage& s, const Buffer& b, const Exprs& indices, const std::string& name,
                      LocalArray* fixed) {
  std::vector<Var> vars;
  for (const StageIter& i : s.iters) vars.push_back(i.var);
  LocalArray a;
  a.buffer = buffer_index(b);
  const auto& shape = out_.buffers[a.buffer].shape;
  for (std::size_t d = 0; d < indices.size(); ++d) {
    a.data.push_back(stages::has_loads(indices[d]));
    if (a.data.back()) {
      a.coef.emplace_back(vars.size(), 0);
      a.base.push_back(0);
      a.extent.push_back(shape[d]);
      continue;
    }
    auto linear = arith::detect_linear(indices[d], vars);  // of views and others alike
    Expr simple = arith::simplify(linear->base);
    const auto* base = as<IntImmNode>(simple);
    a.coef.push_back(linear->coeffs);
    std::int64_t low = base->value, n = 1;
    for (std::size_t k = 0; k < vars.size(); ++k) {
      std::int64_t c = linear->coeffs[k];
      if (c < 0) low += c * (s.iters[k].chunk - 1);
      n += std::abs(c) * (s.iters[k].chunk - 1);
    }
    a.base.push_back(low);
    a.extent.push_back(n);
  }
  if (fixed) {
    a.name = name;
    *fixed = std::move(a);
    return;
  }
  for (LocalArray& old : s.inputs) {
    if (old.buffer != a.buffer || old.coef != a.coef || old.data != a.data) continue;
    for (std::size_t d = 0; d < a.base.size(); ++d) {
      std::int64_t lo = std::min(old.base[d], a.base[d]),
                   hi = std::max(old.base[d] + old.extent[d], a.base[d] + a.extent[d]);
      old.base[d] = lo;
      old.extent[d] = hi - lo;
    }
    return;
  }
  a.name = cat(name, s.inputs.size());
  s.inputs.push_back(std::move(a));
}

void Lowering::order_inputs(Stage& s) {
  if (s.panels || s.combine == Combine::none) return;
  std::size_t vector = s.iters.size();  // the longest vector of the result
  for (std::size_t k = 0; k < s.iters.size(); ++k) {
    const StageIter& i = s.iters[k];
    if (!i.reduce && i.chunk > 1 && (vector == s.iters.size() || i.chunk >= s.iters[vector].chunk))
      vector = k;
  }
  if (vector == s.iters.size()) return;
  for (LocalArray& a : s.inputs) {
    if (a.on_wafer() || std::find(a.data.begin(), a.data.end(), true) != a.data.end()) continue;
    std::vector<std::size_t> order, last;
    for (std::size_t d = 0; d < a.extent.size(); ++d)
      (a.coef[d][vector] == 1 ? last : order).push_back(d);
    if (last.size() != 1) continue;
    order.push_back(last[0]);
    a.order = std::move(order);
  }
}

std::vector<std::int64_t> LocalArray::strides() const {
  std::vector<std::int64_t> out(extent.size(), 1);
  std::int64_t stride = 1;
  for (std::size_t k = extent.size(); k-- > 0;) {
    const std::size_t d = order.empty() ? k : order[k];
    out[d] = stride;
    stride *= extent[d];
  }
  return out;
}

const LocalArray* find_local(const StageProgram& program, const Stage& stage, const LoadNode& load,
                             std::vector<std::int64_t>* offset) {
  std::vector<Var> vars;
  for (const StageIter& i : stage.iters) vars.push_back(i.var);
  for (const LocalArray& a : stage.inputs) {
    if (program.buffers[a.buffer].buffer.get() != load.buffer.get()) continue;
    bool same = true;
    std::vector<std::int64_t> at;
    for (std::size_t d = 0; d < load.indices.size() && same; ++d) {
      const bool data = stages::has_loads(load.indices[d]);
      same = data == a.along_data(d);
      if (data && same) at.push_back(0);
      if (data || !same) continue;
      auto linear = arith::detect_linear(load.indices[d], vars);
      same = linear && linear->coeffs == a.coef[d];
      if (!same) break;
      Expr simple = arith::simplify(linear->base);
      at.push_back(as<IntImmNode>(simple)->value - a.base[d]);
    }
    if (same) {
      *offset = std::move(at);
      return &a;
    }
  }
  return nullptr;
}

}  // namespace weft::wse
