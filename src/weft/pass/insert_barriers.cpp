// SPDX-License-Identifier: Apache-2.0
#include "weft/pass/insert_barriers.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <unordered_map>

#include "weft/arith/analyzer.h"
#include "weft/arith/sum.h"
#include "weft/base/error.h"
#include "weft/ir/atomic.h"
#include "weft/ir/build.h"
#include "weft/ir/roles.h"
#include "weft/ir/visit.h"

namespace weft::pass {

using namespace ir;
using arith::Analyzer;

namespace {

struct Loop {
  Var var;
  Range range;
};

struct Access {
  Buffer buffer;
  Expr index;  // scalar; lanes are in `lanes`
  int lanes = 1;
  bool write = false;
  std::string_view atomic;  // an update in one step: in any order with others of its kind
  const StmtNode* stmt = nullptr;
  std::vector<Loop> loops;  // serial loops around it inside the kernel
};

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
class Group {
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

  Analyzer analyzer;
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

  std::unordered_set<const VarNode*> tainted;  // variables that differ between points

  /// May x (earlier) and y (later) touch one element from different points? Loops in `open` have
  /// one value for both; all other loops run independently.
  bool conflict(const Access& x, const Access& y,
                const std::unordered_set<const VarNode*>& open) const {
    if (!(x.buffer == y.buffer) || (!x.write && !y.write) ||
        (!x.atomic.empty() && x.atomic == y.atomic))
      return false;
    if (x.write && y.write && x.stmt == y.stmt)
      return false;  // each point ends with its own last write
    auto fx = form(x, open), fy = form(y, open);
    if (!fx || !fy) return true;
    Expr shift = analyzer.simplify(fy->base - fx->base);
    return !apart(shift, *fx, *fy) && !versions_apart(shift, *fx, *fy);
  }

 private:
  struct Term {
    std::int64_t coeff = 1, first = 0, last = 0;  // coeff * v, first <= v <= last
  };

  struct Form {
    Expr base;
    std::vector<std::int64_t> coeffs;  // of the group's axes
    std::vector<Term> loops;           // what low and high are made of
    int lanes = 1;
    std::int64_t low = 0, high = 0;               // offsets from loops and lanes
    std::int64_t points_min = 0, points_max = 0;  // sum over the axes
  };

  /// Do distinct points touch distinct elements? The difference y - x of the indices is
  ///     sum coeff * (point of y - point of x) + sum coeff * (u - v) + offset
  /// where u and v run through one range: digits of a mixed radix, of which every one is 0 when
  /// each outweighs all below it and the offset. Then the points are the same. A loop that does not
  /// outweigh what is below counts as offset.
  bool apart(const Expr& shift, const Form& x, const Form& y) const {
    constexpr std::int64_t kLarge = std::int64_t{1} << 40;
    arith::Sum sum = arith::to_sum(shift);
    std::vector<Term> terms = y.loops;
    for (const Term& t : x.loops) terms.push_back({-t.coeff, t.first, t.last});
    for (const arith::Monomial& m : sum.terms) {
      arith::Bounds b = analyzer.bounds(arith::monomial_expr(m.atoms));
      if (!b.bounded() || b.min < -kLarge || b.max > kLarge) return false;
      terms.push_back({m.coeff, b.min, b.max});
    }
    std::int64_t low = sum.constant - (x.lanes - 1), high = sum.constant + (y.lanes - 1);
    struct Digit {
      std::int64_t coeff, extent;
      bool point;
    };
    std::vector<Digit> digits;
    std::int64_t reach_of_loops = 0;
    while (!terms.empty()) {
      Term t = terms.back();
      terms.pop_back();
      if (std::abs(t.coeff) > (std::int64_t{1} << 20)) return false;
      auto twin = std::find_if(terms.begin(), terms.end(), [&](const Term& o) {
        return o.coeff == -t.coeff && o.first == t.first && o.last == t.last;
      });
      if (twin == terms.end()) {
        low += std::min(t.coeff * t.first, t.coeff * t.last);
        high += std::max(t.coeff * t.first, t.coeff * t.last);
        continue;
      }
      terms.erase(twin);
      digits.push_back({std::abs(t.coeff), t.last - t.first + 1, false});
      reach_of_loops += digits.back().coeff * (digits.back().extent - 1);
    }
    if (y.points_min - x.points_max + low > reach_of_loops ||
        y.points_max - x.points_min + high < -reach_of_loops)
      return true;
    if (x.coeffs != y.coeffs) return false;
    for (std::size_t i = 0; i < axes_.size(); ++i) {
      std::int64_t n = 0;
      if (!is_const_int(axes_[i].extent, &n)) return false;
      digits.push_back({std::abs(x.coeffs[i]), n, true});
    }
    std::sort(digits.begin(), digits.end(),
              [](const Digit& a, const Digit& b) { return a.coeff < b.coeff; });
    std::int64_t offset = std::max(std::abs(low), std::abs(high));
    for (bool again = true; again;) {
      again = false;
      std::int64_t reach = offset + 1;  // everything below the next digit stays under this
      for (std::size_t i = 0; i < digits.size(); ++i) {
        if (digits[i].coeff < reach) {
          if (digits[i].point) return false;
          offset += digits[i].coeff * (digits[i].extent - 1);
          digits.erase(digits.begin() + static_cast<std::ptrdiff_t>(i));
          again = true;
          break;
        }
        reach += digits[i].coeff * (digits[i].extent - 1);
      }
    }
    return true;
  }

