// SPDX-License-Identifier: Apache-2.0
#include "weft/pass/race_run.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "weft/base/text.h"
#include "weft/ir/visit.h"

namespace weft::pass::races {

using namespace ir;

namespace {

constexpr std::int64_t kMostCells = 1 << 22;
constexpr std::int64_t kFirst = 3, kLast = 1;  // iterations of a brief run

template <typename F>
bool any_stmt(const Stmt& s, F&& f) {
  bool found = false;
  for_each_stmt(s, [&](const Stmt& t) { found = found || f(t); });
  return found;
}

bool holds_sync(const Stmt& s) { return any_stmt(s, is_sync); }
bool holds_wait(const Stmt& s) {
  return any_stmt(s, [](const Stmt& t) { return t->kind == StmtKind::wait; });
}

/// A common multiple of the small divisors of indices.
std::int64_t period_of(const Stmt& s) {
  std::int64_t out = 1;
  auto join = [&](std::int64_t n) {
    if (n > 1 && n <= 16) out = std::lcm(out, n);
  };
  for_each_expr(s, [&](const Expr& e) {
    std::int64_t n = 0;
    const auto* b = as<BinaryNode>(e);
    if (b && (e->kind == ExprKind::mod || e->kind == ExprKind::floormod) && is_const_int(b->b, &n))
      join(n);
    const auto* c = as<CallNode>(e);
    if (c && c->op == "bitwise_and" && is_const_int(c->args[1], &n)) join(n + 1);
  });
  return out;
}

}  // namespace

std::vector<std::int64_t> turning_points(const Stmt& s, const VarNode* var) {
  constexpr std::size_t kMost = 12;
  std::set<std::int64_t> out;
  for_each_expr(s, [&](const Expr& e) {
    const auto* b = as<BinaryNode>(e);
    if (!b || e->kind < ExprKind::eq || e->kind > ExprKind::ge || !uses_var(e, var)) return;
    std::set<std::int64_t> constants{0, 1};
    for_each_expr(e, [&](const Expr& x) {
      std::int64_t n = 0;
      if (is_const_int(x, &n)) constants.insert(n);
    });
    for (const std::int64_t n : constants) {
      for (const std::int64_t factor : constants) {
        if (factor < 1) continue;
        for (std::int64_t k : {n / factor - 1, n / factor, n / factor + 1})
          if (k > 0 && out.size() < kMost) out.insert(k);
      }
    }
  });
  return {out.begin(), out.end()};
}

bool is_sync(const Stmt& s) {
  const auto* t = as<EvaluateNode>(s);
  const auto* c = t ? as<CallNode>(t->value) : nullptr;
  return c && c->op == "sync";
}

Run::Run(const Setup& setup, const TargetInfo& machine, Crossings& crossings, RaceReport& report,
         const std::unordered_map<const VarNode*, std::int64_t>& symbols)
    : setup_(setup),
      machine_(machine),
      crossings_(crossings),
      report_(report),
      place_(crossings.add_points(setup)),
      accesses_left_(setup.budget),
      values_(setup.points()) {
  Points all(static_cast<std::size_t>(setup.points()));
  std::iota(all.begin(), all.end(), 0);
  for (const auto& [var, value] : symbols) {
    Numbers n;
    n.known = true;
    n.value = value;
    values_.set(var, all, std::move(n));
  }
  for (std::size_t i = 0; i < setup.vars.size(); ++i) {
    const std::vector<std::int64_t>& at = setup.at[i];
    Numbers n;
    n.known = true;
    n.value = at[0];
    n.uniform = std::all_of(at.begin(), at.end(), [&](std::int64_t v) { return v == at[0]; });
    if (!n.uniform) n.values = at;
    values_.set(setup.vars[i].get(), all, std::move(n));
  }
}

void Run::run() {
  find_buffers();
  Points all(static_cast<std::size_t>(setup_.points()));
  std::iota(all.begin(), all.end(), 0);
  try {
    exec(setup_.body, all);
    for (const auto& [buffer, elements] : in_flight_) {
      if (elements.empty()) continue;
      const auto& [element, start] = *elements.begin();
      race(buffer, element, start.second, start.first, nullptr, -1, "a copy that no wait finishes");
    }
  } catch (const Exhausted&) {
    unchecked(cat("stopped after ", setup_.budget, " accesses"));
  }
}

void Run::find_buffers() {
  for_each_stmt(setup_.body, [&](const Stmt& s) {
    const auto* a = as<AllocateNode>(s);
    if (!a) return;
    inside_.insert(a->buffer.get());
    std::int64_t n = 0;
    if (!shared_by_group(a->buffer.get()) || a->buffer->shape.size() != 1) return;
    if (is_const_int(a->buffer->shape[0], &n) && n > 0 && n <= kMostCells)
      cells_[a->buffer.get()].row.resize(static_cast<std::size_t>(n));
  });
  for_each_stmt(setup_.body, [&](const Stmt& s) {
    const auto* t = as<StoreNode>(s);
    if (t && !shared_by_group(t->buffer.get()) && !crossings_.watches(t->buffer.get()))
      own_.insert(t->buffer.get());  // a point's own copy
  });
}

/// Memory of a group, of which its points have one instance together.
bool Run::shared_by_group(const BufferNode* b) const {
  if (!setup_.together) return false;
  const MemoryInfo* row = machine_.memory(b->scope);
  if (!row || row->private_to.empty()) return false;  // memory of all groups
  for (const std::string& axis : setup_.axes) {
    const AxisInfo* a = machine_.axis(axis);
    if (a && a->barrier && !row->is_private_to(axis)) return true;
  }
  return false;
}

bool Run::watched(const BufferNode* b) const { return crossings_.watches(b) || shared_by_group(b); }

bool Run::matters(const Stmt& s) {
  auto [it, fresh] = matters_.try_emplace(s.get(), false);
  if (!fresh) return it->second;
  bool found = false;
  for (const BufferNode* b : used_buffers(s)) found = found || watched(b);
  found = found || (setup_.together && any_stmt(s, [](const Stmt& t) {
                      return is_sync(t) || t->kind == StmtKind::wait || t->kind == StmtKind::async;
                    }));
  return matters_[s.get()] = found;
}

/// What a loop's variable decides: which elements of watched memory are touched, only whether some
/// are, or neither.
Run::Decides Run::decides(const ForNode* t) {
  auto [it, fresh] = decides_.try_emplace(t, Decides::nothing);
  if (!fresh) return it->second;
  std::unordered_set<const VarNode*> vars{t->var.get()};
  bool whether = false, where = false;
  auto condition = [&](const Expr& e) { whether = whether || (e && uses_any(e, vars)); };
  auto index = [&](const Expr& e) { where = where || uses_any(e, vars); };
  auto places = [&](const Expr& e) {
    for_each_expr(e, [&](const Expr& x) {
      const auto* l = as<LoadNode>(x);
      if (l && watched(l->buffer.get())) {
        for (const Expr& i : l->indices) index(i);
      }
      if (const auto* s = as<SelectNode>(x)) condition(s->condition);
      if (const auto* c = as<CallNode>(x); c && c->op == "if_then_else") condition(c->args[0]);
    });
  };
  for_each_stmt(t->body, [&](const Stmt& s) {
    if (const auto* f = as<ForNode>(s)) index(f->min), condition(f->extent);
    if (const auto* f = as<IfNode>(s)) condition(f->condition), places(f->condition);
    if (const auto* f = as<WaitNode>(s)) index(f->outstanding);
    if (const auto* f = as<LetStmtNode>(s)) {
      if (uses_any(f->value, vars)) vars.insert(f->var.get());
      places(f->value);
    }
    if (const auto* f = as<EvaluateNode>(s)) places(f->value);
    if (const auto* f = as<StoreNode>(s)) {
      places(f->value);
      if (watched(f->buffer.get())) {
        for (const Expr& i : f->indices) index(i);
      }
    }
  });
  return decides_[t] = where ? Decides::where : whether ? Decides::whether : Decides::nothing;
}

bool Run::in_group_memory(const Stmt& s) {
  auto [it, fresh] = grouped_.try_emplace(s.get(), false);
  if (!fresh) return it->second;
  bool found = false;
  for (const BufferNode* b : used_buffers(s)) found = found || shared_by_group(b);
  return grouped_[s.get()] = found;
}

// ---- statements, all active points together

void Run::exec(const Stmt& s, const Points& active) {
  if (!s || active.empty() || !matters(s)) return;
  switch (s->kind) {
    case StmtKind::seq:
      for (const Stmt& child : as<SeqNode>(s)->stmts) exec(child, active);
      return;
    case StmtKind::allocate: return exec(as<AllocateNode>(s)->body, active);
    case StmtKind::async: {
      const auto* t = as<AsyncNode>(s);
      for (std::int64_t p : active) started_[{p, t->token.get()}].emplace_back();
      const VarNode* before = std::exchange(token_, t->token.get());
      exec(t->body, active);
      token_ = before;
      return;
    }
    case StmtKind::wait: return wait(as<WaitNode>(s), active);
    case StmtKind::let: {
      const auto* t = as<LetStmtNode>(s);
      touch_all(s, active);
      values_.bind(t->var.get(), active, t->value, own_);
      if (is_local(t->value)) local_.insert(t->var.get());
      return exec(t->body, active);
    }
    case StmtKind::if_: return branch(s, active);
    case StmtKind::for_: return loop(s, active);
    case StmtKind::while_: {
      unchecked("a while loop");
      const bool before = std::exchange(certain_, false);
      exec(as<WhileNode>(s)->body, active);
      certain_ = before;
      return;
    }
    case StmtKind::store: return touch_all(s, active);
    case StmtKind::evaluate:
      if (is_sync(s)) {
        if (setup_.together && active.size() != static_cast<std::size_t>(setup_.points()))
          race(nullptr, 0, s.get(), active.front(), nullptr, -1,
               "barrier under a condition that differs");
        ++epoch_;
        return;
      }
      return touch_all(s, active);
    case StmtKind::assert_: return;
    default: unchecked(cat("a statement of kind ", static_cast<int>(s->kind)));
  }
}

/// All but the newest groups of the token are finished: each point's writes happen now.
void Run::wait(const WaitNode* t, const Points& active) {
  const Numbers counts = values_.eval(t->outstanding, active);
  for (std::size_t i = 0; i < active.size(); ++i) {
    const std::int64_t p = active[i];
    if (!counts.known_at(i)) {
      unchecked("a wait for a count on data");
      continue;
    }
    const std::int64_t left = counts.at(i);
    auto& groups = started_[{p, t->token.get()}];
    while (static_cast<std::int64_t>(groups.size()) > left) {
      for (const Started& w : groups.front()) {
        in_flight_[w.buffer].erase(w.element);
        Cell& cell = cell_of(cells_[w.buffer], w.element);
        if (cell.reader >= 0 && (cell.readers || cell.reader != p))
          race(w.buffer, w.element, cell.read, cell.reader, w.statement, p,
               "read/asynchronous write");
        if (cell.writer >= 0 && cell.writer != p) {
          if (cell.value == w.value) ++report_.same_value_writes;
          else race(w.buffer, w.element, cell.wrote, cell.writer, w.statement, p, "write/write");
          cell.writers = true;
        }
        cell.writer = static_cast<std::int32_t>(p);
        cell.value = w.value;
        cell.wrote = w.statement;
      }
      groups.pop_front();
    }
  }
}

void Run::branch(const Stmt& s, const Points& active) {
  const auto* t = as<IfNode>(s);
  touch_all(s, active);
  const Numbers v = values_.eval(t->condition, active);
  Points yes, no;
  for (std::size_t i = 0; i < active.size(); ++i) {
    if (!v.known_at(i) || v.at(i)) yes.push_back(active[i]);
    if (!v.known_at(i) || !v.at(i)) no.push_back(active[i]);
  }
  const bool before = certain_;
  if (!v.all_known()) {
    unchecked("a condition on data; both sides were run");
    certain_ = false;
  }
  exec(t->then_case, yes);
  exec(t->else_case, no);
  certain_ = before;
}

void Run::loop(const Stmt& s, const Points& active) {
  const auto* t = as<ForNode>(s);
  touch_all(s, active);
  const Numbers low = values_.eval(t->min, active), count = values_.eval(t->extent, active);
  if (!low.all_known() || !count.all_known()) {
    unchecked(cat("loop \"", t->var->name,
                  "\" has a range known only at run time; two iterations were run"));
  }
  const bool before = certain_;
  if (!count.all_known()) certain_ = false;
  iterations(t, active, low, count);
  certain_ = before;
}

void Run::iterations(const ForNode* t, const Points& active, const Numbers& low,
                     const Numbers& count) {
  auto begin_of = [&](std::size_t i) { return low.known_at(i) ? low.at(i) : 0; };
  auto count_of = [&](std::size_t i) { return count.known_at(i) ? count.at(i) : 2; };
  std::int64_t most = count_of(0);
  const bool alike = low.uniform && low.known && count.uniform;
  for (std::size_t i = 0; i < active.size() && !alike; ++i) most = std::max(most, count_of(i));
  const bool waits = holds_wait(t->body);
  const bool sampled = most > 4 && setup_.together && holds_sync(t->body);
  // Versions of a pipelined buffer repeat: whole periods are left out, so that what is under way
  // before and after them fits together.
  const std::int64_t period = sampled && waits ? period_of(t->body) : 0;
  const std::int64_t resume = period > 0 ? 4 + (most - 4) / period * period : 0;
  // Where no memory of the group is used, iterations are there to find the elements of each point.
  const bool few = !waits && !token_ && !sampled;
  const Decides what = few ? decides(t) : Decides::where;
  const bool same_places = few && what == Decides::nothing;
  const bool brief =
      few && !same_places && most > kFirst + kLast && (setup_.brief || !in_group_memory(t->body));
  if (brief && what == Decides::where) crossings_.partial = true;
  std::vector<std::int64_t> turns;
  if (brief) turns = turning_points(t->body, t->var.get());
  const std::int64_t begin = begin_of(0);
  for (std::int64_t k = 0; k < most; ++k) {
    if (period > 0 ? k >= 4 && k < resume : sampled && k > 2 && k < most - 1) continue;
    if (same_places && k > 1) break;
    if (brief && k >= kFirst && k < most - kLast &&
        !std::binary_search(turns.begin(), turns.end(), begin + k))
      continue;
    Numbers at;
    at.known = true;
    if (alike) {
      at.value = begin_of(0) + k;
      values_.set(t->var.get(), active, std::move(at));
      exec(t->body, active);
      continue;
    }
    Points now;
    at.uniform = false;
    bool all_known = true;
    for (std::size_t i = 0; i < active.size(); ++i) {
      if (k >= count_of(i)) continue;
      at.values.push_back(begin_of(i) + k);
      at.ok.push_back(low.known_at(i));
      all_known = all_known && low.known_at(i);
      now.push_back(active[i]);
    }
    if (all_known) at.ok.clear();
    values_.set(t->var.get(), now, std::move(at));
    exec(t->body, now);
  }
}

}  // namespace weft::pass::races
