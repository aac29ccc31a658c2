// SPDX-License-Identifier: Apache-2.0
// Values: IR expressions as vectors of the kernel language.

#include <cmath>
#include <limits>

#include "weft/base/error.h"
#include "weft/ir/compare.h"
#include "weft/ir/text.h"
#include "weft/ir/visit.h"
#include "weft/targets/qpu/tensor/lowerer.h"

namespace weft::qpu::tensor {

using namespace ir;
using ast::Compare;
using ast::Kind;
using ast::Op;

namespace {
constexpr std::int64_t kExact = std::int64_t{1} << 21;  // integers that floats divide exactly

Kind kind_of(DType t) {
  return t.is_float() ? Kind::real : t.is_uint() ? Kind::uinteger : Kind::integer;
}
/// Constants by which a product is a shift, and at most one sum.
bool shifts(const Expr& e) {
  std::int64_t n = 0;
  if (!is_const_int(e, &n) || n < 0) return false;
  const auto bits = static_cast<std::uint64_t>(n);
  return bits < 2 || std::has_single_bit(bits) || std::has_single_bit(bits - 1) ||
         std::has_single_bit(bits + 1);
}
bool finite_constant(const Expr& e) {
  const auto* f = as<FloatImmNode>(e);
  return f && std::isfinite(f->value);
}
}  // namespace

void Lowerer::refuse(std::string_view rule, std::string what) const {
  Error error(ErrorKind::lower, cat("qpu.lower.", rule), std::move(what));
  if (now_) {
    std::string text = print(now_, {nullptr, false, 0});
    error.at("statement", text.substr(0, text.find('\n')), now_->line);
  }
  throw error;
}

bool Lowerer::varying(const Expr& e) const {
  if (lanes_ == 1) return false;
  bool found = false;
  for_each_expr(e, [&](const Expr& x) {
    if (const auto* v = as<VarNode>(x)) found = found || varying_.count(v) > 0;
    if (const auto* l = as<LoadNode>(x)) found = found || l->buffer->scope == "local";
  });
  return found;
}

bool Lowerer::varies_by_lane_alone(const Expr& e) const {
  bool good = !stages::has_loads(e);
  for_each_expr(e, [&](const Expr& x) {
    const auto* v = as<VarNode>(x);
    good = good && !(v && v != lane_.get() && varying_.count(v) > 0);
  });
  return good;
}

const ast::Bool* Lowerer::compare(Compare c, Value x, Value y, Kind k) {
  return b_.boolean({ast::Bool::Op::compare, c, k, x, y, nullptr, nullptr});
}

const ast::Bool* Lowerer::both(const ast::Bool* x, const ast::Bool* y) {
  if (!x || !y) return x ? x : y;
  return b_.boolean({ast::Bool::Op::both, {}, {}, nullptr, nullptr, x, y});
}

const ast::Bool* Lowerer::condition(const Expr& e) {
  switch (e->kind) {
    case ExprKind::and_:
    case ExprKind::or_: {
      const auto* b = as<BinaryNode>(e);
      auto how = e->kind == ExprKind::and_ ? ast::Bool::Op::both : ast::Bool::Op::either;
      return b_.boolean({how, {}, {}, nullptr, nullptr, condition(b->a), condition(b->b)});
    }
    case ExprKind::not_: return opposite(condition(as<NotNode>(e)->a));
    case ExprKind::eq:
    case ExprKind::ne:
    case ExprKind::lt:
    case ExprKind::le:
    case ExprKind::gt:
    case ExprKind::ge: {
      const auto* b = as<BinaryNode>(e);
      auto how = static_cast<Compare>(static_cast<int>(e->kind) - static_cast<int>(ExprKind::eq));
      bool real = b->a->dtype.is_float(), equality = how == Compare::eq || how == Compare::ne;
      if (real && equality && same_expr(b->a, b->b))  // there is no NaN
        return compare(how, constant(0), constant(0));
      Value x = eval(b->a), y = eval(b->b);
      if (real && equality && !finite_constant(b->a) && !finite_constant(b->b)) {
        // Equality is a difference of zero, which infinities do not have: neither is above.
        x = keep(x), y = keep(y);
        const ast::Bool* differ = b_.boolean({ast::Bool::Op::either,
                                              {},
                                              {},
                                              nullptr,
                                              nullptr,
                                              compare(Compare::lt, x, y, Kind::real),
                                              compare(Compare::gt, x, y, Kind::real)});
        if (how == Compare::ne) return differ;
        return opposite(differ);
      }
      return compare(how, x, y, kind_of(b->a->dtype));
    }
    default: break;
  }
  if (const auto* c = as<CallNode>(e)) {
    if (c->op == "likely") return condition(c->args[0]);
    if (c->op == "signbit")
      return compare(Compare::lt, eval(c->args[0]), constant(0));  // the bits as an integer
    if (c->op == "isnan") return compare(Compare::ne, constant(0), constant(0));  // no NaN exists
    if (c->op == "isinf" || c->op == "isfinite") {
      Value bits = op(Op::bit_and, eval(c->args[0]), constant(0x7fffffff));
      return compare(c->op == "isinf" ? Compare::ge : Compare::lt, bits, constant(0x7f800000));
    }
  }
  return compare(Compare::ne, eval(e), constant(0));
}

Value Lowerer::eval(const Expr& e) {
  switch (e->kind) {
    case ExprKind::var: {
      auto found = vars_.find(as<VarNode>(e));
      if (found == vars_.end())
        refuse("value", cat("variable ", as<VarNode>(e)->name, " has no value in the kernel"));
      return found->second;
    }
    case ExprKind::int_imm: {
      std::int64_t n = as<IntImmNode>(e)->value;
      if (n < std::numeric_limits<std::int32_t>::min() ||
          n > std::numeric_limits<std::uint32_t>::max())
        refuse("range", cat("the constant ", n, " does not fit 32 bits"));
      return constant(n);
    }
    case ExprKind::float_imm:
      return b_.constant(
          std::bit_cast<std::uint32_t>(static_cast<float>(as<FloatImmNode>(e)->value)));
    case ExprKind::cast: return convert(as<CastNode>(e)->value, e->dtype);
    case ExprKind::select: {
      const auto* s = as<SelectNode>(e);
      const ast::Bool* c = condition(s->condition);
      return b_.select(c, eval(s->a), eval(s->b));
    }
    case ExprKind::load: {
      const auto* l = as<LoadNode>(e);
      if (l->buffer->scope == "local") return var(local(l->buffer, l->indices));
      auto found = loaded_.find(l);
      WEFT_CHECK(found != loaded_.end(), "a load of ", l->buffer->name, " was not fetched");
      return found->second;
    }
    case ExprKind::let: {
      const auto* l = as<LetNode>(e);
      if (!vars_.count(l->var.get())) vars_[l->var.get()] = keep(eval(l->value));
      return eval(l->body);
    }
    case ExprKind::call: return call(as<CallNode>(e));
    case ExprKind::not_: return b_.select(condition(e), constant(1), constant(0));
    case ExprKind::ramp:
    case ExprKind::broadcast:
    case ExprKind::string_imm:
    case ExprKind::reduce: refuse("expression", cat("\"", print(e), "\" is no scalar value"));
    default: return binary(as<BinaryNode>(e));
  }
}

Value Lowerer::binary(const BinaryNode* e) {
  if (is_compare(e->kind) || e->kind == ExprKind::and_ || e->kind == ExprKind::or_)
    return b_.select(condition(Expr(e)), constant(1), constant(0));
  bool real = e->dtype.is_float(), is_unsigned = e->dtype.is_uint();
  if (!e->dtype.is_scalar() || (real && e->dtype.bits != 32))
    refuse("dtype", cat("\"", print(Expr(e)), "\" is ", to_string(e->dtype)));
  Value x = eval(e->a), y = eval(e->b);
  bool divides = e->kind == ExprKind::div || e->kind == ExprKind::mod ||
                 e->kind == ExprKind::floordiv || e->kind == ExprKind::floormod;
  if (divides) x = settle(x), y = settle(y);
  auto F = [](Value v) { return FloatExpr::of(v); };
  switch (e->kind) {
    case ExprKind::add: return op(real ? Op::fadd : Op::add, x, y);
    case ExprKind::sub: return op(real ? Op::fsub : Op::sub, x, y);
    case ExprKind::mul: {
      if (real) return op(Op::fmul, x, y);
      arith::Bounds p = analyzer_.bounds(e->a), q = analyzer_.bounds(e->b);
      bool small = p.min >= 0 && p.max < (1 << 24) && q.min >= 0 && q.max < (1 << 24);
      return op(small && !shifts(e->a) && !shifts(e->b) ? Op::mul24 : Op::mul, x, y);
    }
    case ExprKind::min: return op(real ? Op::fmin : is_unsigned ? Op::umin : Op::min, x, y);
    case ExprKind::max: return op(real ? Op::fmax : is_unsigned ? Op::umax : Op::max, x, y);
    case ExprKind::div:
      if (real) return (F(x) / F(y)).expr;
      return keep(integer_quotient(e, x, y));
    case ExprKind::mod:
      if (real) return math("fmod", x, y);
      return op(Op::sub, x, op(Op::mul, integer_quotient(e, x, y), y));
    case ExprKind::floordiv:
    case ExprKind::floormod: {
      if (real) {
        Value q = math("floor", (F(x) / F(y)).expr, nullptr);
        return e->kind == ExprKind::floordiv ? q : op(Op::fsub, x, op(Op::fmul, q, y));
      }
      std::int64_t d = 0;
      if (is_const_int(e->b, &d) && d > 0 && std::has_single_bit(static_cast<std::uint64_t>(d))) {
        if (e->kind == ExprKind::floormod) return op(Op::bit_and, x, constant(d - 1));
        return op(Op::asr, x, constant(std::countr_zero(static_cast<std::uint64_t>(d))));
      }
      Value q = keep(integer_quotient(e, x, y)), r = keep(op(Op::sub, x, op(Op::mul, q, y)));
      if (!analyzer_.prove_at_least(e->a, 0) || !analyzer_.prove_at_least(e->b, 1)) {
        const ast::Bool* below = both(compare(Compare::ne, r, constant(0)),
                                      compare(Compare::lt, op(Op::bit_xor, r, y), constant(0)));
        q = b_.select(below, op(Op::sub, q, constant(1)), q);
        r = b_.select(below, op(Op::add, r, y), r);
      }
      return e->kind == ExprKind::floordiv ? q : r;
    }
    default: refuse("expression", cat("\"", print(Expr(e)), "\" has no operation here"));
  }
}

/// For values that are used more than once: trees are walked, not graphs.
Value Lowerer::settle(Value v) {
  bool leaf =
      v->op == Op::constant || v->op == Op::var || v->op == Op::element || v->op == Op::uniform;
  return leaf ? v : keep(v);
}

/// Toward zero.
Value Lowerer::integer_quotient(const BinaryNode* e, Value x, Value y) {
  std::int64_t d = 0;
  arith::Bounds n = analyzer_.bounds(e->a);
  if (is_const_int(e->b, &d) && d > 0 && d < kExact && n.min >= 0 && n.max < kExact) {
    // (x + 1/2) / d lies at least 1 / (2 d) from every whole number, and its error is smaller:
    // below 2^21 the sum is exact, the reciprocal and the product lose 2^-23 of it each at most.
    Value above = op(Op::fadd, op(Op::itof, x), b_.constant(std::bit_cast<std::uint32_t>(0.5f)));
    const auto r = static_cast<float>(1.0 / static_cast<double>(d));
    return op(Op::ftoi, op(Op::fmul, above, b_.constant(std::bit_cast<std::uint32_t>(r))));
  }
  if (e->dtype.is_uint()) return (UintExpr::of(x) / UintExpr::of(y)).expr;
  return (IntExpr::of(x) / IntExpr::of(y)).expr;
}

Value Lowerer::convert(const Expr& from, DType to) {
  DType t = from->dtype;
  if (to.is_float()) {
    if (to.bits != 32) refuse("dtype", cat("a value of type ", to_string(to)));
    if (t.is_float()) {
      if (t.bits != 32) refuse("dtype", cat("a value of type ", to_string(t)));
      return eval(from);
    }
    if (!t.is_uint() || t.bits < 32) return op(Op::itof, eval(from));
    Value x = keep(eval(from));  // itof reads a sign: halves have none
    Value high = op(Op::itof, op(Op::shr, x, constant(16)));
    Value low = op(Op::itof, op(Op::bit_and, x, constant(0xffff)));
    return (FloatExpr::of(high) * FloatExpr(65536.0f) + FloatExpr::of(low)).expr;
  }
  if (to.is_bool())
    return b_.select(
        t.is_float() ? compare(Compare::ne, eval(from), constant(0), Kind::real) : condition(from),
        constant(1), constant(0));
  if (to.bits < 32) refuse("dtype", cat("a value of type ", to_string(to)));
  if (t.is_float() && to.is_uint()) {  // ftoi gives signed values
    Value x = keep(eval(from));
    FloatExpr half(2147483648.0f);
    Value above =
        op(Op::bit_xor, op(Op::ftoi, (FloatExpr::of(x) - half).expr), constant(0x80000000));
    return b_.select(compare(Compare::ge, x, half.expr, Kind::real), above, op(Op::ftoi, x));
  }
  return t.is_float() ? op(Op::ftoi, eval(from)) : eval(from);
}

Value Lowerer::reduce_lanes(const std::string& how, DType type, Value x) {
  const bool real = type.is_float(), is_unsigned = type.is_uint();
  Op o = Op::add;
  std::uint32_t neutral = 0;
  if (how == "reduce.add") {
    o = real ? Op::fadd : Op::add;
  } else if (how == "reduce.mul") {
    o = real ? Op::fmul : Op::mul;
    neutral = real ? std::bit_cast<std::uint32_t>(1.0f) : 1;
  } else if (how == "reduce.min") {
    o = real ? Op::fmin : is_unsigned ? Op::umin : Op::min;
    neutral = real ? 0x7f800000u : is_unsigned ? 0xffffffffu : 0x7fffffffu;
  } else if (how == "reduce.max") {
    o = real ? Op::fmax : is_unsigned ? Op::umax : Op::max;
    neutral = real ? 0xff800000u : is_unsigned ? 0 : 0x80000000u;
  } else {
    refuse("reduction", cat("lanes cannot join values with ", how));
  }
  Value v = mask_.lanes ? b_.select(active(mask_), x, b_.constant(neutral)) : x;
  for (int n : {8, 4, 2, 1}) {
    v = keep(v);
    v = op(o, v, op(Op::rotate, v, constant(n)));
  }
  return v;
}

Value Lowerer::call(const CallNode* e) {
  const std::string& name = e->op;
  auto arg = [&](std::size_t i) { return eval(e->args[i]); };
  bool real = e->dtype.is_float();
  if (name == "likely") return arg(0);
  if (name == "reinterpret") return arg(0);
  if (name == "if_then_else")
    return b_.select(condition(e->args[0]), eval(e->args[1]), eval(e->args[2]));
  if (name == "instruction") {
    const auto* how = as<StringImmNode>(e->args[0]);
    if (how && e->args.size() == 2) return reduce_lanes(how->value, e->dtype, keep(arg(1)));
  }
  if (name == "abs") {
    if (real) return op(Op::bit_and, arg(0), constant(0x7fffffff));
    Value x = settle(arg(0));
    return op(Op::max, x, op(Op::sub, constant(0), x));
  }
  if (name == "fma") return op(Op::fadd, op(Op::fmul, arg(0), arg(1)), arg(2));
  if (name == "bitwise_and") return op(Op::bit_and, arg(0), arg(1));
  if (name == "bitwise_or") return op(Op::bit_or, arg(0), arg(1));
  if (name == "bitwise_xor") return op(Op::bit_xor, arg(0), arg(1));
  if (name == "bitwise_not") return op(Op::bit_not, arg(0));
  if (name == "clz" && e->dtype.bits == 32) return op(Op::clz, arg(0));
  if (name == "shift_left" || name == "shift_right") {
    Value x = settle(arg(0)), n = settle(arg(1));
    bool left = name == "shift_left";
    Op o = left ? Op::shl : e->dtype.is_uint() ? Op::shr : Op::asr;
    std::int64_t k = 0;
    if (is_const_int(e->args[1], &k) && k >= 0 && k < 32) return op(o, x, n);
    // Only five bits of a count matter to the machine.
    Value wide = o == Op::asr ? op(Op::asr, x, constant(31)) : constant(0);
    return b_.select(compare(Compare::lt, n, constant(32), Kind::uinteger), op(o, x, n), wide);
  }
  if (e->dtype.is_bool()) return b_.select(condition(Expr(e)), constant(1), constant(0));
  if (real && has_math(name)) {
    Value x = keep(arg(0));
    return math(name, x, e->args.size() > 1 ? keep(arg(1)) : nullptr);
  }
  refuse("intrinsic", cat("\"", name, "\" of ", to_string(e->dtype), " has no form on the QPU"));
}

}  // namespace weft::qpu::tensor
