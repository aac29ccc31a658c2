// SPDX-License-Identifier: Apache-2.0
#include "weft/pass/check_races.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <map>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "weft/base/hash.h"
#include "weft/base/text.h"
#include "weft/ir/visit.h"

namespace weft::pass {

using namespace ir;

namespace {

using Value = std::optional<std::int64_t>;
struct Exhausted {};  // the budget is spent; private to this file

/// Who touched an element since the last barrier.
struct Cell {
  std::int64_t writer = -1, reader = -1;
  bool writers = false, readers = false;  // more than one point
  std::uint64_t value = 0;
};

std::int64_t floordiv(std::int64_t a, std::int64_t b) {
  return a / b - ((a % b != 0) && ((a < 0) != (b < 0)) ? 1 : 0);
}

class GroupRun {
 public:
  GroupRun(const LaunchNode* launch, const Machine& machine, RaceReport& report,
           std::int64_t budget)
      : launch_(launch), machine_(machine), report_(report), budget_(budget) {}

  void run(bool last_group) {
    std::vector<std::int64_t> extents;
    points_ = 1;
    for (const LaunchAxis& axis : launch_->axes) {
      std::int64_t n = 0;
      const AxisRow* row = machine_.axis(axis.axis);
      bool joined = row && row->barrier;
      if (!is_const_int(axis.extent, &n)) {
        report_.unchecked.push_back(
            cat(launch_->name, ": the extent of ", axis.axis, " is known only at run time"));
        if (joined) return;
        n = 2;
      }
      extents.push_back(n);
      if (joined) points_ *= n;
    }
    if (points_ <= 1) return;
    find_slots();
    env_.assign(static_cast<std::size_t>(points_) * slots_.size(), std::nullopt);
    for (std::int64_t p = 0; p < points_; ++p) {
      std::int64_t rest = p;
      for (std::size_t i = 0; i < launch_->axes.size(); ++i) {
        const AxisRow* row = machine_.axis(launch_->axes[i].axis);
        std::int64_t at = last_group ? extents[i] - 1 : 0;
        if (row && row->barrier) {
          at = rest % extents[i];
          rest /= extents[i];
        }
        set(p, launch_->axes[i].var.get(), at);
      }
    }
    std::vector<std::int64_t> all;
    for (std::int64_t p = 0; p < points_; ++p) all.push_back(p);
    try {
      exec(launch_->body, all);
      for (const auto& [buffer, elements] : in_flight_) {
        if (elements.empty()) continue;
        const auto& [element, point] = *elements.begin();
        race(buffer->name, element, point, -1, "a copy that no wait finishes");
      }
    } catch (const Exhausted&) {
      report_.unchecked.push_back(cat(launch_->name, ": stopped after ", budget_, " accesses"));
    }
  }

 private:
  void find_slots() {
    auto add = [&](const Var& v) { slots_.emplace(v.get(), slots_.size()); };
    for (const LaunchAxis& axis : launch_->axes) add(axis.var);
    for_each_stmt(launch_->body, [&](const Stmt& s) {
      if (const auto* t = as<ForNode>(s)) add(t->var);
      if (const auto* t = as<LetStmtNode>(s)) add(t->var);
      if (const auto* t = as<StoreNode>(s)) written_.insert(t->buffer.get());
    });
  }

  bool watched(const BufferNode* b) const {
    const MemoryRow* row = machine_.memory(b->scope);
    if (!row || row->private_to.empty())
      return false;  // memory of all groups: not this check's business
    for (const LaunchAxis& axis : launch_->axes) {
      const AxisRow* a = machine_.axis(axis.axis);
      if (a && a->barrier && !row->is_private_to(axis.axis)) return true;
    }
    return false;
  }

  bool matters(const Stmt& s) {
    auto [it, fresh] = matters_.try_emplace(s.get(), false);
    if (!fresh) return it->second;
    bool found = false;
    for (const BufferNode* b : used_buffers(s)) found = found || watched(b);
    for_each_stmt(s, [&](const Stmt& t) {
      found = found || is_sync(t) || t->kind == StmtKind::wait || t->kind == StmtKind::async;
    });
    return matters_[s.get()] = found;
  }
  static bool is_sync(const Stmt& s) {
    const auto* t = as<EvaluateNode>(s);
    const auto* c = t ? as<CallNode>(t->value) : nullptr;
    return c && c->op == "sync";
  }
  static bool holds_sync(const Stmt& s) {
    bool found = false;
    for_each_stmt(s, [&](const Stmt& t) { found = found || is_sync(t); });
    return found;
  }

