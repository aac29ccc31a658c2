// SPDX-License-Identifier: Apache-2.0
#pragma once
// What lowering knows of expressions without making code: constants, and how values vary from lane
// to lane, over all assignments until nothing changes.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "weft/targets/qpu/float.h"
#include "weft/targets/qpu/language/ast.h"

namespace weft::qpu::mir {

/// value = offset + stride * lane with an unknown common offset; nullopt: no such pattern.
using Pattern = std::optional<std::int32_t>;

class Patterns {
 protected:
  using Bool = ast::Bool;
  using Expr = ast::Expr;
  using Op = ast::Op;
  using Stmt = ast::Stmt;

  explicit Patterns(const ast::Program& p) : p_(p) {}

  Pattern pattern(const Expr* e) const {
    switch (e->op) {
      case Op::constant:
      case Op::uniform: return 0;
      case Op::element: return 1;
      case Op::var: return e->value < var_pattern_.size() ? var_pattern_[e->value] : Pattern();
      case Op::add:
      case Op::sub: {
        Pattern x = pattern(e->a), y = pattern(e->b);
        if (!x || !y) return {};
        return e->op == Op::add ? *x + *y : *x - *y;
      }
      case Op::shl: {
        Pattern x = pattern(e->a);
        if (!x) return {};
        if (*x == 0 && pattern(e->b) == Pattern(0)) return 0;
        if (e->b->op != Op::constant) return {};
        return static_cast<std::int32_t>(static_cast<std::uint32_t>(*x) << (e->b->value & 31));
      }
      case Op::deref:
      case Op::fetch:
      case Op::vload:
      case Op::number: return {};
      case Op::rotate: return pattern(e->a) == Pattern(0) ? Pattern(0) : Pattern();
      case Op::broadcast: return 0;
      case Op::select: return {};
      default: {
        bool uniform = pattern(e->a) == Pattern(0) && (!e->b || pattern(e->b) == Pattern(0));
        return uniform ? Pattern(0) : Pattern();
      }
    }
  }
  void patterns() {
    // Optimistic: a variable keeps the pattern of its first assignment until another contradicts.
    var_pattern_.assign(p_.vars, Pattern());
    std::vector<std::uint8_t> state(p_.vars, 0);  // 0 unseen, 1 pattern, 2 none
    for (bool changed = true; changed;) {
      changed = false;
      visit(p_.body, false, [&](std::uint32_t var, const Expr* value, bool masked) {
        if (state[var] == 2) return;
        Pattern x;
        if (value && !masked) {
          if (depends_on_unseen(value, state)) return;
          x = pattern(value);
        }
        if (!x || (state[var] == 1 && var_pattern_[var] != x)) {
          state[var] = 2, var_pattern_[var] = {}, changed = true;
        } else if (state[var] == 0) {
          state[var] = 1, var_pattern_[var] = x, changed = true;
        }
      });
    }
  }
  bool depends_on_unseen(const Expr* e, const std::vector<std::uint8_t>& state) const {
    if (!e) return false;
    if (e->op == Op::var) return state[e->value] == 0;
    return depends_on_unseen(e->a, state) || depends_on_unseen(e->b, state);
  }
  template <typename F>
  void visit(const std::vector<const Stmt*>& list, bool masked, const F& f) const {
    for (const Stmt* s : list) {
      if (s->op == Stmt::Op::assign) f(s->var, s->value, masked);
      if (s->op == Stmt::Op::receive) f(s->var, nullptr, masked);
      visit(s->body, masked || s->op == Stmt::Op::where, f);
      visit(s->other, masked || s->op == Stmt::Op::where, f);
    }
  }

  static std::optional<std::uint32_t> known(const Expr* e) {
    if (e->op == Op::constant) return e->value;
    if (!e->a || e->op == Op::deref || e->op == Op::fetch || e->op == Op::vload ||
        e->op == Op::select)
      return {};
    auto x = known(e->a);
    if (!x) return {};
    if (e->op == Op::rotate || e->op == Op::broadcast) return x;
    auto y = e->b ? known(e->b) : std::optional<std::uint32_t>(0);
    if (!y) return {};
    switch (e->op) {
      case Op::bit_not: return ~*x;
      case Op::mul: return *x * *y;
      case Op::mul24: return hw::mul_lane(hw::kMul24, *x, *y).value;
      case Op::fmul: return hw::fmul(*x, *y);
      case Op::umin: return std::min(*x, *y);
      case Op::umax: return std::max(*x, *y);
      case Op::recip: return hw::sfu(hw::kWRecip, *x);
      case Op::rsqrt: return hw::sfu(hw::kWRsqrt, *x);
      case Op::exp2: return hw::sfu(hw::kWExp2, *x);
      case Op::log2: return hw::sfu(hw::kWLog2, *x);
      default: return hw::add_lane(add_op(e->op), *x, *y).value;
    }
  }
  static unsigned add_op(Op op) {
    switch (op) {
      case Op::bit_not: return hw::kNot;
      case Op::itof: return hw::kItof;
      case Op::ftoi: return hw::kFtoi;
      case Op::clz: return hw::kClz;
      case Op::add: return hw::kAdd;
      case Op::sub: return hw::kSub;
      case Op::fadd: return hw::kFadd;
      case Op::fsub: return hw::kFsub;
      case Op::fmin: return hw::kFmin;
      case Op::fmax: return hw::kFmax;
      case Op::min: return hw::kMin;
      case Op::max: return hw::kMax;
      case Op::shl: return hw::kShl;
      case Op::shr: return hw::kShr;
      case Op::asr: return hw::kAsr;
      case Op::ror: return hw::kRor;
      case Op::bit_and: return hw::kAnd;
      case Op::bit_or: return hw::kOr;
      default: return hw::kXor;
    }
  }

  const ast::Program& p_;
  std::vector<Pattern> var_pattern_;
};

}  // namespace weft::qpu::mir
