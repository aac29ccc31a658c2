// SPDX-License-Identifier: Apache-2.0
// Sums of products as GEMM, everything else on vta.acc as chains of ALU operations.
#include <algorithm>

#include "weft/ir/text.h"
#include "weft/targets/vta/lowering.h"

namespace weft::vta {

using namespace ir;

bool Lowering::product(const Nest& nest, const Placed& dst) {
  const StoreNode* s = nest.update;
  const auto* sum = as<BinaryNode>(s->value);
  if (!sum || sum->kind != ExprKind::add) return false;
  const LoadNode* self = as<LoadNode>(sum->a);
  Expr other = sum->b;
  if (!self || self->buffer.get() != s->buffer.get()) self = as<LoadNode>(sum->b), other = sum->a;
  const auto* mul = as<BinaryNode>(other);
  if (!self || self->buffer.get() != s->buffer.get() || !mul || mul->kind != ExprKind::mul)
    return false;
  const LoadNode *x = as<LoadNode>(strip_widening(mul->a)),
                 *w = as<LoadNode>(strip_widening(mul->b));
  if (!x || !w) return false;
  const Placed *px = placed(x->buffer.get()), *pw = placed(w->buffer.get());
  if (px && pw && px->mem == MemType::wgt && pw->mem == MemType::inp)
    std::swap(x, w), std::swap(px, pw);
  if (!px || !pw || px->mem != MemType::inp || pw->mem != MemType::wgt) {
    no_unit("operand",
            cat("the product of \"", x->buffer->name, "\" (", x->buffer->scope, ") and \"",
                w->buffer->name, "\" (", w->buffer->scope, ") cannot be summed"),
            s, "GEMM multiplies vta.inp by vta.wgt into vta.acc");
  }
  Affine d = index(s->indices, nest, s), a = index(x->indices, nest, s),
         b = index(w->indices, nest, s);
  if (index(self->indices, nest, s) != d)
    no_unit("alias", "the sum is read and written at different places", s);
  const std::int64_t B = c_.batch(), K = c_.block_in(), O = c_.block_out();
  bool batch = B == 1, in = K == 1, out = O == 1;
  std::vector<Loop> dims;
  for (std::size_t i = 0; i < nest.loops.size(); ++i) {
    std::int64_t n = nest.loops[i].extent;
    if (n == 1) continue;
    if (!batch && n == B && d.coeff[i] == O && a.coeff[i] == K && b.coeff[i] == 0) {
      batch = true;
    } else if (!out && n == O && d.coeff[i] == 1 && a.coeff[i] == 0 && b.coeff[i] == K) {
      out = true;
    } else if (!in && n == K && d.coeff[i] == 0 && a.coeff[i] == 1 && b.coeff[i] == 1) {
      in = true;
    } else {
      if (d.coeff[i] % (B * O) || a.coeff[i] % (B * K) || b.coeff[i] % (K * O) || d.coeff[i] < 0 ||
          a.coeff[i] < 0 || b.coeff[i] < 0) {
        no_unit("gemm",
                cat("a loop of ", n, " steps by ", d.coeff[i], ", ", a.coeff[i], " and ",
                    b.coeff[i], " scalars of the sum, the input and the weights"),
                s,
                cat("GEMM works on elements of ", B * O, ", ", B * K, " and ", K * O, " scalars"));
      }
      dims.push_back({n, d.coeff[i] / (B * O), a.coeff[i] / (B * K), b.coeff[i] / (K * O)});
    }
  }
  if (!batch || !in || !out) {
    no_unit(
        "gemm",
        cat("the innermost loops are not those of GEMM: ", batch ? "" : cat("a batch of ", B, " "),
            out ? "" : cat("an output block of ", O, " "), in ? "" : cat("a sum over ", K)),
        s,
        cat("needed: sum[", B, "][", O, "] += input[", B, "][", K, "] * weights[", O, "][", K,
            "], the last index of each neighbouring in memory"));
  }
  if (d.base % (B * O) || a.base % (B * K) || b.base % (K * O))
    no_unit("gemm", "an operand does not begin at an element", s);
  if (nest.init) reset_for(nest, dst);
  Uop first{element(dst.at + d.base / (B * O)), element(px->at + a.base / (B * K)),
            element(pw->at + b.base / (K * O))};
  emit([this, k = UopKernel::compress(std::move(dims), first)] { b_.gemm(k); });
  return true;
}

void Lowering::emit_reset(std::vector<Loop> dims, std::uint32_t dst) {
  emit([this, k = UopKernel::compress(std::move(dims), {dst, 0, 0})] { b_.reset(k); });
}

void Lowering::emit_alu(AluOp op, UopKernel kernel, std::int64_t number) {
  emit([this, op, number, k = std::move(kernel)] { b_.alu_imm(op, k, number); });
}

std::vector<UopKernel::Loop> Lowering::acc_dims(const Nest& nest, const Affine& d,
                                                const Affine* src, bool keep_sums,
                                                const StmtNode* where) const {
  const std::int64_t lanes = c_.lanes();
  std::int64_t covered = 1;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < nest.loops.size(); ++i) {
    if (nest.loops[i].extent > 1) order.push_back(i);
  }
  std::vector<bool> lane(nest.loops.size(), false);
  std::vector<Loop> out;
  std::sort(order.begin(), order.end(),
            [&](std::size_t x, std::size_t y) { return d.coeff[x] < d.coeff[y]; });
  for (std::size_t i : order) {
    std::int64_t n = nest.loops[i].extent, step = d.coeff[i], other = src ? src->coeff[i] : step;
    if (step == 0 && !keep_sums) continue;
    if (step != 0 && covered < lanes && step == covered) {
      if (other != covered)
        no_unit("alu", "the operands' lanes are laid out differently", where,
                cat("both must be elements of ", lanes, " lanes"));
      if (n * covered <= lanes) {
        covered *= n;
        continue;
      }
      if (n % (lanes / covered))
        no_unit("alu", cat("runs of ", n * covered, " lanes do not make up elements of ", lanes),
                where);
      out.push_back({n / (lanes / covered), 1, 1, 0});
      covered = lanes;
      continue;
    }
    if (step % lanes || other % lanes || step < 0 || other < 0)
      no_unit("alu",
              cat("a loop steps by ", step, " and ", other, " lanes, no whole elements of ", lanes),
              where);
    out.push_back({n, step / lanes, other / lanes, 0});
  }
  if (covered != lanes)
    no_unit("alu", cat("the nest covers ", covered, " neighbouring lanes, an element has ", lanes),
            where);
  if (d.base % lanes || (src && src->base % lanes))
    no_unit("alu", "it begins inside an element", where);
  std::reverse(out.begin(), out.end());
  return out;
}

