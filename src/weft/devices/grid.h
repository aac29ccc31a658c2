// SPDX-License-Identifier: Apache-2.0
#pragma once
// Kernels of arrays on devices with a grid: element-wise maps, reductions, row kernels and
// contractions. device_ops.cpp chooses between these and the generic programs.

#include <array>
#include <functional>
#include <span>

#include "weft/array/ops.h"
#include "weft/devices/kernel.h"

namespace weft::device {

/// out = value(arrays' elements, numbers), element by element; views may have any layout. `key`
/// names the value (bits below 32) and must differ for different values of one family; numbers
/// have type `compute`.
struct Map {
  std::string_view family = "map";  // a literal
  std::uint64_t key = 0;
  std::span<const NDArray* const> arrays;
  std::span<const Scalar> numbers;
  Elem compute = Elem::float32;
  /// Behind the numbers the value gets the element's own number in the result's row-major order;
  /// the results are compact then.
  bool numbered = false;
  std::function<ir::Expr(const std::vector<ir::Expr>&, const std::vector<ir::Expr>&)> value;
};
void grid_map(const NDArray& out, const Map& map);
/// Several results of one shape in one pass, each of its own type and layout; `map.value` is not
/// asked. A result may be one of the inputs, and overlaps no other.
using MapValues = std::function<std::vector<ir::Expr>(const std::vector<ir::Expr>&,
                                                      const std::vector<ir::Expr>&)>;
void grid_map(std::span<const NDArray> outs, const Map& map, const MapValues& values);

/// out[kept] = combination over the axes in `mask`, in `kernel`, converted once to out's type; out
/// is compact in the order of x's kept axes.
void grid_reduce(ReduceOp op, Elem kernel, const NDArray& out, const NDArray& x,
                 std::uint64_t mask);
/// As above for the values of a map over arrays that broadcast to `shape`.
void grid_reduce(ReduceOp op, Elem kernel, const NDArray& out, const Map& map, const Dims& shape,
                 std::uint64_t mask);

/// Whether a row of this length has a kernel on this device.
bool row_kernel_fits(const Ref<Device>& device, std::int64_t columns);
/// The sums over all rows of g and of g times the normalised x, float64 of float64, else float32:
/// the gradients of layer_norm's shift and scale. x and g: [..., columns], of one floating type,
/// neither of them empty, on a device with a grid.
std::array<NDArray, 2> grid_column_sums(const NDArray& x, const NDArray& g, double eps);
/// All operands compact with rows of out's last extent (scale and shift: one row); one type.
void grid_rows(RowKernel kind, const NDArray& out, std::span<const NDArray* const> in, double eps);

/// One operand of a contraction: where the axes of each group step. An operand moves along two of
/// the three groups.
struct Steps {
  Dims batch, outer, inner;
};
/// out[b, m, n] = sum over k of a[b, m, k] * b[b, k, n]; every group may have several axes.
/// a.outer = m, a.inner = k; b.outer = k, b.inner = n; out.outer = m, out.inner = n.
struct Contraction {
  Dims batch, m, n, k;
  Steps a, b, out;
  int tile = -1;           // index into tiles() instead of the choice, for measurements
  std::int64_t parts = 1;  // with it
  /// With it: bits of 2 for operands that are read in vectors of 16 bytes where their steps allow
  /// it, 4 for tiles of an instruction's shape, on any device.
  int variant = 0;
};
/// `bias`: compact numbers of the columns that sums begin with, of the type that is summed in.
void grid_contract(const NDArray& out, const NDArray& a, const NDArray& b, const Contraction& c,
                   const NDArray* bias = nullptr);

}  // namespace weft::device
