// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/qpu/tensor/prepare.h"

#include <algorithm>
#include <unordered_map>

#include "weft/arith/analyzer.h"
#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/ir/visit.h"
#include "weft/stages/conditions.h"
#include "weft/stages/linear.h"
#include "weft/targets/qpu/tensor/hoist_reads.h"
#include "weft/targets/qpu/tensor/jam.h"
#include "weft/targets/qpu/tensor/peel.h"
#include "weft/targets/qpu/tensor/unroll.h"
#include "weft/targets/qpu/tensor/vector_registers.h"

namespace weft::qpu::tensor {

using namespace ir;
using stages::has_loads;
using stages::join_conditions;
using stages::linear_in;
using stages::slack;

namespace {

Stmt with_body(const ForNode* t, Stmt body) {
  return make_for(t->var, t->min, t->extent, std::move(body), t->for_kind, t->axis, t->annotations);
}

std::unordered_set<const VarNode*> bound_in(const Stmt& s) {
  std::unordered_set<const VarNode*> out;
  for_each_stmt(s, [&](const Stmt& t) {
    if (const auto* loop = as<ForNode>(t)) out.insert(loop->var.get());
    if (const auto* let = as<LetStmtNode>(t)) out.insert(let->var.get());
  });
  return out;
}

/// `for v: if c: s` with c independent of v is `if c: for v: s`; neighbours with one guard share
/// it; registers begin inside their guard.
class HoistGuards final : public Rewriter {
 protected:
  Stmt rewrite_seq(const Stmt& s) override {
    Stmt inner = Rewriter::rewrite_seq(s);
    const auto* list = as<SeqNode>(inner);
    if (!list) return inner;
    std::vector<Stmt> out;
    for (const Stmt& child : list->stmts) {
      const auto* guard = as<IfNode>(child);
      const auto* before = out.empty() ? nullptr : as<IfNode>(out.back());
      if (guard && before && !guard->else_case && !before->else_case &&
          !has_loads(guard->condition) && same_expr(guard->condition, before->condition)) {
        out.back() = if_then(guard->condition, seq({before->then_case, guard->then_case}));
      } else {
        out.push_back(child);
      }
    }
    return share_guards(std::move(out));
  }
  /// Conditions that all statements have are one guard around them.
  static Stmt share_guards(std::vector<Stmt> list) {
    std::vector<Expr> shared;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const auto* guard = as<IfNode>(list[i]);
      if (list.size() < 2 || !guard || guard->else_case) return seq(std::move(list));
      std::vector<Expr> own = conjuncts(guard->condition);
      std::erase_if(own, [](const Expr& c) { return has_loads(c); });
      if (i == 0) shared = own;
      else std::erase_if(shared, [&](const Expr& c) { return !contains(own, c); });
    }
    if (shared.empty()) return seq(std::move(list));
    for (Stmt& s : list) {
      const auto* guard = as<IfNode>(s);
      std::vector<Expr> own = conjuncts(guard->condition);
      std::erase_if(own, [&](const Expr& c) { return contains(shared, c); });
      s = own.empty() ? guard->then_case : if_then(join_conditions(own), guard->then_case);
    }
    return if_then(join_conditions(shared), seq(std::move(list)));
  }
  static bool contains(const std::vector<Expr>& list, const Expr& e) {
    return std::any_of(list.begin(), list.end(), [&](const Expr& x) { return same_expr(x, e); });
  }
  Stmt rewrite_allocate(const Stmt& s) override {
    Stmt inner = Rewriter::rewrite_allocate(s);
    const auto* a = as<AllocateNode>(inner);
    const auto* guard = a ? as<IfNode>(a->body) : nullptr;
    if (!guard || guard->else_case || has_loads(guard->condition) || a->buffer->scope != "local")
      return inner;
    return if_then(guard->condition, allocate(a->buffer, guard->then_case, a->annotations));
  }
  Stmt rewrite_for(const Stmt& s) override {
    Stmt inner = Rewriter::rewrite_for(s);
    const auto* loop = as<ForNode>(inner);
    const auto* guard = loop ? as<IfNode>(loop->body) : nullptr;
    if (!guard || !serial_or_unrolled(loop) || guard->else_case) return inner;
    std::vector<Expr> out, in;
    for (const Expr& c : conjuncts(guard->condition)) {
      bool moves = !uses_var(c, loop->var.get()) && !has_loads(c);
      (moves ? out : in).push_back(c);
    }
    if (out.empty()) return inner;
    Stmt body = in.empty() ? guard->then_case : if_then(join_conditions(in), guard->then_case);
    return if_then(join_conditions(out), with_body(loop, body));
  }
};

/// for r: if r < limit: s  ->  all steps without the condition where the last one has it, for the
/// rows of a tile, which are computed together only without one. Where tiles are cut at one number
/// of rows, which is known, these are such a loop too.
class WholeTiles final : public Rewriter {
 public:
  explicit WholeTiles(const VarNode* lane) : lane_(lane) {}

