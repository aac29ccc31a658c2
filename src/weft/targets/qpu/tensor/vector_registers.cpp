// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/qpu/tensor/vector_registers.h"

#include <unordered_map>

#include "weft/arith/analyzer.h"
#include "weft/ir/build.h"
#include "weft/ir/visit.h"
#include "weft/stages/linear.h"
#include "weft/targets/qpu/tensor/nest.h"

namespace weft::qpu::tensor {

using namespace ir;

namespace {
/// The number of the vector that an index names, and whether by its own lane; null: of none.
Expr vector_of(const Expr& index, const VarNode* lane, bool* own) {
  const auto by_lane = stages::linear_in(index, lane);
  if (!by_lane || !(by_lane->constant(0) || by_lane->constant(1))) return nullptr;
  *own = by_lane->constant(1);
  const Expr rest = arith::to_expr(by_lane->base, dtypes::int64);
  const arith::Modular m = arith::Analyzer().modular(rest);
  if (m.coeff % kLanes != 0 || m.base % kLanes != 0) return nullptr;
  return arith::simplify(floordiv(rest, make_int(kLanes)));
}

class Narrow final : public Rewriter {
 public:
  Narrow(const Stmt& body, const VarNode* lane) : lane_(lane) {
    for_each_stmt(body, [&](const Stmt& s) {
      if (const auto* t = as<StoreNode>(s)) note(t->buffer, t->indices);
    });
    for_each_expr(body, [&](const Expr& e) {
      if (const auto* l = as<LoadNode>(e)) note(l->buffer, l->indices);
    });
  }

 protected:
  Stmt rewrite_allocate(const Stmt& s) override {
    const auto* a = as<AllocateNode>(s);
    std::int64_t size = 0;
    const auto use = uses_.find(a->buffer.get());
    if (a->buffer->scope != "local" || use == uses_.end() || !use->second.vectors ||
        a->buffer->shape.size() != 1 || !is_const_int(a->buffer->shape[0], &size) || size < 2)
      return Rewriter::rewrite_allocate(s);
    auto narrow = edit(a->buffer);
    narrow->shape = {make_int((size + kLanes - 1) / kLanes)};
    narrowed_[a->buffer.get()] = narrow;
    return allocate(narrow, rewrite(a->body), a->annotations);
  }
  Expr rewrite_load(const Expr& e) override {
    const auto* l = as<LoadNode>(e);
    const auto to = narrowed_.find(l->buffer.get());
    if (to == narrowed_.end()) return Rewriter::rewrite_load(e);
    return load(to->second, {index(l->indices[0])});
  }
  Stmt rewrite_store(const Stmt& s) override {
    const auto* t = as<StoreNode>(s);
    const auto to = narrowed_.find(t->buffer.get());
    if (to == narrowed_.end()) return Rewriter::rewrite_store(s);
    return store(to->second, rewrite(t->value), {index(t->indices[0])});
  }

 private:
  struct Use {
    bool vectors = true, seen = false, own = false;
  };

  void note(const Buffer& b, const Exprs& indices) {
    if (b->scope != "local") return;
    Use& use = uses_[b.get()];
    bool own = false;
    if (indices.size() != 1 || !vector_of(indices[0], lane_, &own) || (use.seen && use.own != own))
      use.vectors = false;
    use.seen = true, use.own = own;
  }
  Expr index(const Expr& e) const {
    bool own = false;
    return cast(e->dtype, vector_of(e, lane_, &own));
  }

  const VarNode* lane_;
  std::unordered_map<const BufferNode*, Use> uses_;
  std::unordered_map<const BufferNode*, Buffer> narrowed_;
};
}  // namespace

Stmt vector_registers(const Stmt& body, const LaunchAxis& lane) {
  if (!is_const_int_value(lane.extent, kLanes)) return body;
  return static_cast<Rewriter&&>(Narrow(body, lane.var.get())).rewrite(body);
}

}  // namespace weft::qpu::tensor
