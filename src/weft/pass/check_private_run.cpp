// SPDX-License-Identifier: Apache-2.0
// A program run with concrete indices: each element's last writer is compared with its reader.
#include "weft/pass/check_private_parts.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "weft/base/error.h"
#include "weft/ir/build.h"
#include "weft/ir/visit.h"
#include "weft/pass/index_values.h"

namespace weft::pass {

using namespace ir;

namespace {

constexpr std::int64_t kEveryPoint = 64;     // an axis of at most so many points is run whole
constexpr std::int64_t kRegionLimit = 4096;  // elements of an opaque block's region

using Value = IndexValues::Value;
struct Exhausted {};  // the budget is spent; private to this file

class Run {
 public:
  Run(const TargetInfo& machine, PrivateBuffers watched, std::int64_t budget)
      : machine_(machine), watched_(std::move(watched)), budget_(budget) {}

  void exec(const Stmt& s, bool certain = true) {
    if (!s) return;
    note_joined(s);
    if (!matters(s)) return;
    switch (s->kind) {
      case StmtKind::seq:
        for (const Stmt& child : as<SeqNode>(s)->stmts) exec(child, certain);
        return;
      case StmtKind::allocate: return exec(as<AllocateNode>(s)->body, certain);
      case StmtKind::async: return exec(as<AsyncNode>(s)->body, certain);
      case StmtKind::launch: return exec(as<LaunchNode>(s)->body, certain);
      case StmtKind::let: {
        const auto* t = as<LetStmtNode>(s);
        reads(t->value);
        values_.set(t->var.get(), value(t->value));
        named_.insert(t->var.get());
        return exec(t->body, certain);
      }
      case StmtKind::if_: {
        const auto* t = as<IfNode>(s);
        reads(t->condition);
        Value v = value(t->condition);
        conditions_.push_back(t->condition);
        if (!v || *v) exec(t->then_case, certain && v);
        if (!v || !*v) exec(t->else_case, certain && v);
        conditions_.pop_back();
        return;
      }
      case StmtKind::while_: return exec(as<WhileNode>(s)->body, false);
      case StmtKind::for_: return loop(as<ForNode>(s), certain);
      case StmtKind::store: {
        const auto* t = as<StoreNode>(s);
        reads(t->value);
        for (const Expr& i : t->indices) reads(i);
        if (watched_.count(t->buffer.get())) store(t, certain);
        return;
      }
      case StmtKind::evaluate: return reads(as<EvaluateNode>(s)->value);
      case StmtKind::block_realize: {
        const Block& block = as<BlockRealizeNode>(s)->block;
        for (const BufferRegion& r : block->reads) region(r, false, certain);
        for (const BufferRegion& r : block->writes) region(r, true, certain);
        return;
      }
      case StmtKind::collective: {  // a sanctioned exchange
        const auto* t = as<CollectiveNode>(s);
        if (watched_.count(t->dst.buffer.get())) unknown_.insert(t->dst.buffer.get());
        return;
      }
      default: return;
    }
  }

 private:
  struct Point {
    std::vector<std::string> axes;
    std::vector<std::int64_t> at;  // per axis; -1: outside every loop of that axis
  };
  struct Cell {
    int point = -1;  // of points_; -2: not known
    const Exprs* indices = nullptr;
  };

  bool matters(const Stmt& s) {
    auto [it, fresh] = matters_.try_emplace(s.get(), false);
    if (!fresh) return it->second;
    bool found = false;
    for (const BufferNode* b : used_buffers(s)) found = found || watched_.count(b);
    return matters_[s.get()] = found;
  }

  void loop(const ForNode* t, bool certain) {
    reads(t->min);
    reads(t->extent);
    Value low = value(t->min), n = value(t->extent);
    if (!low || !n) return exec(t->body, false);
    bool axis = t->for_kind == ForKind::bound;
    bool short_run = !axis && !relevant(t);
    std::int64_t* at = axis && *n > 1 ? &axes_.try_emplace(t->axis, -1).first->second : nullptr;
    std::int64_t before = at ? *at : -1;
    for (std::int64_t k = 0; k < *n; ++k) {
      if (short_run && k > 1) break;
      if (axis && *n > kEveryPoint && k > kEveryPoint / 2 && k < *n - 2) continue;
      values_.set(t->var.get(), *low + k);
      if (at) {
        *at = *low + k;
        axis_vars_[t->axis] = t->var.get();
        current_.clear();
      }
      exec(t->body, certain);
    }
    if (at) {
      *at = before;
      current_.clear();
    }
  }

