// SPDX-License-Identifier: Apache-2.0
// Memory: reads through the TMU, four in flight; reads of what this kernel stores through the VPM,
// which is coherent; stores as one DMA of exactly the active lanes.

#include "weft/base/error.h"
#include "weft/ir/compare.h"
#include "weft/ir/text.h"
#include "weft/ir/visit.h"
#include "weft/targets/qpu/tensor/lowerer.h"

namespace weft::qpu::tensor {

using namespace ir;
using ast::Compare;
using ast::Op;
using stages::has_loads;
using stages::linear_in;

namespace {
constexpr std::size_t kInFlight = 4;  // requests that a TMU holds
constexpr std::size_t kAhead = 4;     // words of later statements that registers hold
constexpr std::size_t kKnown = 24;    // reads that are remembered
}  // namespace

std::uint32_t Lowerer::local(const Buffer& buffer, const Exprs& indices) {
  auto found = locals_.find(buffer.get());
  std::int64_t i = 0;
  Expr index = indices.size() == 1 ? analyzer_.simplify(indices[0]) : nullptr;
  if (found == locals_.end() || !is_const_int(index, &i) || i < 0 ||
      static_cast<std::size_t>(i) >= found->second.vars.size()) {
    refuse("local", cat("element ", index ? print(index) : std::string("?"), " of \"", buffer->name,
                        "\" is no register: its index must be constant once loops are unrolled"));
  }
  return found->second.vars[static_cast<std::size_t>(i)];
}

Value Lowerer::address(const Buffer& buffer, const Expr& index) {
  auto found = pointers_.find(buffer.get());
  if (found == pointers_.end())
    refuse("scope", cat("\"", buffer->name, "\" of scope \"", buffer->scope,
                        "\" has no place in device memory"));
  return op(Op::add, found->second, op(Op::shl, eval(index), constant(2)));
}

/// The address for lanes that take part; the others get that of one that does, so that nothing is
/// read that this kernel has no business with.
Value Lowerer::safe(Value address, const Expr& index, const Mask& mask) {
  if (!mask.lanes || !varying(index)) return address;
  if (mask.prefix && varies_by_lane_alone(index)) return address;  // the lane's number is clamped
  address = keep(address);
  Value other;
  if (mask.prefix) {
    other = b_.expr(Op::broadcast, address);
  } else {  // the lowest of them
    other = b_.select(active(mask), address, constant(0x7fffffff));
    for (int n : {8, 4, 2, 1}) {
      other = keep(other);
      other = op(Op::min, other, op(Op::rotate, other, constant(n)));
    }
  }
  return b_.select(active(mask), address, keep(other));
}

void Lowerer::fetch(const Expr& e) {
  collect(e, mask_);
  receive_all();
}

const ast::Bool* Lowerer::opposite(const ast::Bool* b) {
  return b_.boolean({ast::Bool::Op::negate, {}, {}, nullptr, nullptr, b, nullptr});
}

/// Whether all that is read lies in its buffer, wherever the point is.
bool Lowerer::reads_inside(const Expr& e) {
  bool inside = true;
  for_each_expr(e, [&](const Expr& x) {
    const auto* l = as<LoadNode>(x);
    std::int64_t words = 0;
    if (!l || l->buffer->scope == "local" || !inside) return;
    inside = l->indices.size() == 1 && is_const_int(l->buffer->shape[0], &words);
    if (!inside) return;
    const arith::Bounds b = analyzer_.bounds(l->indices[0]);
    inside = b.bounded() && b.min >= 0 && b.max < words;
  });
  return inside;
}

/// Reads of one arm happen in its lanes only; without any, not at all.
void Lowerer::collect_where(const Expr& e, const ast::Bool* when, const Mask& mask) {
  if (!has_loads(e)) return collect(e, mask);
  receive_all();
  Mask inside = mask;
  const ast::Bool* where = both(when, mask.lanes ? active(mask) : nullptr);
  inside.lanes = keep(b_.select(where, constant(1), constant(0)));
  inside.depth++;
  inside.prefix = false;
  open_if(active(inside));
  const Scope scope(*this);
  collect(e, inside);
  receive_all();
  b_.close();
}

void Lowerer::collect(const Expr& e, const Mask& mask) {
  if (!e) return;
  switch (e->kind) {
    case ExprKind::load: {
      const auto* l = as<LoadNode>(e);
      if (l->buffer->scope == "local" || loaded_.count(l)) return;
      for (const Expr& i : l->indices) collect(i, mask);
      if (has_loads(l->indices[0])) receive_all();
      request(l, mask);
      return;
    }
    case ExprKind::cast: return collect(as<CastNode>(e)->value, mask);
    case ExprKind::not_: return collect(as<NotNode>(e)->a, mask);
    case ExprKind::select:
      collect(as<SelectNode>(e)->condition, mask);
      collect(as<SelectNode>(e)->a, mask);
      collect(as<SelectNode>(e)->b, mask);
      return;
    case ExprKind::let: {
      const auto* l = as<LetNode>(e);
      collect(l->value, mask);
      receive_all();
      vars_[l->var.get()] = keep(eval(l->value));
      if (varying(l->value)) varying_.insert(l->var.get());
      return collect(l->body, mask);
    }
    case ExprKind::call: {
      const auto* c = as<CallNode>(e);
      if (c->op == "if_then_else" && (has_loads(c->args[1]) || has_loads(c->args[2]))) {
        collect(c->args[0], mask);
        receive_all();
        const ast::Bool* yes = condition(c->args[0]);
        const ast::Bool* no = opposite(yes);
        collect_where(c->args[1], yes, mask);
        collect_where(c->args[2], no, mask);
        return;
      }
      for (const Expr& a : c->args) collect(a, mask);
      return;
    }
    default:
      if (const auto* b = as<BinaryNode>(e)) {
        collect(b->a, mask);
        const bool both_hold = e->kind == ExprKind::and_;
        if ((both_hold || e->kind == ExprKind::or_) && !reads_inside(b->b)) {
          receive_all();
          const ast::Bool* first = condition(b->a);
          return collect_where(b->b, both_hold ? first : opposite(first), mask);
        }
        collect(b->b, mask);
      }
  }
}

void Lowerer::request(const LoadNode* l, const Mask& mask) {
  if (l->indices.size() != 1 || !l->dtype.is_scalar() || l->dtype.bits != 32)
    refuse("load", cat("\"", print(Expr(l)), "\" reads ", to_string(l->dtype),
                       "; the QPU reads words of 32 bits"));
  if (stored_.count(l->buffer.get())) {
    receive_all();
    loaded_[l] = coherent(l, mask);
    return;
  }
  for (const Known& k : known_) {
    if (k.buffer == l->buffer && (!k.lanes || k.lanes == mask.lanes || !varying(l->indices[0])) &&
        same_expr(k.index, l->indices[0])) {
      loaded_[l] = k.value;
      return;
    }
  }
  for (const Load& p : pending_) {
    if (p.node->buffer == l->buffer && same_expr(p.node->indices[0], l->indices[0]) &&
        p.mask.lanes == mask.lanes) {
      loaded_[l] = var(p.var);
      return;
    }
  }
  Load load{l, safe(address(l->buffer, l->indices[0]), l->indices[0], mask), b_.fresh(), mask};
  loaded_[l] = var(load.var);
  pending_.push_back(load);
  if (known_.size() < kKnown && !has_loads(l->indices[0]))
    known_.push_back({l->buffer, l->indices[0], mask.lanes, loaded_[l]});
}

void Lowerer::read_ahead(const std::vector<Stmt>& list, std::size_t from) {
  for (std::size_t i = from; i < list.size() && pending_.size() < kAhead; ++i) {
    const auto* s = as<StoreNode>(list[i]);
    bool plain = s != nullptr;
    std::vector<const LoadNode*> loads;
    if (s) {
      for_each_expr(s->value, [&](const Expr& e) {
        const auto* c = as<CallNode>(e);
        plain = plain && e->kind != ExprKind::let && !(c && c->op == "if_then_else");
        const auto* l = as<LoadNode>(e);
        if (!l || l->buffer->scope == "local") return;
        plain = plain && l->indices.size() == 1 && !has_loads(l->indices[0]) &&
                !stored_.count(l->buffer.get());
        loads.push_back(l);
      });
    }
    if (!plain) break;
    for (const LoadNode* l : loads)
      if (!loaded_.count(l)) request(l, mask_);
  }
  receive_all();
}

void Lowerer::receive_all() {
  std::size_t sent = 0;
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    for (; sent < pending_.size() && sent < i + kInFlight; ++sent)
      b_.append(ast::Stmt::Op::gather).address = pending_[sent].address;
    b_.append(ast::Stmt::Op::receive).var = pending_[i].var;
  }
  pending_.clear();
}

