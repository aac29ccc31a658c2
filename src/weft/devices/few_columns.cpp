// SPDX-License-Identifier: Apache-2.0
// Products of a matrix with a vector or with few of them, as reductions of several values: a sum
// for each column, which the rule `reduce` schedules.

#include <algorithm>

#include "weft/base/error.h"
#include "weft/devices/kernel.h"
#include "weft/devices/reduce_program.h"
#include "weft/elements/row_ir.h"

namespace weft {

namespace {

/// The product with the larger operand on the left. Columns of `out` lie side by side, or `apart`:
/// each is an array in order.
void left_product(const NDArray& out, const NDArray& a, const NDArray& b_in, bool apart) {
  const int r = out.ndim();
  const std::int64_t columns = b_in.shape()[r - 1];
  NDArray b = b_in;
  // Few columns that lie next to each other: a small copy gives each its own line, where loads of
  // vectors save more than another launch takes.
  constexpr std::int64_t kWorthCopy = 1 << 22;  // bytes of the matrix
  if (columns > 1 && a.strides()[r - 1] == 1 && b.strides()[r - 2] != 1 &&
      a.size() * elem_bytes(a.elem()) >= kWorthCopy)
    b = b.transpose(r - 2, r - 1).contiguous().transpose(r - 2, r - 1);
  const Elem sum = device::sum_elem(out.elem()), stored = out.elem();
  // Two rows at once share what is read of the columns.
  const std::int64_t rows = a.shape()[r - 2];
  const std::int64_t each = columns > 1 && rows % 2 == 0 && a.strides()[r - 1] == 1 ? 2 : 1;
  ReductionProgram p;
  p.operation = "few_columns";
  p.variant = columns * 2 + each - 1;
  for (std::int64_t e = 0; e < each; ++e) p.inputs.push_back(a.slice(r - 2, e, rows / each, each));
  for (std::int64_t j = 0; j < columns; ++j)  // (batch, 1, k): the same for all rows
    p.inputs.push_back(b.transpose(r - 2, r - 1).slice(r - 2, j, 1, 1));
  p.compute = sum;
  p.shape = p.inputs[0].shape();
  p.mask = std::uint64_t{1} << (r - 1);
  // Results of one array are neighbours: the rows of a pair, and the columns unless they are apart.
  const std::int64_t arrays = apart ? columns : 1;
  p.terms = [=](const ir::Exprs& x, const ir::Exprs&, const ir::Expr&) {
    ir::Exprs terms;
    const auto product = [&](std::int64_t row, std::int64_t column) {
      terms.push_back(convert_value(x[static_cast<std::size_t>(row)], sum) *
                      convert_value(x[static_cast<std::size_t>(each + column)], sum));
    };
    for (std::int64_t t = 0; t < each * columns; ++t) {
      if (apart) product(t % each, t / each);
      else product(t / columns, t % columns);
    }
    return terms;
  };
  p.reducer = sums_reducer;
  p.interleaved = each * columns > arrays;
  if (stored != sum || p.interleaved)
    p.finish = [=](const FinishedReduction& f) {
      ir::Exprs values;
      for (const ir::Expr& x : f.components) values.push_back(convert_value(x, stored));
      return values;
    };
  for (std::int64_t j = 0; j < arrays; ++j) p.outputs.push_back(apart ? out.select(r - 1, j) : out);
  run_reduction(p);
}

}  // namespace

void few_columns_program(const NDArray& out, const NDArray& a, const NDArray& b) {
  const int r = out.ndim();
  const std::int64_t m = out.shape()[r - 2], n = out.shape()[r - 1];
  WEFT_CHECK(std::min(m, n) <= kFewColumns, "a product of ", m, " by ", n);
  if (n <= m) return left_product(out, a, b, false);
  const NDArray left = b.transpose(r - 2, r - 1), right = a.transpose(r - 2, r - 1),
                turned = out.transpose(r - 2, r - 1);
  // Rows of a single product are arrays in order; those of several take another copy.
  if (m == 1 || m * n == out.size()) return left_product(turned, left, right, true);
  Dims shape = turned.shape();
  const NDArray sums = NDArray::empty(out.device(), out.elem(), shape);
  left_product(sums, left, right, false);
  assign(turned, sums);
}

}  // namespace weft
