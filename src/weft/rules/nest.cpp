// SPDX-License-Identifier: Apache-2.0
#include "weft/rules/nest.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "weft/arith/analyzer.h"
#include "weft/base/error.h"
#include "weft/ir/build.h"
#include "weft/ir/eval.h"
#include "weft/ir/place.h"
#include "weft/ir/visit.h"
#include "weft/schedule/tree.h"

namespace weft::rules {

using namespace ir;

bool attempt(const std::function<void()>& step, std::string* refusal) {
  try {
    step();
    return true;
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::schedule) throw;
    const std::string text = e.what();
    if (refusal) *refusal = text.substr(0, text.find('\n'));
    return false;
  }
}

Sizes sizes_of(const PrimFunc& f) {
  Sizes out;
  const Json* hints = find_annotation(f->attrs, kSizeHints);
  if (!hints || !hints->is_object()) return out;
  for (const auto& [name, value] : hints->as_object()) {
    if (value.is_int()) out[name] = value.as_int();
  }
  return out;
}

std::int64_t estimate(const Expr& e, const Sizes& sizes, const VarMap* bound) {
  switch (e->kind) {
    case ExprKind::int_imm: return as<IntImmNode>(e)->value;
    case ExprKind::var: {
      const auto* v = as<VarNode>(e);
      if (bound) {
        if (auto it = bound->find(v); it != bound->end()) return estimate(it->second, sizes, bound);
      }
      auto it = sizes.find(v->name);
      return it == sizes.end() ? kUnknownSize : it->second;
    }
    case ExprKind::cast: return estimate(as<CastNode>(e)->value, sizes, bound);
    case ExprKind::select: {
      const auto* s = as<SelectNode>(e);
      return estimate(estimate(s->condition, sizes, bound) ? s->a : s->b, sizes, bound);
    }
    default: break;
  }
  std::int64_t out = 0;
  if (is_binary(e->kind)) {
    const auto* b = as<BinaryNode>(e);
    const std::int64_t x = estimate(b->a, sizes, bound), y = estimate(b->b, sizes, bound);
    if (eval_int_binary(e->kind, b->a->dtype, x, y, &out)) return out;
  }
  return out;  // a place that is looked up: no distance is known
}

namespace {

/// Accesses to global memory, as positions in elements, in terms of the loops.
struct Accesses {
  Exprs at;
  int widest = 1;
};

Accesses accesses_of(const BlockNode& block, const VarMap& iters) {
  Accesses out;
  std::vector<const BufferNode*> written;
  for (const BufferRegion& w : block.writes) written.push_back(w.buffer.get());
  auto add = [&](const Buffer& b, const Exprs& indices) {
    if (b->scope != "global") return;
    out.widest = std::max(out.widest, b->dtype.total_bytes());
    const Exprs strides = strides_of(b);
    Expr at;
    for (std::size_t i = 0; i < indices.size() && i < strides.size(); ++i) {
      const Expr index = as_place(substitute(indices[i], iters));
      const Expr term = index * cast(index->dtype, strides[i]);
      at = at ? at + term : term;
    }
    if (at) out.at.push_back(at);
  };
  const bool reduces = std::any_of(block.iters.begin(), block.iters.end(),
                                   [](const IterVar& v) { return v.kind != IterKind::spatial; });
  for_each_expr(block.body, [&](const Expr& e) {
    const auto* l = as<LoadNode>(e);
    if (!l || std::find(written.begin(), written.end(), l->buffer.get()) != written.end()) return;
    add(l->buffer, l->indices);
  });
  if (!reduces) {
    for_each_stmt(block.body, [&](const Stmt& s) {
      if (const auto* t = as<StoreNode>(s)) add(t->buffer, t->indices);
    });
  }
  return out;
}

}  // namespace

Nest read_nest(const Schedule& sch, BlockRef block, const Sizes& sizes) {
  Nest out;
  out.block = block;
  const auto path = schedule::find_block(sch.mod(), block);
  const BlockRealizeNode* realize = path->realize();
  out.node = realize->block.get();
  VarMap iters;
  for (std::size_t i = 0; i < out.node->iters.size(); ++i)
    iters[out.node->iters[i].var.get()] = realize->iter_values[i];
  const Accesses accesses = accesses_of(*out.node, iters);
  out.widest_bytes = accesses.widest;
  VarMap origin;
  for (const ForNode* l : path->loops()) origin[l->var.get()] = make_int(0, l->var->dtype);
  std::vector<bool> streams;  // of each access: it moves along every loop of results
  for (const Expr& at : accesses.at) {
    bool all = true;
    for (const ForNode* l : path->loops()) {
      bool spatial = false;
      for (std::size_t i = 0; i < out.node->iters.size(); ++i)
        spatial = spatial || (out.node->iters[i].kind == IterKind::spatial &&
                              uses_var(realize->iter_values[i], l->var.get()));
      all = all &&
            (!spatial || estimate(l->extent, sizes, &origin) <= 1 || uses_var(at, l->var.get()));
    }
    streams.push_back(all);
  }
  out.streams = std::find(streams.begin(), streams.end(), true) != streams.end();
  for (const ForNode* l : path->loops()) {
    bool s = false, r = false;
    for (std::size_t i = 0; i < out.node->iters.size(); ++i) {
      if (!uses_var(realize->iter_values[i], l->var.get())) continue;
      (out.node->iters[i].kind == IterKind::spatial ? s : r) = true;
    }
    out.mixed |= s && r;
    NestLoop loop;
    loop.loop = {l->var};
    std::int64_t literal = 0;
    loop.constant = is_const_int(l->extent, &literal);
    loop.extent = std::max<std::int64_t>(1, estimate(l->extent, sizes, &origin));
    const arith::Modular m = arith::Analyzer().modular(l->extent);
    loop.multiple = std::max<std::int64_t>(1, std::gcd(m.coeff, m.base));
    VarMap next = origin;
    next[l->var.get()] = make_int(1, l->var->dtype);
    loop.every = true;
    for (std::size_t a = 0; a < accesses.at.size(); ++a) {
      const Expr& at = accesses.at[a];
      loop.moves.push_back(uses_var(at, l->var.get()));
      loop.steps.push_back(0);
      if (!loop.moves.back()) continue;
      const std::int64_t step = std::abs(estimate(at, sizes, &next) - estimate(at, sizes, &origin));
      loop.steps.back() = step;
      loop.every &= step == 1;
      if (out.streams && !streams[a]) continue;  // read again and again
      if (step != 0 && (loop.step == 0 || step < loop.step)) loop.step = step;
    }
    std::int64_t& product = r ? out.terms : out.results;
    if (__builtin_mul_overflow(product, loop.extent, &product)) product = INT64_MAX / 2;
    (r ? out.reduction : out.spatial).push_back(loop);
  }
  return out;
}

std::vector<LoopRef> loops_of(Schedule& sch, BlockRef block, IterKind kind) {
  const auto path = schedule::find_block(sch.mod(), block);
  const BlockRealizeNode* realize = path->realize();
  std::vector<LoopRef> out;
  for (const ForNode* l : path->loops()) {
    for (std::size_t i = 0; i < realize->iter_values.size(); ++i) {
      if (realize->block->iters[i].kind != kind || !uses_var(realize->iter_values[i], l->var.get()))
        continue;
      out.push_back({l->var});
      break;
    }
  }
  return out;
}

}  // namespace weft::rules
