// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/qpu/tensor/jam.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "weft/base/error.h"
#include "weft/ir/build.h"
#include "weft/ir/visit.h"
#include "weft/stages/conditions.h"

namespace weft::qpu::tensor {

using namespace ir;
using stages::has_loads;

namespace {
constexpr std::int64_t kTogether = 4;  // steps at once
constexpr std::int64_t kRows =
    8;  // where a step's own words are the same in all lanes (rounds.cpp)

bool plain(const ForNode* loop) { return loop->for_kind == ForKind::serial; }

/// The step of an outer loop: registers, statements, one inner loop of stores to registers (with a
/// condition around, with another inside), statements.
struct Step {
  std::vector<const AllocateNode*> registers;
  std::vector<Stmt> before, after;
  Expr around;  // null: none
  const ForNode* loop = nullptr;
  Expr inside;               // null: none
  std::vector<Stmt> stores;  // of the inner loop
};

bool only_stores(const Stmt& s) {
  bool good = true;
  for_each_stmt(s, [&](const Stmt& t) {
    good = good &&
           (t->kind == StmtKind::store || t->kind == StmtKind::seq || t->kind == StmtKind::if_);
  });
  return good;
}

bool list_stores(const Stmt& s, std::vector<Stmt>& out) {
  if (const auto* list = as<SeqNode>(s)) {
    for (const Stmt& t : list->stmts)
      if (!list_stores(t, out)) return false;
    return true;
  }
  const auto* t = as<StoreNode>(s);
  if (!t || t->buffer->scope != "local") return false;
  out.push_back(s);
  return true;
}

std::optional<Step> step_of(const Stmt& body) {
  Step out;
  Stmt at = body;
  while (const auto* a = as<AllocateNode>(at)) {
    std::int64_t size = 0;
    if (a->buffer->scope != "local" || a->buffer->shape.size() != 1 ||
        !is_const_int(a->buffer->shape[0], &size) || size != 1)
      return std::nullopt;
    out.registers.push_back(a);
    at = a->body;
  }
  const auto* list = as<SeqNode>(at);
  if (!list || out.registers.empty()) return std::nullopt;
  for (const Stmt& s : list->stmts) {
    if (only_stores(s)) {
      (out.loop ? out.after : out.before).push_back(s);
      continue;
    }
    if (out.loop) return std::nullopt;
    Stmt inner = s;
    if (const auto* guard = as<IfNode>(inner)) {
      if (guard->else_case || has_loads(guard->condition)) return std::nullopt;
      out.around = guard->condition;
      inner = guard->then_case;
    }
    out.loop = as<ForNode>(inner);
    if (!out.loop || !plain(out.loop)) return std::nullopt;
    Stmt work = out.loop->body;
    if (const auto* guard = as<IfNode>(work)) {
      if (guard->else_case || has_loads(guard->condition)) return std::nullopt;
      out.inside = guard->condition;
      work = guard->then_case;
    }
    if (!list_stores(work, out.stores)) return std::nullopt;
  }
  if (!out.loop) return std::nullopt;
  return out;
}

Expr both(const Expr& a, const Expr& b) {
  if (!a) return b;
  return b ? logical_and(a, b) : a;
}

class Jam final : public Rewriter {
 public:
  explicit Jam(const VarNode* lane) : lane_(lane) {}

 protected:
  Stmt rewrite_for(const Stmt& s) override {
    Stmt inner = Rewriter::rewrite_for(s);
    const auto* loop = as<ForNode>(inner);
    std::int64_t n = 0;
    if (!plain(loop) || !is_const_int_value(loop->min, 0) || !is_const_int(loop->extent, &n) ||
        n < 2)
      return inner;
    auto step = step_of(loop->body);
    if (!step || !worth(loop, *step) || !independent(loop->body)) return inner;
    return together(loop, n, std::min(n, shared_words(loop, *step) ? kRows : kTogether));
  }

