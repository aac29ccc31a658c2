// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reductions of arrays as programs of two loops, results and terms, with extents and strides as
// arguments. Which schedule a program gets is the rules' choice (weft/rules), as for any program
// that a user builds.

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "weft/array/moments.h"
#include "weft/array/ops.h"
#include "weft/ir/node.h"

namespace weft {

/// What `finish` of a reduction sees of one result.
struct FinishedReduction {
  ir::Exprs components, numbers;
  ir::Expr count;    // of the terms, int64
  ir::Expr result;   // its number among the results, int64
  ir::Exprs beside;  // its elements of the arrays `beside`
  /// The element of an input at a term of the result, which must be one of them: an int64.
  std::function<ir::Expr(std::size_t input, const ir::Expr& term)> element;
};

/// outputs[c][kept] = component c of the reducer over the axes in `mask`, or what `finish` makes of
/// all components.
struct ReductionProgram {
  std::string_view operation;   // a literal
  std::int64_t variant = 0;     // what distinguishes programs of one operation and element types
  std::vector<NDArray> inputs;  // at most eleven; broadcast to `shape`
  std::span<const Scalar> numbers;  // of type `compute`
  Elem compute = Elem::float32;
  Dims shape;
  std::uint64_t mask = 0;
  bool ordered = false;
  /// The sources of one term, of its elements, the numbers and its position (int64). Positions
  /// count in row-major order of the reduced axes where `ordered`, else in any.
  std::function<ir::Exprs(const ir::Exprs& elements, const ir::Exprs& numbers,
                          const ir::Expr& position)>
      terms;
  std::function<ir::Reducer(const std::vector<DType>& types)> reducer;
  /// The results; may be absent. With a `flag` the last one is a condition.
  std::function<ir::Exprs(const FinishedReduction& f)> finish;
  /// Compact in the order of the kept axes, an element for each result.
  std::vector<NDArray> beside;
  NDArray flag;  // an int32 that becomes 1 where the condition holds for some result
  /// Compact in the order of the kept axes, of the results' types; null handle: not wanted.
  std::vector<NDArray> outputs;
  /// What `finish` makes of one place lies side by side: each output has an axis more, with its
  /// equal share of the values.
  bool interleaved = false;
};

/// Every component is a sum of its own.
ir::Reducer sums_reducer(const std::vector<DType>& types);

/// Builds at the first call for a combination of types, ranks and orders of size, then launches.
void run_reduction(const ReductionProgram& program);

/// argmax or argmin over the axes in `mask`: positions in their row-major order, compact; the first
/// of equals, NaN before all else. `out` is int64.
void arg_reduce_program(bool largest, const NDArray& out, const NDArray& x, std::uint64_t mask);

namespace device {
/// Softmax, log_softmax and their gradients along another axis than the last, of compact arrays
/// that have elements: a reduction and a map, in which nothing is transposed.
void grid_rows_along(RowKernel kind, const NDArray& out, std::span<const NDArray* const> in,
                     int axis);
}  // namespace device

/// out[b, m, n] = sum over k of a[b, m, k] * b[b, k, n] where m or n is at most kFewColumns, for
/// operands of any layout: every element of the larger one is read once, by neighbouring threads.
/// `out` is compact; sums are float32 for narrower floats.
inline constexpr std::int64_t kFewColumns = 4;
void few_columns_program(const NDArray& out, const NDArray& a, const NDArray& b);

/// Over the axes in `mask`, divided by the number of elements less `correction` (mean: the number).
/// `out` is compact and of a floating type. Sums are float64 for narrower types; float64 keeps
/// running means and squares about them, or takes a second pass where there is much of it.
void moments_program(Moment moment, const NDArray& out, const NDArray& x, std::uint64_t mask,
                     double correction);
/// The same of an array, on the host and on devices with a grid; undefined elsewhere, for what has
/// no elements or no order of size, and for axes that do not name some of x's. Integers give
/// float32.
NDArray moments(Moment moment, const NDArray& x, const Axes& axes, bool keepdims,
                double correction);
/// log(sum(exp(x))) over the axes in `mask`; `out` is compact and of x's type.
void logsumexp_program(const NDArray& out, const NDArray& x, std::uint64_t mask);
/// Of the rows of x (n, classes) with their labels (n, compact integers): losses =
/// log(sum(exp(row)))
/// - row[label], sums = the logarithms, float64 of float64 and float32 of narrower types, places =
/// the labels' flat positions in x (of any integer type). A label that is no class makes the loss
/// no number, and `flag` 1 where it is given.
void label_losses_program(const NDArray& losses, const NDArray& sums, const NDArray& places,
                          const NDArray& x, const NDArray& labels, const NDArray& flag);

/// The mean and one over the root of the variance plus eps, compact and of one floating type.
void normalising_program(const NDArray& mean, const NDArray& scale, const NDArray& x,
                         std::uint64_t mask, double eps);
/// The largest element and the sum of exp(x - largest), compact, float64 of float64 and float32 of
/// narrower types.
void exponentials_program(const NDArray& top, const NDArray& sum, const NDArray& x,
                          std::uint64_t mask);

}  // namespace weft