  /// Whether a loop's variable decides which elements of watched memory are touched.
  bool relevant(const ForNode* t) {
    auto [it, fresh] = relevant_.try_emplace(t, false);
    if (!fresh) return it->second;
    bool found = false;
    const VarNode* v = t->var.get();
    for_each_stmt(t->body, [&](const Stmt& s) {
      if (found || !matters(s)) return;
      if (const auto* f = as<ForNode>(s)) found = uses_var(f->min, v) || uses_var(f->extent, v);
      if (const auto* f = as<IfNode>(s)) found = uses_var(f->condition, v);
      if (const auto* f = as<LetStmtNode>(s)) found = uses_var(f->value, v);
      if (s->kind == StmtKind::block_realize) found = free_vars(s).count(t->var.get()) > 0;
      if (const auto* f = as<StoreNode>(s)) {
        for (const Expr& i : f->indices) {
          found = found || (watched_.count(f->buffer.get()) && uses_var(i, v));
        }
      }
    });
    for_each_expr(t->body, [&](const Expr& e) {
      const auto* l = as<LoadNode>(e);
      if (found || !l || !watched_.count(l->buffer.get())) return;
      for (const Expr& i : l->indices) found = found || uses_var(i, v);
    });
    for_each_expr(t->body, [&](const Expr& e) {  // lazy arms
      if (const auto* s = as<SelectNode>(e)) found = found || uses_var(s->condition, v);
      if (const auto* c = as<CallNode>(e); c && c->op == "if_then_else")
        found = found || uses_var(c->args[0], v);
    });
    return relevant_[t] = found;
  }

  // ---- values that all points of an axis have

  /// Elements into which one instruction joined the points' values: all points have the same.
  void note_joined(const Stmt& s) {
    if (const auto* t = as<StoreNode>(s)) {
      const auto* c = as<CallNode>(t->value);
      const auto* name = c && c->op == "instruction" ? as<StringImmNode>(c->args[0]) : nullptr;
      if (name && name->value.starts_with("reduce.")) joined_.insert(t->buffer.get());
      else joined_.erase(t->buffer.get());
    } else if (!joined_.empty() && !matters(s)) {
      for_each_stmt(s, [&](const Stmt& inner) {
        if (const auto* store = as<StoreNode>(inner)) joined_.erase(store->buffer.get());
      });
    }
  }

  /// Whether an expression has one value for all points of an axis.
  bool uniform(const Expr& e, const std::string& axis) const {
    bool good = true;
    for (const VarNode* v : used_vars(e))
      good = good && v != axis_vars_.at(axis) && !named_.count(v);
    for_each_expr(e, [&](const Expr& inner) {
      if (inner->kind == ExprKind::let) good = false;
      const auto* l = as<LoadNode>(inner);
      if (!l || joined_.count(l->buffer.get())) return;
      const MemoryInfo* row = machine_.memory(l->buffer->scope);
      good = good && row && !row->is_private_to(axis);
    });
    return good;
  }

  /// A store; where every point of an axis that joins stores the same value, each has it.
  void store(const StoreNode* t, bool certain) {
    std::vector<std::pair<std::int64_t*, std::int64_t>> before;
    for (auto& [axis, at] : axes_) {
      const auto* row = machine_.axis(axis);
      bool same = at >= 0 && row && row->joins() && uniform(t->value, axis);
      for (const Expr& c : conditions_) same = same && uniform(c, axis);
      for (const Expr& i : t->indices) same = same && uniform(i, axis);
      if (same) before.emplace_back(&at, std::exchange(at, -1));
    }
    if (!before.empty()) current_.clear();
    write(t->buffer, t->indices, certain);
    for (auto& [at, value] : before) *at = value;
    if (!before.empty()) current_.clear();
  }

  // ---- elements