  /// shift = c * (a mod n) - c * (b mod n) + d where a - b is no multiple of n: two versions of a
  /// pipelined buffer, at least c - |d| elements apart.
  bool versions_apart(const Expr& shift, const Form& x, const Form& y) const {
    arith::Sum sum = arith::to_sum(shift);
    if (sum.terms.size() != 2) return false;
    const arith::Monomial &p = sum.terms[0], &q = sum.terms[1];
    if (p.coeff != -q.coeff || p.atoms.size() != 1 || q.atoms.size() != 1) return false;
    const auto* a = as<BinaryNode>(p.atoms[0]);
    const auto* b = as<BinaryNode>(q.atoms[0]);
    std::int64_t n = 0, m = 0, apart = 0;
    if (!a || !b || a->kind != ExprKind::floormod || b->kind != ExprKind::floormod ||
        !is_const_int(a->b, &n) || !is_const_int(b->b, &m) || n != m || n <= 1)
      return false;
    if (!is_const_int(analyzer.simplify(a->a - b->a), &apart) || arith::floor_mod(apart, n) == 0)
      return false;
    const std::int64_t c = std::abs(p.coeff), d = sum.constant;
    return x.points_max + x.high - (y.points_min + y.low) - d < c &&
           y.points_max + y.high - (x.points_min + x.low) + d < c;
  }

  static constexpr std::int64_t kDataReach = std::int64_t{1} << 20;

  static bool reads_memory(const Expr& e) {
    bool loads = false;
    for_each_expr(e, [&](const Expr& x) { loads = loads || x->kind == ExprKind::load; });
    return loads;
  }

  /// The value as an int64 with casts of integers out of the way. Index arithmetic does not wrap:
  /// an index that did would lie outside its buffer.
  Expr widen(const Expr& e, const VarMap& wide) const {
    const DType index = dtypes::int64;
    std::int64_t n = 0;
    if (is_const_int(e, &n)) return make_int(n);
    if (const auto* v = as<VarNode>(e)) {
      auto found = wide.find(v);
      return found == wide.end() ? cast(index, e) : found->second;
    }
    const auto* c = as<CastNode>(e);
    if (c && c->value->dtype.is_int()) {
      const int bits = e->dtype.bits;
      bool fits = c->value->dtype.bits <= bits;
      if (!fits) {
        const arith::Bounds b = analyzer.bounds(c->value);
        const std::int64_t most = std::int64_t{1} << (bits - 1);
        fits = b.bounded() && b.min >= -most && b.max < most;
      }
      if (fits) return widen(c->value, wide);
    }
    if (e->dtype.is_int()) {
      const auto* b = as<BinaryNode>(e);
      switch (e->kind) {
        case ExprKind::add: return widen(b->a, wide) + widen(b->b, wide);
        case ExprKind::sub: return widen(b->a, wide) - widen(b->b, wide);
        case ExprKind::mul: return widen(b->a, wide) * widen(b->b, wide);
        case ExprKind::floordiv: return floordiv(widen(b->a, wide), widen(b->b, wide));
        case ExprKind::floormod: return floormod(widen(b->a, wide), widen(b->b, wide));
        default: break;
      }
    }
    return cast(index, e);
  }

