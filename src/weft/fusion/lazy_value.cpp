// SPDX-License-Identifier: Apache-2.0
#include "weft/fusion/lazy_value.h"

#include "weft/elements/row_ir.h"

namespace weft {

using ir::Expr;

LazyWriter::LazyWriter(const std::vector<const LazyNode*>& leaves, const std::vector<Expr>& values,
                       bool wide)
    : wide_(wide) {
  for (std::size_t i = 0; i < leaves.size(); ++i) known_[leaves[i]] = values[i];
}

Expr LazyWriter::value(const Lazy& x) {
  if (auto it = known_.find(x.node()); it != known_.end()) return it->second;
  Expr out;
  switch (x->kind) {
    case LazyKind::number:
      out = x->number.kind <= Kind::integer && !is_inexact(x.elem())
                ? ir::make_int(x->number.i, dtype_of(x.elem()))
                : ir::make_const(x->number.z.real(), dtype_of(type_of(x.elem())));
      break;
    case LazyKind::broadcast: return value(x->in[0]);
    case LazyKind::cast: out = convert_value(value(x->in[0]), type_of(x.elem())); break;
    case LazyKind::where:
      out = ir::select(value(x->in[0]), value(x->in[1]), value(x->in[2]));
      break;
    default: {
      std::vector<Expr> in;
      for (const Lazy& i : x->in) in.push_back(convert_value(value(i), type_of(x->compute)));
      out = row_value(x->op, in);
    }
  }
  known_[x.node()] = out;
  return out;
}

std::vector<Expr> lazy_values(const std::vector<Lazy>& roots,
                              const std::vector<const LazyNode*>& leaves,
                              const std::vector<Expr>& values) {
  LazyWriter writer(leaves, values);
  std::vector<Expr> out;
  for (const Lazy& x : roots) out.push_back(writer.value(x));
  return out;
}

Expr lazy_value(const Lazy& x, const std::vector<const LazyNode*>& leaves,
                const std::vector<Expr>& values) {
  return LazyWriter(leaves, values).value(x);
}

}  // namespace weft