void Lowering::reset_for(const Nest& nest, const Placed& dst) {
  const StoreNode* s = nest.init;
  if (!is_const_int_value(strip_casts(s->value), 0))
    no_unit("init", cat("a sum begins at ", print(s->value)), s,
            "GEMM's reset sets to 0; add another start with ALU");
  Affine d = index(s->indices, nest, s);
  if (nest.init_guard && !first_step(nest.init_guard, nest, d, s)) return;
  emit_reset(acc_dims(nest, d, nullptr, false, s), element(dst.at + d.base / c_.lanes()));
}

bool Lowering::first_step(const Expr& guard, const Nest& nest, const Affine& d,
                          const StmtNode* where) const {
  if (const auto* both = as<BinaryNode>(guard); both && both->kind == ExprKind::and_) {
    return first_step(both->a, nest, d, where) && first_step(both->b, nest, d, where);
  }
  const auto* equal = as<BinaryNode>(guard);
  std::optional<Affine> x, y;
  if (equal && equal->kind == ExprKind::eq)
    x = affine(equal->a, nest.loops, env_), y = affine(equal->b, nest.loops, env_);
  if (!x || !y)
    no_unit("init", cat("the condition ", print(guard), " of the initial value is not understood"),
            where);
  for (std::size_t i = 0; i < nest.loops.size(); ++i) {
    x->coeff[i] -= y->coeff[i];
    if (x->coeff[i] == 0) continue;
    if (d.coeff[i] != 0 || x->coeff[i] < 0)
      no_unit("init",
              cat("the condition ", print(guard), " of the initial value differs between results"),
              where);
  }
  return x->base == y->base;
}

void Lowering::chain(const Nest& nest, const Expr& value, const StoreNode* s, const Placed& dst) {
  Affine d = index(s->indices, nest, s);
  int steps = 0;
  std::vector<Loop> in_place = acc_dims(nest, d, nullptr, true, s);
  Uop here{element(dst.at + d.base / c_.lanes()), element(dst.at + d.base / c_.lanes()), 0};
  for (Loop& l : in_place) l.src = l.dst;
  bool sums = std::any_of(in_place.begin(), in_place.end(),
                          [](const Loop& l) { return l.dst == 0 && l.extent > 1; });
  evaluate(nest, value, s, dst, d, in_place, here, steps);
  if (sums && steps > 1)
    no_unit("alu", "a chain of operations inside a reduction has no order on this machine", s,
            "one operation per reduction");
}

