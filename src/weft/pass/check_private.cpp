// SPDX-License-Identifier: Apache-2.0
#include "weft/pass/check_private.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

#include "weft/arith/analyzer.h"
#include "weft/arith/iter_map.h"
#include "weft/base/error.h"
#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/ir/roles.h"
#include "weft/ir/text.h"
#include "weft/ir/visit.h"

namespace weft::pass {

using namespace ir;

namespace {

constexpr std::int64_t kSymbol = 19;         // a legal value of every extent known only at run time
constexpr std::int64_t kEveryPoint = 64;     // an axis of at most so many points is run whole
constexpr std::int64_t kRegionLimit = 4096;  // elements of an opaque block's region
using Buffers = std::unordered_set<const BufferNode*>;

bool is_axis(const ForNode* loop) {
  return loop->for_kind == ForKind::bound && !is_const_int_value(loop->extent, 1);
}

bool divides_points(const ForNode* loop, const Buffer& b, const Machine& machine) {
  const MemoryRow* row = machine.memory(b->scope);
  return is_axis(loop) && row && row->is_private_to(loop->axis);
}

// ---- by regions

struct Loop {
  Var var;
  Range range;
};

struct Guard {
  const StmtNode* statement;  // the If, once per branch
  bool taken;
  Expr condition;
};

struct Access {
  bool write = false;
  Exprs indices;
  std::vector<Loop> loops;  // inside the allocation
  std::vector<Guard> guards;
};

/// The accesses of one allocation in program order.
class Accesses final : public Visitor {
 public:
  Accesses(const Buffer& buffer, const Machine& machine) : buffer_(buffer), machine_(machine) {}
  std::vector<Access> list;
  bool simple = true;  // no point loop between allocation and access, nothing opaque

  using Visitor::visit;
  void visit(const Stmt& s) override {
    if (!s) return;
    if (s->kind == StmtKind::block_realize || s->kind == StmtKind::collective ||
        s->kind == StmtKind::while_ || s->kind == StmtKind::let) {
      simple = simple && !used_buffers(s).count(buffer_.get());
      return;
    }
    Visitor::visit(s);
  }

 protected:
  void visit_for(const ForNode* s) override {
    if (divides_points(s, buffer_, machine_) && used_buffers(s->body).count(buffer_.get()))
      simple = false;
    loops_.push_back({s->var, {s->min, s->extent}});
    Visitor::visit_for(s);
    loops_.pop_back();
  }
  void visit_if(const IfNode* s) override {
    visit(s->condition);
    guards_.push_back({s, true, s->condition});
    visit(s->then_case);
    guards_.back().taken = false;
    if (s->else_case) visit(s->else_case);
    guards_.pop_back();
  }
  void visit_load(const LoadNode* e) override {
    Visitor::visit_load(e);
    add(e->buffer, e->indices, false);
  }
  void visit_store(const StoreNode* s) override {
    Visitor::visit_store(s);  // the value is read before the element is written
    add(s->buffer, s->indices, true);
  }

 private:
  void add(const Buffer& b, const Exprs& indices, bool write) {
    if (b == buffer_) list.push_back({write, indices, loops_, guards_});
  }
  const Buffer& buffer_;
  const Machine& machine_;
  std::vector<Loop> loops_;
  std::vector<Guard> guards_;
};

bool uses_any_of(const Exprs& list, const std::unordered_set<const VarNode*>& vars) {
  return std::any_of(list.begin(), list.end(), [&](const Expr& e) { return uses_any(e, vars); });
}

/// Whether write w, earlier in the text, has written what r reads whenever r runs.
class Covering {
 public:
  Covering(const std::vector<Loop>& outer, const Access& w, const Access& r)
      : outer_(outer), w_(w), r_(r) {
    while (common_ < w.loops.size() && common_ < r.loops.size() &&
           w.loops[common_].var == r.loops[common_].var)
      ++common_;
  }

  bool holds() const {
    Exprs open;  // guards of the write that the reader does not share
    for (const Guard& g : w_.guards) {
      if (!shared(g) && !(g.taken && first_iteration(g.condition))) {
        if (!g.taken) return false;
        open.push_back(g.condition);
      }
    }
    return (guards_hold() && same_form()) || box(open);
  }

 private:
  /// Every guard of the write is one of the reader's, or true in the first iteration of loops that
  /// neither index mentions.
  bool guards_hold() const {
    for (const Guard& g : w_.guards) {
      if (shared(g) || (g.taken && first_iteration(g.condition)) || twin(g)) continue;
      return false;
    }
    return true;
  }

