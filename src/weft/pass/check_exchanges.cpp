// SPDX-License-Identifier: Apache-2.0
#include "weft/pass/check_exchanges.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/ir/atomic.h"
#include "weft/ir/attributes.h"
#include "weft/ir/build.h"
#include "weft/ir/interpret.h"
#include "weft/ir/roles.h"
#include "weft/ir/visit.h"
#include "weft/pass/check_exchanges_parts.h"
#include "weft/pass/check_private.h"
#include "weft/pass/distinct_elements.h"
#include "weft/pass/index_values.h"

namespace weft::pass {

using namespace ir;

namespace {

/// In which order a machine runs the iterations of a loop.
enum class Order : std::uint8_t {
  loop,
  lanes,       // a statement for all: it reads all, then stores in order
  statements,  // a statement for one after the other
  points,      // a statement for all, at once
  any,
};

Order order_of(const ForNode* loop, const TargetInfo& machine) {
  if (is_const_int_value(loop->extent, 1)) return Order::loop;
  if (loop->for_kind == ForKind::vectorized) return Order::lanes;
  if (loop->for_kind == ForKind::parallel) return Order::any;
  const AxisInfo* row = loop->for_kind == ForKind::bound ? machine.axis(loop->axis) : nullptr;
  if (!row) return Order::loop;
  if (row->is_virtual()) return Order::statements;
  return row->barrier || row->kind == AxisKind::lockstep ? Order::points : Order::any;
}

/// A use of memory that all points see.
struct SharedUse {
  Buffer buffer;
  Exprs indices;  // without names of statements
  Exprs decide;   // of stores: the value and the conditions around it
  const StmtNode* stmt = nullptr;
  std::vector<const ForNode*> loops;
  bool write = false;
  std::string_view atomic;
};

class SharedUses final : public Visitor {
 public:
  explicit SharedUses(const TargetInfo& machine) : machine_(machine) {}
  using Visitor::visit;
  std::vector<SharedUse> all;
  std::unordered_map<const BufferNode*, std::vector<const ForNode*>> allocated;  // in which loops
  std::vector<const ForNode*> side_by_side;

  void visit(const Stmt& s) override {
    if (!s) return;
    const StmtNode* before = stmt_;
    stmt_ = s.get();
    if (const auto* t = as<WhileNode>(s)) {
      conditions_.push_back(substitute(t->condition, lets_));
      Visitor::visit(s);
      conditions_.pop_back();
    } else if (const auto* let = as<LetStmtNode>(s)) {
      visit(let->value);
      lets_[let->var.get()] = substitute(let->value, lets_);
      visit(let->body);
    } else {
      Visitor::visit(s);
    }
    stmt_ = before;
  }

 protected:
  void visit_for(const ForNode* s) override {
    visit(s->min);
    visit(s->extent);
    if (order_of(s, machine_) != Order::loop) side_by_side.push_back(s);
    loops_.push_back(s);
    visit(s->body);
    loops_.pop_back();
  }
  void visit_if(const IfNode* s) override {
    visit(s->condition);
    conditions_.push_back(substitute(s->condition, lets_));
    visit(s->then_case);
    visit(s->else_case);
    conditions_.pop_back();
  }
  void visit_allocate(const AllocateNode* s) override {
    allocated[s->buffer.get()] = loops_;
    Visitor::visit_allocate(s);
  }
  void visit_load(const LoadNode* e) override {
    Visitor::visit_load(e);
    add(e->buffer, e->indices, false);
  }
  void visit_store(const StoreNode* s) override {
    const CallNode* atomic = as_atomic(s);
    if (atomic) visit(atomic->args[1]);
    else visit(s->value);
    for (const Expr& i : s->indices) visit(i);
    add(s->buffer, s->indices, true);
    if (all.empty() || all.back().stmt != s || !all.back().write) return;
    if (atomic) all.back().atomic = atomic->op;
    all.back().decide = conditions_;
    all.back().decide.push_back(substitute(s->value, lets_));
  }

 private:
  void add(const Buffer& b, const Exprs& indices, bool write) {
    if (loops_.empty()) return;
    const MemoryInfo* row = machine_.memory(b->scope);
    if (row && !row->private_to.empty()) return;
    SharedUse use;
    use.buffer = b;
    for (const Expr& e : indices) use.indices.push_back(substitute(e, lets_));
    use.stmt = stmt_;
    use.loops = loops_;
    use.write = write;
    all.push_back(std::move(use));
  }

