// SPDX-License-Identifier: Apache-2.0
#include "weft/rules/access_table.h"

#include <algorithm>
#include <cmath>

#include "weft/ir/build.h"
#include "weft/ir/place.h"
#include "weft/ir/visit.h"
#include "weft/rules/nest.h"
#include "weft/schedule/tree.h"

namespace weft::rules {

using namespace ir;

namespace {

class Reader {
 public:
  explicit Reader(const Sizes& sizes) : sizes_(sizes) {}

  std::vector<Leaf> read(const Stmt& s) {
    walk(s);
    return std::move(out_);
  }

 private:
  void walk(const Stmt& s) {
    if (const auto* loop = as<ForNode>(s)) {
      LoopCount count;
      std::int64_t literal = 0;
      count.loop = loop;
      count.constant = is_const_int(loop->extent, &literal);
      count.extent = static_cast<double>(
          std::max<std::int64_t>(1, estimate(substitute(loop->extent, iters_), sizes_, &origin_)));
      loops_.push_back(count);
      origin_[loop->var.get()] = make_int(0, loop->var->dtype);
      walk(loop->body);
      loops_.pop_back();
    } else if (const auto* realize = as<BlockRealizeNode>(s)) {
      const BlockNode& block = *realize->block;
      for (std::size_t i = 0; i < block.iters.size(); ++i)
        iters_[block.iters[i].var.get()] = substitute(realize->iter_values[i], iters_);
      walk(block.body);
    } else if (const auto* store = as<StoreNode>(s)) {
      leaf(*store);
    } else if (const auto* branch = as<IfNode>(s)) {
      walk(branch->then_case);
      if (branch->else_case) walk(branch->else_case);
    } else if (as<SeqNode>(s)) {
      for (const Stmt& inner : schedule::statements(s)) walk(inner);
    }
  }

  void leaf(const StoreNode& store) {
    Leaf out;
    out.loops = loops_;
    add(out, store.buffer, store.indices, true);
    for_each_expr(store.value, [&](const Expr& e) {
      if (const auto* l = as<LoadNode>(e)) add(out, l->buffer, l->indices, false);
      else if (is_binary(e->kind) && e->dtype.is_float()) out.operations += 1;
    });
    // A multiplication and an addition are one instruction.
    out.operations = std::max(1.0, std::ceil(out.operations / 2));
    out_.push_back(std::move(out));
  }

  void add(Leaf& leaf, const Buffer& buffer, const Exprs& indices, bool store) {
    Access a;
    a.buffer = buffer.get();
    a.store = store;
    const Exprs strides = strides_of(buffer);
    Exprs at;
    for (std::size_t d = 0; d < indices.size() && d < strides.size(); ++d) {
      at.push_back(as_place(substitute(indices[d], iters_)));
      const Expr term = at[d] * cast(at[d]->dtype, strides[d]);
      a.at = a.at ? a.at + term : term;
    }
    if (!a.at) a.at = make_int(0);
    for (const LoopCount& l : loops_) {
      std::vector<double> span(at.size(), 0);
      double step = 0;
      const bool moves = uses_var(a.at, l.loop->var.get());
      if (moves) {
        VarMap next = origin_;
        auto move = [&](const Expr& e, std::int64_t iteration) {
          next[l.loop->var.get()] = make_int(iteration, l.loop->var->dtype);
          return static_cast<double>(
              std::abs(estimate(e, sizes_, &next) - estimate(e, sizes_, &origin_)));
        };
        const auto last = static_cast<std::int64_t>(l.extent) - 1;
        for (std::size_t d = 0; d < at.size(); ++d) {
          if (!uses_var(at[d], l.loop->var.get())) continue;
          // A remainder is largest somewhere: at the end, or before a power of two.
          span[d] = move(at[d], last);
          for (std::int64_t i = 1; i < last; i = 2 * i + 1)
            span[d] = std::max(span[d], move(at[d], i));
        }
        step = last > 0 ? move(a.at, 1) : 0;
      }
      a.span.push_back(std::move(span));
      a.step.push_back(step);
      a.moves.push_back(moves);
    }
    leaf.accesses.push_back(std::move(a));
  }

  const Sizes& sizes_;
  std::vector<LoopCount> loops_;
  VarMap iters_, origin_;
  std::vector<Leaf> out_;
};

}  // namespace

double Leaf::distinct(const Access& a, const std::function<bool(std::size_t)>& chosen) const {
  double moving = 1;
  std::vector<double> span(a.buffer->shape.size(), 1);
  for (std::size_t l = 0; l < loops.size(); ++l) {
    if (!chosen(l) || !a.moves[l]) continue;
    moving *= loops[l].extent;
    for (std::size_t d = 0; d < a.span[l].size() && d < span.size(); ++d) span[d] += a.span[l][d];
  }
  double box = 1;
  for (double s : span) box *= s;
  return std::min(moving, std::max(1.0, box));
}

double Leaf::trips(const std::function<bool(std::size_t)>& chosen) const {
  double out = 1;
  for (std::size_t l = 0; l < loops.size(); ++l)
    if (chosen(l)) out *= loops[l].extent;
  return out;
}

std::vector<std::vector<Leaf>> read_accesses(const PrimFunc& f, const Sizes& sizes) {
  std::vector<std::vector<Leaf>> out;
  const auto* root = as<BlockRealizeNode>(f->body);
  const Stmt body = root ? root->block->body : f->body;
  for (const Stmt& s : schedule::statements(body)) out.push_back(Reader(sizes).read(s));
  return out;
}

double address(const Access& access, const Leaf& leaf, const Sizes& sizes,
               const std::vector<std::pair<const VarNode*, std::int64_t>>& at) {
  VarMap values;
  for (const LoopCount& l : leaf.loops) values[l.loop->var.get()] = make_int(0, l.loop->var->dtype);
  for (const auto& [v, n] : at) values[v] = make_int(n, v->dtype);
  return static_cast<double>(estimate(access.at, sizes, &values));
}

}  // namespace weft::rules
