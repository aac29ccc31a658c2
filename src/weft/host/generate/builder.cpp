// SPDX-License-Identifier: Apache-2.0
#include "weft/host/generate/builder.h"

#include "weft/ir/visit.h"

namespace weft::generate {

namespace {

class NoBranches final : public ir::Rewriter {
 protected:
  Expr rewrite_default(const Expr& e) override {
    Expr out = ir::Rewriter::rewrite_default(e);
    if (out->kind != ir::ExprKind::and_ && out->kind != ir::ExprKind::or_) return out;
    const auto* pair = ir::as<ir::BinaryNode>(out);
    return ir::call(out->kind == ir::ExprKind::and_ ? "bitwise_and" : "bitwise_or",
                    {pair->a, pair->b});
  }
};

}  // namespace

Expr no_branches(const Expr& e) { return NoBranches().rewrite(e); }

ir::Buffer Program::buffer(const std::string& name, DType type, Expr extent) {
  auto b = ir::edit(ir::make_buffer(name, type, {extent ? std::move(extent) : Expr(n)}));
  b->align = type.bytes();
  ir::Buffer out = b;
  buffers_.push_back(ir::buffer_param(out));
  return out;
}

Expr Program::scalar(const std::string& name, DType type) {
  Var v = ir::make_var(name, type);
  scalars_.push_back({v, nullptr});
  return v;
}

ir::PrimFunc Program::finish(const Stmt& body) const {
  std::vector<ir::Param> params = buffers_;
  params.insert(params.end(), scalars_.begin(), scalars_.end());
  return ir::make_func("main", std::move(params), ir::root_block(body), {{"noalias", Json(true)}});
}

Stmt loop(const std::string& name, const Expr& extent, const Body& body, ir::ForKind kind) {
  Var v = ir::make_var(name);
  return ir::make_for(v, number(0), extent, body(v), kind);
}

ir::Buffer local(const std::string& name, DType type, std::int64_t extent) {
  return ir::make_buffer(name, type, {number(extent)}, "local");
}

Stmt with_value(const std::string& name, const Expr& value, const Body& body) {
  Var v = ir::make_var(name, value->dtype);
  Stmt inside = body(v);
  return ir::let_stmt(v, value, inside);
}

}  // namespace weft::generate
