// SPDX-License-Identifier: Apache-2.0
// Statements of a kernel: guards become masks, loops stay loops, registers stand for local memory.

#include "weft/base/error.h"
#include "weft/ir/build.h"
#include "weft/ir/intrinsics.h"
#include "weft/ir/text.h"
#include "weft/ir/visit.h"
#include "weft/targets/qpu/tensor/lowerer.h"
#include "weft/targets/qpu/tensor/peel.h"

namespace weft::qpu::tensor {

using namespace ir;
using ast::Compare;
using ast::Op;
using stages::has_loads;
using stages::join_conditions;
using stages::linear_in;
using stages::slack;

namespace {
constexpr std::int64_t kMaxRegisters = 256;  // words of one local buffer, spilled beyond the file
constexpr std::int64_t kMaxUnroll = 256;
}  // namespace

Lowerer::Lowerer(const PrimFunc& kernel) : kernel_(kernel) {}

std::unique_ptr<ast::Program> Lowerer::run() {
  const auto* launch = as<LaunchNode>(kernel_->body);
  WEFT_CHECK(launch && launch->axes.size() == 2, "kernel ", kernel_->name,
             " is no launch over qpu and lane");
  auto uniform = [&](std::uint32_t n) { return b_.expr(Op::uniform, nullptr, nullptr, n); };
  for (const Param& p : kernel_->params) {
    if (p.buffer) {
      pointers_[p.buffer.get()] = uniform(b_.parameter(ast::Param::Kind::pointer));
      continue;
    }
    auto kind = p.var->dtype.is_float() ? ast::Param::Kind::real : ast::Param::Kind::integer;
    vars_[p.var.get()] = uniform(b_.parameter(kind));
  }
  for_each_stmt(kernel_->body, [&](const Stmt& s) {
    if (const auto* t = as<StoreNode>(s); t && t->buffer->scope != "local")
      stored_.insert(t->buffer.get());
  });
  const LaunchAxis &qpu = launch->axes[0], &lane = launch->axes[1];
  vars_[qpu.var.get()] = uniform(0);
  analyzer_.bind(qpu.var, {make_int(0), qpu.extent});
  lane_ = lane.var;
  if (!is_const_int(lane.extent, &lanes_) || lanes_ < 1 || lanes_ > 16)
    refuse("lanes", cat("axis \"lane\" of ", kernel_->name, " has extent ", print(lane.extent),
                        "; legal are constants from 1 to 16"));
  analyzer_.bind(lane.var, {make_int(0), lane.extent});
  if (lanes_ == 1) {
    vars_[lane_.get()] = constant(0);
  } else {
    vars_[lane_.get()] = b_.expr(Op::element);
    varying_.insert(lane_.get());
  }
  if (lanes_ > 1 && lanes_ < 16) {
    const ast::Bool* inside = compare(Compare::lt, b_.expr(Op::element), constant(lanes_));
    mask_.lanes = keep(b_.select(inside, constant(1), constant(0)));
    mask_.counts = {constant(lanes_)};
    vars_[lane_.get()] = clamped_lane(mask_);
  }
  statement(launch->body);
  return b_.finish(kernel_->name);
}

std::uint32_t Lowerer::fresh(Value value) {
  std::uint32_t v = b_.fresh();
  assign(v, value);
  return v;
}

void Lowerer::assign(std::uint32_t v, Value value) { detail::assign(v, value); }

void Lowerer::assign_masked(std::uint32_t v, Value value, const Mask& mask) {
  Value kept = keep(value);
  b_.open(ast::Stmt::Op::where, active(mask), false);
  assign(v, kept);
  b_.close();
}

void Lowerer::statement(const Stmt& s) {
  if (!s) return;
  Stmt outer = std::exchange(now_, s);
  switch (s->kind) {
    case StmtKind::seq:
      for (std::size_t i = 0; i < as<SeqNode>(s)->stmts.size(); ++i) {
        read_ahead(as<SeqNode>(s)->stmts, i);
        statement(as<SeqNode>(s)->stmts[i]);
      }
      break;
    case StmtKind::store: store(as<StoreNode>(s)); break;
    case StmtKind::if_: branch(as<IfNode>(s)); break;
    case StmtKind::for_: loop(as<ForNode>(s)); break;
    case StmtKind::while_: while_loop(as<WhileNode>(s)); break;
    case StmtKind::allocate: allocate(as<AllocateNode>(s)); break;
    case StmtKind::let: {
      const auto* t = as<LetStmtNode>(s);
      bool index = t->value->dtype.is_integral() && !has_loads(t->value);
      if (index && varying(t->value)) {  // lanes' distances stay visible
        statement(substitute(t->body, {{t->var.get(), t->value}}));
        break;
      }
      fetch(t->value);
      if (varying(t->value)) varying_.insert(t->var.get());
      vars_[t->var.get()] = keep(eval(t->value));
      loaded_.clear();
      if (index) {
        arith::Bounds b = analyzer_.bounds(t->value);
        if (b.bounded())
          analyzer_.bind(
              t->var, {make_int(b.min, t->var->dtype), make_int(b.max - b.min + 1, t->var->dtype)});
      }
      statement(t->body);
      break;
    }
    case StmtKind::evaluate: {
      const Expr& value = as<EvaluateNode>(s)->value;
      const auto* c = as<CallNode>(value);
      if (c && c->op == "sync") {
        if (mask_.depth > 0) refuse("barrier", "a barrier under a condition that differs by lane");
        barrier();
        break;
      }
      if (is_pure(value) || (c && c->op == "prefetch")) break;
      refuse("statement", cat("\"", print(value), "\" has no meaning on the QPU"));
    }
    default: refuse("statement", "a statement of this kind has no form on the QPU");
  }
  now_ = std::move(outer);
}

void Lowerer::store(const StoreNode* s) {
  for (const Expr& i : s->indices) collect(i, mask_);
  collect(s->value, mask_);
  receive_all();
  if (s->buffer->scope == "local") {
    std::uint32_t v = local(s->buffer, s->indices);
    // Lanes that were out when the registers began are never looked at.
    if (mask_.lanes && mask_.depth > locals_.at(s->buffer.get()).depth)
      assign_masked(v, eval(s->value), mask_);
    else assign(v, eval(s->value));
  } else {
    if (s->buffer->dtype.bits != 32)
      refuse("store", cat("\"", s->buffer->name, "\" holds ", to_string(s->buffer->dtype),
                          "; the QPU stores words of 32 bits"));
    auto found = streams_.find(s);
    write(s, found != streams_.end() ? found->second : address(s->buffer, s->indices[0]));
  }
  loaded_.clear();
}

void Lowerer::allocate(const AllocateNode* s) {
  if (s->buffer->scope != "local")
    refuse("scope", cat("\"", s->buffer->name, "\" of scope \"", s->buffer->scope,
                        "\" cannot be allocated inside a kernel; legal is \"local\""));
  std::int64_t n = 1;
  for (const Expr& e : s->buffer->shape) {
    std::int64_t extent = 0;
    if (!is_const_int(e, &extent) || extent < 1 || (n *= extent) > kMaxRegisters)
      refuse("local", cat("\"", s->buffer->name, "\" has ", print(e),
                          " elements; registers hold a constant number, at most ", kMaxRegisters));
  }
  Registers r;
  r.depth = mask_.depth;
  for (std::int64_t i = 0; i < n; ++i) r.vars.push_back(fresh(constant(0)));
  locals_[s->buffer.get()] = std::move(r);
  statement(s->body);
}

Value Lowerer::count_of(const Mask& mask) {
  Value count = nullptr;
  for (Value n : mask.counts) count = count ? op(Op::min, count, n) : n;
  return count;
}

Value Lowerer::clamped_lane(const Mask& mask) {
  const Value count = count_of(mask), lane = b_.expr(Op::element);
  if (count->op == Op::constant) return keep(op(Op::min, lane, constant(count->value - 1)));
  return keep(
      op(Op::min, lane, op(Op::sub, keep(b_.expr(Op::broadcast, keep(count))), constant(1))));
}

void Lowerer::with_mask(Mask mask, const Stmt& body, bool certain) {
  const Scope scope(*this);
  if (!certain) open_if(active(mask));
  Mask outer = std::exchange(mask_, std::move(mask));
  const Value lane = vars_.at(lane_.get());
  if (mask_.prefix) vars_[lane_.get()] = clamped_lane(mask_);
  statement(body);
  vars_[lane_.get()] = lane;
  mask_ = std::move(outer);
  if (!certain) b_.close();
}

void Lowerer::branch(const IfNode* s) {
  std::vector<Expr> same, differ, first, later;
  const Exprs all = conjuncts(s->condition);
  if (all.empty()) return statement(s->then_case);  // always
  // What a condition may read only where those before it hold.
  for (const Expr& c : all) (reads_inside(c) ? first : later).push_back(c);
  if (first.empty() && later.size() > 1) first = {later[0]}, later.erase(later.begin());
  if (!first.empty() && !later.empty() && !s->else_case) {
    branch(
        as<IfNode>(if_then(join_conditions(first), if_then(join_conditions(later), s->then_case))));
    return;
  }
  if (first.empty() || later.empty()) first = all;
  else first = {s->condition};
  for (const Expr& c : first) (varying(c) ? differ : same).push_back(c);
  if (!same.empty() && !differ.empty() && s->else_case) {
    differ.insert(differ.begin(), same.begin(), same.end());
    same.clear();
  }
  if (!same.empty()) {
    Expr every = join_conditions(same);
    fetch(every);
    open_if(condition(every));
    loaded_.clear();
    if (differ.empty()) {
      {
        const Scope scope(*this);
        statement(s->then_case);
      }
      if (s->else_case) {
        const Scope scope(*this);
        b_.otherwise();
        statement(s->else_case);
      }
    } else {
      const Scope scope(*this);
      branch(as<IfNode>(if_then(join_conditions(differ), s->then_case)));
    }
    b_.close();
    return;
  }
  Mask inside = mask_;
  inside.depth++;
  const ast::Bool* holds = nullptr;
  bool certain = inside.prefix;
  for (const Expr& c : differ) {
    fetch(c);
    holds = both(holds, condition(c));
    const auto* equal = as<BinaryNode>(c);
    Expr room = slack(c);
    Value count = nullptr;
    if (equal && equal->kind == ExprKind::eq && arith::is_index_type(equal->a->dtype)) {
      auto l = linear_in(equal->a - equal->b, lane_.get());
      if (l && l->constant(1) && l->base.is_constant() && l->base.constant == 0)
        count = constant(1);  // lane 0 alone, which an outer mask of the first lanes has
    } else if (room && !has_loads(room)) {
      auto l = linear_in(room, lane_.get());
      if (l && l->constant(-1) && !varying(arith::to_expr(l->base, dtypes::int64))) {
        const Expr lanes = analyzer_.simplify(arith::to_expr(l->base, dtypes::int64));
        std::int64_t n = 0;
        count = is_const_int(lanes, &n) ? constant(n) : keep(eval(room));  // lane 0 sees how many
        certain = certain && analyzer_.prove_at_least(lanes, 1);
      }
    }
    if (count) inside.counts.push_back(count);
    else inside.prefix = certain = false;
  }
  if (inside.counts.size() > 1) {
    for (Value c : inside.counts)
      if (c->op == Op::constant && c->value == 1) inside.counts = {c};
  }
  if (mask_.lanes) holds = both(active(mask_), holds);
  inside.lanes = keep(b_.select(holds, constant(1), constant(0)));
  loaded_.clear();
  Mask outside = mask_;
  if (s->else_case) {
    outside.depth++;
    outside.prefix = false;
    outside.lanes = keep(op(Op::sub, mask_.lanes ? mask_.lanes : constant(1), inside.lanes));
  }
  with_mask(std::move(inside), s->then_case, certain);
  if (s->else_case) with_mask(std::move(outside), s->else_case);
}

bool Lowerer::must_unroll(const ForNode* s) const {
  bool needed = false;
  auto index = [&](const Buffer& b, const Exprs& indices) {
    if (b->scope != "local") return;
    for (const Expr& i : indices) needed = needed || uses_var(i, s->var.get());
  };
  for_each_stmt(s->body, [&](const Stmt& t) {
    if (const auto* st = as<StoreNode>(t)) index(st->buffer, st->indices);
  });
  for_each_expr(s->body, [&](const Expr& e) {
    if (const auto* l = as<LoadNode>(e)) index(l->buffer, l->indices);
  });
  return needed;
}

void Lowerer::loop(const ForNode* s) {
  if (s->for_kind == ForKind::bound)
    refuse("axis", cat("loop \"", s->var->name, "\" is bound to \"", s->axis, "\""));
  std::int64_t n = 0, first = 0;
  bool constant_trip = is_const_int(s->extent, &n);
  if (constant_trip && n <= 0) return;
  bool small = constant_trip && is_const_int(s->min, &first) && n <= kMaxUnroll;
  if ((constant_trip && n == 1) || (small && must_unroll(s))) {
    std::vector<Stmt> steps;
    for (std::int64_t i = 0; i < n; ++i) {
      Expr value = s->min + make_int(i, s->var->dtype);
      steps.push_back(substitute(s->body, {{s->var.get(), analyzer_.simplify(value)}}));
    }
    tails_.push_back(seq(std::move(steps)));
    return statement(tails_.back());
  }
  const Scope scope(*this);
  if (varying(s->min) || varying(s->extent)) return masked_loop(s);
  if (rounds(s) || pipeline(s)) return;
  if (find_annotation(s->annotations, kPartialLast)) {
    const Stmt unmarked = make_for(s->var, s->min, s->extent, s->body, s->for_kind);
    tails_.push_back(unmarked);
    tails_.push_back(peel(as<ForNode>(unmarked), {"lane", lane_, make_int(lanes_)}));
    return statement(tails_.back());
  }
  fetch(s->min);
  collect(s->extent, mask_);
  receive_all();
  std::uint32_t x = fresh(eval(s->min));
  Value end = keep(op(Op::add, eval(s->min), eval(s->extent)));
  loaded_.clear();
  analyzer_.bind(s->var, {s->min, s->extent});
  vars_[s->var.get()] = var(x);
  open_while(compare(Compare::lt, var(x), end));
  statement(s->body);
  assign(x, op(Op::add, var(x), constant(1)));
  b_.close();
}

/// Lanes leave one by one.
void Lowerer::masked_loop(const ForNode* s) {
  fetch(s->min);
  collect(s->extent, mask_);
  receive_all();
  std::uint32_t x = fresh(eval(s->min));
  Value end = keep(op(Op::add, var(x), eval(s->extent)));
  loaded_.clear();
  varying_.insert(s->var.get());
  vars_[s->var.get()] = var(x);
  analyzer_.bind(s->var, {s->min, s->extent});
  Mask inside = mask_;
  inside.depth++;
  inside.prefix = false;
  auto runs = [&] {
    const ast::Bool* more = compare(Compare::lt, var(x), end);
    return b_.select(mask_.lanes ? both(active(mask_), more) : more, constant(1), constant(0));
  };
  std::uint32_t on = fresh(runs());
  inside.lanes = var(on);
  open_while(active(inside));
  Mask outer = std::exchange(mask_, inside);
  statement(s->body);
  mask_ = std::move(outer);
  assign(x, op(Op::add, var(x), constant(1)));
  assign(on, runs());
  b_.close();
}

void Lowerer::while_loop(const WhileNode* s) {
  const Scope scope(*this);
  Mask inside = mask_;
  inside.depth++;
  inside.prefix = false;
  auto runs = [&](std::uint32_t on) {
    // Lanes that have left stay out.
    fetch(s->condition);
    const ast::Bool* more =
        both(compare(Compare::ne, var(on), constant(0)), condition(s->condition));
    assign(on, b_.select(more, constant(1), constant(0)));
    loaded_.clear();
  };
  std::uint32_t on = fresh(mask_.lanes ? mask_.lanes : constant(1));
  runs(on);
  inside.lanes = var(on);
  open_while(active(inside));
  Mask outer = std::exchange(mask_, inside);
  statement(s->body);
  runs(on);
  mask_ = std::move(outer);
  b_.close();
}

std::unique_ptr<ast::Program> lower_kernel(const PrimFunc& kernel) { return Lowerer(kernel).run(); }

}  // namespace weft::qpu::tensor
