// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/vta/value_of.h"

#include <algorithm>
#include <bit>

#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/ir/text.h"

namespace weft::vta {

using namespace ir;

namespace {

constexpr std::int64_t kLow = INT32_MIN, kHigh = INT32_MAX;

/// The range of an operation; everything when it may wrap.
void set_range(Value& v) {
  auto set = [&](std::int64_t low, std::int64_t high) {
    bool fits = low >= kLow && high <= kHigh;
    v.low = fits ? low : kLow, v.high = fits ? high : kHigh;
  };
  const Value &a = *v.a, &b = *v.b;
  switch (v.op) {
    case AluOp::add: return set(a.low + b.low, a.high + b.high);
    case AluOp::min: return set(std::min(a.low, b.low), std::min(a.high, b.high));
    case AluOp::max: return set(std::max(a.low, b.low), std::max(a.high, b.high));
    case AluOp::mul: {
      std::int64_t p[] = {a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high};
      return set(*std::min_element(p, p + 4), *std::max_element(p, p + 4));
    }
    case AluOp::shr:
      if (b.kind != Value::Kind::constant) return set(kLow, kHigh);
      if (b.number >= 0) return set(a.low >> b.number, a.high >> b.number);
      return set(a.low * (std::int64_t{1} << -b.number), a.high * (std::int64_t{1} << -b.number));
    default: return set(kLow, kHigh);
  }
}

/// The range of a value that was stored as this type.
void set_range(Value& v, DType t) {
  if (t.bits >= 32) return;
  v.low = t.is_uint() || t.is_bool() ? 0 : -(std::int64_t{1} << (t.bits - 1));
  v.high = v.low + (std::int64_t{1} << t.bits) - 1;
}

}  // namespace

ValuePtr make_constant(std::int64_t n) {
  auto v = std::make_shared<Value>();
  v->kind = Value::Kind::constant, v->number = v->low = v->high = n;
  return v;
}

ValuePtr make_op(AluOp op, ValuePtr a, ValuePtr b) {
  bool constants = a->kind == Value::Kind::constant && b->kind == Value::Kind::constant;
  auto v = std::make_shared<Value>();
  v->kind = Value::Kind::op, v->op = op, v->a = std::move(a), v->b = std::move(b);
  set_range(*v);
  if (constants && v->low == v->high) return make_constant(v->low);
  if (v->b->kind == Value::Kind::constant) {
    std::int64_t n = v->b->number;
    if ((op == AluOp::min && n >= v->a->high) || (op == AluOp::max && n <= v->a->low) ||
        (op == AluOp::add && n == 0) || (op == AluOp::shr && n == 0) ||
        (op == AluOp::mul && n == 1))
      return v->a;
  }
  return v;
}

ValuePtr narrowed(const ValuePtr& v, DType type) {
  if (type.bits >= 32 || type.is_float()) return v;
  const bool has_sign = !type.is_uint() && !type.is_bool();
  const std::int64_t middle = std::int64_t{1} << (type.bits - 1);
  const std::int64_t low = has_sign ? -middle : 0, high = low + 2 * middle - 1;
  if (v->low >= low && v->high <= high) return v;
  // Shifts to the right keep the sign, so an unsigned number is shifted below its middle and back.
  ValuePtr centred = has_sign ? v : make_op(AluOp::add, v, make_constant(-middle));
  auto out = std::make_shared<Value>();
  out->kind = Value::Kind::op, out->op = AluOp::shr;
  out->a = make_op(AluOp::shr, centred, make_constant(type.bits - 32));
  out->b = make_constant(32 - type.bits);
  out->low = -middle, out->high = middle - 1;
  if (has_sign) return out;
  // In halves: the constant of an instruction has 16 bits and a sign.
  ValuePtr half = make_constant(middle / 2);
  return make_op(AluOp::add, make_op(AluOp::add, std::move(out), half), half);
}

namespace {

/// The first operand of this operation with this constant, null for any other value.
ValuePtr operand_of(const ValuePtr& v, AluOp op, std::int64_t constant) {
  const bool same = v && v->kind == Value::Kind::op && v->op == op &&
                    v->b->kind == Value::Kind::constant && v->b->number == constant;
  return same ? v->a : nullptr;
}

/// What was narrowed to this many bits by shifts, null where nothing was.
ValuePtr before_shifts(const ValuePtr& v, int bits) {
  return operand_of(operand_of(v, AluOp::shr, 32 - bits), AluOp::shr, bits - 32);
}

}  // namespace

ValuePtr without_narrowing(const ValuePtr& v, int bits) {
  if (bits >= 32) return v;
  if (ValuePtr wide = before_shifts(v, bits)) return wide;
  const std::int64_t middle = std::int64_t{1} << (bits - 1);
  ValuePtr half = operand_of(v, AluOp::add, middle / 2);
  ValuePtr centred = before_shifts(operand_of(half, AluOp::add, middle / 2), bits);
  ValuePtr wide = operand_of(centred, AluOp::add, -middle);
  return wide ? wide : v;
}

ValuePtr replace_self(const ValuePtr& v, const ValuePtr& by) {
  switch (v->kind) {
    case Value::Kind::self: return by;
    case Value::Kind::op: {
      ValuePtr a = replace_self(v->a, by), b = replace_self(v->b, by);
      if (a == v->a && b == v->b) return v;
      auto out = std::make_shared<Value>(*v);
      out->a = a, out->b = b;
      return out;
    }
    default: return v;
  }
}

int uses_of_self(const ValuePtr& v) {
  if (v->kind == Value::Kind::self) return 1;
  return v->kind == Value::Kind::op ? uses_of_self(v->a) + uses_of_self(v->b) : 0;
}

ValuePtr ValueReader::refuse(const char* why, std::string text, std::string more) {
  if (slug.empty()) slug = why, message = std::move(text), note = std::move(more);
  return nullptr;
}

ValuePtr ValueReader::binary(const Expr& whole, AluOp op, const Expr& x, const Expr& y) {
  ValuePtr a = read(x), b = a ? read(y) : nullptr;
  if (!b) return nullptr;
  bool swap = op != AluOp::shr && a->kind == Value::Kind::constant;
  if (swap) std::swap(a, b);
  if (op == AluOp::mul && b->kind == Value::Kind::constant && b->number > 0 &&
      std::has_single_bit(static_cast<std::uint64_t>(b->number))) {
    op = AluOp::shr;  // shifts are everywhere, multiplication is not
    b = make_constant(-std::countr_zero(static_cast<std::uint64_t>(b->number)));
  }
  if (op == AluOp::shr && b->kind == Value::Kind::constant && (b->number < -31 || b->number > 31))
    return refuse("operation", cat("shifts by ", b->number, " in ", print(whole)),
                  "shifts are 0 to 31");
  return make_op(op, std::move(a), std::move(b));
}

namespace {

/// 1 where the value is not 0, else 0.
ValuePtr not_zero(const ValuePtr& v) {
  ValuePtr below = make_op(AluOp::min, v, make_constant(1));
  if (below->low >= 0) return below;
  ValuePtr sign = make_op(AluOp::max, std::move(below), make_constant(-1));
  return make_op(AluOp::max, sign, make_op(AluOp::mul, sign, make_constant(-1)));
}

/// Whether an operation on values of a narrow type may leave the type: the ALU itself has 32 bits.
bool may_wrap(const Expr& e) {
  if (e->kind == ExprKind::add || e->kind == ExprKind::sub || e->kind == ExprKind::mul) return true;
  const auto* c = as<CallNode>(e);
  return c && (c->op == "shift_left" || c->op == "abs");
}

}  // namespace

ValuePtr ValueReader::read(const Expr& e) {
  ValuePtr v = read_wide(e);
  if (!v || e->dtype.bits >= 32 || !may_wrap(e)) return v;
  return narrowed(v, e->dtype);
}

ValuePtr ValueReader::read_wide(const Expr& e) {
  std::int64_t n = 0;
  if (is_const_int(e, &n)) {
    if (n < kLow || n > kHigh)
      return refuse("operation", cat("uses the constant ", n), "constants are int32");
    return make_constant(n);
  }
  if (e->dtype.is_float())
    return refuse("dtype", cat("computes ", print(e), " in ", to_string(e->dtype)),
                  "the machine has no floating point; scale by shifts");
  if (e->dtype.bits > 32 && e->kind != ExprKind::cast)
    return refuse("dtype", cat("computes ", print(e), " in ", to_string(e->dtype)),
                  "ALU has 32 bits");
  switch (e->kind) {
    case ExprKind::load: {
      const auto* l = as<LoadNode>(e);
      if (self && l->buffer.get() == self) {
        auto v = std::make_shared<Value>();
        set_range(*v, e->dtype);
        return v;
      }
      std::optional<std::size_t> i = load(e);
      if (!i)
        return refuse("operand", cat("reads ", print(e), ", whose index is not affine"),
                      "an operand is read at sums of iterators times constants");
      auto v = std::make_shared<Value>();
      v->kind = Value::Kind::operand, v->operand = *i;
      DType t = dtype_of(*i);
      if (t.is_float() || t.bits > 32 || (t.is_uint() && t.bits == 32))
        return refuse("dtype", cat("reads ", print(e), " of ", to_string(t)),
                      "operands are integers that int32 can hold");
      set_range(*v, t);
      return v;
    }
    case ExprKind::cast: {
      const auto* c = as<CastNode>(e);
      ValuePtr v = read(c->value);
      if (!v) return nullptr;
      if (c->value->dtype.is_float() || c->dtype.is_float())
        return refuse("dtype", cat("converts ", print(e)), "the machine has no floating point");
      if (c->dtype.bits > 32)
        return refuse("dtype", cat("computes ", print(e), " in ", to_string(c->dtype)),
                      "ALU has 32 bits");
      if (c->dtype.is_uint() && (v->low < 0 || c->dtype.bits == 32) &&
          v->high > (std::int64_t{1} << c->dtype.bits) - 1)
        return refuse("dtype", cat("converts ", print(e), ", which may be negative"),
                      "clip it first");
      if (c->dtype.is_uint() && v->low < 0)
        return refuse("dtype", cat("converts ", print(e), ", which may be negative"),
                      "clip it first");
      if (c->dtype.is_bool()) return not_zero(v);
      return narrowed(v, c->dtype);
    }
    case ExprKind::add: return binary(e, AluOp::add, as<BinaryNode>(e)->a, as<BinaryNode>(e)->b);
    case ExprKind::mul: return binary(e, AluOp::mul, as<BinaryNode>(e)->a, as<BinaryNode>(e)->b);
    case ExprKind::min: return binary(e, AluOp::min, as<BinaryNode>(e)->a, as<BinaryNode>(e)->b);
    case ExprKind::max: return binary(e, AluOp::max, as<BinaryNode>(e)->a, as<BinaryNode>(e)->b);
    case ExprKind::sub: {
      ValuePtr a = read(as<BinaryNode>(e)->a), b = a ? read(as<BinaryNode>(e)->b) : nullptr;
      if (!b) return nullptr;
      if (b->kind == Value::Kind::constant)
        return make_op(AluOp::add, std::move(a), make_constant(-b->number));
      ValuePtr minus = make_op(AluOp::mul, std::move(b), make_constant(-1));
      if (a->kind == Value::Kind::constant)
        return make_op(AluOp::add, std::move(minus), std::move(a));
      return make_op(AluOp::add, std::move(a), std::move(minus));
    }
    case ExprKind::floordiv: {
      const auto* d = as<BinaryNode>(e);
      if (is_const_int(d->b, &n) && n > 0 && std::has_single_bit(static_cast<std::uint64_t>(n))) {
        ValuePtr a = read(d->a);
        if (!a) return nullptr;
        return make_op(AluOp::shr, std::move(a),
                       make_constant(std::countr_zero(static_cast<std::uint64_t>(n))));
      }
      return refuse("operation", cat("computes ", print(e)), "division is by powers of two only");
    }
    case ExprKind::select: {
      const auto* s = as<SelectNode>(e);
      const auto* c = as<BinaryNode>(s->condition);
      if (c && is_compare(c->kind)) {
        bool greater = c->kind == ExprKind::gt || c->kind == ExprKind::ge;
        bool less = c->kind == ExprKind::lt || c->kind == ExprKind::le;
        bool straight = structural_equal(c->a, s->a) && structural_equal(c->b, s->b);
        bool crossed = structural_equal(c->a, s->b) && structural_equal(c->b, s->a);
        if ((straight && greater) || (crossed && less)) return binary(e, AluOp::max, s->a, s->b);
        if ((straight && less) || (crossed && greater)) return binary(e, AluOp::min, s->a, s->b);
      }
      return refuse("operation", cat("computes ", print(e)),
                    "a choice must be a minimum or a maximum");
    }
    case ExprKind::call: {
      const auto* c = as<CallNode>(e);
      if (c->op == "shift_right" && c->args.size() == 2)
        return binary(e, AluOp::shr, c->args[0], c->args[1]);
      if (c->op == "shift_left" && c->args.size() == 2 && is_const_int(c->args[1], &n))
        return binary(e, AluOp::shr, c->args[0], make_int(-n, dtypes::int32));
      if (c->op == "abs" && c->args.size() == 1) {
        ValuePtr a = read(c->args[0]);
        if (!a) return nullptr;
        return make_op(AluOp::max, a, make_op(AluOp::mul, a, make_constant(-1)));
      }
      if (c->op == "if_then_else") return read(select(c->args[0], c->args[1], c->args[2]));
      return refuse("operation", cat("calls ", c->op, " in ", print(e)));
    }
    default: return refuse("operation", cat("computes ", print(e)));
  }
}

}  // namespace weft::vta