  int point(const BufferNode* b) {
    auto [it, fresh] = current_.try_emplace(b, 0);
    if (!fresh) return it->second;
    const MemoryInfo* row = machine_.memory(b->scope);
    Point p;
    for (const auto& [axis, at] : axes_) {
      if (!row || !row->is_private_to(axis)) continue;
      p.axes.push_back(axis);
      p.at.push_back(at);
    }
    auto key = std::make_pair(p.axes, p.at);
    auto [known, is_new] = point_ids_.try_emplace(key, static_cast<int>(points_.size()));
    if (is_new) points_.push_back(std::move(p));
    return it->second = known->second;
  }

  std::int64_t element(const Buffer& b, const std::vector<std::int64_t>& at) {
    std::int64_t out = 0;
    for (std::size_t i = 0; i < at.size(); ++i) {
      std::int64_t n = value(b->shape[i]).value_or(1 << 20);
      out = out * std::max<std::int64_t>(n, 1) + at[i];
    }
    return out;
  }

  template <typename F>
  void elements(const Buffer& b, const Exprs& indices, bool write, F&& f) {
    if (!write && unknown_.count(b.get())) return;
    int lanes = 1;
    for (const Expr& i : indices) lanes = std::max<int>(lanes, i->dtype.lanes);
    std::vector<std::int64_t> at(indices.size());
    for (int lane = 0; lane < lanes; ++lane) {
      if (++accesses_ > budget_) throw Exhausted{};
      for (std::size_t i = 0; i < indices.size(); ++i) {
        Value v = value(indices[i], lane);
        if (!v) {
          if (write) unknown_.insert(b.get());
          return;
        }
        at[i] = *v;
      }
      f(element(b, at));
    }
  }

  void write(const Buffer& b, const Exprs& indices, bool certain) {
    elements(b, indices, true, [&](std::int64_t e) {
      cells_[b.get()][e] = {certain ? point(b.get()) : -2, &indices};
    });
  }

  void read(const Buffer& b, const Exprs& indices) {
    elements(b, indices, false, [&](std::int64_t e) { compare(b, e, indices); });
  }

  void compare(const Buffer& b, std::int64_t e, const Exprs& indices) {
    auto& cells = cells_[b.get()];
    auto found = cells.find(e);
    if (found == cells.end() || found->second.point == -2) return;
    int here = point(b.get());
    if (found->second.point == here) return;
    const Point &w = points_[static_cast<std::size_t>(found->second.point)],
                &r = points_[static_cast<std::size_t>(here)];
    for (std::size_t i = 0; i < r.axes.size(); ++i) {
      auto same = std::find(w.axes.begin(), w.axes.end(), r.axes[i]);
      std::int64_t writer =
          same == w.axes.end() ? -1 : w.at[static_cast<std::size_t>(same - w.axes.begin())];
      if (writer == -1 || writer == r.at[i]) continue;
      refuse(b, e, *found->second.indices, w, indices, r, r.axes[i]);
    }
  }

  void region(const BufferRegion& r, bool is_write, bool certain) {
    if (!watched_.count(r.buffer.get())) return;
    std::vector<std::int64_t> low, extent;
    std::int64_t count = 1;
    for (const Range& d : r.region) {
      Value a = value(d.min), n = value(d.extent);
      if (!a || !n || *n > kRegionLimit || count > kRegionLimit) {
        if (is_write) unknown_.insert(r.buffer.get());
        return;
      }
      low.push_back(*a);
      extent.push_back(*n);
      count *= *n;
    }
    Exprs& text = region_text_[&r];
    if (text.empty()) {
      for (const Range& d : r.region) text.push_back(d.min);
    }
    for (std::int64_t k = 0; k < count; ++k) {
      if (++accesses_ > budget_) throw Exhausted{};
      std::vector<std::int64_t> at(low.size());
      std::int64_t rest = k;
      for (std::size_t i = low.size(); i-- > 0;) {
        at[i] = low[i] + rest % extent[i];
        rest /= extent[i];
      }
      std::int64_t e = element(r.buffer, at);
      if (is_write) cells_[r.buffer.get()][e] = {certain ? point(r.buffer.get()) : -2, &text};
      else if (!unknown_.count(r.buffer.get())) compare(r.buffer, e, text);
    }
  }

