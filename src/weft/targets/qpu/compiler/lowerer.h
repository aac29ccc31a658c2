// SPDX-License-Identifier: Apache-2.0
#pragma once
// From the kernel's tree to operations over virtual registers: what its parts share. Expressions
// are lowered in lower_expression.cpp, statements in lower_statement.cpp.

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weft/base/error.h"
#include "weft/targets/qpu/compiler/mir.h"
#include "weft/targets/qpu/compiler/patterns.h"
#include "weft/targets/qpu/float.h"

namespace weft::qpu::mir {

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

  Function run();

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

  // ---- expressions (lower_expression.cpp)
  Src lower(const Expr* e);
  /// Whether a value is surely below 2^24 (so that mul24 takes it whole), or below 2^8.
  bool below(const Expr* e, unsigned bits) const;
  /// Both operands, the second first. C++ leaves the order of a call's arguments to the host's
  /// compiler; the words must not depend on it.
  std::pair<Src, Src> operands(const Expr* x, const Expr* y);
  void multiply(const Expr* x, const Expr* y, Dst d, std::uint8_t cond);
  /// Shift amounts: only five bits count, so 16 to 31 are written as -16 to -1.
  static Src shift(unsigned n) { return Src::constant(n < 16 ? n : n - 32); }
  /// A value in a register that can be rotated. Copies of the two variables last asked for are used
  /// again: more would leave too few such registers.
  Src rotatable(const Expr* e);
  void rotate(const Expr* e, Dst d, std::uint8_t cond);
  Src address_of_row(const Expr* address);
  void tmu_read(unsigned unit, Dst d, std::uint8_t cond);
  /// Evaluates `e` into `d` where `cond` holds; never touches the flags unless clobbers(e).
  void lower_to(const Expr* e, Dst d, std::uint8_t cond);
  // ---- conditions
  static std::uint8_t flip(std::uint8_t cond) { return cond ^ 1; }
  /// Sets the flags; returns the condition that is true where `b` is.
  std::uint8_t flags(const Bool* b);
  /// One where `b` holds, else zero.
  Src mask(const Bool* b);
  static std::uint8_t branch_cond(std::uint8_t cond, bool all);
  /// Branch condition that is true when (any|all lanes hold b) == `when`.
  std::uint8_t decide(const Bool* b, bool all, bool when);
  static bool clobbers(const Expr* e);

  // ---- statements (lower_statement.cpp)
  void statements(const std::vector<const Stmt*>& list);
  void statement(const Stmt& s);
  void semaphore(unsigned number, bool acquire);
  void wait_store();
  void store(const Stmt& s);
  void store_now(const Stmt& s, Src setup);
  void if_statement(const Stmt& s);
  void while_statement(const Stmt& s);
  static bool simple(const std::vector<const Stmt*>& list);
  void where(const Stmt& s, Src outer);
  void print(const char* kind, const Stmt& s);
  /// All stores done; QPU 0 waits for the others and interrupts the host.
  void finish();

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

}  // namespace weft::qpu::mir