void Lowering::evaluate(const Nest& nest, const Expr& e, const StoreNode* s, const Placed& dst,
                        const Affine& d, const std::vector<Loop>& in_place, const Uop& here,
                        int& steps) {
  Expr v = strip_widening(e);
  auto reset = [&] {
    std::vector<Loop> dims = in_place;
    for (Loop& l : dims) l.src = 0;
    emit_reset(std::move(dims), here.dst);
  };
  std::int64_t number;
  if (is_const_int(v, &number)) {
    reset();
    UopKernel all = UopKernel::compress(in_place, here);
    auto low = static_cast<std::int16_t>(number & 0xffff);
    std::int64_t high = (number - low) >> 16;
    if (high) {  // more than 16 bits: in two halves
      emit_alu(AluOp::add, all, high == 32768 ? -32768 : high);
      emit_alu(AluOp::shr, all, -16);
    }
    if (low) emit_alu(AluOp::add, all, low);
    return;
  }
  if (const auto* c = as<CastNode>(v)) {  // keeps fewer bits: up and down again
    if (!c->dtype.is_int()) unsupported(v, s);
    evaluate(nest, c->value, s, dst, d, in_place, here, steps);
    steps += 2;
    UopKernel all = UopKernel::compress(in_place, here);
    emit_alu(AluOp::shr, all, c->dtype.bits - 32);
    emit_alu(AluOp::shr, all, 32 - c->dtype.bits);
    return;
  }
  if (const auto* load = as<LoadNode>(v)) {
    if (load->buffer.get() == s->buffer.get()) {
      if (index(load->indices, nest, s) != d)
        no_unit("alias",
                cat("\"", s->buffer->name, "\" is read at another place than it is written"), s);
      return;
    }
    reset();  // there is no move: zero, then add
    operand(AluOp::add, nest, load, s, dst, d, here, steps);
    return;
  }
  AluOp op = AluOp::add;
  Expr a, b;
  bool negate = false;
  if (const auto* bin = as<BinaryNode>(v)) {
    a = bin->a, b = bin->b;
    switch (bin->kind) {
      case ExprKind::add: op = AluOp::add; break;
      case ExprKind::sub: op = AluOp::add, negate = true; break;
      case ExprKind::mul: op = AluOp::mul; break;
      case ExprKind::min: op = AluOp::min; break;
      case ExprKind::max: op = AluOp::max; break;
      default: unsupported(v, s);
    }
  } else if (const auto* call = as<CallNode>(v);
             call && call->args.size() == 2 &&
             (call->op == "shift_right" || call->op == "shift_left")) {
    a = call->args[0], b = call->args[1], op = AluOp::shr, negate = call->op == "shift_left";
  } else {
    unsupported(v, s);
  }
  bool commutes = op != AluOp::shr && !negate;
  auto simple = [](const Expr& x) {
    return is_const_int(strip_widening(x)) || as<LoadNode>(strip_widening(x));
  };
  auto is_self = [&](const Expr& x) {
    const auto* l = as<LoadNode>(strip_widening(x));
    return l && l->buffer.get() == s->buffer.get();
  };
  if (commutes &&
      (is_const_int(strip_widening(a)) || (simple(a) && !simple(b)) || (is_self(b) && !is_self(a))))
    std::swap(a, b);
  if (!simple(b))
    no_unit("alu", cat("both sides of ", print(v), " are expressions"), s,
            "give one of them a buffer of its own in vta.acc");
  if (is_self(b) && !is_self(a))
    no_unit("alias",
            cat("\"", s->buffer->name, "\" would be overwritten before ", print(v), " reads it"),
            s);
  evaluate(nest, a, s, dst, d, in_place, here, steps);
  ++steps;
  if (is_const_int(strip_widening(b), &number)) {
    emit_alu(op, UopKernel::compress(in_place, here), negate ? -number : number);
    return;
  }
  if (negate)
    no_unit("alu", cat("the machine cannot do ", print(v), " with two buffers"), s,
            "it subtracts and shifts left by constants only");
  operand(op, nest, as<LoadNode>(strip_widening(b)), s, dst, d, here, steps);
}

void Lowering::operand(AluOp op, const Nest& nest, const LoadNode* load, const StoreNode* s,
                       const Placed&, const Affine& d, const Uop& here, int&) {
  const Placed* src = placed(load->buffer.get());
  if (!src || src->mem != MemType::acc) {
    no_unit("operand",
            cat("ALU reads vta.acc, but \"", load->buffer->name, "\" lies in \"",
                load->buffer->scope, "\""),
            s, cat("sch.cache_read(block, i, \"vta.acc\") brings it there"));
  }
  Affine x = index(load->indices, nest, s);
  if (load->buffer.get() == s->buffer.get() && x != d)
    no_unit("alias", cat("\"", s->buffer->name, "\" is read at another place than it is written"),
            s);
  emit([this, op,
        k = UopKernel::compress(acc_dims(nest, d, &x, true, s),
                                {here.dst, element(src->at + x.base / c_.lanes()), 0})] {
    b_.alu(op, k);
  });
}

void Lowering::unsupported(const Expr& v, const StoreNode* s) const {
  no_unit("operation", cat("the machine cannot compute ", print(v)), s,
          "ALU does min, max, +, * and shifts of int32; GEMM sums of int8 products");
}

}  // namespace weft::vta