  static std::string place(const Point& p) {
    std::string out;
    for (std::size_t i = 0; i < p.axes.size(); ++i) {
      if (p.at[i] >= 0) out += cat(out.empty() ? "" : ", ", p.axes[i], " = ", p.at[i]);
    }
    return out.empty() ? "every point" : out;
  }
  [[noreturn]] static void refuse(const Buffer& b, std::int64_t e, const Exprs& written,
                                  const Point& w, const Exprs& read, const Point& r,
                                  const std::string& axis) {
    bool thread = axis.starts_with("threadIdx") || axis.starts_with("vthread");
    throw Error(ErrorKind::lower, "lower.private.exchanged",
                cat("\"", b->name, "\" of scope \"", b->scope, "\" is private to each point of ",
                    axis, ", but one point reads what another wrote: ", access_text(b, written),
                    " written at ", place(w), ", ", access_text(b, read), " read at ", place(r)))
        .note(cat("both are element ", e, " of \"", b->name,
                  "\"; each point has a copy of its own, so the reader would not find the value"))
        .help(thread && b->scope != "shared"
                  ? cat("give it memory that the points share, sch.set_scope(block, index, "
                        "\"shared\"), "
                        "or move the writing block to its reader with sch.compute_at, so that each "
                        "point computes what it reads")
                  : cat("give it memory that the points share, sch.set_scope(block, index, "
                        "\"global\"), "
                        "or move the writing block to its reader with sch.compute_at"));
  }

  // ---- expressions

  Value value(const Expr& e, int lane = 0) const { return values_.of(e, lane); }

  void reads(const Expr& e) {
    if (!e) return;
    if (const auto* s = as<SelectNode>(e)) {
      reads(s->condition);
      Value v = value(s->condition);
      if (v) reads(*v ? s->a : s->b);
      return;
    }
    if (const auto* c = as<CallNode>(e)) {
      if (c->op == "if_then_else") {
        reads(c->args[0]);
        Value v = value(c->args[0]);
        if (v) reads(c->args[*v ? 1 : 2]);
        return;
      }
      for (const Expr& a : c->args) reads(a);
      return;
    }
    if (const auto* l = as<LoadNode>(e)) {
      for (const Expr& i : l->indices) reads(i);
      if (watched_.count(l->buffer.get())) read(l->buffer, l->indices);
      return;
    }
    if (const auto* b = as<BinaryNode>(e)) return reads(b->a), reads(b->b);
    if (const auto* c = as<CastNode>(e)) return reads(c->value);
    if (const auto* n = as<NotNode>(e)) return reads(n->a);
    if (const auto* b = as<BroadcastNode>(e)) return reads(b->value);
    if (const auto* l = as<LetNode>(e)) {
      reads(l->value);
      values_.set(l->var.get(), value(l->value));
      reads(l->body);
    }
  }

  const TargetInfo& machine_;
  PrivateBuffers watched_, unknown_;  // unknown: written at places that could not be followed
  std::int64_t budget_, accesses_ = 0;
  IndexValues values_;
  std::map<std::string, std::int64_t> axes_;  // where the run stands
  std::map<std::string, const VarNode*> axis_vars_;
  std::unordered_set<const VarNode*> named_;      // by statements: what they depend on is not kept
  std::unordered_set<const BufferNode*> joined_;  // see note_joined
  std::vector<Expr> conditions_;                  // around the statement that runs
  std::unordered_map<const BufferNode*, int> current_;
  std::map<std::pair<std::vector<std::string>, std::vector<std::int64_t>>, int> point_ids_;
  std::vector<Point> points_;
  std::unordered_map<const StmtNode*, bool> matters_;
  std::unordered_map<const ForNode*, bool> relevant_;
  std::unordered_map<const BufferNode*, std::unordered_map<std::int64_t, Cell>> cells_;
  std::unordered_map<const BufferRegion*, Exprs> region_text_;
};

}  // namespace

void run_points(const Stmt& body, const TargetInfo& machine, PrivateBuffers watched,
                std::int64_t max_accesses) {
  try {
    Run(machine, std::move(watched), max_accesses).exec(body);
  } catch (const Exhausted&) {  // the part that was run showed no exchange
  }
}

}  // namespace weft::pass
