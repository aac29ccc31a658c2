// SPDX-License-Identifier: Apache-2.0
// Innermost loops of straight code: addresses move by additions, what a step reads was asked for
// steps before (streams alternate between the two TMUs, at most four requests in flight each), the
// last steps ask for nothing.

#include <algorithm>

#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/ir/visit.h"
#include "weft/targets/qpu/tensor/lowerer.h"

namespace weft::qpu::tensor {

using namespace ir;
using ast::Compare;
using ast::Op;
using stages::has_loads;
using stages::linear_in;

namespace {
constexpr std::size_t kInFlight = 4, kMaxStreams = 20;  // requests per TMU

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

bool Lowerer::pipeline(const ForNode* s) {
  std::vector<Stmt> body;
  if (const auto* list = as<SeqNode>(s->body)) body = list->stmts;
  else body = {s->body};
  std::vector<Stream> loads, stores;
  std::vector<const LoadNode*> twins;  // read what another stream of `loads` reads
  auto linear = [&](const Buffer& b, const Exprs& indices) {
    if (indices.size() != 1 || has_loads(indices[0])) return false;
    auto l = linear_in(indices[0], s->var.get());
    return l && (!l->coeff.is_constant() || l->coeff.constant >= 0 || !mask_.lanes) &&
           !uses_var(arith::to_expr(l->coeff, dtypes::int64), s->var.get()) && b->dtype.bits == 32;
  };
  for (const Stmt& t : body) {
    const auto* st = as<StoreNode>(t);
    if (!st || lazy_loads(st->value) || has_loads(st->indices[0])) return false;
    if (st->buffer->scope != "local") {
      if (!linear(st->buffer, st->indices)) return false;
      stores.push_back({nullptr, st});
    }
    bool good = true;
    for_each_expr(st->value, [&](const Expr& e) {
      const auto* l = as<LoadNode>(e);
      if (!l || l->buffer->scope == "local") return;
      if (stored_.count(l->buffer.get()) || !linear(l->buffer, l->indices)) good = false;
      for (std::size_t i = 0; good && i < loads.size(); ++i) {
        if (loads[i].node == l) return;
        if (loads[i].node->buffer == l->buffer &&
            same_expr(loads[i].node->indices[0], l->indices[0])) {
          twins.push_back(l);
          return;
        }
      }
      if (good) loads.push_back({l});
    });
    if (!good) return false;
  }
  if (loads.empty() || loads.size() + stores.size() > kMaxStreams || has_loads(s->min) ||
      has_loads(s->extent))
    return false;

  Value begin = keep(eval(s->min)), end = keep(op(Op::add, begin, eval(s->extent)));
  analyzer_.bind(s->var, {s->min, s->extent});
  open_if(compare(Compare::lt, begin, end));
  std::uint32_t x = fresh(begin);
  vars_[s->var.get()] = var(x);
  auto start = [&](Stream& stream, const Buffer& b, const Expr& index) {
    auto l = linear_in(index, s->var.get());
    Value at = address(b, index);
    if (stream.node) at = safe(at, index, mask_);
    stream.pointer = fresh(at);
    if (l->constant(0)) return;
    Value step = op(Op::shl, eval(arith::to_expr(l->coeff, dtypes::int64)), constant(2));
    bool varies = varying(arith::to_expr(l->coeff, dtypes::int64));
    if (mask_.lanes && (!mask_.prefix || varies))
      step = b_.select(active(mask_), step, constant(0));
    stream.step = step->op == Op::constant ? step : keep(step);
  };
  for (Stream& t : loads) start(t, t.node->buffer, t.node->indices[0]);
  for (Stream& t : stores) start(t, t.store->buffer, t.store->indices[0]);
  // Streams that stand still are read once.
  std::stable_partition(loads.begin(), loads.end(), [](const Stream& t) { return t.step; });
  std::vector<Stream*> moving;
  std::vector<Stream> fixed;
  for (Stream& t : loads) {
    t.value = b_.fresh();
    if (t.step) moving.push_back(&t);
    else fixed.push_back(t);
  }
  // Stream number j of its list asks TMU j mod 2. Nothing else reads through TMU1 meanwhile: an
  // expression that does would take a stream's result.
  auto ask = [&](const Stream& t, std::size_t j) { Lowerer::ask(t.pointer, j % 2 != 0); };
  auto take = [&](const Stream& t, std::size_t j) { Lowerer::take(t.value, j % 2 != 0); };
  auto advance = [&](const Stream& t) { assign(t.pointer, op(Op::add, var(t.pointer), t.step)); };
  for (std::size_t i = 0, sent = 0; i < fixed.size(); ++i) {
    for (; sent < fixed.size() && sent < i + kInFlight; ++sent) ask(fixed[sent], 0);
    take(fixed[i], 0);
  }
  auto compute = [&] {
    for (const Stmt& t : body) {
      const auto* st = as<StoreNode>(t);
      loaded_.clear();
      for (const Stream& l : loads) loaded_[l.node] = var(l.value);
      for (const LoadNode* twin : twins) {
        for (const Stream& l : loads) {
          if (l.node->buffer == twin->buffer && same_expr(l.node->indices[0], twin->indices[0]))
            loaded_[twin] = var(l.value);
        }
      }
      for (const Stream& o : stores)
        if (o.store == st) streams_[st] = var(o.pointer);
      Stmt outer = std::exchange(now_, t);
      store(st);
      now_ = std::move(outer);
    }
  };
  auto next = [&] {
    for (const Stream& o : stores)
      if (o.step) advance(o);
    assign(x, op(Op::add, var(x), constant(1)));
  };
  std::int64_t n = 0;
  bool known = is_const_int(s->extent, &n);
  const std::size_t count = moving.size();
  const std::size_t most = (count + 1) / 2;  // streams of one TMU
  const auto steps = static_cast<std::int64_t>(count ? kInFlight / most : 0);
  if (steps > 1 && !(known && n < 2 * steps)) {
    // Few streams: several steps ahead. Pointers stand at what is asked for next.
    auto ask_all = [&] {
      for (std::size_t j = 0; j < count; ++j) {
        ask(*moving[j], j);
        advance(*moving[j]);
      }
    };
    Value early = keep(op(Op::min, op(Op::add, begin, constant(steps)), end));
    std::uint32_t asked = fresh(begin);
    open_while(compare(Compare::lt, var(asked), early));
    ask_all();
    assign(asked, op(Op::add, var(asked), constant(1)));
    b_.close();
    Value last = keep(op(Op::sub, end, constant(steps)));
    open_while(compare(Compare::lt, var(x), last));
    for (std::size_t j = 0; j < count; ++j) {
      take(*moving[j], j);
      ask(*moving[j], j);
      advance(*moving[j]);
    }
    compute();
    next();
    b_.close();
    open_while(compare(Compare::lt, var(x), end));
    for (std::size_t j = 0; j < count; ++j) take(*moving[j], j);
    compute();
    next();
    b_.close();
  } else {
    // Of an odd number of streams, the last and the first share a TMU and follow each other.
    const std::size_t ahead = std::min(2 * kInFlight - count % 2, count);
    for (std::size_t j = 0; j < ahead; ++j) ask(*moving[j], j);
    auto step = [&](bool more) {
      for (std::size_t j = 0; j < count; ++j) {
        take(*moving[j], j);
        std::size_t later = j + ahead;
        if (later < count) {
          ask(*moving[later], later);
        } else if (more) {
          advance(*moving[later - count]);
          ask(*moving[later - count], later - count);
        }
      }
      compute();
      if (!more) return;
      for (std::size_t j = ahead; j < count; ++j) advance(*moving[j]);
      next();
    };
    if (!known || n > 1) {
      Value last = keep(op(Op::sub, end, constant(1)));
      open_while(compare(Compare::lt, var(x), last));
      step(true);
      b_.close();
    }
    step(false);
  }
  for (const Stream& o : stores) streams_.erase(o.store);
  loaded_.clear();
  b_.close();
  return true;
}

}  // namespace weft::qpu::tensor