 protected:
  Stmt rewrite_for(const Stmt& s) override {
    Stmt inner = Rewriter::rewrite_for(s);
    const auto* loop = as<ForNode>(inner);
    const auto* guard = loop ? as<IfNode>(loop->body) : nullptr;
    std::int64_t n = 0;
    if (!guard || guard->else_case || !serial_or_unrolled(loop) ||
        !is_const_int(loop->extent, &n) || n < 2 || n > kTile ||
        !is_const_int_value(loop->min, 0) || !sums(guard->then_case))
      return inner;
    const Expr last = make_int(n - 1, loop->var->dtype);
    std::vector<Expr> whole;
    Expr left;  // rows that a tile has, at most all
    for (const Expr& c : conjuncts(guard->condition)) {
      const Expr room = slack(c);
      const auto step = room ? linear_in(room, loop->var.get()) : std::nullopt;
      if (!step || !step->coeff.is_constant() || step->coeff.constant >= 0 || has_loads(room) ||
          uses_var(room, lane_))
        return inner;
      whole.push_back(substitute(c, {{loop->var.get(), last}}));
      left = whole.size() == 1 && step->constant(-1) ? arith::to_expr(step->base, dtypes::int64)
                                                     : Expr();
    }
    const Stmt all = deep_copy(with_body(loop, guard->then_case));
    return if_then(join_conditions(whole), all, left ? cut(loop, guard, left, n, inner) : inner);
  }

 private:
  /// Tiles that are not whole: `left` rows, which is the same number modulo the tile's everywhere.
  static Stmt cut(const ForNode* loop, const IfNode* guard, const Expr& left, std::int64_t n,
                  const Stmt& otherwise) {
    const arith::Modular m = arith::Analyzer().modular(left);
    if (m.coeff % n != 0) return otherwise;
    const std::int64_t rows = m.base % n;
    if (rows == 0) return nullptr;  // none
    const Stmt part = make_for(loop->var, loop->min, make_int(rows, loop->var->dtype),
                               guard->then_case, loop->for_kind, loop->axis, loop->annotations);
    return if_then(gt(left, make_int(0)), deep_copy(part));
  }

  static constexpr std::int64_t kTile = 8;
  /// Loops whose steps all lanes take.
  bool sums(const Stmt& s) const {
    bool found = false, good = true;
    for_each_stmt(s, [&](const Stmt& t) {
      found |= t->kind == StmtKind::for_;
      const auto* guard = as<IfNode>(t);
      good &= !guard || !uses_var(guard->condition, lane_);
    });
    return found && good;
  }
  const VarNode* lane_;
};

/// Elements that stay in a register while a nest of loops runs.
class Promote final : public Rewriter {
 public:
  explicit Promote(const std::vector<LaunchAxis>& axes) {
    for (const LaunchAxis& axis : axes) points_.insert(axis.var.get());
  }

 protected:
  Stmt rewrite_for(const Stmt& s) override {
    const auto* loop = as<ForNode>(s);
    if (!serial_or_unrolled(loop)) return Rewriter::rewrite_for(s);
    Stmt promoted = promote(s);
    return promoted ? rewrite(promoted) : Rewriter::rewrite_for(s);
  }
  Stmt rewrite_seq(const Stmt& s) override {
    // A value stored just before the loop that updates it starts in the register.
    Stmt done = Rewriter::rewrite_seq(s);
    const auto* list = as<SeqNode>(done);
    if (!list) return done;
    std::vector<Stmt> out;
    for (const Stmt& child : list->stmts) {
      const auto* before = out.empty() ? nullptr : as<StoreNode>(out.back());
      const auto* hold = as<AllocateNode>(child);
      const auto* body = hold ? as<SeqNode>(hold->body) : nullptr;
      const auto* first = body ? as<StoreNode>(body->stmts[0]) : nullptr;
      const auto* from = first ? as<LoadNode>(first->value) : nullptr;
      if (before && from && first->buffer == hold->buffer && from->buffer == before->buffer &&
          same_expr(from->indices[0], before->indices[0])) {
        std::vector<Stmt> parts = body->stmts;
        parts[0] = store(first->buffer, before->value, first->indices);
        out.back() = allocate(hold->buffer, seq(std::move(parts)), hold->annotations);
      } else {
        out.push_back(child);
      }
    }
    return seq(std::move(out));
  }

