// SPDX-License-Identifier: Apache-2.0
#include "weft/pass/insert_barriers.h"

#include <algorithm>
#include <functional>
#include <unordered_map>

#include "weft/arith/analyzer.h"
#include "weft/base/error.h"
#include "weft/ir/atomic.h"
#include "weft/ir/build.h"
#include "weft/ir/roles.h"
#include "weft/ir/visit.h"
#include "weft/pass/distinct_elements.h"

namespace weft::pass {

using namespace ir;

namespace {

bool is_sync(const Stmt& s) {
  const auto* t = as<EvaluateNode>(s);
  const auto* c = t ? as<CallNode>(t->value) : nullptr;
  return c && c->op == "sync";
}

bool has_sync(const Stmt& s) {
  bool found = false;
  for_each_stmt(s, [&](const Stmt& t) { found = found || is_sync(t); });
  return found;
}

/// The points of the kernel that one barrier joins, and the tests of one kernel.
class Group : public DistinctElements {
 public:
  Group(const LaunchNode* launch, const TargetInfo& machine) : machine_(machine) {
    for (const LaunchAxis& axis : launch->axes) {
      analyzer.bind(axis.var, {make_int(0), axis.extent});
      const AxisInfo* row = machine.axis(axis.axis);
      if (!row || !row->barrier) continue;
      std::int64_t n = 0;
      if (is_const_int(axis.extent, &n) && n <= 1) continue;
      axes_.push_back(axis);
      vars_.insert(axis.var.get());
    }
    for_each_stmt(launch->body, [&](const Stmt& s) {
      if (const auto* t = as<StoreNode>(s)) written_.insert(t->buffer.get());
      if (const auto* t = as<EvaluateNode>(s)) {  // addresses may be written through
        for_each_expr(t->value, [&](const Expr& x) {
          if (const auto* l = as<LoadNode>(x)) written_.insert(l->buffer.get());
        });
      }
    });
  }

  bool trivial() const { return axes_.empty(); }

  /// Whether points of the group see each other's writes to this memory.
  bool shares(const Buffer& b) const {
    const MemoryInfo* row = machine_.memory(b->scope);
    for (const LaunchAxis& axis : axes_) {
      if (!row || !row->is_private_to(axis.axis)) return true;
    }
    return false;
  }

  /// One value for all points. So are elements at one place of global memory that the kernel does
  /// not write.
  bool uniform(const Expr& e) const {
    bool known = true;
    for_each_expr(e, [&](const Expr& x) {
      if (const auto* c = as<CallNode>(x))
        known = known && (c->op == "shift_right" || c->op == "bitwise_and" || c->op == "likely");
      if (const auto* l = as<LoadNode>(x))
        known = known && l->buffer->scope == "global" && !written_.count(l->buffer.get());
    });
    return known && !uses_any(e, vars_) && !uses_any(e, tainted);
  }

 private:
  const TargetInfo& machine_;
  std::unordered_set<const VarNode*> vars_;
  std::unordered_set<const BufferNode*> written_;
};

class Inserter {
  static constexpr std::size_t kMostNodes = 500;

 public:
  explicit Inserter(Group& group) : group_(group) {}

  using Pending = std::vector<ElementAccess>;

