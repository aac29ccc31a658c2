// SPDX-License-Identifier: Apache-2.0
#include "weft/elements/complex_row.h"

#include "weft/elements/row_ir.h"
#include "weft/elements/rows.h"

namespace weft {

namespace {

using complex_ir::Complex;

constexpr int B = 1, I = 2, U = 4, F = 8, C = 16;

Complex whole(const Complex& z) { return z; }
Complex whole(const ir::Expr& x) { return {x, nullptr}; }

// The cells are templates, so that those of rows without complex numbers are not looked at.
#define UNARY(name, rule, types, value, ...)    \
  struct Row_##name {                           \
    static constexpr bool kComplex = (types)&C; \
    template <typename T>                       \
    static Complex of(const T& x, const T&) {   \
      return whole(value);                      \
    }                                           \
  };
#define BINARY(name, rule, types, value, ...)   \
  struct Row_##name {                           \
    static constexpr bool kComplex = (types)&C; \
    template <typename T>                       \
    static Complex of(const T& x, const T& y) { \
      return whole(value);                      \
    }                                           \
  };
#include "weft/elements/elementwise.def"
#undef UNARY
#undef BINARY
#define REDUCE(name, rule, types, value, ...)   \
  struct Reduce_##name {                        \
    static constexpr bool kComplex = (types)&C; \
    template <typename T>                       \
    static Complex of(const T& a, const T& x) { \
      return whole(value);                      \
    }                                           \
  };
#include "weft/elements/reduce.def"
#undef REDUCE

template <typename Row>
Complex value_of(const Complex& x, const Complex& y) {
  if constexpr (Row::kComplex) return Row::of(x, y);
  else throw RowUnsupported{};
}

}  // namespace

Complex row_value(Op op, const std::vector<Complex>& in) {
  switch (static_cast<int>(op)) {
#define UNARY(name, ...)                   \
  case static_cast<int>(op_of(Row::name)): \
    return value_of<Row_##name>(in.front(), in.back());
#define BINARY UNARY
#include "weft/elements/elementwise.def"
#undef UNARY
#undef BINARY
    default: throw RowUnsupported{};
  }
}

Complex reduce_value(ReduceOp op, const Complex& a, const Complex& x) {
  switch (op) {
#define REDUCE(name, ...)      \
  case op_of(ReduceRow::name): \
    return value_of<Reduce_##name>(a, x);
#include "weft/elements/reduce.def"
#undef REDUCE
    default: throw RowUnsupported{};
  }
}

}  // namespace weft