  bool shared(const Guard& g) const {
    return std::any_of(r_.guards.begin(), r_.guards.end(), [&](const Guard& h) {
      return h.statement == g.statement && h.taken == g.taken;
    });
  }

  bool first_iteration(const Expr& condition) const {
    VarMap start;
    std::unordered_set<const VarNode*> vars;
    for (std::size_t i = 0; i < common_; ++i) {
      if (!uses_var(condition, w_.loops[i].var.get())) continue;
      start[w_.loops[i].var.get()] = w_.loops[i].range.min;
      vars.insert(w_.loops[i].var.get());
    }
    if (uses_any_of(w_.indices, vars) || uses_any_of(r_.indices, vars)) return false;
    return is_const_int_value(arith::simplify(substitute(condition, start)), 1);
  }

  /// A guard of the reader that says the same of its own loops.
  bool twin(const Guard& g) const {
    auto map = renaming();
    if (!map) return false;
    Expr mine = substitute(g.condition, *map);
    return std::any_of(r_.guards.begin(), r_.guards.end(), [&](const Guard& h) {
      return h.taken == g.taken && same_expr(mine, h.condition);
    });
  }

  /// The writer's own loops as those of the reader that have the same ranges, by position among the
  /// loops that the indices mention.
  std::optional<VarMap> renaming() const {
    auto mentioned = [](const Access& a, std::size_t from) {
      std::vector<const Loop*> out;
      for (std::size_t i = from; i < a.loops.size(); ++i) {
        std::unordered_set<const VarNode*> one{a.loops[i].var.get()};
        if (uses_any_of(a.indices, one)) out.push_back(&a.loops[i]);
      }
      return out;
    };
    auto mine = mentioned(w_, common_), other = mentioned(r_, common_);
    if (mine.size() != other.size()) return std::nullopt;
    VarMap map;
    for (std::size_t i = 0; i < mine.size(); ++i) {
      if (!same_expr(mine[i]->range.min, other[i]->range.min) ||
          !same_expr(mine[i]->range.extent, other[i]->range.extent))
        return std::nullopt;
      map[mine[i]->var.get()] = other[i]->var;
    }
    return map;
  }

  bool same_form() const {
    auto map = renaming();
    if (!map) return false;
    for (std::size_t i = 0; i < w_.indices.size(); ++i) {
      Expr mine = substitute(w_.indices[i], *map);
      if (!same_expr(mine, r_.indices[i]) &&
          !is_const_int_value(arith::simplify(mine - r_.indices[i]), 0))
        return false;
    }
    return true;
  }

  /// The box of the write, when its loops reach every element of it under the open guards, contains
  /// that of the read.
  bool box(const Exprs& open) const {
    arith::Analyzer analyzer;
    auto bind = [&](const Loop& l) { analyzer.bind(l.var, l.range); };
    for (const Loop& l : outer_) bind(l);
    for (const Loop& l : r_.loops) bind(l);  // the read happens
    arith::DomainMap of_read;
    for (std::size_t i = common_; i < r_.loops.size(); ++i)
      of_read[r_.loops[i].var.get()] = r_.loops[i].range;
    std::vector<IterVar> own;
    for (std::size_t i = common_; i < w_.loops.size(); ++i) {
      const Range& range = w_.loops[i].range;
      if (!is_const_int_value(range.min, 0)) return false;
      if (!analyzer.prove(ge(range.extent, make_int(1, range.extent->dtype)))) return false;
      bind(w_.loops[i]);
      own.push_back({w_.loops[i].var, range, IterKind::spatial});
    }
    Expr predicate = make_bool(true);
    for (const Expr& g : open) predicate = logical_and(predicate, g);
    const auto map =
        arith::detect_iter_map(w_.indices, own, predicate, arith::MapLevel::surjective, analyzer);
    if (!map.ok()) return false;
    std::vector<Range> written, read;
    for (std::size_t d = 0; d < w_.indices.size(); ++d) {
      Expr extent = make_int(1);
      for (const arith::IterSplit& split : map.indices[d].splits) {
        if (cut(split)) return false;
        extent = extent + (split.extent - 1) * split.scale;
      }
      written.push_back({map.indices[d].base, analyzer.simplify(extent)});
      read.push_back({r_.indices[d], make_int(1)});
    }
    return arith::covers(written, arith::relax_region(read, of_read, analyzer), analyzer);
  }

