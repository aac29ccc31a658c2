// SPDX-License-Identifier: Apache-2.0
#pragma once
// One kernel for several steps over the rows of a matrix: values of its elements, reductions along
// its rows, numbers of a row. The threads of a row hold its elements in registers, so memory is
// read once and each result is written once.

#include <functional>
#include <vector>

#include "weft/array/ops.h"
#include "weft/ir/node.h"

namespace weft::device {

/// Where a value of [rows, columns] moves: at each element, along the columns, along the rows, not
/// at all.
enum class RowExtent : std::uint8_t { element, column, row, one };

/// A value that the kernel computes: of each element or each row.
struct RowStep {
  RowExtent extent = RowExtent::element;  // element or row
  bool reduces = false;                   // a row's reduction of the value
  ReduceOp op{};
  Elem elem = Elem::float32;  // of the result
  /// Operands: arrays that are read (0, 1, ..), then earlier steps (behind the arrays).
  std::vector<int> in;
  std::vector<Scalar> numbers;  // of float32, that the call brings
  std::function<ir::Expr(const std::vector<ir::Expr>& operands,
                         const std::vector<ir::Expr>& numbers)>
      value;
  bool kept = false;  // written to memory
};

struct FusedRows {
  std::uint64_t serial = 0;  // of all plans of the process: kernels are kept by it
  std::int64_t rows = 0, columns = 0;
  std::vector<RowExtent> extents;  // of the arrays that are read
  std::vector<Elem> elems;
  std::vector<RowStep> steps;
};

/// Whether rows of so many elements fit the registers and keep the machine busy. `arrays`: read
/// with an element for each column.
bool fused_rows_fit(const Ref<Device>& device, std::int64_t rows, std::int64_t columns,
                    std::size_t arrays);
/// `in` are compact; `out` are the kept steps' results in order.
void run_fused_rows(const FusedRows& program, const std::vector<NDArray>& in,
                    const std::vector<NDArray>& out);

}  // namespace weft::device
