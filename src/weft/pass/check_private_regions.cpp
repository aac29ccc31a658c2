// SPDX-License-Identifier: Apache-2.0
// Whether the accesses of a private buffer stay within one point, from their regions.
#include "weft/pass/check_private_parts.h"

#include <algorithm>
#include <optional>

#include "weft/arith/analyzer.h"
#include "weft/arith/iter_map.h"
#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/ir/visit.h"

namespace weft::pass {

using namespace ir;

namespace {

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
  Accesses(const Buffer& buffer, const TargetInfo& machine) : buffer_(buffer), machine_(machine) {}
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
  const TargetInfo& machine_;
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
                         const TargetInfo& machine) {
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
  explicit Unsettled(const TargetInfo& machine) : machine_(machine) {}
  PrivateBuffers buffers;

 protected:
  void visit_for(const ForNode* s) override {
    loops_.push_back({s->var, {s->min, s->extent}});
    Visitor::visit_for(s);
    loops_.pop_back();
  }
  void visit_allocate(const AllocateNode* s) override {
    const MemoryInfo* row = machine_.memory(s->buffer->scope);
    if (row && !row->private_to.empty() && !stays_within_points(s, loops_, machine_))
      buffers.insert(s->buffer.get());
    Visitor::visit_allocate(s);
  }

 private:
  const TargetInfo& machine_;
  std::vector<Loop> loops_;
};

}  // namespace

PrivateBuffers unsettled_buffers(const Stmt& body, const TargetInfo& machine) {
  Unsettled open(machine);
  static_cast<Visitor&>(open).visit(body);
  return std::move(open.buffers);
}

}  // namespace weft::pass