  Stmt process(const Stmt& s, Pending& pending) {
    if (!s) return s;
    if (is_sync(s)) {
      pending.clear();
      return s;
    }
    if (s->kind == StmtKind::seq) {
      std::vector<Stmt> out;
      const std::vector<Stmt>& all = as<SeqNode>(s)->stmts;
      for (std::size_t i = 0; i < all.size(); ++i) {
        out.push_back(process(all[i], pending));
        const bool last = i + 1 == all.size();
        if (all[i]->kind == StmtKind::wait && (last || !is_sync(all[i + 1])) && meets(pending)) {
          pending.clear();
          out.push_back(evaluate(call("sync", {make_string("shared")})));
        }
      }
      return seq(std::move(out));
    }
    if (const auto* t = as<AsyncNode>(s)) {  // started here, done at the wait for its token
      Pending mine;
      bool stop = false;
      collect(t->body, mine, stop);
      Stmt sync = clashes(pending, mine);
      if (sync) pending.clear();
      Pending& started = started_[t->token.get()];
      for (const ElementAccess& a : mine) {
        if (!a.write) {
          pending.push_back(a);
        } else if (std::none_of(started.begin(), started.end(),
                                [&](const ElementAccess& b) { return b.buffer == a.buffer; })) {
          started.push_back(anywhere(a));
        }
      }
      return sync ? seq({sync, s}) : s;
    }
    if (const auto* t = as<WaitNode>(s)) {
      append(pending, started_[t->token.get()]);
      return s;
    }
    if (s->kind == StmtKind::allocate) {  // no barrier between a declaration and its body
      const auto* t = as<AllocateNode>(s);
      return allocate(t->buffer, process(t->body, pending), t->annotations);
    }
    if (const auto* t = as<LetStmtNode>(s)) {
      if (!group_.uniform(t->value)) group_.tainted.insert(t->var.get());
      define(t);
      bool stop = false;
      Pending mine;
      collect_expr(t->value, s.get(), mine);
      (void)stop;
      Stmt sync = clashes(pending, mine);
      if (sync) pending.clear();
      append(pending, mine);
      return seq({sync, let_stmt(t->var, t->value, process(t->body, pending))});
    }
    Pending mine;
    bool stop = false;
    collect(s, mine, stop);
    Stmt sync = clashes(pending, mine);
    if (sync) pending.clear();
    Stmt body;
    switch (s->kind) {
      case StmtKind::for_: body = loop(as<ForNode>(s), pending); break;
      case StmtKind::if_: body = branch(as<IfNode>(s), pending); break;
      case StmtKind::while_: {
        const auto* t = as<WhileNode>(s);
        Stmt inner = again(t->body, pending);
        if (has_sync(inner) && !group_.uniform(t->condition)) divergent("a while loop");
        body = while_loop(t->condition, inner);
        break;
      }
      default: append(pending, mine); body = s;
    }
    return sync ? seq({sync, body}) : body;
  }

 private:
  /// Whether a barrier belongs behind a wait of a loop: points will read what others copied, and
  /// there it serves all that the iteration before left, too.
  bool meets(const Pending& pending) const {
    return !loops_.empty() && branches_ == 0 &&
           std::any_of(pending.begin(), pending.end(), [&](const ElementAccess& a) {
             return !a.stmt && a.write && a.buffer->scope.starts_with("shared") &&
                    group_.shares(a.buffer);
           });
  }
  [[noreturn]] static void divergent(std::string_view what) {
    throw Error(ErrorKind::lower, "lower.barrier.divergent",
                cat("a barrier is needed inside ", what,
                    " whose course differs between the points of the group"));
  }

  /// A let of integers stands for its value, as long as that stays small: lets of lets grow without
  /// end. A variable that stays is one value for all points, or tainted and understood by nothing.
  void define(const LetStmtNode* t) {
    if (!t->value->dtype.is_integral() || !t->value->dtype.is_scalar()) return;
    Expr value = substitute(t->value, lets_);
    std::size_t nodes = 0;
    for_each_expr(value, [&](const Expr&) { ++nodes; });
    if (nodes <= kMostNodes) {
      lets_[t->var.get()] = std::move(value);
    } else if (!group_.uniform(value)) {
      group_.tainted.insert(t->var.get());
    }
  }

  /// The same access with an element that is not known: what a wait finishes is of some iteration.
  static ElementAccess anywhere(const ElementAccess& a) {
    ElementAccess out = a;
    out.index = load(a.buffer, {make_int(0)});
    out.stmt = nullptr;
    return out;
  }

  static void append(Pending& to, const Pending& from) {
    to.insert(to.end(), from.begin(), from.end());
  }

  /// Appends what `to` does not hold: paths that meet again share what was pending before them, and
  /// holding it twice at every condition and loop would double it each time.
  static void join(Pending& to, const Pending& from) {
    std::unordered_map<std::size_t, std::vector<std::size_t>> held;
    auto key = [](const ElementAccess& a) {
      return std::hash<const void*>()(a.index.get()) * 31 + std::hash<const void*>()(a.stmt);
    };
    auto same = [](const ElementAccess& a, const ElementAccess& b) {
      return a.index == b.index && a.stmt == b.stmt && a.buffer == b.buffer && a.lanes == b.lanes &&
             a.write == b.write && a.atomic == b.atomic &&
             std::equal(a.loops.begin(), a.loops.end(), b.loops.begin(), b.loops.end(),
                        [](const AccessLoop& x, const AccessLoop& y) { return x.var == y.var; });
    };
    for (std::size_t i = 0; i < to.size(); ++i) held[key(to[i])].push_back(i);
    for (const ElementAccess& a : from) {
      std::vector<std::size_t>& alike = held[key(a)];
      if (std::any_of(alike.begin(), alike.end(), [&](std::size_t i) { return same(to[i], a); }))
        continue;
      alike.push_back(to.size());
      to.push_back(a);
    }
  }