  static bool holds_wait(const Stmt& s) {
    bool found = false;
    for_each_stmt(s, [&](const Stmt& t) { found = found || t->kind == StmtKind::wait; });
    return found;
  }
  /// A common multiple of the small divisors of indices.
  static std::int64_t period_of(const Stmt& s) {
    std::int64_t out = 1;
    auto join = [&](std::int64_t n) {
      if (n > 1 && n <= 16) out = std::lcm(out, n);
    };
    for_each_expr(s, [&](const Expr& e) {
      std::int64_t n = 0;
      const auto* b = as<BinaryNode>(e);
      if (b && (e->kind == ExprKind::mod || e->kind == ExprKind::floormod) &&
          is_const_int(b->b, &n))
        join(n);
      const auto* c = as<CallNode>(e);
      if (c && c->op == "bitwise_and" && is_const_int(c->args[1], &n)) join(n + 1);
    });
    return out;
  }

  Value& slot(std::int64_t p, const VarNode* v) {
    return env_[static_cast<std::size_t>(p) * slots_.size() + slots_.at(v)];
  }
  void set(std::int64_t p, const VarNode* v, Value value) { slot(p, v) = value; }

  // ---- statements, all active points together

  void exec(const Stmt& s, const std::vector<std::int64_t>& active) {
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
        for (std::int64_t p : active) {
          reads(t->value, p);
          set(p, t->var.get(), value(t->value, p));
        }
        return exec(t->body, active);
      }
      case StmtKind::if_: return branch(as<IfNode>(s), active);
      case StmtKind::for_: return loop(as<ForNode>(s), active);
      case StmtKind::while_:
        report_.unchecked.push_back(cat(launch_->name, ": a while loop"));
        return exec(as<WhileNode>(s)->body, active);
      case StmtKind::store: {
        const auto* t = as<StoreNode>(s);
        for (std::int64_t p : active) {
          reads(t->value, p);
          for (const Expr& i : t->indices) reads(i, p);
          if (watched(t->buffer.get())) touch(t->buffer, t->indices[0], p, t->value);
        }
        return;
      }
      case StmtKind::evaluate:
        if (is_sync(s)) {
          if (active.size() != static_cast<std::size_t>(points_)) {
            race("", 0, active.front(), -1, "barrier under a condition that differs");
          }
          cells_.clear();
          return;
        }
        for (std::int64_t p : active) reads(as<EvaluateNode>(s)->value, p);
        return;
      default:
        report_.unchecked.push_back(
            cat(launch_->name, ": a statement of kind ", static_cast<int>(s->kind)));
    }
  }

  /// All but the newest groups of the token are finished: each point's writes happen now.
  void wait(const WaitNode* t, const std::vector<std::int64_t>& active) {
    for (std::int64_t p : active) {
      Value left = value(t->outstanding, p);
      if (!left) {
        report_.unchecked.push_back(cat(launch_->name, ": a wait for a count on data"));
        continue;
      }
      auto& groups = started_[{p, t->token.get()}];
      while (static_cast<std::int64_t>(groups.size()) > *left) {
        for (const Started& w : groups.front()) {
          in_flight_[w.buffer].erase(w.element);
          Cell& cell = cells_[w.buffer][w.element];
          if (cell.reader >= 0 && (cell.readers || cell.reader != p))
            race(w.buffer->name, w.element, cell.reader, p, "read/asynchronous write");
          if (cell.writer >= 0 && cell.writer != p) {
            if (cell.value == w.value) ++report_.same_value_writes;
            else race(w.buffer->name, w.element, cell.writer, p, "write/write");
            cell.writers = true;
          }
          cell.writer = p;
          cell.value = w.value;
        }
        groups.pop_front();
      }
    }
  }

  void branch(const IfNode* t, const std::vector<std::int64_t>& active) {
    std::vector<std::int64_t> yes, no;
    bool unknown = false;
    for (std::int64_t p : active) {
      reads(t->condition, p);
      Value v = value(t->condition, p);
      if (!v) {
        unknown = true;
        yes.push_back(p);
        no.push_back(p);
      } else {
        (*v ? yes : no).push_back(p);
      }
    }
    if (unknown)
      report_.unchecked.push_back(cat(launch_->name, ": a condition on data; both sides were run"));
    exec(t->then_case, yes);
    exec(t->else_case, no);
  }

