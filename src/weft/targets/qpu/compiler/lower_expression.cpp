// SPDX-License-Identifier: Apache-2.0
// Expressions: strength reduction, exact comparisons, lane patterns of addresses.

#include "weft/targets/qpu/compiler/lowerer.h"

namespace weft::qpu::mir {

Src Lowerer::lower(const Expr* e) {
  if (auto c = known(e)) return big(*c);
  if (e->op == Op::var) return Src::of(e->value);
  if (e->op == Op::uniform) return Src::of(uniform_.at(e->value));
  if (auto found = memo_.find(e); found != memo_.end()) return found->second;
  std::uint32_t t = temp();
  lower_to(e, Dst::of(t), kAlways);
  memo_.emplace(e, Src::of(t));
  return Src::of(t);
}

bool Lowerer::below(const Expr* e, unsigned bits) const {
  if (auto c = known(e)) return *c >> bits == 0;
  switch (e->op) {
    case Op::element: return true;
    case Op::uniform: return e->value < 2;
    case Op::bit_and: return below(e->a, bits) || below(e->b, bits);
    case Op::shr: return e->b->op == Op::constant && (e->b->value & 31) >= 32 - bits;
    default: return false;
  }
}

std::pair<Src, Src> Lowerer::operands(const Expr* x, const Expr* y) {
  Src second = lower(y), first = lower(x);
  return {first, second};
}

void Lowerer::multiply(const Expr* x, const Expr* y, Dst d, std::uint8_t cond) {
  if (known(x)) std::swap(x, y);
  if (auto c = known(y)) {
    if (*c == 0) return move(d, Src::constant(0), cond);
    if (*c == 1) return lower_to(x, d, cond);
    if (std::has_single_bit(*c))
      return add_to(kShl, d, lower(x), shift(static_cast<unsigned>(std::countr_zero(*c))), cond);
    if (*c == 0xffffffffu) return add_to(kSub, d, Src::constant(0), lower(x), cond);
    std::uint32_t n = *c;
    if (std::has_single_bit(n - 1)) {
      Src v = lower(x);
      return add_to(kAdd, d, add(kShl, v, shift(static_cast<unsigned>(std::countr_zero(n - 1)))), v,
                    cond);
    }
    if (std::has_single_bit(n + 1)) {
      Src v = lower(x);
      return add_to(kSub, d, add(kShl, v, shift(static_cast<unsigned>(std::countr_zero(n + 1)))), v,
                    cond);
    }
  }
  if (below(x, 24) && below(y, 24)) {
    auto [l, r] = operands(x, y);
    return mul(kMul24, d, l, r, cond);
  }
  if (below(x, 24)) std::swap(x, y);
  Src a = lower(x), b = lower(y);
  if (below(y, 24)) {  // a * b = al * b + (ah * b) << 24 with a = ah : al, 8 and 24 bits
    Src high = add(kShl, mul(kMul24, add(kShr, a, shift(24)), b), shift(24));
    return add_to(kAdd, d, mul(kMul24, a, b), high, cond);
  }
  // Halves of 16 bits: al * bl + ((ah * bl + al * bh) << 16); mul24 sees 24 bits, so only al and
  // bl are masked.
  Src mask = big(0xffff), al = add(kAnd, a, mask), bl = add(kAnd, b, mask),
      ah = add(kShr, a, shift(16)), bh = add(kShr, b, shift(16));
  Src second = mul(kMul24, al, bh), first = mul(kMul24, ah, bl);
  Src high = add(kShl, add(kAdd, first, second), shift(16));
  add_to(kAdd, d, mul(kMul24, al, bl), high, cond);
}

Src Lowerer::rotatable(const Expr* e) {
  constexpr std::size_t kFar = 40;  // instructions after which a copy is forgotten
  bool variable = e->op == Op::var;
  for (Copy& c : copies_) {
    if (!variable || !c.temp || c.var != e->value || c.block != f_.blocks.size() ||
        block().code.size() > c.used + kFar)
      continue;
    c.used = block().code.size();
    Src found = Src::of(c.temp);
    if (&c == &copies_[1]) std::swap(copies_[0], copies_[1]);
    return found;
  }
  std::uint32_t source = temp(true);
  lower_to(e, Dst::of(source), kAlways);
  if (variable) {
    copies_[1] = copies_[0];
    copies_[0] = {e->value, source, f_.blocks.size(), block().code.size()};
  }
  return Src::of(source);
}

void Lowerer::rotate(const Expr* e, Dst d, std::uint8_t cond) {
  auto amount = known(e->b);
  if (amount && (*amount & 15) == 0) return lower_to(e->a, d, cond);
  Ins i;
  i.unit = Unit::mul, i.op = kV8min, i.d = d, i.cond = cond;
  // Few registers can be rotated: they are taken last and left at once.
  Src by = amount ? Src() : lower(e->b);
  Src source = rotatable(e->a);
  if (amount) {
    i.rotate = static_cast<std::uint8_t>(*amount & 15);
  } else {
    move(Dst::write(kWR5, 1), by);
    i.rotate = 16;
  }
  i.a = i.b = source;
  if (cond == kAlways) return emit(i);
  std::uint32_t t = temp();  // a condition on a rotated result is unconfirmed: two steps
  i.cond = kAlways, i.d = Dst::of(t);
  emit(i);
  move(d, Src::of(t), cond);
}

Src Lowerer::address_of_row(const Expr* address) {
  Pattern x = pattern(address);
  if (!read_strided_ && x == Pattern(4)) return lower(address);
  if (x == Pattern(0)) return add(kAdd, lower(address), Src::of(lane4_));
  move(Dst::write(kWR5, 1), lower(address));
  return add(kAdd, Src{Src::r5, 0, kFileAny}, Src::of(lane4_));
}

void Lowerer::tmu_read(unsigned unit, Dst d, std::uint8_t cond) {
  Ins i;
  i.unit = Unit::tmu_load, i.op = static_cast<std::uint8_t>(unit);
  emit(i);
  move(d, Src{Src::r4, 0, kFileAny}, cond);
}

void Lowerer::lower_to(const Expr* e, Dst d, std::uint8_t cond) {
  if (auto c = known(e)) {
    if (find_small_immediate(*c) >= 0) return move(d, Src::constant(*c), cond);
    return cond == kAlways ? emit_ldi(d, *c) : move(d, big(*c), cond);
  }
  switch (e->op) {
    case Op::var:
    case Op::uniform: return move(d, lower(e), cond);
    case Op::element: return move(d, Src::read(kRElementA, 0), cond);
    case Op::number: return move(d, Src::read(kRQpuB, 1), cond);
    case Op::recip:
    case Op::rsqrt:
    case Op::exp2:
    case Op::log2: {
      unsigned address = kWRecip + static_cast<unsigned>(e->op) - static_cast<unsigned>(Op::recip);
      lower_to(e->a, Dst::write(address), kAlways);
      return move(d, Src{Src::r4, 0, kFileAny}, cond);
    }
    case Op::fmul:
    case Op::mul24: {
      auto [l, r] = operands(e->a, e->b);
      return mul(e->op == Op::fmul ? kFmul : kMul24, d, l, r, cond);
    }
    case Op::mul: return multiply(e->a, e->b, d, cond);
    case Op::rotate: return rotate(e, d, cond);
    case Op::broadcast: {
      if (e->value == 0) {
        move(Dst::write(kWR5, 1), lower(e->a));
      } else {  // one operation: the rotated result's lane 0 goes to all lanes of r5
        Ins i;
        i.unit = Unit::mul, i.op = kV8min, i.d = Dst::write(kWR5, 1),
        i.rotate = static_cast<std::uint8_t>(16 - e->value);
        i.a = i.b = rotatable(e->a);
        emit(i);
      }
      return move(d, Src{Src::r5, 0, kFileAny}, cond);
    }
    case Op::deref: {
      Src a = address_of_row(e->a);
      move(Dst::write(kWTmu1S), a);
      return tmu_read(1, d, cond);
    }
    case Op::fetch: lower_to(e->a, Dst::write(kWTmu1S), kAlways); return tmu_read(1, d, cond);
    case Op::vload: {
      Src a = lower(e->a), setup = load_setup_;
      if (e->b) {  // the row's length, of which 16 is written 0
        Src n = add(kAnd, lower(e->b), Src::constant(15));
        setup = add(kAdd, setup, add(kShl, n, shift(20)));
      }
      move(Dst::write(kWVpmSetup, 0), setup);
      move(Dst::write(kWDmaAddr, 0), a);
      Ins w;
      w.unit = Unit::wait, w.op = 0;
      emit(w);
      move(Dst::write(kWVpmSetup, 0), vpm_read_setup_);
      return move(d, Src::read(kRVpm), cond);
    }
    case Op::umin:
    case Op::umax: {
      Src a = lower(e->a), b = lower(e->b);
      std::uint32_t t = temp();
      move(Dst::of(t), a);
      add_to(kSub, Dst(), a, b, kAlways, true);  // C: a < b
      move(Dst::of(t), b, e->op == Op::umin ? kCc : kCs);
      return move(d, Src::of(t), cond);
    }
    case Op::select: {
      Src x = lower(e->a), y = lower(e->b);
      std::uint32_t t = temp();
      std::uint8_t c = flags(e->cond);
      move(Dst::of(t), y);
      move(Dst::of(t), x, c);
      return move(d, Src::of(t), cond);
    }
    default: break;
  }
  // One ADD operation.
  unsigned op = add_op(e->op);
  if (!e->b) return add_to(op, d, lower(e->a), Src(), cond);
  auto x = known(e->a), y = known(e->b);
  if (y && *y == 0 &&
      (op == kAdd || op == kSub || op == kShl || op == kShr || op == kAsr || op == kOr ||
       op == kXor))
    return lower_to(e->a, d, cond);
  if (x && *x == 0 && (op == kAdd || op == kOr || op == kXor)) return lower_to(e->b, d, cond);
  if (y && (op == kShl || op == kShr || op == kAsr || op == kRor))
    return add_to(op, d, lower(e->a), shift(*y & 31), cond);
  if (y && (op == kAdd || op == kSub) && find_small_immediate(*y) < 0 &&
      find_small_immediate(0 - *y) >= 0) {
    return add_to(op == kAdd ? kSub : kAdd, d, lower(e->a), Src::constant(0 - *y),
                  cond);  // + 16 is - (-16)
  }
  auto [l, r] = operands(e->a, e->b);
  add_to(op, d, l, r, cond);
}

std::uint8_t Lowerer::flags(const Bool* b) {
  using C = ast::Compare;
  if (b->op == Bool::Op::negate) return flip(flags(b->l));
  if (b->op != Bool::Op::compare) {
    Src m = mask(b->l), n = mask(b->r);
    add_to(b->op == Bool::Op::both ? kAnd : kOr, Dst(), m, n, kAlways, true);
    return kZc;
  }
  const Expr *x = b->x, *y = b->y;
  bool real = b->kind == ast::Kind::real, unsigned_ = b->kind == ast::Kind::uinteger;
  if (b->compare == C::eq || b->compare == C::ne) {
    std::uint8_t cond = b->compare == C::eq ? kZs : kZc;
    auto zero = known(y);
    Src a = lower(x);
    if (!real && zero && *zero == 0 && a.kind == Src::vreg)
      return add_to(kOr, Dst(), a, a, kAlways, true), cond;
    add_to(real ? kFsub : kXor, Dst(), a, lower(y), kAlways, true);
    return cond;
  }
  bool swap = b->compare == C::lt || b->compare == C::ge;  // a > b is what min tells
  std::uint8_t cond = b->compare == C::lt || b->compare == C::gt ? kCs : kCc;
  if (unsigned_) {  // C of x - y: x < y
    Src a = lower(swap ? x : y), c = lower(swap ? y : x);
    add_to(kSub, Dst(), a, c, kAlways, true);
    return cond;
  }
  if (!real && swap && known(y) && *known(y) == 0) {
    Src a = lower(x);
    if (a.kind == Src::vreg)
      return add_to(kOr, Dst(), a, a, kAlways, true), b->compare == C::lt ? kNs : kNc;
  }
  Src a = lower(swap ? y : x), c = lower(swap ? x : y);
  add_to(real ? kFmin : kMin, Dst(), a, c, kAlways, true);
  return cond;
}

Src Lowerer::mask(const Bool* b) {
  std::uint8_t cond = flags(b);
  std::uint32_t t = temp();
  move(Dst::of(t), Src::constant(0));
  move(Dst::of(t), Src::constant(1), cond);
  return Src::of(t);
}

std::uint8_t Lowerer::branch_cond(std::uint8_t cond, bool all) {
  static constexpr std::uint8_t any_of[] = {0, 0, kAnyZs, kAnyZc, kAnyNs, kAnyNc, kAnyCs, kAnyCc};
  static constexpr std::uint8_t all_of[] = {0, 0, kAllZs, kAllZc, kAllNs, kAllNc, kAllCs, kAllCc};
  return all ? all_of[cond] : any_of[cond];
}

std::uint8_t Lowerer::decide(const Bool* b, bool all, bool when) {
  memo_.clear();
  std::uint8_t cond = flags(b);
  memo_.clear();
  return when ? branch_cond(cond, all) : branch_cond(flip(cond), !all);
}

bool Lowerer::clobbers(const Expr* e) {
  if (!e) return false;
  return e->op == Op::select || e->op == Op::umin || e->op == Op::umax || clobbers(e->a) ||
         clobbers(e->b);
}

}  // namespace weft::qpu::mir