  /// Whether a guard leaves only part of a sum's values and the split is not the whole of it, or
  /// the guard's bound is not known: then some values of the split may be missing.
  static bool cut(const arith::IterSplit& split) {
    if (split.mark->var) return false;
    std::int64_t full = 1, extent = 0, scale = 0, part = 0;
    for (const arith::IterSplit& s : split.mark->source->splits) {
      if (cut(s) || !is_const_int(s.extent, &extent) || !is_const_int(s.scale, &scale)) return true;
      full += (extent - 1) * scale;
    }
    if (!is_const_int(split.mark->extent, &extent) || !is_const_int(split.extent, &part))
      return true;
    if (extent > full) return true;
    return extent < full && !(is_const_int_value(split.lower_factor, 1) && part == extent);
  }

  const std::vector<Loop>& outer_;
  const Access &w_, &r_;
  std::size_t common_ = 0;
};

bool stays_within_points(const AllocateNode* s, const std::vector<Loop>& outer,
                         const Machine& machine) {
  Accesses accesses(s->buffer, machine);
  static_cast<Visitor&>(accesses).visit(s->body);
  if (!accesses.simple) return false;
  for (std::size_t r = 0; r < accesses.list.size(); ++r) {
    if (accesses.list[r].write) continue;
    bool covered = false;
    for (std::size_t w = 0; w < r && !covered; ++w) {
      covered =
          accesses.list[w].write && Covering(outer, accesses.list[w], accesses.list[r]).holds();
    }
    if (!covered) return false;
  }
  return true;
}

/// Buffers that regions do not settle.
class Unsettled final : public Visitor {
 public:
  explicit Unsettled(const Machine& machine) : machine_(machine) {}
  Buffers buffers;

 protected:
  void visit_for(const ForNode* s) override {
    loops_.push_back({s->var, {s->min, s->extent}});
    Visitor::visit_for(s);
    loops_.pop_back();
  }
  void visit_allocate(const AllocateNode* s) override {
    const MemoryRow* row = machine_.memory(s->buffer->scope);
    if (row && !row->private_to.empty() && !stays_within_points(s, loops_, machine_))
      buffers.insert(s->buffer.get());
    Visitor::visit_allocate(s);
  }

 private:
  const Machine& machine_;
  std::vector<Loop> loops_;
};

// ---- by running

using Value = std::optional<std::int64_t>;
struct Exhausted {};  // the budget is spent; private to this file

class Run {
 public:
  Run(const Machine& machine, Buffers watched, std::int64_t budget)
      : machine_(machine), watched_(std::move(watched)), budget_(budget) {}