  void loop(const ForNode* t, const std::vector<std::int64_t>& active) {
    std::vector<std::int64_t> low(active.size()), count(active.size());
    std::int64_t most = 0;
    bool unknown = false;
    for (std::size_t i = 0; i < active.size(); ++i) {
      reads(t->min, active[i]);
      reads(t->extent, active[i]);
      Value a = value(t->min, active[i]), n = value(t->extent, active[i]);
      unknown |= !a || !n;
      low[i] = a.value_or(0);
      count[i] = n.value_or(2);
      most = std::max(most, count[i]);
    }
    if (unknown)
      report_.unchecked.push_back(
          cat(launch_->name, ": loop \"", t->var->name,
              "\" has a range known only at run time; two iterations were run"));
    bool sampled = holds_sync(t->body) && most > 4;
    // Versions of a pipelined buffer repeat: whole periods are left out, so that what is under way
    // before and after them fits together.
    const std::int64_t period = sampled && holds_wait(t->body) ? period_of(t->body) : 0;
    const std::int64_t resume = period > 0 ? 4 + (most - 4) / period * period : 0;
    for (std::int64_t k = 0; k < most; ++k) {
      if (period > 0 ? k >= 4 && k < resume : sampled && k > 2 && k < most - 1) continue;
      std::vector<std::int64_t> now;
      for (std::size_t i = 0; i < active.size(); ++i) {
        if (k >= count[i]) continue;
        set(active[i], t->var.get(), low[i] + k);
        now.push_back(active[i]);
      }
      exec(t->body, now);
    }
  }

  // ---- memory

  void reads(const Expr& e, std::int64_t p) {
    if (!e) return;
    switch (e->kind) {
      case ExprKind::int_imm:
      case ExprKind::float_imm:
      case ExprKind::string_imm:
      case ExprKind::var: return;
      case ExprKind::cast: return reads(as<CastNode>(e)->value, p);
      case ExprKind::not_: return reads(as<NotNode>(e)->a, p);
      case ExprKind::broadcast: return reads(as<BroadcastNode>(e)->value, p);
      case ExprKind::ramp:
        reads(as<RampNode>(e)->base, p);
        return reads(as<RampNode>(e)->stride, p);
      case ExprKind::select: {
        const auto* s = as<SelectNode>(e);
        reads(s->condition, p), reads(s->a, p), reads(s->b, p);
        return;
      }
      case ExprKind::let: reads(as<LetNode>(e)->value, p); return reads(as<LetNode>(e)->body, p);
      case ExprKind::call: {
        const auto* c = as<CallNode>(e);
        if (c->op == "if_then_else") {
          reads(c->args[0], p);
          Value v = value(c->args[0], p);
          if (!v || *v) reads(c->args[1], p);
          if (!v || !*v) reads(c->args[2], p);
          return;
        }
        for (const Expr& a : c->args) reads(a, p);
        return;
      }
      case ExprKind::load: {
        const auto* l = as<LoadNode>(e);
        for (const Expr& i : l->indices) reads(i, p);
        if (watched(l->buffer.get())) touch(l->buffer, l->indices[0], p, nullptr);
        return;
      }
      default: reads(as<BinaryNode>(e)->a, p); return reads(as<BinaryNode>(e)->b, p);
    }
  }

  void touch(const Buffer& b, const Expr& index, std::int64_t p, const Expr& stored) {
    int lanes = index->dtype.lanes;
    for (int lane = 0; lane < lanes; ++lane) {
      if (++report_.accesses > budget_) throw Exhausted{};
      Value at = value(index, p, lane);
      if (!at) {
        report_.unchecked.push_back(
            cat(launch_->name, ": an index of \"", b->name, "\" depends on data"));
        return;
      }
      auto& flying = in_flight_[b.get()];
      if (auto found = flying.find(*at);
          found != flying.end() && !(stored && token_ && found->second == p)) {
        race(b->name, *at, found->second, p,
             stored ? "asynchronous write/write" : "read before the copy was waited for");
      }
      Cell& cell = cells_[b.get()][*at];
      if (stored && token_) {  // lands at a wait; nobody may be using the element meanwhile
        if (cell.reader >= 0 && (cell.readers || cell.reader != p))
          race(b->name, *at, cell.reader, p, "read/asynchronous write");
        if (cell.writer >= 0 && (cell.writers || cell.writer != p))
          race(b->name, *at, cell.writer, p, "write/asynchronous write");
        flying[*at] = p;
        started_[{p, token_}].back().push_back({b.get(), *at, signature(stored, p, lane)});
        continue;
      }
      if (stored) {
        std::uint64_t v = signature(stored, p, lane);
        if (cell.reader >= 0 && (cell.readers || cell.reader != p))
          race(b->name, *at, cell.readers && cell.reader == p ? -1 : cell.reader, p, "read/write");
        if (cell.writer >= 0 && (cell.writers || cell.writer != p)) {
          if (v == cell.value) ++report_.same_value_writes;
          else race(b->name, *at, cell.writer, p, "write/write");
        }
        if (cell.writer >= 0 && cell.writer != p) cell.writers = true;
        cell.writer = p;
        cell.value = v;
      } else {
        if (cell.writer >= 0 && (cell.writers || cell.writer != p))
          race(b->name, *at, cell.writer, p, "write/read");
        if (cell.reader >= 0 && cell.reader != p) cell.readers = true;
        cell.reader = p;
      }
    }
  }

