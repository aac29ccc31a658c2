// SPDX-License-Identifier: Apache-2.0
// A program run with concrete indices in the order of its loops: every two uses of one element are
// compared with their order where iterations run in step.
#include "weft/pass/check_exchanges_parts.h"

#include <algorithm>
#include <map>

#include "weft/base/text.h"
#include "weft/ir/atomic.h"
#include "weft/ir/build.h"
#include "weft/ir/visit.h"
#include "weft/pass/index_values.h"
#include "weft/pass/race_run.h"

namespace weft::pass {

using namespace ir;

namespace {

constexpr std::int64_t kFirst = 3;  // iterations of a loop around what is judged, and the last one

struct OrderBudgetSpent {};  // the budget is spent; private to this file

/// Where the run stands: serial iterations and places in sequences from the outside in, which is
/// the order where iterations run in step; and the iterations of the loops that do.
struct Position {
  std::vector<std::int64_t> order;
  std::vector<std::pair<const ForNode*, std::int64_t>> points;
  std::int64_t barriers = 0;
};

struct Cell {
  const void* access;  // the load or the store
  const StmtNode* stmt;
  const Buffer* buffer;
  const Exprs* indices;
  bool write;
  std::string_view atomic;
  Position at;
  const StmtNode* from = nullptr;  // of reads: what stored the value, if the same points did
};

struct Element {
  std::vector<Cell> cells;
  const StmtNode* stored = nullptr;  // the last store in the order of the loops, and by whom
  std::vector<std::pair<const ForNode*, std::int64_t>> by;
};

class LoopOrderRun {
 public:
  LoopOrderRun(const TargetInfo& machine, const OpenExchanges& open, std::int64_t budget,
               bool brief)
      : machine_(machine), open_(open), budget_(budget), brief_(brief) {}

  Exchanges found;

  void exec(const Stmt& s) {
    if (!s) return;
    if (races::is_sync(s)) {
      ++now_.barriers;
      return;
    }
    if (!matters(s)) return;
    switch (s->kind) {
      case StmtKind::seq: {
        const std::vector<Stmt>& all = as<SeqNode>(s)->stmts;
        for (std::size_t i = 0; i < all.size(); ++i) at(static_cast<std::int64_t>(i), all[i]);
        return;
      }
      case StmtKind::allocate: return exec(as<AllocateNode>(s)->body);
      case StmtKind::async: return exec(as<AsyncNode>(s)->body);
      case StmtKind::launch: return exec(as<LaunchNode>(s)->body);
      case StmtKind::while_:
        reads(as<WhileNode>(s)->condition, s.get());
        return exec(as<WhileNode>(s)->body);
      case StmtKind::let: {
        const auto* t = as<LetStmtNode>(s);
        reads(t->value, s.get());
        values_.set(t->var.get(), values_.of(t->value));
        return exec(t->body);
      }
      case StmtKind::if_: {
        const auto* t = as<IfNode>(s);
        reads(t->condition, s.get());
        const IndexValues::Value v = values_.of(t->condition);
        if (!v || *v) at(0, t->then_case);
        if (!v || !*v) at(1, t->else_case);
        return;
      }
      case StmtKind::for_: return loop(as<ForNode>(s));
      case StmtKind::store: {
        const auto* t = as<StoreNode>(s);
        const CallNode* atomic = as_atomic(t);
        reads(atomic ? atomic->args[1] : t->value, s.get());
        for (const Expr& i : t->indices) reads(i, s.get());
        use(t, s.get(), t->buffer, t->indices, true, atomic ? atomic->op : "");
        return;
      }
      case StmtKind::evaluate: return reads(as<EvaluateNode>(s)->value, s.get());
      default: return;
    }
  }

 private:
  bool matters(const Stmt& s) {
    auto [it, fresh] = matters_.try_emplace(s.get(), false);
    if (!fresh) return it->second;
    bool found = false;
    for (const BufferNode* b : used_buffers(s)) found = found || open_.buffers.count(b);
    for_each_stmt(s, [&](const Stmt& t) { found = found || races::is_sync(t); });
    return matters_[s.get()] = found;
  }

  void at(std::int64_t place, const Stmt& s) {
    now_.order.push_back(place);
    exec(s);
    now_.order.pop_back();
  }

  void loop(const ForNode* t) {
    reads(t->min, t);
    reads(t->extent, t);
    const IndexValues::Value low = values_.of(t->min), n = values_.of(t->extent);
    const std::int64_t begin = low.value_or(0), count = n.value_or(2);
    const bool judged = open_.loops.count(t) > 0;
    const bool in_step =
        judged || t->for_kind == ForKind::bound || t->for_kind == ForKind::vectorized;
    if (judged && depth_ == 0) elements_.clear();
    const std::int64_t barriers = now_.barriers;
    depth_ += judged;
    const bool few = !judged && (depth_ == 0 || brief_) && count > kFirst + 1;
    for (std::int64_t k = 0; k < count; ++k) {
      if (few && k >= kFirst && k < count - 1) continue;
      if (judged) now_.barriers = barriers;
      if (in_step) now_.points.emplace_back(t, begin + k);
      values_.set(t->var.get(), begin + k);
      if (in_step) exec(t->body);
      else at(k, t->body);
      if (in_step) now_.points.pop_back();
    }
    depth_ -= judged;
  }

