// SPDX-License-Identifier: Apache-2.0
#pragma once
// Operations on arrays that the host cannot address: table rows become programs, programs are built
// for the array's device by the compiler and kept. Operands may be any views.

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "weft/array/ops.h"
#include "weft/ir/build.h"

namespace weft {

/// out = row(args) on out's device. Throws Error(device, "array.<op>.kernel") when there is no way.
void device_elementwise(Op op, Elem compute, const NDArray& out, std::span<const Arg> args);
/// All elements become `value`; out = condition ? a : b. False where the device has no such kernel.
bool device_fill(const NDArray& out, const Scalar& value);
bool device_select(const NDArray& out, const NDArray& condition, const Arg& a, const Arg& b);
/// dst = src, converted, broadcast; not overlapping; one device.
void device_copy(const NDArray& dst, const NDArray& src);
/// out[kept] = combination over the axes in `mask`; out is compact in the order of x's kept axes.
void device_reduce(ReduceOp op, Elem kernel, const NDArray& out, const NDArray& x,
                   std::uint64_t mask);
/// out (batch, m, n) = a (batch, m, k) times b (batch, k, n), any strides, out compact.
void device_matmul(const NDArray& out, const NDArray& a, const NDArray& b);

/// What the value of a program is written in: elements of its inputs, its axes, its numbers.
struct DeviceScope {
  std::vector<ir::Buffer> buffers;
  std::vector<ir::Expr> at;       // where each input's element of this point lies in its buffer
  std::vector<ir::Expr> axes;     // kept axes, then reduced ones
  std::vector<ir::Expr> numbers;  // int64
  ir::Expr acc;                   // what has been combined so far; of reductions
  ir::Expr load(std::size_t i) const { return ir::load(buffers[i], {at[i]}); }
};
/// One program of a structured operation: out[kept] = value over the reduced axes.
struct DeviceProgram {
  struct Input {
    NDArray array;
    Dims strides;        // along the kept axes, then the reduced ones
    bool whole = false;  // elements at computed places are read too
  };
  std::string_view name;  // of the operation, for errors
  std::string variant;    // what distinguishes programs of one name and the same inputs' types
  Dims reduced;
  std::vector<Input> inputs;
  std::vector<std::int64_t> numbers;
  ir::Expr init;  // of reductions
  std::function<ir::Expr(const DeviceScope&)> value;
};
/// Builds once for each name, variant, rank and element types, then runs. Views of any layout.
void device_run(const NDArray& out, const DeviceProgram& program);
/// The expression as another element type.
ir::Expr device_cast(const ir::Expr& x, Elem elem);

/// Whether contractions of arrays like this one have a kernel on its device.
bool device_has_contraction(const NDArray& x);

}  // namespace weft