  Stmt loop(const ForNode* t, Pending& pending) {
    bool same_range = group_.uniform(t->min) && group_.uniform(t->extent);
    group_.analyzer.bind(t->var, {t->min, t->extent});
    if (!same_range) group_.tainted.insert(t->var.get());
    loops_.push_back({t->var, {t->min, t->extent}});
    Pending before = pending;
    open_.insert(t->var.get());
    Stmt body = process(t->body, pending);
    // Carried: what is pending happened in another iteration than what comes.
    Var other = make_var(t->var->name, t->var->dtype);
    group_.analyzer.bind(other, {t->min, t->extent});
    if (!same_range) group_.tainted.insert(other.get());
    others_.push_back(other);
    for (ElementAccess& a : pending) {
      for (AccessLoop& l : a.loops) {
        if (l.var == t->var) l.var = other;
      }
      a.index = substitute(a.index, {{t->var.get(), other}});
    }
    body = process(body, pending);
    open_.erase(t->var.get());
    loops_.pop_back();
    if (has_sync(body) && !same_range) divergent(cat("loop \"", t->var->name, "\""));
    std::int64_t n = 0;
    bool runs = is_const_int(t->extent, &n) && n > 0;
    if (!runs) join(pending, before);
    return make_for(t->var, t->min, t->extent, body, t->for_kind, t->axis, t->annotations);
  }

  Stmt again(const Stmt& body, Pending& pending) {
    Pending before = pending;
    Stmt out = process(process(body, pending), pending);
    join(pending, before);
    return out;
  }

  Stmt branch(const IfNode* t, Pending& pending) {
    Pending other = pending;
    collect_expr(t->condition, t, pending);
    ++branches_;
    Stmt a = process(t->then_case, pending), b = process(t->else_case, other);
    --branches_;
    join(pending, other);
    bool inside = has_sync(a) || (b && has_sync(b));
    if (!inside || group_.uniform(t->condition)) return if_then(t->condition, a, b);
    bool reads_memory = false;
    for_each_expr(t->condition,
                  [&](const Expr& e) { reads_memory = reads_memory || e->kind == ExprKind::load; });
    if (reads_memory) divergent("a condition on memory");
    // The guard moves down to the parts between barriers.
    return b ? seq({guard(t->condition, a), guard(logical_not(t->condition), b)})
             : guard(t->condition, a);
  }

  Stmt guard(const Expr& condition, const Stmt& s) {
    if (!has_sync(s)) return if_then(condition, s);
    if (is_sync(s)) return s;
    if (const auto* q = as<SeqNode>(s)) {
      std::vector<Stmt> out, run;
      auto flush = [&] {
        if (!run.empty()) out.push_back(if_then(condition, seq(std::exchange(run, {}))));
      };
      for (const Stmt& child : q->stmts) {
        if (has_sync(child)) {
          flush();
          out.push_back(guard(condition, child));
        } else {
          run.push_back(child);
        }
      }
      flush();
      return seq(std::move(out));
    }
    if (const auto* t = as<ForNode>(s))
      return make_for(t->var, t->min, t->extent, guard(condition, t->body), t->for_kind, t->axis,
                      t->annotations);
    if (const auto* t = as<AllocateNode>(s))
      return allocate(t->buffer, guard(condition, t->body), t->annotations);
    if (const auto* t = as<IfNode>(s))
      return if_then(t->condition, guard(condition, t->then_case),
                     t->else_case ? guard(condition, t->else_case) : nullptr);
    if (const auto* t = as<LetStmtNode>(s); t && group_.uniform(t->value))
      return let_stmt(t->var, t->value, guard(condition, t->body));
    divergent("a statement under a guard");
  }

  /// A barrier when anything pending clashes with the coming accesses; null otherwise.
  Stmt clashes(const Pending& pending, const Pending& coming) const {
    const ElementAccess* found = nullptr;
    bool global = false;
    for (const ElementAccess& x : pending) {
      for (const ElementAccess& y : coming) {
        if (!group_.conflict(x, y, open_)) continue;
        found = &x;
        global = global || !x.buffer->scope.starts_with("shared");
      }
    }
    if (!found) return nullptr;
    return evaluate(call("sync", {make_string(global ? "global" : found->buffer->scope)}));
  }