  void reads(const Expr& e, const StmtNode* stmt) {
    if (!e) return;
    if (const auto* s = as<SelectNode>(e)) return choice(s->condition, s->a, s->b, stmt);
    if (const auto* c = as<CallNode>(e)) {
      if (c->op == "if_then_else") return choice(c->args[0], c->args[1], c->args[2], stmt);
      for (const Expr& a : c->args) reads(a, stmt);
      return;
    }
    if (const auto* l = as<LoadNode>(e)) {
      for (const Expr& i : l->indices) reads(i, stmt);
      return use(l, stmt, l->buffer, l->indices, false, "");
    }
    if (const auto* b = as<BinaryNode>(e)) return reads(b->a, stmt), reads(b->b, stmt);
    if (const auto* c = as<CastNode>(e)) return reads(c->value, stmt);
    if (const auto* n = as<NotNode>(e)) return reads(n->a, stmt);
    if (const auto* b = as<BroadcastNode>(e)) return reads(b->value, stmt);
    if (const auto* l = as<LetNode>(e)) {
      reads(l->value, stmt);
      values_.set(l->var.get(), values_.of(l->value));
      reads(l->body, stmt);
    }
  }

  void choice(const Expr& condition, const Expr& a, const Expr& b, const StmtNode* stmt) {
    reads(condition, stmt);
    const IndexValues::Value v = values_.of(condition);
    if (!v || *v) reads(a, stmt);
    if (!v || !*v) reads(b, stmt);
  }

  void use(const void* access, const StmtNode* stmt, const Buffer& b, const Exprs& indices,
           bool write, std::string_view atomic) {
    if (depth_ == 0 || !open_.buffers.count(b.get())) return;
    int lanes = 1;
    for (const Expr& i : indices) lanes = std::max<int>(lanes, i->dtype.lanes);
    for (int lane = 0; lane < lanes; ++lane) {
      if (++accesses_ > budget_) throw OrderBudgetSpent{};
      std::int64_t element = 0;
      for (std::size_t d = 0; d < indices.size(); ++d) {
        const IndexValues::Value v = values_.of(indices[d], lane);
        if (!v) return;
        const std::int64_t n = values_.of(b->shape[d]).value_or(1 << 20);
        element = element * std::max<std::int64_t>(n, 1) + *v;
      }
      Element& it = elements_[{b.get(), element}];
      Cell mine{access, stmt, &b, &indices, write, atomic, now_};
      if (!write && it.by == now_.points) mine.from = it.stored;
      for (const Cell& earlier : it.cells) compare(earlier, mine);
      remember(it.cells, mine);
      if (write) it.stored = stmt, it.by = now_.points;
    }
  }

  /// Of each access the two latest in the order of points in step, of different points; a read of
  /// what the same points stored is another one.
  static void remember(std::vector<Cell>& cells, const Cell& mine) {
    Cell *first = nullptr, *second = nullptr;
    for (Cell& c : cells) {
      if (c.access != mine.access || c.from != mine.from) continue;
      (first ? second : first) = &c;
      if (c.at.points != mine.at.points) continue;
      if (c.at.order < mine.at.order) c.at = mine.at;
      return;
    }
    if (!second) return cells.push_back(mine);
    Cell* lower = first->at.order < second->at.order ? first : second;
    if (lower->at.order < mine.at.order) *lower = mine;
  }

  /// `earlier` comes first in the loops.
  void compare(const Cell& earlier, const Cell& mine) {
    if (!earlier.write && !mine.write) return;
    if (!earlier.atomic.empty() && earlier.atomic == mine.atomic) return;
    if (earlier.at.barriers != mine.at.barriers) return;  // the program's own barriers order them
    const auto &x = earlier.at.points, &y = mine.at.points;
    std::size_t d = 0;
    while (d < x.size() && d < y.size() && x[d] == y[d]) ++d;
    if (d == x.size() || d == y.size() || x[d].first != y[d].first) return;
    const ForNode* loop = x[d].first;
    const auto repeats = [&](const auto& points) {
      return std::any_of(points.begin() + static_cast<std::ptrdiff_t>(d) + 1, points.end(),
                         [&](const auto& p) { return same_axis(loop, p.first, machine_); });
    };
    if (!open_.loops.count(loop) || repeats(x) || repeats(y)) return;
    const Cell &store = earlier.write ? earlier : mine, &read = earlier.write ? mine : earlier;
    if (read.from == store.stmt && open_.repeated.at(loop).count(store.stmt)) return;
    bool turned = earlier.at.order > mine.at.order;
    if (earlier.stmt == mine.stmt && earlier.at.order == mine.at.order)
      turned = loop->for_kind == ForKind::vectorized && earlier.write && !mine.write;
    if (!turned) return;
    found.try_emplace(loop, cat(access_text(*earlier.buffer, *earlier.indices), " of iteration ",
                                x[d].second, " and ", access_text(*mine.buffer, *mine.indices),
                                " of iteration ", y[d].second, " are one element"));
  }

  const TargetInfo& machine_;
  const OpenExchanges& open_;
  std::int64_t budget_, accesses_ = 0;
  bool brief_;  // loops inside are sampled, too
  int depth_ = 0;
  Position now_;
  IndexValues values_;
  std::unordered_map<const StmtNode*, bool> matters_;
  std::map<std::pair<const BufferNode*, std::int64_t>, Element> elements_;
};

}  // namespace

Exchanges run_exchanges(const Stmt& body, const TargetInfo& machine, const OpenExchanges& open,
                        std::int64_t max_accesses) {
  Exchanges out;
  for (const bool brief : {false, true}) {
    LoopOrderRun run(machine, open, max_accesses, brief);
    try {
      run.exec(body);
      out.merge(run.found);
      return out;
    } catch (
        const OrderBudgetSpent&) {  // what was run counts; then all points, but few steps of each
      out.merge(run.found);
    }
  }
  return out;
}

}  // namespace weft::pass
