// SPDX-License-Identifier: Apache-2.0
#include "weft/pass/bound_repeats.h"

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <vector>

#include "weft/arith/analyzer.h"
#include "weft/base/error.h"
#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/ir/conjuncts.h"
#include "weft/ir/visit.h"

namespace weft::pass {

using namespace ir;

namespace {

/// A use of a buffer inside the outer loop.
struct Use {
  const BufferNode* buffer = nullptr;
  Exprs indices;
  std::vector<const ForNode*> loops;  // between the outer loop and the use, the outermost first
  Exprs conditions;
  bool write = false;
  bool depends = false;              // on the outer loop's variable
  const ForNode* repeats = nullptr;  // the inner loop of the same axis around it
};

bool is_axis(const ForNode* loop, const TargetInfo& machine) {
  if (!loop || loop->for_kind != ForKind::bound || is_const_int_value(loop->extent, 1))
    return false;
  const AxisInfo* row = machine.axis(loop->axis);
  return row && !row->is_virtual();
}

bool holds_axis(const Stmt& s, const std::string& axis, const TargetInfo& machine) {
  bool found = false;
  for_each_stmt(s, [&](const Stmt& t) {
    const auto* loop = as<ForNode>(t);
    found = found || (is_axis(loop, machine) && loop->axis == axis);
  });
  return found;
}

/// Uses in the order of the text; a statement's reads before its write.
class Collect {
 public:
  Collect(const ForNode* outer, const TargetInfo& machine) : outer_(outer), machine_(machine) {
    dependent_.insert(outer->var.get());
    walk(outer->body);
  }

  std::vector<Use> all;
  std::unordered_set<const BufferNode*> own;  // allocated in each iteration anew

 private:
  void walk(const Stmt& s) {
    if (!s) return;
    if (const auto* t = as<ForNode>(s)) return walk_loop(t);
    if (const auto* t = as<SeqNode>(s)) {
      for (const Stmt& part : t->stmts) walk(part);
      return;
    }
    if (const auto* t = as<IfNode>(s)) return walk_if(t);
    if (const auto* t = as<WhileNode>(s)) {
      reads(t->condition, inner_of(s));
      return under(t->condition, t->body);
    }
    if (const auto* t = as<LetStmtNode>(s)) {
      const Expr value = plain(t->value);
      reads(value, inner_of(s));
      if (depends(value)) dependent_.insert(t->var.get());
      lets_[t->var.get()] = value;
      return walk(t->body);
    }
    if (const auto* t = as<AllocateNode>(s)) {
      own.insert(t->buffer.get());
      return walk(t->body);
    }
    if (const auto* t = as<AsyncNode>(s)) return walk(t->body);
    if (const auto* t = as<EvaluateNode>(s)) return reads(t->value, inner_);
    if (const auto* t = as<StoreNode>(s)) walk_store(t);
  }

  void walk_loop(const ForNode* loop) {
    const ForNode* before = inner_;
    const ForNode* inside = inner_of(loop);
    reads(loop->min, inside);
    reads(loop->extent, inside);
    if (!inner_ && is_axis(loop, machine_) && loop->axis == outer_->axis) inner_ = loop;
    if (depends(plain(loop->min)) || depends(plain(loop->extent)))
      dependent_.insert(loop->var.get());
    loops_.push_back(loop);
    walk(loop->body);
    loops_.pop_back();
    inner_ = before;
  }

  void walk_if(const IfNode* t) {
    reads(t->condition, inner_ ? inner_ : inner_of(t->then_case));
    under(t->condition, t->then_case);
    if (t->else_case) under(logical_not(t->condition), t->else_case);
  }

  void under(const Expr& condition, const Stmt& body) {
    const std::size_t before = conditions_.size();
    for (const Expr& part : conjuncts(plain(condition))) conditions_.push_back(part);
    walk(body);
    conditions_.resize(before);
  }

  void walk_store(const StoreNode* s) {
    reads(s->value, inner_);
    for (const Expr& e : s->indices) reads(e, inner_);
    Use a = access(s->buffer.get(), s->indices, inner_);
    a.write = true;
    a.depends = a.depends || depends(plain(s->value));
    all.push_back(std::move(a));
  }

  /// What is read before a statement decides about it: repeated where something inside is.
  const ForNode* inner_of(const Stmt& s) const {
    return inner_ ? inner_ : holds_axis(s, outer_->axis, machine_) ? outer_ : nullptr;
  }
  const ForNode* inner_of(const ForNode* loop) const { return inner_of(loop->body); }