/// Memory that this kernel stores to: through the VPM, after its own stores.
Value Lowerer::coherent(const LoadNode* l, const Mask& mask) {
  Value a = keep(address(l->buffer, l->indices[0]));
  b_.append(ast::Stmt::Op::flush);
  if (!varying(l->indices[0]))
    return keep(b_.expr(Op::broadcast, keep(op(Op::vload, a, constant(1)))));
  auto by_lane = linear_in(l->indices[0], lane_.get());
  if (by_lane && by_lane->constant(1) && (!mask.lanes || mask.prefix)) {
    Value n = constant(16);
    for (Value count : mask.counts) n = op(Op::min, n, count);
    return keep(op(Op::vload, a, keep(n)));
  }
  // Lane by lane: what is lane 0's turn moves down.
  std::uint32_t result = fresh(constant(0)), turn = fresh(constant(0)), at = fresh(a),
                on = fresh(mask.lanes ? mask.lanes : constant(1));
  open_while(compare(Compare::lt, var(turn), constant(16)));
  Value here = keep(b_.expr(Op::broadcast, var(on)));
  open_if(compare(Compare::ne, here, constant(0)));
  Value got = keep(b_.expr(Op::broadcast, keep(op(Op::vload, var(at), constant(1)))));
  Value lane = b_.expr(Op::element);
  assign(result, b_.select(compare(Compare::eq, lane, var(turn)), got, var(result)));
  b_.close();
  assign(at, op(Op::rotate, var(at), constant(15)));
  assign(on, op(Op::rotate, var(on), constant(15)));
  assign(turn, op(Op::add, var(turn), constant(1)));
  b_.close();
  return var(result);
}