 private:
  /// The inner loop runs the same way in all steps, reads something that is the same in all, and
  /// something that is not.
  static bool worth(const ForNode* outer, const Step& step) {
    const VarNode* v = outer->var.get();
    if (uses_var(step.loop->min, v) || uses_var(step.loop->extent, v) ||
        has_loads(step.loop->extent) || has_loads(step.loop->min) ||
        (step.inside && uses_var(step.inside, v)))
      return false;
    bool common = false, own = false;
    for (const Stmt& s : step.stores) {
      for_each_expr(as<StoreNode>(s)->value, [&](const Expr& e) {
        const auto* l = as<LoadNode>(e);
        if (!l || l->buffer->scope == "local") return;
        bool differs = false, moves = false;
        for (const Expr& i : l->indices) {
          differs = differs || uses_var(i, v);
          moves = moves || uses_var(i, step.loop->var.get());
        }
        own = own || differs;
        common = common || (!differs && moves);
      });
    }
    return common && own;
  }

  /// What only one step reads is one word for all lanes, what all read is not.
  bool shared_words(const ForNode* outer, const Step& step) const {
    bool good = step.stores.size() == 1;
    for (const Stmt& s : step.stores) {
      for_each_expr(as<StoreNode>(s)->value, [&](const Expr& e) {
        const auto* l = as<LoadNode>(e);
        if (!l || l->buffer->scope == "local") return;
        bool own = false, lanes = false;
        for (const Expr& i : l->indices) {
          own = own || uses_var(i, outer->var.get());
          lanes = lanes || uses_var(i, lane_);
        }
        good = good && own != lanes;
      });
    }
    return good;
  }

  /// No step reads from memory what another may have stored.
  static bool independent(const Stmt& body) {
    std::unordered_set<const BufferNode*> stored;
    bool good = true;
    for_each_stmt(body, [&](const Stmt& s) {
      const auto* t = as<StoreNode>(s);
      if (t && t->buffer->scope != "local") stored.insert(t->buffer.get());
    });
    for_each_expr(body, [&](const Expr& e) {
      const auto* l = as<LoadNode>(e);
      if (l && stored.count(l->buffer.get())) good = false;
    });
    return good;
  }

  static Stmt together(const ForNode* loop, std::int64_t n, std::int64_t count) {
    DType type = loop->var->dtype;
    Var group = make_var(loop->var->name + "_g", type);
    std::vector<Stmt> copies, before, singles, after, work;
    std::vector<const AllocateNode*> registers;
    Expr all, inside;
    Var x;
    Expr from, extent;
    for (std::int64_t c = 0; c < count; ++c) {
      Expr at = Expr(group) * make_const(count, type) + make_const(c, type);
      copies.push_back(deep_copy(substitute(loop->body, {{loop->var.get(), at}})));
      auto step = step_of(copies.back());
      WEFT_CHECK(step, "a copy of a step has another shape");
      Expr valid = n % count ? lt(at, make_const(n, type)) : Expr();
      auto guarded = [&](const Stmt& s) { return valid && c > 0 ? if_then(valid, s) : s; };
      for (const AllocateNode* a : step->registers) registers.push_back(a);
      for (const Stmt& s : step->before) before.push_back(guarded(s));
      for (const Stmt& s : step->after) after.push_back(guarded(s));
      Expr runs = both(c > 0 ? valid : Expr(), step->around);
      all = both(all, runs);
      Stmt single = deep_copy(Stmt(step->loop));
      singles.push_back(runs ? if_then(runs, single) : single);
      if (c == 0) {
        x = make_var(step->loop->var->name, step->loop->var->dtype);
        from = step->loop->min, extent = step->loop->extent;
      }
      VarMap same{{step->loop->var.get(), Expr(x)}};
      if (c == 0 && step->inside) inside = substitute(step->inside, same);
      for (const Stmt& s : step->stores) work.push_back(substitute(s, same));
    }
    Stmt body = seq(std::move(work));
    if (inside) body = if_then(inside, body);
    Stmt joined = make_for(x, from, extent, body);
    if (all) joined = if_then(all, joined, seq(std::move(singles)));
    std::vector<Stmt> parts = std::move(before);
    parts.push_back(joined);
    parts.insert(parts.end(), after.begin(), after.end());
    Stmt out = seq(std::move(parts));
    for (const AllocateNode* a : registers) out = allocate(a->buffer, out, a->annotations);
    return make_for(group, make_const(0, type), make_const((n + count - 1) / count, type), out,
                    loop->for_kind, loop->axis, loop->annotations);
  }

  const VarNode* lane_;
};
}  // namespace

Stmt jam(const Stmt& body, const VarNode* lane) {
  return static_cast<Rewriter&&>(Jam(lane)).rewrite(body);
}

}  // namespace weft::qpu::tensor
