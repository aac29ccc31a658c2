// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/vta/reuse_buffers.h"

#include <algorithm>

#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/ir/visit.h"
#include "weft/targets/vta/nest.h"

namespace weft::vta {

using namespace ir;

namespace {

/// What follows from an allocation without a loop in between: allocations, outermost first, and
/// statements in the order in which they run.
struct Straight {
  std::vector<const AllocateNode*> allocations;
  std::vector<Stmt> statements;
  void add(const Stmt& s) {
    if (const auto* a = as<AllocateNode>(s)) {
      allocations.push_back(a);
      add(a->body);
    } else if (const auto* q = as<SeqNode>(s)) {
      for (const Stmt& part : q->stmts) add(part);
    } else {
      statements.push_back(s);
    }
  }
};

/// Every step of the nest reaches another element: the steps, as digits of a number, never carry.
bool one_to_one(const Nest& nest, const Affine& at) {
  std::vector<std::pair<std::int64_t, std::int64_t>> digits;
  for (std::size_t i = 0; i < nest.loops.size(); ++i) {
    if (nest.loops[i].extent > 1) digits.emplace_back(std::abs(at.coeff[i]), nest.loops[i].extent);
  }
  std::sort(digits.begin(), digits.end());
  std::int64_t reach = 0;
  for (auto [step, extent] : digits) {
    if (step <= reach) return false;
    reach += step * (extent - 1);
  }
  return true;
}

/// Whether the nest stores what it reads of `from` at the very same places.
bool in_place(const Nest& nest, const BufferNode* from, const Environment& env) {
  const StoreNode* s = nest.update;
  if (nest.init || s->indices.size() != 1) return false;
  if (nest.guard && !used_buffers(evaluate(nest.guard)).empty()) return false;
  std::optional<Affine> to = affine(s->indices[0], nest.loops, env);
  if (!to || !one_to_one(nest, *to)) return false;
  bool same = true;
  for_each_expr(s->value, [&](const Expr& e) {
    const auto* l = as<LoadNode>(e);
    if (!l) return;
    if (l->buffer.get() == s->buffer.get()) same = false;
    if (l->buffer.get() == from)
      same = same && l->indices.size() == 1 && affine(l->indices[0], nest.loops, env) == to;
  });
  return same;
}

/// The loops around a statement, outermost first, that its own loops or indices depend on: tiles at
/// an edge have other extents, and their elements other distances.
class Around {
 public:
  Around(const std::vector<const ForNode*>& loops, const Stmt& s) : s_(s) {
    std::unordered_set<const VarNode*> used;
    auto note = [&](const Expr& e) {
      if (const auto* v = as<VarNode>(e)) used.insert(v);
    };
    for_each_expr(s, note);
    for (std::size_t i = loops.size(); i-- > 0;) {
      if (!used.count(loops[i]->var.get())) continue;
      loops_.insert(loops_.begin(), loops[i]);
      for_each_expr(loops[i]->min, note);
      for_each_expr(loops[i]->extent, note);
    }
  }

  /// The nest at the first step of each.
  std::optional<Nest> first() const {
    Environment env;
    for (const ForNode* loop : loops_) {
      std::optional<std::int64_t> min = constant(loop->min, env);
      if (!min) return std::nullopt;
      env[loop->var.get()] = *min;
    }
    return nest_of(s_, env);
  }

  /// Whether the statement works in place at every step of them.
  bool in_place(const BufferNode* from) const {
    std::int64_t steps = 0;
    Environment env;
    return every(0, env, from, steps);
  }

 private:
  static constexpr std::int64_t kMostSteps = 1 << 14;

  bool every(std::size_t i, Environment& env, const BufferNode* from, std::int64_t& steps) const {
    if (i == loops_.size()) {
      std::optional<Nest> nest = nest_of(s_, env);
      return ++steps <= kMostSteps && nest && vta::in_place(*nest, from, env);
    }
    std::optional<std::int64_t> min = constant(loops_[i]->min, env),
                                extent = constant(loops_[i]->extent, env);
    if (!min || !extent) return false;
    for (std::int64_t n = 0; n < *extent; ++n) {
      env[loops_[i]->var.get()] = *min + n;
      if (!every(i + 1, env, from, steps)) return false;
    }
    return true;
  }

  const Stmt& s_;
  std::vector<const ForNode*> loops_;
};

bool alike(const Buffer& a, const Buffer& b) {
  if (a->scope != "vta.acc" || b->scope != a->scope || a->dtype != b->dtype ||
      a->ndim() != b->ndim())
    return false;
  for (std::size_t d = 0; d < a->shape.size(); ++d) {
    if (!same_expr(a->shape[d], b->shape[d])) return false;
  }
  return true;
}

/// The outer of two buffers that may be one, and the inner; null: there are none.
std::pair<const AllocateNode*, const AllocateNode*> find_pair(
    const Straight& line, const std::vector<const ForNode*>& loops) {
  std::vector<std::unordered_set<const BufferNode*>> used;
  for (const Stmt& s : line.statements) used.push_back(used_buffers(s));
  for (std::size_t i = 0; i < line.statements.size(); ++i) {
    const Around around(loops, line.statements[i]);
    std::optional<Nest> nest = around.first();
    if (!nest) continue;
    const BufferNode* to = nest->update->buffer.get();
    for (std::size_t a = 0; a < line.allocations.size(); ++a) {
      for (std::size_t b = a + 1; b < line.allocations.size(); ++b) {
        const Buffer *outer = &line.allocations[a]->buffer, *inner = &line.allocations[b]->buffer;
        const BufferNode* from = outer->get() == to ? inner->get() : outer->get();
        if ((outer->get() != to && inner->get() != to) || !alike(*outer, *inner) ||
            !used[i].count(from))
          continue;
        bool free = true;
        for (std::size_t j = 0; j < i; ++j) free = free && !used[j].count(to);
        for (std::size_t j = i + 1; j < used.size(); ++j) free = free && !used[j].count(from);
        if (free && around.in_place(from)) return {line.allocations[a], line.allocations[b]};
      }
    }
  }
  return {nullptr, nullptr};
}

class Reuse final : public Rewriter {
 protected:
  Stmt rewrite_allocate(const Stmt& given) override {
    Stmt s = given;
    while (true) {
      Straight line;
      line.add(s);
      auto [outer, inner] = find_pair(line, loops_);
      if (!outer) break;
      s = replace_buffers(Drop(inner).rewrite(s), {{inner->buffer.get(), outer->buffer}});
    }
    return Rewriter::rewrite_allocate(s);
  }
  Stmt rewrite_for(const Stmt& s) override {
    loops_.push_back(as<ForNode>(s));
    Stmt out = Rewriter::rewrite_for(s);
    loops_.pop_back();
    return out;
  }

 private:
  std::vector<const ForNode*> loops_;  // around what is being rewritten, outermost first

  /// Takes one allocation away.
  class Drop final : public Rewriter {
   public:
    explicit Drop(const AllocateNode* node) : node_(node) {}

   protected:
    Stmt rewrite_allocate(const Stmt& s) override {
      return as<AllocateNode>(s) == node_ ? as<AllocateNode>(s)->body
                                          : Rewriter::rewrite_allocate(s);
    }

   private:
    const AllocateNode* node_;
  };
};

}  // namespace

PrimFunc reuse_buffers(const PrimFunc& f) {
  Stmt body = Reuse().rewrite(f->body);
  if (body == f->body) return f;
  auto out = edit(f);
  out->body = body;
  return out;
}

}  // namespace weft::vta