  void race(const std::string& buffer, std::int64_t element, std::int64_t first,
            std::int64_t second, std::string what) {
    for (const Race& r : report_.races) {
      if (r.kernel == launch_->name && r.buffer == buffer && r.what == what) return;
    }
    report_.races.push_back({launch_->name, buffer, element, first, second, std::move(what)});
  }

  // ---- values

  Value value(const Expr& e, std::int64_t p, int lane = 0) {
    switch (e->kind) {
      case ExprKind::int_imm: return as<IntImmNode>(e)->value;
      case ExprKind::var: {
        auto found = slots_.find(as<VarNode>(e));
        return found == slots_.end()
                   ? Value()
                   : env_[static_cast<std::size_t>(p) * slots_.size() + found->second];
      }
      case ExprKind::cast:
        return e->dtype.is_float() || as<CastNode>(e)->value->dtype.is_float()
                   ? Value()
                   : value(as<CastNode>(e)->value, p, lane);
      case ExprKind::not_: {
        Value v = value(as<NotNode>(e)->a, p, lane);
        return v ? Value(*v == 0) : v;
      }
      case ExprKind::ramp: {
        Value base = value(as<RampNode>(e)->base, p), step = value(as<RampNode>(e)->stride, p);
        return base && step ? Value(*base + *step * lane) : Value();
      }
      case ExprKind::broadcast: return value(as<BroadcastNode>(e)->value, p);
      case ExprKind::select: {
        Value c = value(as<SelectNode>(e)->condition, p, lane);
        return c ? value(*c ? as<SelectNode>(e)->a : as<SelectNode>(e)->b, p, lane) : Value();
      }
      case ExprKind::call: return call_value(as<CallNode>(e), p, lane);
      default: break;
    }
    if (!is_binary(e->kind)) return {};
    const auto* b = as<BinaryNode>(e);
    if (b->a->dtype.is_float()) return {};
    Value x = value(b->a, p, lane);
    if (x && e->kind == ExprKind::and_ && !*x) return 0;
    if (x && e->kind == ExprKind::or_ && *x) return 1;
    Value y = value(b->b, p, lane);
    if (y && e->kind == ExprKind::and_ && !*y) return 0;
    if (!x || !y) return {};
    std::int64_t u = *x, v = *y;
    bool divides = e->kind == ExprKind::div || e->kind == ExprKind::mod ||
                   e->kind == ExprKind::floordiv || e->kind == ExprKind::floormod;
    if (divides && v == 0) return {};
    switch (e->kind) {
      case ExprKind::add: return u + v;
      case ExprKind::sub: return u - v;
      case ExprKind::mul: return u * v;
      case ExprKind::div: return u / v;
      case ExprKind::mod: return u % v;
      case ExprKind::floordiv: return floordiv(u, v);
      case ExprKind::floormod: return u - floordiv(u, v) * v;
      case ExprKind::min: return std::min(u, v);
      case ExprKind::max: return std::max(u, v);
      case ExprKind::eq: return u == v;
      case ExprKind::ne: return u != v;
      case ExprKind::lt: return u < v;
      case ExprKind::le: return u <= v;
      case ExprKind::gt: return u > v;
      case ExprKind::ge: return u >= v;
      case ExprKind::and_: return u && v;
      default: return u || v;
    }
  }

  Value call_value(const CallNode* c, std::int64_t p, int lane) {
    if (c->op == "likely") return value(c->args[0], p, lane);
    if (c->op == "if_then_else") {
      Value k = value(c->args[0], p, lane);
      return k ? value(c->args[*k ? 1 : 2], p, lane) : Value();
    }
    if (c->args.size() != 2) return {};
    Value a = value(c->args[0], p, lane), b = value(c->args[1], p, lane);
    if (!a || !b) return {};
    if (c->op == "shift_right") return *a >> std::min<std::int64_t>(*b, 63);
    if (c->op == "shift_left")
      return static_cast<std::int64_t>(static_cast<std::uint64_t>(*a) << (*b & 63));
    if (c->op == "bitwise_and") return *a & *b;
    if (c->op == "bitwise_or") return *a | *b;
    if (c->op == "bitwise_xor") return *a ^ *b;
    return {};
  }