  void reads(const Expr& e, const ForNode* repeats) {
    for_each_expr(e, [&](const Expr& x) {
      if (const auto* l = as<LoadNode>(x))
        all.push_back(access(l->buffer.get(), l->indices, repeats));
    });
  }

  Use access(const BufferNode* buffer, const Exprs& indices, const ForNode* repeats) const {
    Use a;
    a.buffer = buffer;
    for (const Expr& e : indices) a.indices.push_back(plain(e));
    a.loops = loops_;
    a.conditions = conditions_;
    a.repeats = repeats;
    const auto by_outer = [&](const Expr& e) { return depends(e); };
    a.depends = std::any_of(a.indices.begin(), a.indices.end(), by_outer) ||
                std::any_of(conditions_.begin(), conditions_.end(), by_outer);
    return a;
  }

  Expr plain(const Expr& e) const { return substitute(e, lets_); }
  bool depends(const Expr& e) const { return uses_any(e, dependent_); }

  const ForNode* outer_;
  const TargetInfo& machine_;
  const ForNode* inner_ = nullptr;
  std::vector<const ForNode*> loops_;
  Exprs conditions_;
  std::unordered_set<const VarNode*> dependent_;
  VarMap lets_;
};

using Loops = std::vector<const ForNode*>;

std::size_t common_loops(const Use& a, const Use& b) {
  std::size_t n = 0;
  while (n < a.loops.size() && n < b.loops.size() && a.loops[n] == b.loops[n]) ++n;
  return n;
}

/// The conditions of `write` that `read` is not under as well, with loops of `map` in their places.
Exprs open_conditions(const Use& write, const Use& read, const VarMap& map,
                      const arith::Analyzer& analyzer) {
  Exprs out;
  for (const Expr& part : write.conditions) {
    const Expr here = substitute(part, map);
    const bool shared =
        std::any_of(read.conditions.begin(), read.conditions.end(),
                    [&](const Expr& c) { return same_expr(c, here) || same_expr(c, part); });
    if (!shared && !analyzer.prove(here)) out.push_back(here);
  }
  return out;
}

/// Whether both stand in loops of the same form and name the same element in each.
bool same_elements(const Use& write, const Use& read, std::size_t common,
                   const arith::Analyzer& analyzer) {
  if (write.loops.size() > read.loops.size()) return false;
  VarMap map;
  for (std::size_t i = common; i < write.loops.size(); ++i) {
    const ForNode *w = write.loops[i], *r = read.loops[i];
    if (!analyzer.prove_equal(w->min, r->min) || !analyzer.prove_equal(w->extent, r->extent))
      return false;
    map[w->var.get()] = r->var;
  }
  // A first value under "this is the first step" stands before all others of the loops around.
  const Exprs open = open_conditions(write, read, map, analyzer);
  VarMap first;
  for (std::size_t i = 0; i < common; ++i) {
    const ForNode* loop = write.loops[i];
    const auto uses = [&](const Expr& e) { return uses_var(e, loop->var.get()); };
    if (loop->for_kind != ForKind::bound && std::any_of(open.begin(), open.end(), uses))
      first[loop->var.get()] = loop->min;
  }
  const bool holds = std::all_of(open.begin(), open.end(), [&](const Expr& e) {
    return analyzer.prove(substitute(e, first));
  });
  if (!holds) return false;
  for (std::size_t d = 0; d < write.indices.size(); ++d) {
    const Expr at = substitute(substitute(write.indices[d], map), first);
    if (!analyzer.prove_equal(at, read.indices[d])) return false;
  }
  return true;
}

/// Exactly the box that `write` fills while its own loops run; absent where it may leave gaps.
std::optional<std::vector<Range>> filled(const Use& write, const Loops& loops) {
  std::vector<Var> vars;
  for (const ForNode* loop : loops) vars.push_back(loop->var);
  std::vector<Range> out;
  std::unordered_set<const ForNode*> used;
  for (const Expr& e : write.indices) {
    const auto linear = arith::detect_linear(e, vars);
    if (!linear) return std::nullopt;
    std::vector<std::pair<std::int64_t, const ForNode*>> digits;
    for (std::size_t i = 0; i < loops.size(); ++i) {
      if (linear->coeffs[i] == 0) continue;
      if (linear->coeffs[i] < 0 || !used.insert(loops[i]).second) return std::nullopt;
      digits.emplace_back(linear->coeffs[i], loops[i]);
    }
    std::sort(digits.begin(), digits.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    Expr base = linear->base, width = make_int(1);
    for (const auto& [step, loop] : digits) {
      std::int64_t known = 0;
      if (step != 1 && (!is_const_int(width, &known) || step > known)) return std::nullopt;
      base = base + loop->min * step;
      width = arith::simplify(width + (loop->extent - 1) * step);
    }
    out.push_back({base, width});
  }
  return out;
}

bool covers(const Use& write, const Use& read, const ForNode* outer) {
  arith::Analyzer analyzer;
  const std::size_t common = common_loops(write, read);
  analyzer.bind(outer->var, {outer->min, outer->extent});
  for (const ForNode* loop : read.loops) analyzer.bind(loop->var, {loop->min, loop->extent});
  if (same_elements(write, read, common, analyzer)) return true;
  if (!open_conditions(write, read, {}, analyzer).empty()) return false;
  const auto from = static_cast<std::ptrdiff_t>(common);
  const auto box = filled(write, Loops(write.loops.begin() + from, write.loops.end()));
  if (!box) return false;
  arith::DomainMap domain;
  for (std::size_t i = common; i < read.loops.size(); ++i)
    domain[read.loops[i]->var.get()] = {read.loops[i]->min, read.loops[i]->extent};
  std::vector<Range> wanted, whole;
  for (const Expr& e : read.indices) wanted.push_back({e, make_int(1)});
  for (const Expr& extent : read.buffer->shape) whole.push_back({make_int(0), extent});
  return arith::covers(*box, arith::relax_region(wanted, domain, analyzer), analyzer) ||
         arith::covers(*box, whole, analyzer);
}

class Repeats {
 public:
  Repeats(const ForNode* outer, const TargetInfo& machine) : outer_(outer), uses_(outer, machine) {}

  void check() const {
    for (std::size_t i = 0; i < uses_.all.size(); ++i) {
      const Use& a = uses_.all[i];
      if (a.write && a.repeats) check_write(a);
      if (!a.write && !uses_.own.count(a.buffer) && (a.repeats || is_repeated(a.buffer)))
        check_read(a, i);
    }
  }

 private:
  /// Whether each iteration of the outer loop stores the same elements of the buffer again.
  bool is_repeated(const BufferNode* buffer) const {
    return std::any_of(uses_.all.begin(), uses_.all.end(),
                       [&](const Use& a) { return a.write && a.repeats && a.buffer == buffer; });
  }

  void check_read(const Use& read, std::size_t at) const {
    bool written = false;
    for (std::size_t i = 0; i < uses_.all.size(); ++i) {
      const Use& w = uses_.all[i];
      if (!w.write || w.buffer != read.buffer) continue;
      written = true;
      if (i < at && !w.depends && covers(w, read, outer_)) return;
    }
    if (!written) return;
    throw refusal(read, cat(": \"", read.buffer->name, "\" is read before the same iteration of \"",
                            outer_->var->name, "\" has stored it"))
        .help(cat("store the first value of \"", read.buffer->name, "\" inside \"",
                  outer_->var->name, "\", or leave \"", outer_->var->name, "\" serial"));
  }

  void check_write(const Use& write) const {
    for (const Use& w : uses_.all) {
      if (!w.write || w.buffer != write.buffer || !w.depends) continue;
      throw refusal(write,
                    cat(": \"", write.buffer->name, "\" is stored there, and by a statement of ",
                        "each iteration of \"", outer_->var->name, "\", too"))
          .help(cat("give one of the two a buffer of its own, or leave \"", outer_->var->name,
                    "\" serial"));
    }
  }

  Error refusal(const Use& a, const std::string& what) const {
    const bool named = a.repeats && a.repeats != outer_;
    return Error(ErrorKind::lower, "lower.axis.repeated",
                 cat("each iteration of loop \"", outer_->var->name, "\" repeats what ",
                     named ? cat("loop \"", a.repeats->var->name, "\"") : "another loop",
                     " inside it does, but both are bound to ", outer_->axis,
                     ", where it happens once", what));
  }

  const ForNode* outer_;
  Collect uses_;
};

}  // namespace

void check_bound_repeats(const Stmt& kernel, const TargetInfo& machine) {
  for_each_stmt(kernel, [&](const Stmt& s) {
    const auto* loop = as<ForNode>(s);
    if (is_axis(loop, machine) && holds_axis(loop->body, loop->axis, machine))
      Repeats(loop, machine).check();
  });
}

}  // namespace weft::pass
