// SPDX-License-Identifier: Apache-2.0
#include "weft/elements/gradient_ir.h"

#include "weft/elements/row_ir.h"
#include "weft/elements/rows.h"

namespace weft {

namespace {

constexpr bool is_letter(char c) {
  return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/// Does the text of a cell name this argument?
constexpr bool names(std::string_view cell, std::string_view word) {
  for (std::size_t at = cell.find(word); at != cell.npos; at = cell.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !is_letter(cell[at - 1])) && (end == cell.size() || !is_letter(cell[end])))
      return true;
  }
  return false;
}

constexpr GradientCell cell_of(std::string_view text) {
  GradientCell cell;
  if (names(text, "none")) return cell;
  cell.reads = (names(text, "x") ? GradientCell::kFirst : 0) |
               (names(text, "y") ? GradientCell::kSecond : 0) |
               (names(text, "out") ? GradientCell::kResult : 0);
  for (std::size_t k = 0; k < text.size(); ++k) {
    const char c = text[k];
    const bool call = c == '(' && k > 0 && is_letter(text[k - 1]);
    cell.operations += call || c == '+' || c == '-' || c == '*' || c == '/';
  }
  return cell;
}

struct Cells {
  GradientCell operand[2];
};
constexpr Cells kCells[] = {
#define UNARY(name, rule, types, value, grad, ...) {{cell_of(#grad), {}}},
#define BINARY(name, rule, types, value, gx, gy, ...) {{cell_of(#gx), cell_of(#gy)}},
#include "weft/elements/elementwise.def"
#undef UNARY
#undef BINARY
};

/// The names that cells use, over one type of floats.
namespace cells {

struct Value {
  ir::Expr e;
};

[[maybe_unused]] Value number(double v, const Value& like) {
  return {ir::make_const(v, like.e->dtype)};
}
[[maybe_unused]] Value operator+(const Value& a, const Value& b) {
  return {row_value(Op::add, {a.e, b.e})};
}
[[maybe_unused]] Value operator-(const Value& a, const Value& b) {
  return {row_value(Op::subtract, {a.e, b.e})};
}
[[maybe_unused]] Value operator*(const Value& a, const Value& b) {
  return {row_value(Op::multiply, {a.e, b.e})};
}
[[maybe_unused]] Value operator/(const Value& a, const Value& b) {
  return {row_value(Op::divide, {a.e, b.e})};
}
[[maybe_unused]] Value operator+(const Value& a, double b) { return a + number(b, a); }
[[maybe_unused]] Value operator*(const Value& a, double b) { return a * number(b, a); }
[[maybe_unused]] Value operator-(const Value& a, double b) { return a - number(b, a); }
[[maybe_unused]] Value operator-(double a, const Value& b) { return number(a, b) - b; }
[[maybe_unused]] Value operator-(const Value& a) { return {row_value(Op::negative, {a.e})}; }
[[maybe_unused]] Value astype(const Value& x, const Value& like) {
  return {ir::cast(like.e->dtype, x.e)};
}
[[maybe_unused]] Value ones_like(const Value& x) { return number(1, x); }
const Value none{};

#define WEFT_UNARY(name) \
  [[maybe_unused]] Value name(const Value& x) { return {row_value(Op::name, {x.e})}; }
#define WEFT_BINARY(name)                                       \
  [[maybe_unused]] Value name(const Value& x, const Value& y) { \
    return {row_value(Op::name, {x.e, y.e})};                   \
  }                                                             \
  [[maybe_unused]] Value name(const Value& x, double y) { return name(x, number(y, x)); }
WEFT_UNARY_OPS(WEFT_UNARY)
WEFT_BINARY_OPS(WEFT_BINARY)
#undef WEFT_UNARY
#undef WEFT_BINARY

Value value(Op op, int operand, [[maybe_unused]] const Value& g, [[maybe_unused]] const Value& x,
            [[maybe_unused]] const Value& y, [[maybe_unused]] const Value& out) {
  switch (static_cast<int>(op)) {
#define UNARY(name, rule, types, value, grad, ...) \
  case static_cast<int>(op_of(Row::name)):         \
    return grad;
#define BINARY(name, rule, types, value, gx, gy, ...) \
  case static_cast<int>(op_of(Row::name)):            \
    if (operand) return gy;                           \
    return gx;
#include "weft/elements/elementwise.def"
#undef UNARY
#undef BINARY
    default: throw RowUnsupported{};
  }
}

}  // namespace cells

}  // namespace

GradientCell gradient_cell(Op op, int operand) { return kCells[row_of(op)].operand[operand]; }

ir::Expr gradient_value(Op op, int operand, const ir::Expr& g, const std::vector<ir::Expr>& in,
                        const ir::Expr& out) {
  const ir::Expr second = in.size() > 1 ? in[1] : ir::Expr();
  return cells::value(op, operand, {g}, {in[0]}, {second}, {out}).e;
}

}  // namespace weft
