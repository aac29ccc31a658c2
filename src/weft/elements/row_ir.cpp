// SPDX-License-Identifier: Apache-2.0
#include "weft/elements/row_ir.h"

#include "weft/elements/rows.h"
#include "weft/elements/value_ir.h"

namespace weft {

using ir::Expr;

Expr convert_value(const Expr& x, Elem e) {
  DType type = dtype_of(e);
  if (x->dtype == type) return x;
  if (type.is_bool()) return ir::ne(x, ir::make_const(0, x->dtype));
  return ir::cast(type, x);
}

Expr row_value(Op op, const std::vector<Expr>& in) {
  using namespace value_ir;
  switch (static_cast<int>(op)) {
#define UNARY(name, rule, types, value, ...) \
  case static_cast<int>(op_of(Row::name)): { \
    const Expr& x = in[0];                   \
    return value;                            \
  }
#define BINARY(name, rule, types, value, ...) \
  case static_cast<int>(op_of(Row::name)): {  \
    const Expr &x = in[0], &y = in[1];        \
    return value;                             \
  }
#include "weft/elements/elementwise.def"
#undef UNARY
#undef BINARY
    default: throw RowUnsupported{};
  }
}
Expr reduce_value(ReduceOp op, const Expr& a, const Expr& x) {
  using namespace value_ir;
  switch (op) {
#define REDUCE(name, rule, types, value, ...) \
  case op_of(ReduceRow::name):                \
    return value;
#include "weft/elements/reduce.def"
#undef REDUCE
    default: throw RowUnsupported{};
  }
}
Expr reduce_identity(ReduceOp op, Elem e) {
  DType t = dtype_of(e);
  switch (op) {
    case ReduceOp::prod:
    case ReduceOp::all: return ir::make_const(1, t);
    case ReduceOp::max: return t.is_bool() ? ir::make_bool(false) : ir::min_value(t);
    case ReduceOp::min: return t.is_bool() ? ir::make_bool(true) : ir::max_value(t);
    default: return ir::make_const(0, t);
  }
}

}  // namespace weft