  /// Accesses of a statement up to its first own barrier.
  void collect(const Stmt& s, Pending& out, bool& stop) {
    if (!s || stop) return;
    switch (s->kind) {
      case StmtKind::seq:
        for (const Stmt& child : as<SeqNode>(s)->stmts) collect(child, out, stop);
        return;
      case StmtKind::for_: {
        const auto* t = as<ForNode>(s);
        collect_expr(t->min, s.get(), out);
        collect_expr(t->extent, s.get(), out);
        loops_.push_back({t->var, {t->min, t->extent}});
        collect(t->body, out, stop);
        loops_.pop_back();
        return;
      }
      case StmtKind::if_: {
        const auto* t = as<IfNode>(s);
        collect_expr(t->condition, s.get(), out);
        bool a = stop, b = stop;
        collect(t->then_case, out, a);
        collect(t->else_case, out, b);
        stop = a && b && t->else_case;
        return;
      }
      case StmtKind::while_:
        collect_expr(as<WhileNode>(s)->condition, s.get(), out);
        collect(as<WhileNode>(s)->body, out, stop);
        stop = false;
        return;
      case StmtKind::let: {
        const auto* t = as<LetStmtNode>(s);
        collect_expr(t->value, s.get(), out);
        define(t);
        return collect(t->body, out, stop);
      }
      case StmtKind::allocate: return collect(as<AllocateNode>(s)->body, out, stop);
      case StmtKind::store: {
        const auto* t = as<StoreNode>(s);
        const CallNode* atomic = as_atomic(t);
        collect_expr(atomic ? atomic->args[1] : t->value, s.get(), out);
        for (const Expr& i : t->indices) collect_expr(i, s.get(), out);
        const std::size_t before = out.size();
        add(t->buffer, t->indices, true, s.get(), out);
        if (out.size() > before && atomic) out.back().atomic = atomic->op;
        return;
      }
      case StmtKind::evaluate:
        if (is_sync(s)) stop = true;
        else collect_expr(as<EvaluateNode>(s)->value, s.get(), out);
        return;
      case StmtKind::assert_: return collect_expr(as<AssertNode>(s)->condition, s.get(), out);
      case StmtKind::async: return collect(as<AsyncNode>(s)->body, out, stop);
      default: return;
    }
  }

  void collect_expr(const Expr& e, const StmtNode* stmt, Pending& out) {
    for_each_expr(e, [&](const Expr& x) {
      if (const auto* l = as<LoadNode>(x)) add(l->buffer, l->indices, false, stmt, out);
      const auto* c = as<CallNode>(x);
      if (!c || c->op != "address_of") return;
      if (const auto* l = as<LoadNode>(c->args[0]))
        add(l->buffer, {}, true, stmt, out);  // may be written, anywhere
    });
  }

  void add(const Buffer& b, const Exprs& indices, bool write, const StmtNode* stmt, Pending& out) {
    if (!group_.shares(b)) return;
    ElementAccess a;
    a.buffer = b;
    a.write = write;
    a.stmt = stmt;
    a.loops = loops_;
    Expr at = indices.size() == 1 ? indices[0] : nullptr;
    if (const auto* r = as<RampNode>(at)) {
      a.lanes = is_const_int_value(r->stride, 1) ? r->dtype.lanes : 0;
      at = a.lanes ? r->base : nullptr;
    }
    if (at && !at->dtype.is_scalar()) at = nullptr;
    // An index that is not understood: a load makes it unknown, hence in conflict with everything.
    a.index = at ? substitute(at, lets_) : load(b, {make_int(0)});
    out.push_back(std::move(a));
  }

  Group& group_;
  std::vector<AccessLoop> loops_;
  int branches_ = 0;  // that the current statement is in
  std::unordered_set<const VarNode*> open_;
  VarMap lets_;
  std::vector<Var> others_;                              // keeps them alive
  std::unordered_map<const VarNode*, Pending> started_;  // writes of Async work, by token
};

class InsertBarriers final : public Rewriter {
 public:
  explicit InsertBarriers(const TargetInfo& machine) : machine_(machine) {}

 protected:
  Stmt rewrite_default(const Stmt& s) override {
    const auto* launch = as<LaunchNode>(s);
    if (!launch || uses_tokens(launch->body)) return Rewriter::rewrite_default(s);
    Group group(launch, machine_);
    if (group.trivial()) return s;
    Inserter::Pending pending;
    Stmt body = Inserter(group).process(launch->body, pending);
    return make_ref<const LaunchNode>(launch->name, launch->axes, body);
  }

 private:
  const TargetInfo& machine_;
};

}  // namespace

PrimFunc insert_barriers(const PrimFunc& f, const TargetInfo& machine) {
  auto out = edit(f);
  out->body = InsertBarriers(machine).rewrite(f->body);
  return out;
}

}  // namespace weft::pass
