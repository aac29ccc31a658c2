// SPDX-License-Identifier: Apache-2.0
// From the kernel's tree to operations over virtual registers: strength reduction, exact
// comparisons, lane patterns of addresses, loops tested at the bottom.

#include <bit>
#include <map>
#include <optional>
#include <unordered_map>

#include "weft/base/error.h"
#include "weft/targets/qpu/compiler/mir.h"
#include "weft/targets/qpu/compiler/patterns.h"
#include "weft/targets/qpu/float.h"

namespace weft::qpu::mir {

namespace {
using ast::Bool;
using ast::Expr;
using ast::Op;
using ast::Stmt;
using namespace hw;

constexpr unsigned kRowsPerQpu =
    5;  // VPM rows: 12 x 5 = 60 of 64; 0: stores, 1: loads, 2 to 4: spills

class Lowerer : private Patterns {
 public:
  Lowerer(const ast::Program& p, bool may_spill) : Patterns(p) { f_.may_spill = may_spill; }

  Function run() {
    f_.vregs = p_.vars;
    f_.needs_acc.assign(p_.vars, false);
    patterns();
    start_block();
    // Uniforms are read in order at the start.
    f_.uniforms = {"me", "count"};
    unsigned pointers = 0, scalars = 0;
    for (const ast::Param& param : p_.params) {
      if (param.kind == ast::Param::Kind::pointer) f_.uniforms.push_back(cat("p", pointers++));
      else f_.uniforms.push_back(cat(param.kind == ast::Param::Kind::real ? "f" : "s", scalars++));
    }
    if (f_.may_spill) spill_setup();
    for (std::size_t u = f_.may_spill ? 1 : 0; u < f_.uniforms.size(); ++u) {
      uniform_.push_back(temp());
      move(Dst::of(uniform_.back()), Src::read(kRUniform));
    }
    scan(p_.body);
    if (uses_store_ || uses_load_) {
      Src first = first_row();
      auto plus = [&](std::uint32_t base, unsigned shift, unsigned extra) {
        return row_setup(first, base, shift, extra);
      };
      if (uses_store_) {
        if (f_.may_spill) {
          vpm_write_setup_ = plus(0x00001a00, 0, 0);  // spilling writes other rows
        } else {
          // Stride 64 wraps to the same row: one set-up serves all stores.
          move(Dst::write(kWVpmSetup, 1), plus(0x00000a00, 0, 0));
        }
        store_setup_ = plus(write_strided_ ? 0x88010000 : 0x80904000, 7, 0);
        if (uses_count_)
          count_setup_ =
              plus(write_strided_ ? 0x80010000 : 0x80804000, 7, 0);  // plus depth or units
        emit_ldi(Dst::write(kWVpmSetup, 1), 0xc0000000);
      }
      if (uses_load_) {
        load_setup_ = plus(0x83010000, 4, 1);
        vpm_read_setup_ = plus(0x00101a00, 0, 1);
      }
    }
    if (uses_lanes_) {
      Src element = fresh_move(Src::read(kRElementA, 0));
      lane4_ = temp();
      add_to(kShl, Dst::of(lane4_), element, Src::constant(2));
    }
    statements(p_.body);
    finish();
    return std::move(f_);
  }

 private:
  // ---- set-up words of this QPU's rows of the VPM
  Src first_row() {
    std::uint32_t number = temp(), row = temp();
    move(Dst::of(number), Src::read(kRQpuB, 1));
    mul(kMul24, Dst::of(row), Src::of(number), Src::constant(kRowsPerQpu));
    return Src::of(row);
  }
  Src row_setup(Src row, std::uint32_t base, unsigned shift, unsigned extra) {
    if (extra) row = add(kAdd, row, Src::constant(extra));
    if (shift) row = add(kShl, row, Src::constant(shift));
    return add(kAdd, row, big(base));
  }
  /// Before all else: whatever is defined later may be spilled.
  void spill_setup() {
    f_.uniforms.insert(f_.uniforms.begin(), "spill");
    f_.spill_first = f_.vregs;
    std::uint32_t base = temp();
    move(Dst::of(base), Src::read(kRUniform));
    Src row = first_row();
    // Variables with two definitions: the optimiser leaves them where they are.
    auto keep = [&](Src s) {
      std::uint32_t v = temp();
      move(Dst::of(v), Src::constant(0));
      move(Dst::of(v), s);
      return v;
    };
    f_.spill = {base, keep(row_setup(row, 0x00001a00, 0, 2)),
                keep(row_setup(row, 0x80904000, 7, 2)), keep(row_setup(row, 0x83010000, 4, 3)),
                keep(row_setup(row, 0x00101a00, 0, 3))};
    f_.spill_last = f_.vregs;
  }