  const TargetInfo& machine_;
  const StmtNode* stmt_ = nullptr;
  std::vector<const ForNode*> loops_;
  Exprs conditions_;
  VarMap lets_;
};

bool inside(const std::vector<const ForNode*>& loops, const ForNode* loop) {
  return std::find(loops.begin(), loops.end(), loop) != loops.end();
}

/// Whether iterations of one loop in the same iterations of the loops around it may use one
/// element.
class Iterations {
 public:
  explicit Iterations(const ForNode* loop)
      : loop_(loop), distinct_({LaunchAxis{loop->axis, loop->var, loop->extent}}) {}

  bool may_meet(const SharedUse& x, const SharedUse& y) {
    std::unordered_set<const VarNode*> open;
    ElementAccess a = access(x, open), b = access(y, open);
    for (std::size_t d = 0; d < x.indices.size(); ++d) {
      if (!place(a, x.indices[d], d + 1 == x.indices.size()) ||
          !place(b, y.indices[d], d + 1 == y.indices.size()))
        return true;
      if (!distinct_.conflict(a, b, open)) return false;
    }
    if (x.indices.size() < 2) return true;
    Expr flat_x = make_int(0), flat_y = make_int(0);
    for (std::size_t d = 0; d < x.indices.size(); ++d) {
      flat_x = flat_x * x.buffer->shape[d] + x.indices[d];
      flat_y = flat_y * x.buffer->shape[d] + y.indices[d];
    }
    return !place(a, flat_x, true) || !place(b, flat_y, true) || distinct_.conflict(a, b, open);
  }

 private:
  ElementAccess access(const SharedUse& use, std::unordered_set<const VarNode*>& open) {
    ElementAccess out;
    out.buffer = use.buffer;
    out.write = use.write;
    out.stmt = use.stmt;
    bool around = true;
    for (const ForNode* loop : use.loops) {
      bind(loop);
      if (loop == loop_) around = false;
      else if (around) open.insert(loop->var.get());
      else out.loops.push_back({loop->var, {loop->min, loop->extent}});
    }
    return out;
  }

  /// Each pair of uses asks about the same loops, whose extents take long to simplify.
  void bind(const ForNode* loop) {
    const ForNode*& bound = bound_[loop->var.get()];
    if (bound == loop) return;
    distinct_.analyzer.bind(loop->var, {loop->min, loop->extent});
    bound = loop;
  }

  static bool place(ElementAccess& a, const Expr& index, bool last) {
    a.lanes = 1;
    a.index = index;
    if (const auto* r = as<RampNode>(index); r && last && is_const_int_value(r->stride, 1)) {
      a.lanes = r->dtype.lanes;
      a.index = r->base;
    }
    return a.index->dtype.is_scalar();
  }

