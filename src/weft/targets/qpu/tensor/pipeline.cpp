// SPDX-License-Identifier: Apache-2.0
// Innermost loops of straight code: addresses move by additions, what a step reads was asked for
// steps before (streams alternate between the two TMUs, at most four requests in flight each), the
// last steps ask for nothing. A last step in which only the first lanes take part is one of them:
// on the way to it, the addresses of the other lanes fall back to that of the last one.

#include <algorithm>
#include <utility>

#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/ir/visit.h"
#include "weft/stages/conditions.h"
#include "weft/targets/qpu/tensor/lowerer.h"
#include "weft/targets/qpu/tensor/nest.h"

namespace weft::qpu::tensor {

using namespace ir;
using ast::Compare;
using ast::Op;
using stages::has_loads;
using stages::linear_in;
using stages::slack;

namespace {
constexpr std::size_t kRequestsOfTmu = 4, kMaxStreams = 20;  // requests per TMU

bool lazy_loads(const Expr& e) {
  bool found = false;
  for_each_expr(e, [&](const Expr& x) {
    const auto* c = as<CallNode>(x);
    found = found || x->kind == ExprKind::let ||
            (c && c->op == "if_then_else" && (has_loads(c->args[1]) || has_loads(c->args[2])));
  });
  return found;
}
}  // namespace

/// The condition of a loop's body where it holds for all lanes in all steps but the last, and there
/// for the first lanes, at least one: how many these are.
Expr Lowerer::last_lanes(const ForNode* s, const IfNode* guard) {
  const Expr room = guard->else_case ? Expr() : slack(guard->condition);
  std::int64_t steps = 0;
  if (!room || has_loads(room) || mask_.lanes || lanes_ != kLanes ||
      !is_const_int(s->extent, &steps) || steps < 2)
    return nullptr;
  const auto by_lane = linear_in(room, lane_.get());
  const auto by_step = linear_in(room, s->var.get());
  if (!by_lane || !by_lane->constant(-1) || !by_step || !by_step->coeff.is_constant() ||
      by_step->coeff.constant >= 0)
    return nullptr;
  auto at = [&](const Expr& step, std::int64_t lane) {
    return analyzer_.simplify(
        substitute(room, {{lane_.get(), make_int(lane, lane_->dtype)}, {s->var.get(), step}}));
  };
  const Expr end = s->min + s->extent, one = make_const(1, s->var->dtype);
  const Expr left = at(end - one, 0);
  if (varying(left) || !analyzer_.prove_at_least(left, 1) ||
      !analyzer_.prove_at_least(at(end - one - one, kLanes - 1), 1))
    return nullptr;
  return left;
}

/// What moves the addresses of streams to their next step: `step` elements, and to a step of few
/// lanes `lane` elements back for each lane that does not take part.
std::uint32_t Lowerer::Tail::hop(Lowerer& l, std::int64_t step, std::int64_t lane) {
  for (const Hop& h : hops)
    if (h.step == step && h.lane == lane) return h.now;
  Hop h{step, lane, l.fresh(l.constant(4 * step)), nullptr};
  h.last = l.keep(l.op(Op::sub, l.constant(4 * step),
                       l.op(Op::shl, l.op(Op::mul, l.var(over), l.constant(lane)), l.constant(2))));
  hops.push_back(h);
  return h.now;
}

bool Lowerer::read_streams(const ForNode* s, const std::vector<Stmt>& body, bool tail,
                           Streams& out) const {
  auto linear = [&](const Buffer& b, const Exprs& indices) {
    if (indices.size() != 1 || has_loads(indices[0])) return false;
    auto l = linear_in(indices[0], s->var.get());
    if (tail) {
      const auto by_lane = linear_in(indices[0], lane_.get());
      if (!l || !l->coeff.is_constant() || !by_lane || !by_lane->coeff.is_constant() ||
          !varies_by_lane_alone(indices[0]))
        return false;
    }
    return l && (!l->coeff.is_constant() || l->coeff.constant >= 0 || !mask_.lanes) &&
           !uses_var(arith::to_expr(l->coeff, dtypes::int64), s->var.get()) && b->dtype.bits == 32;
  };
  for (const Stmt& t : body) {
    const auto* st = as<StoreNode>(t);
    if (!st || lazy_loads(st->value) || has_loads(st->indices[0])) return false;
    if (st->buffer->scope != "local") {
      if (!linear(st->buffer, st->indices)) return false;
      out.stores.push_back({nullptr, st});
    }
    bool good = true;
    for_each_expr(st->value, [&](const Expr& e) {
      const auto* l = as<LoadNode>(e);
      if (!l || l->buffer->scope == "local") return;
      if (stored_.count(l->buffer.get()) || !linear(l->buffer, l->indices)) good = false;
      for (std::size_t i = 0; good && i < out.loads.size(); ++i) {
        if (out.loads[i].node == l) return;
        if (out.loads[i].node->buffer == l->buffer &&
            same_expr(out.loads[i].node->indices[0], l->indices[0])) {
          out.twins.push_back(l);
          return;
        }
      }
      if (good) out.loads.push_back({l});
    });
    if (!good) return false;
  }
  return !out.loads.empty() && out.loads.size() + out.stores.size() <= kMaxStreams;
}

/// The mask and the lanes' numbers of a last step of few lanes.
void Lowerer::start_tail(Flow& flow) {
  std::int64_t n = 0;
  Tail& tail = flow.tail;
  const Value count = is_const_int(flow.left, &n) ? constant(n) : keep(eval(flow.left));
  tail.mask.depth = mask_.depth + 1;
  tail.mask.counts = {count};
  tail.lane = clamped_lane(tail.mask);
  tail.over = fresh(op(Op::sub, b_.expr(Op::element), tail.lane));
  tail.mask.lanes =
      keep(b_.select(compare(Compare::eq, var(tail.over), constant(0)), constant(1), constant(0)));
}

void Lowerer::start_stream(Flow& flow, Stream& stream, const Buffer& b, const Expr& index) {
  auto l = linear_in(index, flow.loop->var.get());
  Value at = address(b, index);
  if (stream.node) at = safe(at, index, mask_);
  stream.pointer = fresh(at);
  if (l->constant(0)) return;
  if (flow.left && stream.node) {
    const std::int64_t by_lane = linear_in(index, lane_.get())->coeff.constant;
    stream.step = var(flow.tail.hop(*this, l->coeff.constant, by_lane));
    return;
  }
  Value step = op(Op::shl, eval(arith::to_expr(l->coeff, dtypes::int64)), constant(2));
  bool varies = varying(arith::to_expr(l->coeff, dtypes::int64));
  if (mask_.lanes && (!mask_.prefix || varies)) step = b_.select(active(mask_), step, constant(0));
  stream.step = step->op == Op::constant ? step : keep(step);
}

/// Addresses of the first step; streams that stand still, which are read once, come last.
void Lowerer::start_streams(Flow& flow) {
  std::vector<Stream>& loads = flow.streams.loads;
  if (flow.left) start_tail(flow);
  for (Stream& t : loads) start_stream(flow, t, t.node->buffer, t.node->indices[0]);
  for (Stream& t : flow.streams.stores) start_stream(flow, t, t.store->buffer, t.store->indices[0]);
  std::stable_partition(loads.begin(), loads.end(), [](const Stream& t) { return t.step; });
  for (Stream& t : loads) {
    t.value = b_.fresh();
    flow.moving += t.step != nullptr;
  }
  for (std::size_t i = flow.moving, sent = i; i < loads.size(); ++i) {
    for (; sent < loads.size() && sent < i + kRequestsOfTmu; ++sent)
      ask(loads[sent].pointer, false);
    take(loads[i].value, false);
  }
  if (!flow.tail.hops.empty()) flow.last = keep(op(Op::sub, flow.end, constant(1)));
}

void Lowerer::compute_step(Flow& flow) {
  for (const Stmt& t : flow.body) {
    const auto* st = as<StoreNode>(t);
    loaded_.clear();
    for (const Stream& l : flow.streams.loads) loaded_[l.node] = var(l.value);
    for (const LoadNode* twin : flow.streams.twins) {
      for (const Stream& l : flow.streams.loads) {
        if (l.node->buffer == twin->buffer && same_expr(l.node->indices[0], twin->indices[0]))
          loaded_[twin] = var(l.value);
      }
    }
    for (const Stream& o : flow.streams.stores)
      if (o.store == st) streams_[st] = var(o.pointer);
    Stmt outer = std::exchange(now_, t);
    store(st);
    now_ = std::move(outer);
  }
}

/// The last step, in which few lanes may take part.
void Lowerer::compute_last(Flow& flow) {
  if (!flow.left) return compute_step(flow);
  const Value lane = std::exchange(vars_.at(lane_.get()), flow.tail.lane);
  std::swap(mask_, flow.tail.mask);
  compute_step(flow);
  std::swap(mask_, flow.tail.mask);
  vars_[lane_.get()] = lane;
}

/// Before addresses move to step `to`: whether that is the last.
void Lowerer::move_to(const Flow& flow, Value to) {
  if (flow.tail.hops.empty()) return;
  b_.open(ast::Stmt::Op::where, compare(Compare::eq, to, flow.last), false);
  for (const Tail::Hop& h : flow.tail.hops) assign(h.now, h.last);
  b_.close();
}

void Lowerer::advance(const Stream& t) { assign(t.pointer, op(Op::add, var(t.pointer), t.step)); }

void Lowerer::next_step(const Flow& flow) {
  for (const Stream& o : flow.streams.stores)
    if (o.step) advance(o);
  assign(flow.step, op(Op::add, var(flow.step), constant(1)));
}

/// Few streams: several steps ahead. Pointers stand at what is asked for next.
void Lowerer::run_far_ahead(Flow& flow, std::int64_t steps) {
  const std::vector<Stream>& loads = flow.streams.loads;
  auto ask_next = [&](std::size_t j) {
    ask(loads[j].pointer, j % 2 != 0);
    advance(loads[j]);
  };
  auto take_all = [&] {
    for (std::size_t j = 0; j < flow.moving; ++j) take(loads[j].value, j % 2 != 0);
  };
  Value early = keep(op(Op::min, op(Op::add, flow.begin, constant(steps)), flow.end));
  std::uint32_t asked = fresh(flow.begin);
  open_while(compare(Compare::lt, var(asked), early));
  assign(asked, op(Op::add, var(asked), constant(1)));
  move_to(flow, var(asked));
  for (std::size_t j = 0; j < flow.moving; ++j) ask_next(j);
  b_.close();
  Value last = keep(op(Op::sub, flow.end, constant(steps)));
  open_while(compare(Compare::lt, var(flow.step), last));
  move_to(flow, op(Op::add, var(flow.step), constant(steps + 1)));
  for (std::size_t j = 0; j < flow.moving; ++j) {
    take(loads[j].value, j % 2 != 0);
    ask_next(j);
  }
  compute_step(flow);
  next_step(flow);
  b_.close();
  const Value end = flow.left ? op(Op::sub, flow.end, constant(1)) : flow.end;
  open_while(compare(Compare::lt, var(flow.step), end));
  take_all();
  compute_step(flow);
  next_step(flow);
  b_.close();
  if (!flow.left) return;
  take_all();
  compute_last(flow);
}

void Lowerer::run_one_ahead(Flow& flow, bool once) {
  const std::vector<Stream>& loads = flow.streams.loads;
  const std::size_t count = flow.moving;
  auto ask_for = [&](std::size_t j) { ask(loads[j].pointer, j % 2 != 0); };
  // Of an odd number of streams, the last and the first share a TMU and follow each other.
  const std::size_t ahead = std::min(2 * kRequestsOfTmu - count % 2, count);
  for (std::size_t j = 0; j < ahead; ++j) ask_for(j);
  auto step = [&](bool more) {
    if (more) move_to(flow, op(Op::add, var(flow.step), constant(1)));
    for (std::size_t j = 0; j < count; ++j) {
      take(loads[j].value, j % 2 != 0);
      std::size_t later = j + ahead;
      if (later < count) {
        ask_for(later);
      } else if (more) {
        advance(loads[later - count]);
        ask_for(later - count);
      }
    }
    if (!more) return compute_last(flow);
    compute_step(flow);
    for (std::size_t j = ahead; j < count; ++j) advance(loads[j]);
    next_step(flow);
  };
  if (!once) {
    Value last = keep(op(Op::sub, flow.end, constant(1)));
    open_while(compare(Compare::lt, var(flow.step), last));
    step(true);
    b_.close();
  }
  step(false);
}

bool Lowerer::pipeline(const ForNode* s) {
  if (has_loads(s->min) || has_loads(s->extent)) return false;
  Flow flow;
  flow.loop = s;
  Stmt work = s->body;
  if (const auto* guard = as<IfNode>(work)) {
    flow.left = last_lanes(s, guard);
    if (!flow.left) return false;
    work = guard->then_case;
  }
  if (const auto* list = as<SeqNode>(work)) flow.body = list->stmts;
  else flow.body = {work};
  if (!read_streams(s, flow.body, bool(flow.left), flow.streams)) return false;

  flow.begin = keep(eval(s->min)), flow.end = keep(op(Op::add, flow.begin, eval(s->extent)));
  analyzer_.bind(s->var, {s->min, s->extent});
  open_if(compare(Compare::lt, flow.begin, flow.end));
  flow.step = fresh(flow.begin);
  vars_[s->var.get()] = var(flow.step);
  start_streams(flow);
  std::int64_t n = 0;
  const bool known = is_const_int(s->extent, &n);
  // Stream number j of the list asks TMU j mod 2. Nothing else reads through TMU1 meanwhile: an
  // expression that does would take a stream's result.
  const std::size_t most = (flow.moving + 1) / 2;  // streams of one TMU
  const auto steps = static_cast<std::int64_t>(flow.moving ? kRequestsOfTmu / most : 0);
  if (steps > 1 && !(known && n < 2 * steps)) run_far_ahead(flow, steps);
  else run_one_ahead(flow, known && n <= 1);
  for (const Stream& o : flow.streams.stores) streams_.erase(o.store);
  loaded_.clear();
  b_.close();
  return true;
}

}  // namespace weft::qpu::tensor