  // ---- emission
  Block& block() { return f_.blocks.back(); }
  void start_block() {
    f_.blocks.emplace_back();
    block().depth = depth_;
    block().place = place_;
  }
  std::uint32_t temp(bool acc = false) {
    f_.needs_acc.push_back(acc);
    return f_.vregs++;
  }
  void emit(Ins i) {
    i.place = place_;
    if (i.d.kind == Dst::vreg)
      for (Copy& c : copies_)
        if (c.var == i.d.value) c.temp = 0;
    block().code.push_back(i);
  }
  void add_to(unsigned op, Dst d, Src a, Src b, std::uint8_t cond = kAlways, bool sf = false) {
    Ins i;
    i.unit = Unit::add, i.op = static_cast<std::uint8_t>(op), i.d = d, i.a = a, i.b = b,
    i.cond = cond, i.sf = sf;
    if (a.kind == Src::imm && b.kind == Src::imm && a.value != b.value) i.a = fresh_move(a);
    emit(i);
  }
  Src add(unsigned op, Src a, Src b) {
    std::uint32_t t = temp();
    add_to(op, Dst::of(t), a, b);
    return Src::of(t);
  }
  void mul(unsigned op, Dst d, Src a, Src b, std::uint8_t cond = kAlways) {
    Ins i;
    i.unit = Unit::mul, i.op = static_cast<std::uint8_t>(op), i.d = d, i.a = a, i.b = b,
    i.cond = cond;
    if (a.kind == Src::imm && b.kind == Src::imm && a.value != b.value) i.a = fresh_move(a);
    emit(i);
  }
  Src mul(unsigned op, Src a, Src b) {
    std::uint32_t t = temp();
    mul(op, Dst::of(t), a, b);
    return Src::of(t);
  }
  void move(Dst d, Src a, std::uint8_t cond = kAlways) {
    Ins i;
    i.unit = Unit::move, i.d = d, i.a = a, i.cond = cond;
    emit(i);
  }
  Src fresh_move(Src a) {
    std::uint32_t t = temp();
    move(Dst::of(t), a);
    return Src::of(t);
  }
  void emit_ldi(Dst d, std::uint32_t value, std::uint8_t cond = kAlways) {
    Ins i;
    i.unit = Unit::ldi, i.d = d, i.imm = value, i.cond = cond;
    emit(i);
  }
  Src big(std::uint32_t value) {
    if (find_small_immediate(value) >= 0) return Src::constant(value);
    std::uint32_t t = temp();
    emit_ldi(Dst::of(t), value);
    return Src::of(t);
  }

  // ---- what the kernel uses
  void scan_expr(const Expr* e) {
    if (!e) return;
    if (e->op == Op::deref) uses_lanes_ = true;
    if (e->op == Op::vload) uses_load_ = true;
    scan_expr(e->a), scan_expr(e->b);
    if (e->cond) scan_bool(e->cond);
  }
  void scan_bool(const Bool* b) {
    if (!b) return;
    scan_expr(b->x), scan_expr(b->y), scan_bool(b->l), scan_bool(b->r);
  }
  void scan(const std::vector<const Stmt*>& list) {
    for (const Stmt* s : list) {
      scan_expr(s->value), scan_expr(s->address), scan_expr(s->count), scan_bool(s->cond);
      if (s->op == Stmt::Op::store) uses_store_ = true, uses_count_ = uses_count_ || s->count;
      if (s->op == Stmt::Op::write_stride) write_strided_ = true;
      if (s->op == Stmt::Op::read_stride) read_strided_ = true;
      scan(s->body), scan(s->other);
    }
  }

  // ---- expressions
  Src lower(const Expr* e) {
    if (auto c = known(e)) return big(*c);
    if (e->op == Op::var) return Src::of(e->value);
    if (e->op == Op::uniform) return Src::of(uniform_.at(e->value));
    if (auto found = memo_.find(e); found != memo_.end()) return found->second;
    std::uint32_t t = temp();
    lower_to(e, Dst::of(t), kAlways);
    memo_.emplace(e, Src::of(t));
    return Src::of(t);
  }

  /// Whether a value is surely below 2^24 (so that mul24 takes it whole), or below 2^8.
  bool below(const Expr* e, unsigned bits) const {
    if (auto c = known(e)) return *c >> bits == 0;
    switch (e->op) {
      case Op::element: return true;
      case Op::uniform: return e->value < 2;
      case Op::bit_and: return below(e->a, bits) || below(e->b, bits);
      case Op::shr: return e->b->op == Op::constant && (e->b->value & 31) >= 32 - bits;
      default: return false;
    }
  }

