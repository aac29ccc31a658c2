// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reductions of arrays as programs of two loops, results and terms, with extents and strides as
// arguments. Which schedule a program gets is the rules' choice (weft/rules), as for any program
// that a user builds.

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "weft/array/ops.h"
#include "weft/ir/node.h"

namespace weft {

/// outputs[c][kept] = component c of the reducer over the axes in `mask`.
struct ReductionProgram {
  std::string_view operation;   // a literal
  std::int64_t variant = 0;     // what distinguishes programs of one operation and element types
  std::vector<NDArray> inputs;  // at most three; broadcast to `shape`
  Dims shape;
  std::uint64_t mask = 0;
  /// The sources of one term, of its elements and its position in row-major order of the reduced
  /// axes (int64).
  std::function<ir::Exprs(const ir::Exprs& elements, const ir::Expr& position)> terms;
  std::function<ir::Reducer(const std::vector<DType>& types)> reducer;
  /// Compact in the order of the kept axes, of the components' types; null handle: not wanted.
  std::vector<NDArray> outputs;
};

/// Builds at the first call for a combination of types, ranks and orders of size, then launches.
void run_reduction(const ReductionProgram& program);

/// argmax or argmin over the axes in `mask`: positions in their row-major order, compact; the first
/// of equals, NaN before all else. `out` is int64.
void arg_reduce_program(bool largest, const NDArray& out, const NDArray& x, std::uint64_t mask);

}  // namespace weft