 private:
  struct Use {
    Expr index;
    bool same = true, written = false, read = false;
  };

  /// Null when there is nothing to promote at this loop.
  Stmt promote(const Stmt& s) const {
    std::vector<std::pair<Buffer, Use>> uses;
    auto note = [&](const Buffer& b, const Exprs& indices, bool write) {
      if (b->scope == "local" || indices.size() != 1) return;
      auto found =
          std::find_if(uses.begin(), uses.end(), [&](const auto& u) { return u.first == b; });
      if (found == uses.end()) {
        uses.push_back({b, {indices[0]}});
        found = uses.end() - 1;
      }
      Use& u = found->second;
      u.same = u.same && same_expr(u.index, indices[0]);
      (write ? u.written : u.read) = true;
    };
    for_each_stmt(s, [&](const Stmt& t) {
      if (const auto* st = as<StoreNode>(t)) note(st->buffer, st->indices, true);
    });
    for_each_expr(s, [&](const Expr& e) {
      if (const auto* l = as<LoadNode>(e)) note(l->buffer, l->indices, false);
    });
    bool barrier = false;
    // What only some points do must not become a load and a store of all of them.
    std::unordered_set<const BufferNode*> partial;
    for_each_stmt(s, [&](const Stmt& t) {
      barrier = barrier || t->kind == StmtKind::evaluate;
      const auto* guard = as<IfNode>(t);
      if (!guard || !uses_any(guard->condition, points_)) return;
      for (const BufferNode* b : used_buffers(t)) partial.insert(b);
    });
    std::unordered_set<const VarNode*> inside = bound_in(s);
    for (const auto& [buffer, use] : uses) {
      if (barrier || partial.count(buffer.get()) || !use.same || !use.written || !use.read ||
          uses_any(use.index, inside) || has_loads(use.index))
        continue;
      return hold(s, buffer, use.index);
    }
    return nullptr;
  }

  static Stmt hold(const Stmt& s, const Buffer& buffer, const Expr& index) {
    Buffer reg = make_buffer(buffer->name + "_reg", buffer->dtype, {make_int(1)}, "local");
    class Replace final : public Rewriter {
     public:
      Buffer from, to;

     protected:
      Expr rewrite_load(const Expr& e) override {
        if (as<LoadNode>(e)->buffer == from) return load(to, {make_int(0)});
        return Rewriter::rewrite_load(e);
      }
      Stmt rewrite_store(const Stmt& t) override {
        const auto* st = as<StoreNode>(t);
        if (!(st->buffer == from)) return Rewriter::rewrite_store(t);
        return store(to, rewrite(st->value), {make_int(0)});
      }
    } replace;
    replace.from = buffer, replace.to = reg;
    // A first store that happens in the first step only is done before the loops.
    Expr start;
    std::vector<const ForNode*> nest;
    Stmt rest = without_start(s, buffer, nest, start);
    Stmt loops = static_cast<Rewriter&>(replace).rewrite(start ? rest : s);
    Stmt begin = store(reg, start ? start : load(buffer, {index}), {make_int(0)});
    Stmt out = allocate(reg, seq({begin, loops, store(buffer, load(reg, {make_int(0)}), {index})}));
    if (!start) return out;
    for (const ForNode* loop : nest) {
      std::int64_t n = 0;
      if (!is_const_int(loop->extent, &n) || n <= 0)
        out = if_then(gt(loop->extent, make_const(0, loop->extent->dtype)), out);
    }
    return out;
  }