  /// Both operands, the second first. C++ leaves the order of a call's arguments to the host's
  /// compiler; the words must not depend on it.
  std::pair<Src, Src> operands(const Expr* x, const Expr* y) {
    Src second = lower(y), first = lower(x);
    return {first, second};
  }

  void multiply(const Expr* x, const Expr* y, Dst d, std::uint8_t cond) {
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
        return add_to(kAdd, d, add(kShl, v, shift(static_cast<unsigned>(std::countr_zero(n - 1)))),
                      v, cond);
      }
      if (std::has_single_bit(n + 1)) {
        Src v = lower(x);
        return add_to(kSub, d, add(kShl, v, shift(static_cast<unsigned>(std::countr_zero(n + 1)))),
                      v, cond);
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

  /// Shift amounts: only five bits count, so 16 to 31 are written as -16 to -1.
  static Src shift(unsigned n) { return Src::constant(n < 16 ? n : n - 32); }

  /// A value in a register that can be rotated. Copies of the two variables last asked for are used
  /// again: more would leave too few such registers.
  Src rotatable(const Expr* e) {
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

  void rotate(const Expr* e, Dst d, std::uint8_t cond) {
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

  Src address_of_row(const Expr* address) {
    Pattern x = pattern(address);
    if (!read_strided_ && x == Pattern(4)) return lower(address);
    if (x == Pattern(0)) return add(kAdd, lower(address), Src::of(lane4_));
    move(Dst::write(kWR5, 1), lower(address));
    return add(kAdd, Src{Src::r5, 0, kFileAny}, Src::of(lane4_));
  }

  void tmu_read(unsigned unit, Dst d, std::uint8_t cond) {
    Ins i;
    i.unit = Unit::tmu_load, i.op = static_cast<std::uint8_t>(unit);
    emit(i);
    move(d, Src{Src::r4, 0, kFileAny}, cond);
  }

  /// Evaluates `e` into `d` where `cond` holds; never touches the flags unless clobbers(e).
  void lower_to(const Expr* e, Dst d, std::uint8_t cond) {
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
        unsigned address =
            kWRecip + static_cast<unsigned>(e->op) - static_cast<unsigned>(Op::recip);
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

  // ---- conditions
  static std::uint8_t flip(std::uint8_t cond) { return cond ^ 1; }

  /// Sets the flags; returns the condition that is true where `b` is.
  std::uint8_t flags(const Bool* b) {
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

  /// One where `b` holds, else zero.
  Src mask(const Bool* b) {
    std::uint8_t cond = flags(b);
    std::uint32_t t = temp();
    move(Dst::of(t), Src::constant(0));
    move(Dst::of(t), Src::constant(1), cond);
    return Src::of(t);
  }

  static std::uint8_t branch_cond(std::uint8_t cond, bool all) {
    static constexpr std::uint8_t any_of[] = {0, 0, kAnyZs, kAnyZc, kAnyNs, kAnyNc, kAnyCs, kAnyCc};
    static constexpr std::uint8_t all_of[] = {0, 0, kAllZs, kAllZc, kAllNs, kAllNc, kAllCs, kAllCc};
    return all ? all_of[cond] : any_of[cond];
  }
  /// Branch condition that is true when (any|all lanes hold b) == `when`.
  std::uint8_t decide(const Bool* b, bool all, bool when) {
    memo_.clear();
    std::uint8_t cond = flags(b);
    memo_.clear();
    return when ? branch_cond(cond, all) : branch_cond(flip(cond), !all);
  }

  static bool clobbers(const Expr* e) {
    if (!e) return false;
    return e->op == Op::select || e->op == Op::umin || e->op == Op::umax || clobbers(e->a) ||
           clobbers(e->b);
  }

  // ---- statements
  void statements(const std::vector<const Stmt*>& list) {
    for (const Stmt* s : list) statement(*s);
  }

  void statement(const Stmt& s) {
    memo_.clear();
    if (s.place.line) place_ = s.place;
    switch (s.op) {
      case Stmt::Op::assign: return lower_to(s.value, Dst::of(s.var), kAlways);
      case Stmt::Op::gather:
        return lower_to(s.address, Dst::write(s.all ? kWTmu1S : kWTmu0S), kAlways);
      case Stmt::Op::receive: return tmu_read(s.all, Dst::of(s.var), kAlways);
      case Stmt::Op::store: return store(s);
      case Stmt::Op::flush: return wait_store();
      case Stmt::Op::if_: return if_statement(s);
      case Stmt::Op::while_: return while_statement(s);
      case Stmt::Op::where: return where(s, Src());
      case Stmt::Op::print_text: return print("text", s);
      case Stmt::Op::print_int: return print("int", s);
      case Stmt::Op::print_uint: return print("uint", s);
      case Stmt::Op::print_float: return print("float", s);
      case Stmt::Op::read_stride: {
        if (!uses_lanes_) return;
        Src n = lower(s.value), step = add(kShl, add(kAdd, n, Src::constant(1)), Src::constant(2));
        Src element = fresh_move(Src::read(kRElementA, 0));
        return mul(kMul24, Dst::of(lane4_), element, step);
      }
      case Stmt::Op::write_stride: {
        if (!uses_store_) return;
        wait_store();
        Src bytes = add(kShl, lower(s.value), Src::constant(2));
        return add_to(kAdd, Dst::write(kWVpmSetup, 1), bytes, big(0xc0000000));
      }
      case Stmt::Op::semaphore_up: return semaphore(s.var, false);
      case Stmt::Op::semaphore_down: return semaphore(s.var, true);
      case Stmt::Op::host_interrupt: return move(Dst::write(kWHostInt), Src::constant(1));
      case Stmt::Op::barrier: return;
    }
  }

  void semaphore(unsigned number, bool acquire) {
    Ins i;
    i.unit = Unit::semaphore, i.op = static_cast<std::uint8_t>(number), i.acquire = acquire;
    emit(i);
  }
  void wait_store() {
    if (!uses_store_) return;
    Ins i;
    i.unit = Unit::wait, i.op = 1;
    emit(i);
  }

  void store(const Stmt& s) {
    if (!s.count) return store_now(s, store_setup_);
    // Nothing for n <= 0; at most 16.
    std::uint32_t n = temp();
    Src most = big(16), count = lower(s.count);
    add_to(kMin, Dst::of(n), count, most);
    move(Dst::write(kWR5, 1), Src::of(n));  // lane 0 decides
    std::uint32_t m = temp();
    move(Dst::of(m), Src{Src::r5, 0, kFileAny});
    add_to(kMax, Dst(), Src::of(m), Src::constant(0), kAlways, true);  // C: m > 0
    memo_.clear();
    std::size_t from = f_.blocks.size() - 1;
    f_.blocks[from].cond = kAllCc;
    start_block();
    Src setup = add(kAdd, count_setup_, add(kShl, Src::of(m), shift(write_strided_ ? 23 : 16)));
    store_now(s, setup);
    start_block();
    f_.blocks[from].jump = static_cast<std::int32_t>(f_.blocks.size() - 1);
  }

  void store_now(const Stmt& s, Src setup) {
    Src a = lower(s.address);
    Src v;
    bool late = clobbers(s.value) || s.value->op == Op::deref || s.value->op == Op::vload ||
                s.value->op == Op::fetch;
    if (late) v = lower(s.value);
    wait_store();
    if (late) move(Dst::write(kWVpm), v);
    else lower_to(s.value, Dst::write(kWVpm), kAlways);
    if (f_.may_spill) {  // directly before the write, so that nothing can come between
      Ins set;
      set.unit = Unit::move, set.d = Dst::write(kWVpmSetup, 1), set.a = vpm_write_setup_,
      set.place = place_;
      block().code.insert(block().code.end() - 1, set);
    }
    move(Dst::write(kWVpmSetup, 1), setup);
    move(Dst::write(kWDmaAddr, 1), a);
  }

  void if_statement(const Stmt& s) {
    std::uint8_t skip = decide(s.cond, s.all, false);
    std::size_t from = f_.blocks.size() - 1;
    f_.blocks[from].cond = skip;
    start_block();
    statements(s.body);
    if (!s.other.empty()) {
      std::size_t end_of_then = f_.blocks.size() - 1;
      start_block();
      f_.blocks[from].jump = static_cast<std::int32_t>(f_.blocks.size() - 1);
      statements(s.other);
      start_block();
      f_.blocks[end_of_then].jump = static_cast<std::int32_t>(f_.blocks.size() - 1);
      f_.blocks[end_of_then].cond = kBranchAlways;
    } else {
      start_block();
      f_.blocks[from].jump = static_cast<std::int32_t>(f_.blocks.size() - 1);
    }
  }

  void while_statement(const Stmt& s) {
    std::uint8_t skip = decide(s.cond, s.all, false);
    std::size_t guard = f_.blocks.size() - 1;
    f_.blocks[guard].cond = skip;
    start_block();  // preheader: hoisted code goes here
    ++depth_;
    start_block();
    std::size_t first = f_.blocks.size() - 1;
    statements(s.body);
    if (s.place.line) place_ = s.place;
    std::uint8_t again = decide(s.cond, s.all, true);
    std::size_t last = f_.blocks.size() - 1;
    f_.blocks[last].jump = static_cast<std::int32_t>(first);
    f_.blocks[last].cond = again;
    --depth_;
    f_.loops.push_back({first, last});
    start_block();
    f_.blocks[guard].jump = static_cast<std::int32_t>(f_.blocks.size() - 1);
  }

  static bool simple(const std::vector<const Stmt*>& list) {
    for (const Stmt* s : list) {
      if (s->op != Stmt::Op::assign || clobbers(s->value)) return false;
    }
    return true;
  }

  void where(const Stmt& s, Src outer) {
    if (outer.kind == Src::none && simple(s.body) && simple(s.other)) {
      std::uint8_t cond = flags(s.cond);
      for (const Stmt* x : s.body) memo_.clear(), lower_to(x->value, Dst::of(x->var), cond);
      for (const Stmt* x : s.other) memo_.clear(), lower_to(x->value, Dst::of(x->var), flip(cond));
      return;
    }
    Src m = mask(s.cond);
    auto part = [&](const std::vector<const Stmt*>& list, Src active) {
      for (const Stmt* x : list) {
        memo_.clear();
        if (x->op == Stmt::Op::where) {
          where(*x, active);
          continue;
        }
        Src v = lower(x->value);
        add_to(kOr, Dst(), active, active, kAlways, true);
        move(Dst::of(x->var), v, kZc);
      }
    };
    Src inside = outer.kind == Src::none ? m : add(kAnd, m, outer);
    part(s.body, inside);
    if (!s.other.empty()) {
      memo_.clear();
      Src not_m = add(kXor, m, Src::constant(1));
      part(s.other, outer.kind == Src::none ? not_m : add(kAnd, not_m, outer));
    }
  }

  void print(const char* kind, const Stmt& s) {
    if (s.value) lower_to(s.value, Dst::write(0, 0), kAlways);  // ra0 is kept for this
    Ins i;
    i.unit = Unit::breakpoint;
    i.print = static_cast<std::int32_t>(f_.prints.size());
    f_.prints.push_back({kind, s.text});
    emit(i);
  }

  /// All stores done; QPU 0 waits for the others and interrupts the host.
  void finish() {
    memo_.clear();
    place_ = {};
    wait_store();
    add_to(kOr, Dst(), Src::of(uniform_[0]), Src::of(uniform_[0]), kAlways, true);
    std::size_t from = f_.blocks.size() - 1;
    f_.blocks[from].cond = kAllZc;
    start_block();
    std::uint32_t left = temp();
    add_to(kSub, Dst::of(left), Src::of(uniform_[1]), Src::constant(1), kAlways, true);
    std::size_t guard = f_.blocks.size() - 1;
    f_.blocks[guard].cond = kAllZs;
    start_block();
    std::size_t loop = f_.blocks.size() - 1;
    semaphore(15, true);
    add_to(kSub, Dst::of(left), Src::of(left), Src::constant(1), kAlways, true);
    f_.blocks[loop].jump = static_cast<std::int32_t>(loop);
    f_.blocks[loop].cond = kAnyZc;
    start_block();
    std::size_t done = f_.blocks.size() - 1;
    f_.blocks[guard].jump = static_cast<std::int32_t>(done);
    move(Dst::write(kWHostInt), Src::constant(1));
    block().ends = true;
    start_block();
    f_.blocks[from].jump = static_cast<std::int32_t>(f_.blocks.size() - 1);
    semaphore(15, false);
    block().ends = true;
  }

  struct Copy {
    std::uint32_t var = 0, temp = 0;  // 0: none
    std::size_t block = 0, used = 0;
  };
  Copy copies_[2];  // of variables, where they can be rotated
  Function f_;
  int depth_ = 0;
  ast::Place place_;
  std::vector<std::uint32_t> uniform_;
  std::unordered_map<const Expr*, Src> memo_;
  bool uses_store_ = false, uses_load_ = false, uses_lanes_ = false, uses_count_ = false,
       write_strided_ = false, read_strided_ = false;
  std::uint32_t lane4_ = 0;
  Src vpm_write_setup_, store_setup_, count_setup_, load_setup_, vpm_read_setup_;
};
}  // namespace

Function lower(const ast::Program& program, bool may_spill) {
  return Lowerer(program, may_spill).run();
}

}  // namespace weft::qpu::mir