  /// Equal for values that are equal for certain: same expression over the same elements of memory.
  std::uint64_t signature(const Expr& e, std::int64_t p, int lane) {
    if (Value v = value(e, p, lane)) return hash_combine(1, static_cast<std::uint64_t>(*v));
    std::uint64_t h = hash_combine(static_cast<std::uint64_t>(e->kind) + 100,
                                   static_cast<std::uint64_t>(e->dtype.bits));
    switch (e->kind) {
      case ExprKind::float_imm:
        return hash_combine(h, std::bit_cast<std::uint64_t>(as<FloatImmNode>(e)->value));
      case ExprKind::var:
        return hash_combine(h, reinterpret_cast<std::uintptr_t>(e.get()));  // a scalar parameter
      case ExprKind::load: {
        const auto* l = as<LoadNode>(e);
        h = hash_combine(h, reinterpret_cast<std::uintptr_t>(l->buffer.get()));
        Value at = value(l->indices[0], p, l->indices[0]->dtype.lanes > 1 ? lane : 0);
        bool own =
            written_.count(l->buffer.get()) && !watched(l->buffer.get());  // a point's own copy
        return hash_combine(h, static_cast<std::uint64_t>(at && !own ? *at : -1 - p));
      }
      case ExprKind::cast: return hash_combine(h, signature(as<CastNode>(e)->value, p, lane));
      case ExprKind::not_: return hash_combine(h, signature(as<NotNode>(e)->a, p, lane));
      case ExprKind::broadcast: return signature(as<BroadcastNode>(e)->value, p, 0);
      case ExprKind::select: {
        const auto* s = as<SelectNode>(e);
        return hash_combine(hash_combine(hash_combine(h, signature(s->condition, p, lane)),
                                         signature(s->a, p, lane)),
                            signature(s->b, p, lane));
      }
      case ExprKind::call: {
        h = hash_combine(h, hash_text(as<CallNode>(e)->op));
        for (const Expr& a : as<CallNode>(e)->args) h = hash_combine(h, signature(a, p, lane));
        return h;
      }
      default:
        if (is_binary(e->kind))
          return hash_combine(hash_combine(h, signature(as<BinaryNode>(e)->a, p, lane)),
                              signature(as<BinaryNode>(e)->b, p, lane));
        return hash_combine(h, static_cast<std::uint64_t>(p));
    }
  }

  const LaunchNode* launch_;
  const Machine& machine_;
  RaceReport& report_;
  std::int64_t budget_, points_ = 1;

  std::unordered_map<const VarNode*, std::size_t> slots_;
  std::vector<Value> env_;
  std::unordered_set<const BufferNode*> written_;
  std::unordered_map<const StmtNode*, bool> matters_;
  std::unordered_map<const BufferNode*, std::unordered_map<std::int64_t, Cell>> cells_;

  /// A write of Async work that no wait has finished yet.
  struct Started {
    const BufferNode* buffer;
    std::int64_t element;
    std::uint64_t value;
  };
  const VarNode* token_ = nullptr;  // of the Async around the statement that runs
  std::map<std::pair<std::int64_t, const VarNode*>, std::deque<std::vector<Started>>> started_;
  std::unordered_map<const BufferNode*, std::unordered_map<std::int64_t, std::int64_t>> in_flight_;
};

}  // namespace

std::string RaceReport::text() const {
  std::string out;
  for (const Race& r : races) {
    out += cat(r.kernel, ": ", r.what,
               r.buffer.empty() ? "" : cat(" on \"", r.buffer, "\" element ", r.element),
               ", points ", r.first, " and ", r.second, "\n");
  }
  for (const std::string& u : unchecked) out += cat("unchecked: ", u, "\n");
  return out + cat(accesses, " accesses, ", same_value_writes,
                   " writes of a value that another point also wrote");
}

RaceReport check_races(const PrimFunc& f, const Machine& machine, std::int64_t max_accesses) {
  RaceReport report;
  for_each_stmt(f->body, [&](const Stmt& s) {
    const auto* launch = as<LaunchNode>(s);
    if (!launch) return;
    GroupRun(launch, machine, report, max_accesses).run(false);
    GroupRun(launch, machine, report, max_accesses).run(true);
  });
  std::vector<std::string> once;
  for (std::string& u : report.unchecked) {
    if (std::find(once.begin(), once.end(), u) == once.end()) once.push_back(std::move(u));
  }
  report.unchecked = std::move(once);
  return report;
}

}  // namespace weft::pass
