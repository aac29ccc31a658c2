// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/qpu/tensor/unroll.h"

#include <vector>

#include "weft/arith/analyzer.h"
#include "weft/ir/build.h"
#include "weft/ir/visit.h"
#include "weft/targets/qpu/tensor/peel.h"

namespace weft::qpu::tensor {

using namespace ir;

namespace {
constexpr std::size_t kStatements = 24, kReads = 20;  // what straight code may have in all

/// A loop's body as stores, its registers apart.
struct Straight {
  std::vector<const AllocateNode*> registers;
  std::vector<Stmt> stores;
  bool unrolled = false;
};

bool write_out(const Stmt& s, Straight& out) {
  if (const auto* list = as<SeqNode>(s)) {
    for (const Stmt& t : list->stmts)
      if (!write_out(t, out)) return false;
    return true;
  }
  if (const auto* a = as<AllocateNode>(s)) {
    if (a->buffer->scope != "local" || out.unrolled) return false;
    out.registers.push_back(a);
    return write_out(a->body, out);
  }
  if (const auto* loop = as<ForNode>(s)) {
    std::int64_t n = 0, first = 0;
    if (!serial_or_unrolled(loop) || !is_const_int(loop->extent, &n) ||
        !is_const_int(loop->min, &first) || n < 1 || n > static_cast<std::int64_t>(kStatements))
      return false;
    out.unrolled = true;
    for (std::int64_t i = 0; i < n; ++i) {
      Expr step = make_const(first + i, loop->var->dtype);
      if (!write_out(substitute(loop->body, {{loop->var.get(), step}}), out)) return false;
    }
    return true;
  }
  if (const auto* guard = as<IfNode>(s)) {  // of one step of the loops that are written out
    std::int64_t holds = 0;
    if (!is_const_int(arith::simplify(guard->condition), &holds)) return false;
    if (holds) return write_out(guard->then_case, out);
    return !guard->else_case || write_out(guard->else_case, out);
  }
  if (!as<StoreNode>(s) || out.stores.size() == kStatements) return false;
  out.stores.push_back(arith::simplify(s));
  return true;
}

std::size_t reads(const std::vector<Stmt>& stores) {
  std::size_t n = 0;
  for (const Stmt& s : stores) {
    const auto* t = as<StoreNode>(s);
    n += t->buffer->scope != "local";
    for_each_expr(t->value, [&](const Expr& e) {
      const auto* l = as<LoadNode>(e);
      n += l && l->buffer->scope != "local";
    });
  }
  return n;
}

/// Whether a loop's steps differ in the registers that they use: each then needs its own code.
bool chooses_registers(const std::vector<Stmt>& stores, const VarNode* v) {
  bool found = false;
  auto note = [&](const Buffer& b, const Exprs& indices) {
    for (const Expr& i : indices) found = found || (b->scope == "local" && uses_var(i, v));
  };
  for (const Stmt& s : stores) {
    note(as<StoreNode>(s)->buffer, as<StoreNode>(s)->indices);
    for_each_expr(as<StoreNode>(s)->value, [&](const Expr& e) {
      if (const auto* l = as<LoadNode>(e)) note(l->buffer, l->indices);
    });
  }
  return found;
}

class Unroll final : public Rewriter {
 protected:
  Stmt rewrite_for(const Stmt& s) override {
    const auto* loop = as<ForNode>(s);
    Straight out;
    if (!serial_or_unrolled(loop) || is_const_int_value(loop->extent, 1) ||
        !write_out(loop->body, out) || !out.unrolled || reads(out.stores) > kReads) {
      // A nest of small loops that stands alone, such as the rest of another loop's steps.
      Straight all;
      const bool nested = loop->body->kind == StmtKind::for_;
      if (nested && write_out(s, all) && reads(all.stores) <= kReads)
        return seq(std::move(all.stores));
      return Rewriter::rewrite_for(s);
    }
    Stmt done = make_for(loop->var, loop->min, loop->extent, seq(std::move(out.stores)),
                         loop->for_kind, loop->axis, loop->annotations);
    for (const AllocateNode* a : out.registers) done = allocate(a->buffer, done, a->annotations);
    return done;
  }
};
}  // namespace

Stmt unroll_guarded(const ForNode* loop) {
  const auto* guard = as<IfNode>(loop->body);
  Straight out;
  if (!guard || guard->else_case || !write_out(guard->then_case, out) ||
      reads(out.stores) > kReads || chooses_registers(out.stores, loop->var.get()))
    return nullptr;
  Stmt done = make_for(loop->var, loop->min, loop->extent,
                       if_then(guard->condition, seq(std::move(out.stores))), loop->for_kind,
                       loop->axis, with_annotation(loop->annotations, kPartialLast, true));
  for (const AllocateNode* a : out.registers) done = allocate(a->buffer, done, a->annotations);
  return done;
}

Stmt unroll_small(const Stmt& body) { return static_cast<Rewriter&&>(Unroll()).rewrite(body); }

}  // namespace weft::qpu::tensor