void Lowerer::put(Value value, Value address, Value count) {
  ast::Stmt& s = b_.append(ast::Stmt::Op::store);
  s.value = value;
  s.address = address;
  s.count = count;
}

/// One word per active lane, in the order of lanes.
void Lowerer::scatter(Value value, Value address) {
  std::uint32_t v = fresh(value), a = fresh(address), turn = fresh(constant(0)),
                on = fresh(mask_.lanes ? mask_.lanes : constant(1));
  open_while(compare(Compare::lt, var(turn), constant(16)));
  put(var(v), var(a), var(on));
  for (std::uint32_t x : {v, a, on}) assign(x, op(Op::rotate, var(x), constant(15)));
  assign(turn, op(Op::add, var(turn), constant(1)));
  b_.close();
}

void Lowerer::write(const StoreNode* s, Value address) {
  Value value = eval(s->value);
  const Expr& index = s->indices[0];
  const Value count = count_of(mask_);
  bool prefix = !mask_.lanes || mask_.prefix;
  bool one = mask_.counts.size() == 1 && mask_.counts[0]->op == Op::constant &&
             mask_.counts[0]->value == 1 && mask_.prefix;
  if (one || (!varying(index) && !varying(s->value) && prefix))
    return put(value, address, constant(1));
  auto by_lane = linear_in(index, lane_.get());
  bool stands = by_lane && by_lane->constant(0) && !varying(index);
  if (by_lane && by_lane->constant(1) && prefix) return put(value, address, count);
  value = keep(value);
  address = keep(address);
  bool known = by_lane && by_lane->coeff.is_constant();
  if (!prefix || stands || known || !by_lane) return scatter(value, address);
  // The distance between lanes is known at run time only.
  Value from = keep(op(Op::sub, address, op(Op::shl, vars_.at(lane_.get()), constant(2))));
  Value first = keep(b_.expr(Op::broadcast, from));
  b_.open(ast::Stmt::Op::if_, compare(Compare::eq, from, first), true);
  put(value, address, count);
  b_.otherwise();
  scatter(value, address);
  b_.close();
}

}  // namespace weft::qpu::tensor
