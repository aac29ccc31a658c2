// SPDX-License-Identifier: Apache-2.0
#pragma once
// The one way to construct programs from C++. Builders fold constants and neutral elements, match
// operand types (an int64 index with an int32 becomes int64; a scalar with a vector is broadcast),
// and throw Error(dtype, "ir.build.types") when operands do not fit.

#include <initializer_list>
#include <string>

#include "weft/ir/node.h"

namespace weft::ir {

// ---- leaves
Var make_var(std::string name, DType type = dtypes::int64);
Expr make_int(std::int64_t value, DType type = dtypes::int64);
Expr make_float(double value, DType type = dtypes::float32);
Expr make_bool(bool value);
Expr make_string(std::string value);
/// 0, 1 or any constant of a type; vector types give a broadcast.
Expr make_const(double value, DType type);
Expr make_zero(DType type);
/// Smallest / largest value of a scalar type (-inf / inf for floats).
Expr min_value(DType type);
Expr max_value(DType type);

// ---- expressions
/// Any binary kind; folds constants.
Expr make_binary(ExprKind kind, Expr a, Expr b);
Expr cast(DType type, Expr value);
Expr logical_not(Expr a);
Expr select(Expr condition, Expr a, Expr b);
/// Lazy: only the chosen arm is evaluated.
Expr if_then_else(Expr condition, Expr a, Expr b);
/// Intrinsic by name; checks arity and types against intrinsics.def and gives the result type.
Expr call(const std::string& op, Exprs args);
/// Any call with a stated type.
Expr call_typed(DType type, std::string op, Exprs args);
Expr load(Buffer buffer, Exprs indices);
Expr ramp(Expr base, Expr stride, int lanes);
Expr broadcast(Expr value, int lanes);
Expr let(Var var, Expr value, Expr body);

inline Expr operator+(Expr a, Expr b) {
  return make_binary(ExprKind::add, std::move(a), std::move(b));
}
inline Expr operator-(Expr a, Expr b) {
  return make_binary(ExprKind::sub, std::move(a), std::move(b));
}
inline Expr operator*(Expr a, Expr b) {
  return make_binary(ExprKind::mul, std::move(a), std::move(b));
}
inline Expr operator+(Expr a, std::int64_t b) {
  DType t = a->dtype;
  return std::move(a) + make_const(static_cast<double>(b), t);
}
inline Expr operator-(Expr a, std::int64_t b) {
  DType t = a->dtype;
  return std::move(a) - make_const(static_cast<double>(b), t);
}
inline Expr operator*(Expr a, std::int64_t b) {
  DType t = a->dtype;
  return std::move(a) * make_const(static_cast<double>(b), t);
}
inline Expr div(Expr a, Expr b) { return make_binary(ExprKind::div, std::move(a), std::move(b)); }
inline Expr floordiv(Expr a, Expr b) {
  return make_binary(ExprKind::floordiv, std::move(a), std::move(b));
}
inline Expr floormod(Expr a, Expr b) {
  return make_binary(ExprKind::floormod, std::move(a), std::move(b));
}
inline Expr min(Expr a, Expr b) { return make_binary(ExprKind::min, std::move(a), std::move(b)); }
inline Expr max(Expr a, Expr b) { return make_binary(ExprKind::max, std::move(a), std::move(b)); }
inline Expr eq(Expr a, Expr b) { return make_binary(ExprKind::eq, std::move(a), std::move(b)); }
inline Expr ne(Expr a, Expr b) { return make_binary(ExprKind::ne, std::move(a), std::move(b)); }
inline Expr lt(Expr a, Expr b) { return make_binary(ExprKind::lt, std::move(a), std::move(b)); }
inline Expr le(Expr a, Expr b) { return make_binary(ExprKind::le, std::move(a), std::move(b)); }
inline Expr gt(Expr a, Expr b) { return make_binary(ExprKind::gt, std::move(a), std::move(b)); }
inline Expr ge(Expr a, Expr b) { return make_binary(ExprKind::ge, std::move(a), std::move(b)); }
inline Expr logical_and(Expr a, Expr b) {
  return make_binary(ExprKind::and_, std::move(a), std::move(b));
}
inline Expr logical_or(Expr a, Expr b) {
  return make_binary(ExprKind::or_, std::move(a), std::move(b));
}

// ---- buffers
Buffer make_buffer(std::string name, DType type, Exprs shape, std::string scope = "global");
/// A copy of a node for editing before it is frozen: `auto b = edit(buffer); b->scope = "shared";`
inline Ref<BufferNode> edit(const Buffer& b) { return make_ref<BufferNode>(*b); }
inline Ref<BlockNode> edit(const Block& b) { return make_ref<BlockNode>(*b); }
inline Ref<PrimFuncNode> edit(const PrimFunc& f) { return make_ref<PrimFuncNode>(*f); }
/// Row-major strides in elements of a compact buffer, or the buffer's own.
Exprs strides_of(const Buffer& buffer);
BufferRegion full_region(const Buffer& buffer);
BufferRegion point_region(const Buffer& buffer, const Exprs& indices);

// ---- statements
Stmt store(Buffer buffer, Expr value, Exprs indices);
/// Flattens nested sequences; one statement stays itself.
Stmt seq(std::vector<Stmt> stmts);
Stmt make_for(Var var, Expr min, Expr extent, Stmt body, ForKind kind = ForKind::serial,
              std::string axis = "", Annotations annotations = {});
Stmt if_then(Expr condition, Stmt then_case, Stmt else_case = nullptr);
Stmt while_loop(Expr condition, Stmt body);
Stmt let_stmt(Var var, Expr value, Stmt body);
Stmt assert_stmt(Expr condition, std::string message);
Stmt evaluate(Expr value);
Stmt allocate(Buffer buffer, Stmt body, Annotations annotations = {});
Stmt block_realize(Exprs iter_values, Expr predicate, Block block);
/// A block without iterators around a function's body, as every PrimFunc has.
Stmt root_block(Stmt body, std::vector<Buffer> alloc_buffers = {});
PrimFunc make_func(std::string name, std::vector<Param> params, Stmt body, Annotations attrs = {});
Param buffer_param(const Buffer& buffer);
IRModule make_module(std::vector<std::pair<std::string, PrimFunc>> functions);
/// Module {"main": f}.
IRModule make_module(const PrimFunc& f);

/// The value of an annotation; null when absent.
const Json* find_annotation(const Annotations& annotations, std::string_view key);
/// A copy with key set (or removed when value is null).
Annotations with_annotation(Annotations annotations, std::string_view key, Json value);

}  // namespace weft::ir
