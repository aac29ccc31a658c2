// SPDX-License-Identifier: Apache-2.0
#include "weft/pass/check_races.h"

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "weft/base/text.h"
#include "weft/ir/visit.h"
#include "weft/pass/point_values.h"

namespace weft::pass {

using namespace ir;

namespace {

struct Exhausted {};  // the budget is spent; private to this file

/// Who touched an element since the barrier that `epoch` counts.
struct Cell {
  std::uint64_t value = 0;
  std::int32_t writer = -1, reader = -1;
  std::uint32_t epoch = 0;
  bool writers = false, readers = false;  // more than one point
};

/// The cells of a buffer: those of its size in a row, and any others.
struct Cells {
  std::vector<Cell> row;
  std::unordered_map<std::int64_t, Cell> others;
};

/// A use of watched memory by a statement, in the arms of the lazy choices around it.
struct Access {
  Buffer buffer;
  Expr index, stored;  // stored null: read
  std::vector<std::pair<Expr, bool>> under;
};

constexpr std::int64_t kMostCells = 1 << 22;

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
        unchecked(cat("the extent of ", axis.axis, " is known only at run time"));
        if (joined) return;
        n = 2;
      }
      extents.push_back(n);
      if (joined) points_ *= n;
    }
    if (points_ <= 1) return;
    find_buffers();
    Points all(static_cast<std::size_t>(points_));
    std::iota(all.begin(), all.end(), 0);
    values_.emplace(points_);
    std::int64_t below = 1;
    for (std::size_t i = 0; i < launch_->axes.size(); ++i) {
      const AxisRow* row = machine_.axis(launch_->axes[i].axis);
      Numbers at;
      at.known = true;
      at.value = last_group ? extents[i] - 1 : 0;
      if (row && row->barrier) {
        at.uniform = false;
        for (std::int64_t p : all) at.values.push_back(p / below % extents[i]);
        below *= extents[i];
      }
      values_->set(launch_->axes[i].var.get(), all, std::move(at));
    }
    try {
      exec(launch_->body, all);
      for (const auto& [buffer, elements] : in_flight_) {
        if (elements.empty()) continue;
        const auto& [element, point] = *elements.begin();
        race(buffer->name, element, point, -1, "a copy that no wait finishes");
      }
    } catch (const Exhausted&) {
      unchecked(cat("stopped after ", budget_, " accesses"));
    }
  }

 private:
  void find_buffers() {
    for_each_stmt(launch_->body, [&](const Stmt& s) {
      if (const auto* t = as<StoreNode>(s); t && !watched(t->buffer.get()))
        own_.insert(t->buffer.get());  // a point's own copy
      const auto* a = as<AllocateNode>(s);
      std::int64_t n = 0;
      if (!a || !watched(a->buffer.get()) || a->buffer->shape.size() != 1) return;
      if (is_const_int(a->buffer->shape[0], &n) && n > 0 && n <= kMostCells)
        cells_[a->buffer.get()].row.resize(static_cast<std::size_t>(n));
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

  // ---- statements, all active points together

  void exec(const Stmt& s, const Points& active) {
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
        values_->bind(t->var.get(), active, t->value, own_);
        return exec(t->body, active);
      }
      case StmtKind::if_: return branch(s, active);
      case StmtKind::for_: return loop(s, active);
      case StmtKind::while_: unchecked("a while loop"); return exec(as<WhileNode>(s)->body, active);
      case StmtKind::store: return touch_all(s, active);
      case StmtKind::evaluate:
        if (is_sync(s)) {
          if (active.size() != static_cast<std::size_t>(points_)) {
            race("", 0, active.front(), -1, "barrier under a condition that differs");
          }
          ++epoch_;
          return;
        }
        return touch_all(s, active);
      default: unchecked(cat("a statement of kind ", static_cast<int>(s->kind)));
    }
  }

  /// All but the newest groups of the token are finished: each point's writes happen now.
  void wait(const WaitNode* t, const Points& active) {
    const Numbers counts = values_->eval(t->outstanding, active);
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
            race(w.buffer->name, w.element, cell.reader, p, "read/asynchronous write");
          if (cell.writer >= 0 && cell.writer != p) {
            if (cell.value == w.value) ++report_.same_value_writes;
            else race(w.buffer->name, w.element, cell.writer, p, "write/write");
            cell.writers = true;
          }
          cell.writer = static_cast<std::int32_t>(p);
          cell.value = w.value;
        }
        groups.pop_front();
      }
    }
  }

  void branch(const Stmt& s, const Points& active) {
    const auto* t = as<IfNode>(s);
    touch_all(s, active);
    const Numbers v = values_->eval(t->condition, active);
    Points yes, no;
    for (std::size_t i = 0; i < active.size(); ++i) {
      if (!v.known_at(i) || v.at(i)) yes.push_back(active[i]);
      if (!v.known_at(i) || !v.at(i)) no.push_back(active[i]);
    }
    if (!v.all_known()) unchecked("a condition on data; both sides were run");
    exec(t->then_case, yes);
    exec(t->else_case, no);
  }

  void loop(const Stmt& s, const Points& active) {
    const auto* t = as<ForNode>(s);
    touch_all(s, active);
    const Numbers low = values_->eval(t->min, active), count = values_->eval(t->extent, active);
    if (!low.all_known() || !count.all_known()) {
      unchecked(cat("loop \"", t->var->name,
                    "\" has a range known only at run time; two iterations were run"));
    }
    auto begin_of = [&](std::size_t i) { return low.known_at(i) ? low.at(i) : 0; };
    auto count_of = [&](std::size_t i) { return count.known_at(i) ? count.at(i) : 2; };
    std::int64_t most = count_of(0);
    bool alike = low.uniform && count.uniform;
    for (std::size_t i = 0; i < active.size() && !alike; ++i) most = std::max(most, count_of(i));
    bool sampled = most > 4 && holds_sync(t->body);
    // Versions of a pipelined buffer repeat: whole periods are left out, so that what is under way
    // before and after them fits together.
    const std::int64_t period = sampled && holds_wait(t->body) ? period_of(t->body) : 0;
    const std::int64_t resume = period > 0 ? 4 + (most - 4) / period * period : 0;
    for (std::int64_t k = 0; k < most; ++k) {
      if (period > 0 ? k >= 4 && k < resume : sampled && k > 2 && k < most - 1) continue;
      Numbers at;
      at.known = true;
      if (alike) {
        at.value = begin_of(0) + k;
        values_->set(t->var.get(), active, std::move(at));
        exec(t->body, active);
        continue;
      }
      Points now;
      at.uniform = false;
      for (std::size_t i = 0; i < active.size(); ++i) {
        if (k >= count_of(i)) continue;
        at.values.push_back(begin_of(i) + k);
        now.push_back(active[i]);
      }
      values_->set(t->var.get(), now, std::move(at));
      exec(t->body, now);
    }
  }

  // ---- memory

  using Under = std::vector<std::pair<Expr, bool>>;

  /// What evaluating an expression reads of watched memory.
  void find_reads(const Expr& e, const Under& under, std::vector<Access>& out) const {
    if (!e) return;
    auto all = [&](std::initializer_list<Expr> parts) {
      for (const Expr& part : parts) find_reads(part, under, out);
    };
    switch (e->kind) {
      case ExprKind::int_imm:
      case ExprKind::float_imm:
      case ExprKind::string_imm:
      case ExprKind::var: return;
      case ExprKind::cast: return all({as<CastNode>(e)->value});
      case ExprKind::not_: return all({as<NotNode>(e)->a});
      case ExprKind::broadcast: return all({as<BroadcastNode>(e)->value});
      case ExprKind::ramp: return all({as<RampNode>(e)->base, as<RampNode>(e)->stride});
      case ExprKind::select:
        return all({as<SelectNode>(e)->condition, as<SelectNode>(e)->a, as<SelectNode>(e)->b});
      case ExprKind::let: return all({as<LetNode>(e)->value, as<LetNode>(e)->body});
      case ExprKind::call: {
        const auto* c = as<CallNode>(e);
        if (c->op != "if_then_else") {
          for (const Expr& a : c->args) find_reads(a, under, out);
          return;
        }
        all({c->args[0]});
        for (bool arm : {true, false}) {
          Under inner = under;
          inner.emplace_back(c->args[0], arm);
          find_reads(c->args[arm ? 1 : 2], inner, out);
        }
        return;
      }
      case ExprKind::load: {
        const auto* l = as<LoadNode>(e);
        for (const Expr& i : l->indices) find_reads(i, under, out);
        if (watched(l->buffer.get())) out.push_back({l->buffer, l->indices[0], nullptr, under});
        return;
      }
      default: all({as<BinaryNode>(e)->a, as<BinaryNode>(e)->b});
    }
  }

  /// The accesses of a statement itself, without the statements inside it.
  const std::vector<Access>& accesses_of(const Stmt& s) {
    auto [it, fresh] = accesses_.try_emplace(s.get());
    if (!fresh) return it->second;
    std::vector<Access>& out = it->second;
    if (const auto* t = as<LetStmtNode>(s)) find_reads(t->value, {}, out);
    if (const auto* t = as<IfNode>(s)) find_reads(t->condition, {}, out);
    if (const auto* t = as<EvaluateNode>(s)) find_reads(t->value, {}, out);
    if (const auto* t = as<ForNode>(s)) {
      find_reads(t->min, {}, out);
      find_reads(t->extent, {}, out);
    }
    if (const auto* t = as<StoreNode>(s)) {
      find_reads(t->value, {}, out);
      for (const Expr& i : t->indices) find_reads(i, {}, out);
      if (watched(t->buffer.get())) out.push_back({t->buffer, t->indices[0], t->value, {}});
    }
    return out;
  }

  void touch_all(const Stmt& s, const Points& active) {
    for (const Access& a : accesses_of(s)) {
      if (a.under.empty()) {
        touch(a, active);
        continue;
      }
      Points some = active;
      for (const auto& [condition, arm] : a.under) {
        const Numbers v = values_->eval(condition, some);
        Points kept;
        for (std::size_t i = 0; i < some.size(); ++i) {
          if (!v.known_at(i) || (v.at(i) != 0) == arm) kept.push_back(some[i]);
        }
        some = std::move(kept);
      }
      if (!some.empty()) touch(a, some);
    }
  }

  Cell& cell_of(Cells& cells, std::int64_t element) {
    const bool inside = element >= 0 && element < static_cast<std::int64_t>(cells.row.size());
    Cell& cell = inside ? cells.row[static_cast<std::size_t>(element)] : cells.others[element];
    if (cell.epoch != epoch_) {
      cell = {};
      cell.epoch = epoch_;
    }
    return cell;
  }

  void touch(const Access& a, const Points& active) {
    const int lanes = a.index->dtype.lanes;
    Cells& cells = cells_[a.buffer.get()];
    const std::string& name = a.buffer->name;
    for (int lane = 0; lane < lanes; ++lane) {
      report_.accesses += static_cast<std::int64_t>(active.size());
      if (report_.accesses > budget_) throw Exhausted{};
      const Numbers at = values_->eval(a.index, active, lane);
      if (!at.all_known()) unchecked(cat("an index of \"", name, "\" depends on data"));
      Hashes written;
      if (a.stored) written = values_->signature(a.stored, active, lane, own_);
      for (std::size_t i = 0; i < active.size(); ++i) {
        if (!at.known_at(i)) continue;
        const std::int64_t element = at.at(i);
        const auto p = static_cast<std::int32_t>(active[i]);
        if (!in_flight_.empty()) check_flying(a, element, p);
        Cell& cell = cell_of(cells, element);
        if (!a.stored) {
          if (cell.writer >= 0 && (cell.writers || cell.writer != p))
            race(name, element, cell.writer, p, "write/read");
          if (cell.reader >= 0 && cell.reader != p) cell.readers = true;
          cell.reader = p;
        } else if (token_) {  // lands at a wait; nobody may be using the element meanwhile
          if (cell.reader >= 0 && (cell.readers || cell.reader != p))
            race(name, element, cell.reader, p, "read/asynchronous write");
          if (cell.writer >= 0 && (cell.writers || cell.writer != p))
            race(name, element, cell.writer, p, "write/asynchronous write");
          in_flight_[a.buffer.get()][element] = p;
          started_[{p, token_}].back().push_back({a.buffer.get(), element, written.at(i)});
        } else {
          write(name, cell, element, p, written.at(i));
        }
      }
    }
  }

  void check_flying(const Access& a, std::int64_t element, std::int32_t p) {
    auto flying = in_flight_.find(a.buffer.get());
    if (flying == in_flight_.end()) return;
    auto found = flying->second.find(element);
    if (found == flying->second.end() || (a.stored && token_ && found->second == p)) return;
    race(a.buffer->name, element, found->second, p,
         a.stored ? "asynchronous write/write" : "read before the copy was waited for");
  }

  void write(const std::string& name, Cell& cell, std::int64_t element, std::int32_t p,
             std::uint64_t value) {
    if (cell.reader >= 0 && (cell.readers || cell.reader != p))
      race(name, element, cell.readers && cell.reader == p ? -1 : cell.reader, p, "read/write");
    if (cell.writer >= 0 && (cell.writers || cell.writer != p)) {
      if (value == cell.value) ++report_.same_value_writes;
      else race(name, element, cell.writer, p, "write/write");
    }
    if (cell.writer >= 0 && cell.writer != p) cell.writers = true;
    cell.writer = p;
    cell.value = value;
  }

  void unchecked(std::string what) {
    std::string text = cat(launch_->name, ": ", what);
    auto& list = report_.unchecked;
    if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(std::move(text));
  }

  void race(const std::string& buffer, std::int64_t element, std::int64_t first,
            std::int64_t second, std::string what) {
    for (const Race& r : report_.races) {
      if (r.kernel == launch_->name && r.buffer == buffer && r.what == what) return;
    }
    report_.races.push_back({launch_->name, buffer, element, first, second, std::move(what)});
  }

  const LaunchNode* launch_;
  const Machine& machine_;
  RaceReport& report_;
  std::int64_t budget_, points_ = 1;

  std::optional<PointValues> values_;
  std::unordered_set<const BufferNode*> own_;
  std::unordered_map<const StmtNode*, bool> matters_;
  std::unordered_map<const StmtNode*, std::vector<Access>> accesses_;
  std::unordered_map<const BufferNode*, Cells> cells_;
  std::uint32_t epoch_ = 1;  // counts barriers

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