  /// The nest without `if all loops are at their start: buffer[..] = start` at the head of its
  /// innermost body; `start` stays null when there is no such statement.
  static Stmt without_start(const Stmt& s, const Buffer& buffer, std::vector<const ForNode*>& nest,
                            Expr& start) {
    if (const auto* loop = as<ForNode>(s); loop && serial_or_unrolled(loop)) {
      nest.push_back(loop);
      Stmt body = without_start(loop->body, buffer, nest, start);
      return start ? with_body(loop, body) : s;
    }
    const auto* list = as<SeqNode>(s);
    const auto* guard = list ? as<IfNode>(list->stmts[0]) : nullptr;
    const auto* first = guard && !guard->else_case ? as<StoreNode>(guard->then_case) : nullptr;
    if (!first || !(first->buffer == buffer) || has_loads(first->value)) return s;
    // True at the first step of all loops, false at any other: positive combinations of all.
    std::unordered_map<const VarNode*, bool> seen;
    VarMap first_step;
    for (const ForNode* loop : nest) first_step[loop->var.get()] = loop->min;
    for (const ForNode* loop : nest) {
      if (uses_var(first->value, loop->var.get())) return s;
      for (const ForNode* other : nest) {
        if (uses_var(loop->extent, other->var.get()) || uses_var(loop->min, other->var.get()))
          return s;
      }
    }
    arith::Analyzer analyzer;
    for (const Expr& c : conjuncts(guard->condition)) {
      const auto* b = as<BinaryNode>(c);
      if (!b || b->kind != ExprKind::eq) return s;
      Expr difference = b->a - b->b;
      if (!analyzer.prove_equal(substitute(difference, first_step),
                                make_const(0, difference->dtype)))
        return s;
      for (const ForNode* loop : nest) {
        auto l = linear_in(difference, loop->var.get());
        if (!l || !l->coeff.is_constant() || l->coeff.constant < 0) return s;
        if (l->coeff.constant > 0) seen[loop->var.get()] = true;
      }
    }
    for (const ForNode* loop : nest) {
      if (!seen[loop->var.get()] && !is_const_int_value(loop->extent, 1)) return s;
    }
    start = first->value;
    return seq(std::vector<Stmt>(list->stmts.begin() + 1, list->stmts.end()));
  }

  std::unordered_set<const VarNode*> points_;
};

/// Loops whose last step is partial are divided, but those whose body is straight code, which takes
/// such a step as it is (pipeline.cpp).
class Peel final : public Rewriter {
 public:
  explicit Peel(const LaunchAxis& lane) : lane_(lane) {}

 protected:
  Stmt rewrite_for(const Stmt& s) override {
    Stmt inner = Rewriter::rewrite_for(s);
    const auto* loop = as<ForNode>(inner);
    bool only_last = false;
    const Stmt parts = serial_or_unrolled(loop) ? peel(loop, lane_, &only_last) : nullptr;
    if (!parts) return inner;
    const Stmt straight = only_last ? unroll_guarded(loop) : nullptr;
    return straight ? straight : parts;
  }

 private:
  const LaunchAxis& lane_;
};

class Launches final : public Rewriter {
 protected:
  Stmt rewrite_default(const Stmt& s) override {
    const auto* launch = as<LaunchNode>(s);
    if (!launch) return Rewriter::rewrite_default(s);
    std::vector<LaunchAxis> axes;
    for (const char* name : {"qpu", "lane"}) {
      auto found = std::find_if(launch->axes.begin(), launch->axes.end(),
                                [&](const LaunchAxis& a) { return a.axis == name; });
      axes.push_back(found != launch->axes.end() ? *found
                                                 : LaunchAxis{name, make_var(name), make_int(1)});
    }
    // Global scratch of a kernel (one point's, or it would stand outside) is memory of the host
    // plan.
    class Lift final : public Rewriter {
     public:
      std::vector<std::pair<Buffer, Annotations>> lifted;

     protected:
      Stmt rewrite_allocate(const Stmt& t) override {
        const auto* a = as<AllocateNode>(t);
        if (a->buffer->scope != "global") return Rewriter::rewrite_allocate(t);
        lifted.emplace_back(a->buffer, a->annotations);
        return rewrite(a->body);
      }
    } lift;
    Stmt body = vector_registers(lift.rewrite(launch->body), axes[1]);
    const VarNode* lane = axes[1].var.get();
    body = WholeTiles(lane).rewrite(HoistGuards().rewrite(body));
    body = jam(Promote(axes).rewrite(body), lane);
    body = hoist_reads(unroll_small(Peel(axes[1]).rewrite(body)), axes);
    Stmt out = make_ref<const LaunchNode>(launch->name, axes, body);
    for (auto& [buffer, annotations] : lift.lifted) out = allocate(buffer, out, annotations);
    return out;
  }
};

}  // namespace

PrimFunc prepare(const PrimFunc& f) {
  auto out = edit(f);
  Stmt body = f->body;
  bool launches = false;
  for_each_stmt(body, [&](const Stmt& s) { launches = launches || s->kind == StmtKind::launch; });
  // Nothing was left of loops without a step.
  if (!launches)
    body = make_ref<const LaunchNode>(cat(f->name, "_kernel0"), std::vector<LaunchAxis>{}, body);
  out->body = Launches().rewrite(body);
  return out;
}

}  // namespace weft::qpu::tensor