  const ForNode* loop_;
  DistinctElements distinct_;
  std::unordered_map<const VarNode*, const ForNode*> bound_;
};

/// Whether another loop of the axis is inside: the axis then has one position, and the outer loop
/// repeats what the inner one does, which bound_repeats judges.
bool repeats_axis(const SharedUse& use, const ForNode* loop, const TargetInfo& machine) {
  return std::any_of(std::find(use.loops.begin(), use.loops.end(), loop) + 1, use.loops.end(),
                     [&](const ForNode* inner) { return same_axis(loop, inner, machine); });
}

bool by_data(const SharedUse& use) {
  bool found = false;
  for (const Expr& i : use.indices) {
    for_each_expr(i, [&](const Expr& e) { found = found || e->kind == ExprKind::load; });
  }
  return found;
}

/// Whether the order of the two is not for this pass to judge: machines keep it, or check_races
/// sees every change of it.
bool ordered(Order order, const SharedUse& write, const SharedUse& other) {
  if (!write.atomic.empty() && write.atomic == other.atomic) return true;
  const bool data = by_data(write) || by_data(other);
  if (order == Order::any && !data) return true;
  if (write.stmt != other.stmt) return false;
  if (other.write || order == Order::statements) return true;
  return order != Order::lanes && (by_data(write) || !data);
}

/// Stores that do not depend on the loop's iteration, nor on anything that the loop stores.
std::unordered_set<const StmtNode*> repeated_in(const ForNode* loop,
                                                const std::vector<SharedUse>& all) {
  std::unordered_set<const BufferNode*> stored;
  for (const SharedUse& use : all) {
    if (use.write && inside(use.loops, loop)) stored.insert(use.buffer.get());
  }
  std::unordered_set<const StmtNode*> out;
  for (const SharedUse& use : all) {
    if (!use.write || !inside(use.loops, loop)) continue;
    std::unordered_set<const VarNode*> vary{loop->var.get()};
    const auto same = [&](const Expr& e) {
      bool loads = false;
      for_each_expr(e, [&](const Expr& x) {
        const auto* l = as<LoadNode>(x);
        const bool whole = l && l->buffer->scope == "global" && !stored.count(l->buffer.get());
        loads = loads || (l && !whole);
      });
      return !loads && !uses_any(e, vary);
    };
    bool repeats = true;
    for (auto inner = std::find(use.loops.begin(), use.loops.end(), loop) + 1;
         inner != use.loops.end(); ++inner)
      repeats = repeats && same((*inner)->min) && same((*inner)->extent);
    repeats = repeats && std::all_of(use.indices.begin(), use.indices.end(), same) &&
              std::all_of(use.decide.begin(), use.decide.end(), same);
    if (repeats) out.insert(use.stmt);
  }
  return out;
}

PrimFunc with_serial_loops(const PrimFunc& f, const Exchanges& found) {
  struct Serial final : Rewriter {
    explicit Serial(const Exchanges& loops) : loops(loops) {}
    Stmt rewrite_for(const Stmt& s) override {
      const auto why = loops.find(as<ForNode>(s));
      const Stmt out = Rewriter::rewrite_for(s);
      const auto* t = as<ForNode>(out);
      if (why == loops.end()) return out;
      return make_for(t->var, t->min, t->extent, t->body, ForKind::serial, "",
                      with_annotation(t->annotations, "scalarised", why->second));
    }
    const Exchanges& loops;
  };
  auto out = edit(f);
  out->body = Serial(found).rewrite(f->body);
  return out;
}

}  // namespace

bool same_axis(const ForNode* outer, const ForNode* inner, const TargetInfo& machine) {
  const AxisInfo* row = machine.axis(outer->axis);
  return row && !row->is_virtual() && outer->for_kind == ForKind::bound &&
         inner->for_kind == ForKind::bound && outer->axis == inner->axis;
}

OpenExchanges open_exchanges(const PrimFunc& f, const TargetInfo& machine) {
  SharedUses uses(machine);
  uses.visit(f->body);
  OpenExchanges out;
  for (const ForNode* loop : uses.side_by_side) {
    Iterations iterations(loop);
    const Order order = order_of(loop, machine);
    for (const SharedUse& write : uses.all) {
      if (!write.write || !inside(write.loops, loop) || repeats_axis(write, loop, machine))
        continue;
      const auto own = uses.allocated.find(write.buffer.get());
      if (own != uses.allocated.end() && inside(own->second, loop)) continue;
      for (const SharedUse& other : uses.all) {
        if (&other == &write || !(other.buffer == write.buffer) || !inside(other.loops, loop) ||
            repeats_axis(other, loop, machine) || ordered(order, write, other))
          continue;
        const bool data = by_data(write) || by_data(other);
        if (data && has_flag(f->attrs, kDistinctElements)) continue;
        if (!iterations.may_meet(write, other)) continue;
        if (data) {
          out.by_data.try_emplace(
              loop, cat("data chooses which element ",
                        access_text(other.buffer, by_data(other) ? other.indices : write.indices),
                        " is, and an iteration may use what another one stores"));
          continue;
        }
        if (out.loops.insert(loop).second) out.repeated[loop] = repeated_in(loop, uses.all);
        out.buffers.insert(write.buffer.get());
      }
    }
  }
  return out;
}

PrimFunc check_exchanges(const PrimFunc& f, const TargetInfo& machine, std::int64_t max_accesses) {
  if (has_flag(f->attrs, kPointsTogether) || uses_tokens(f->body)) return f;
  const OpenExchanges open = open_exchanges(f, machine);
  Exchanges found = open.by_data;
  if (!open.loops.empty()) found.merge(run_exchanges(f->body, machine, open, max_accesses));
  if (found.empty()) return f;
  for_each_stmt(f->body, [&](const Stmt& s) {  // the first one in the text
    const auto* loop = as<ForNode>(s);
    const auto why = found.find(loop);
    if (why == found.end() || loop->for_kind == ForKind::vectorized) return;
    const bool any = order_of(loop, machine) == Order::any, bound = !loop->axis.empty();
    const std::string& name = loop->var->name;
    throw Error(ErrorKind::lower, "lower.axis.exchanged",
                cat("iterations of loop \"", name, bound ? "\", bound to " : "\"", loop->axis,
                    bound ? "," : ", which is parallel,",
                    " use each other's values in another order than the loop: ", why->second))
        .note(any ? "its iterations run in any order"
                  : "its iterations do each statement together before the next one")
        .help(cat("end the loop behind the statement that stores, and ",
                  bound ? cat("bind another loop to ", loop->axis, " for the rest")
                        : std::string("begin another parallel one"),
                  "; or leave \"", name, "\" serial"));
  });
  return with_serial_loops(f, found);
}

}  // namespace weft::pass