  std::optional<Form> form(const Access& a, const std::unordered_set<const VarNode*>& open) const {
    std::vector<Var> vars;
    for (const LaunchAxis& axis : axes_) vars.push_back(axis.var);
    std::vector<const Loop*> free;
    for (const Loop& l : a.loops) {
      if (open.count(l.var.get())) continue;
      free.push_back(&l);
      vars.push_back(l.var);
    }
    std::unordered_set<const VarNode*> set;
    VarMap wide;
    for (Var& v : vars) {
      set.insert(v.get());
      if (v->dtype != dtypes::int64) {
        const Var as_index = make_var(v->name, dtypes::int64);
        wide[v.get()] = as_index;
        v = as_index;
        set.insert(v.get());
      }
    }
    // Parts that depend on data, or on a point's digits, but have bounds are like loops: any value
    // of their range.
    std::vector<Term> data;
    Expr index = a.index;
    auto known = [&](const Expr& e) {
      return !reads_memory(e) && arith::detect_linear(widen(e, wide), vars);
    };
    if (!known(index)) {
      const auto* widened = as<CastNode>(index);
      if (widened && widened->value->dtype.is_int()) index = widened->value;
      const arith::Sum sum = arith::to_sum(index);
      index = make_int(sum.constant, index->dtype);
      for (const arith::Monomial& m : sum.terms) {
        const Expr part = arith::monomial_expr(m.atoms);
        if (known(part)) {
          index = index + part * m.coeff;
          continue;
        }
        const arith::Bounds b = analyzer.bounds(part);
        if (!b.bounded() || b.min < -kDataReach || b.max > kDataReach) return std::nullopt;
        data.push_back({m.coeff, b.min, b.max});
      }
      index = cast(a.index->dtype, index);
    }
    auto linear = arith::detect_linear(widen(index, wide), vars);
    if (!linear) return std::nullopt;
    if (uses_any(linear->base, set) || uses_any(linear->base, tainted)) return std::nullopt;
    if (reads_memory(linear->base)) return std::nullopt;
    Form out;
    out.base = linear->base;
    for (const Term& t : data) {
      out.loops.push_back(t);
      out.low += std::min(t.coeff * t.first, t.coeff * t.last);
      out.high += std::max(t.coeff * t.first, t.coeff * t.last);
    }
    for (std::size_t i = 0; i < vars.size(); ++i) {
      std::int64_t c = linear->coeffs[i], n = 0, low = 0;
      bool axis = i < axes_.size();
      const Expr& extent = axis ? axes_[i].extent : free[i - axes_.size()]->range.extent;
      if (axis) out.coeffs.push_back(c);
      if (c == 0) continue;
      arith::Bounds size = analyzer.bounds(extent);
      if (size.max == arith::Bounds::kMax || size.max > (std::int64_t{1} << 40))
        return std::nullopt;
      n = size.max;
      if (!axis && !is_const_int(free[i - axes_.size()]->range.min, &low)) return std::nullopt;
      std::int64_t first = c * low, last = c * (low + std::max<std::int64_t>(n, 1) - 1);
      if (!axis) out.loops.push_back({c, low, low + std::max<std::int64_t>(n, 1) - 1});
      (axis ? out.points_min : out.low) += std::min(first, last);
      (axis ? out.points_max : out.high) += std::max(first, last);
    }
    out.high += a.lanes - 1;
    out.lanes = a.lanes;
    return out;
  }

  const TargetInfo& machine_;
  std::vector<LaunchAxis> axes_;
  std::unordered_set<const VarNode*> vars_;
  std::unordered_set<const BufferNode*> written_;
};

class Inserter {
  static constexpr std::size_t kMostNodes = 500;

 public:
  explicit Inserter(Group& group) : group_(group) {}

  using Pending = std::vector<Access>;

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
      for (const Access& a : mine) {
        if (!a.write) {
          pending.push_back(a);
        } else if (std::none_of(started.begin(), started.end(),
                                [&](const Access& b) { return b.buffer == a.buffer; })) {
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
           std::any_of(pending.begin(), pending.end(), [&](const Access& a) {
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
  static Access anywhere(const Access& a) {
    Access out = a;
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
    auto key = [](const Access& a) {
      return std::hash<const void*>()(a.index.get()) * 31 + std::hash<const void*>()(a.stmt);
    };
    auto same = [](const Access& a, const Access& b) {
      return a.index == b.index && a.stmt == b.stmt && a.buffer == b.buffer && a.lanes == b.lanes &&
             a.write == b.write && a.atomic == b.atomic &&
             std::equal(a.loops.begin(), a.loops.end(), b.loops.begin(), b.loops.end(),
                        [](const Loop& x, const Loop& y) { return x.var == y.var; });
    };
    for (std::size_t i = 0; i < to.size(); ++i) held[key(to[i])].push_back(i);
    for (const Access& a : from) {
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
    for (Access& a : pending) {
      for (Loop& l : a.loops) {
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
    const Access* found = nullptr;
    bool global = false;
    for (const Access& x : pending) {
      for (const Access& y : coming) {
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
    Access a;
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
  std::vector<Loop> loops_;
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