  void exec(const Stmt& s, bool certain = true) {
    if (!s || !matters(s)) return;
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
        env_[t->var.get()] = value(t->value);
        return exec(t->body, certain);
      }
      case StmtKind::if_: {
        const auto* t = as<IfNode>(s);
        reads(t->condition);
        Value v = value(t->condition);
        if (!v || *v) exec(t->then_case, certain && v);
        if (!v || !*v) exec(t->else_case, certain && v);
        return;
      }
      case StmtKind::while_: return exec(as<WhileNode>(s)->body, false);
      case StmtKind::for_: return loop(as<ForNode>(s), certain);
      case StmtKind::store: {
        const auto* t = as<StoreNode>(s);
        reads(t->value);
        for (const Expr& i : t->indices) reads(i);
        if (watched_.count(t->buffer.get())) write(t->buffer, t->indices, certain);
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
      env_[t->var.get()] = *low + k;
      if (at) {
        *at = *low + k;
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

  // ---- elements

  int point(const BufferNode* b) {
    auto [it, fresh] = current_.try_emplace(b, 0);
    if (!fresh) return it->second;
    const MemoryRow* row = machine_.memory(b->scope);
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
  static std::string at_text(const Buffer& b, const Exprs& indices) {
    std::string out;
    for (const Expr& i : indices) out += cat(out.empty() ? "" : ", ", print(i));
    return cat(b->name, "[", out, "]");
  }

  [[noreturn]] static void refuse(const Buffer& b, std::int64_t e, const Exprs& written,
                                  const Point& w, const Exprs& read, const Point& r,
                                  const std::string& axis) {
    bool thread = axis.starts_with("threadIdx") || axis.starts_with("vthread");
    throw Error(ErrorKind::lower, "lower.private.exchanged",
                cat("\"", b->name, "\" of scope \"", b->scope, "\" is private to each point of ",
                    axis, ", but one point reads what another wrote: ", at_text(b, written),
                    " written at ", place(w), ", ", at_text(b, read), " read at ", place(r)))
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
      env_[l->var.get()] = value(l->value);
      reads(l->body);
    }
  }

  static bool whole(const Expr& e) { return e->dtype.is_integral() || e->dtype.is_bool(); }

  Value value(const Expr& e, int lane = 0) {
    switch (e->kind) {
      case ExprKind::int_imm: return as<IntImmNode>(e)->value;
      case ExprKind::var: {
        auto found = env_.find(as<VarNode>(e));
        if (found != env_.end()) return found->second;
        return e->dtype.is_int() ? Value(kSymbol) : Value();
      }
      case ExprKind::cast:
        return whole(e) && whole(as<CastNode>(e)->value) ? value(as<CastNode>(e)->value, lane)
                                                         : Value();
      case ExprKind::not_: {
        Value v = value(as<NotNode>(e)->a, lane);
        return v ? Value(*v == 0) : v;
      }
      case ExprKind::ramp: {
        Value base = value(as<RampNode>(e)->base), step = value(as<RampNode>(e)->stride);
        return base && step ? Value(*base + *step * lane) : Value();
      }
      case ExprKind::broadcast: return value(as<BroadcastNode>(e)->value);
      case ExprKind::select: {
        const auto* s = as<SelectNode>(e);
        Value c = value(s->condition, lane);
        return c ? value(*c ? s->a : s->b, lane) : Value();
      }
      case ExprKind::call: {
        const auto* c = as<CallNode>(e);
        if (c->op == "likely") return value(c->args[0], lane);
        if (c->op != "if_then_else") return {};
        Value k = value(c->args[0], lane);
        return k ? value(c->args[*k ? 1 : 2], lane) : Value();
      }
      default: break;
    }
    if (!is_binary(e->kind)) return {};
    const auto* b = as<BinaryNode>(e);
    if (!whole(b->a)) return {};
    Value x = value(b->a, lane);
    if (x && e->kind == ExprKind::and_ && !*x) return 0;
    if (x && e->kind == ExprKind::or_ && *x) return 1;
    Value y = value(b->b, lane);
    if (!x || !y) return {};
    return fold(e->kind, *x, *y);
  }

  static Value fold(ExprKind kind, std::int64_t u, std::int64_t v) {
    auto floored = [&] { return u / v - ((u % v != 0) && ((u < 0) != (v < 0)) ? 1 : 0); };
    switch (kind) {
      case ExprKind::add: return u + v;
      case ExprKind::sub: return u - v;
      case ExprKind::mul: return u * v;
      case ExprKind::div: return v ? Value(u / v) : Value();
      case ExprKind::mod: return v ? Value(u % v) : Value();
      case ExprKind::floordiv: return v ? Value(floored()) : Value();
      case ExprKind::floormod: return v ? Value(u - floored() * v) : Value();
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

  const Machine& machine_;
  Buffers watched_, unknown_;  // unknown: written at places that could not be followed
  std::int64_t budget_, accesses_ = 0;
  std::unordered_map<const VarNode*, Value> env_;
  std::map<std::string, std::int64_t> axes_;  // where the run stands
  std::unordered_map<const BufferNode*, int> current_;
  std::map<std::pair<std::vector<std::string>, std::vector<std::int64_t>>, int> point_ids_;
  std::vector<Point> points_;
  std::unordered_map<const StmtNode*, bool> matters_;
  std::unordered_map<const ForNode*, bool> relevant_;
  std::unordered_map<const BufferNode*, std::unordered_map<std::int64_t, Cell>> cells_;
  std::unordered_map<const BufferRegion*, Exprs> region_text_;
};

}  // namespace

PrimFunc check_private(const PrimFunc& f, const Machine& machine, std::int64_t max_accesses) {
  if (find_annotation(f->attrs, kPointsTogether) || uses_tokens(f->body)) return f;
  bool points = false;
  for_each_stmt(f->body, [&](const Stmt& s) {
    if (const auto* t = as<ForNode>(s)) points = points || is_axis(t);
  });
  if (!points) return f;
  Unsettled open(machine);
  static_cast<Visitor&>(open).visit(f->body);
  if (open.buffers.empty()) return f;
  try {
    Run(machine, std::move(open.buffers), max_accesses).exec(f->body);
  } catch (const Exhausted&) {  // the part that was run showed no exchange
  }
  return f;
}

}  // namespace weft::pass
