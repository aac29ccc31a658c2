// SPDX-License-Identifier: Apache-2.0
#pragma once
// One program of an array operation on a device without a grid: out[kept] = value over the reduced
// axes, with operands of any layout. Where the target takes run-time extents, one program serves
// all shapes of a rank; elsewhere it is made for the shapes and layouts of its operands.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/array/ops.h"
#include "weft/ir/build.h"

namespace weft {

/// What the value of a program is written in: elements of its inputs, its axes, its numbers.
class DeviceScope {
 public:
  std::vector<ir::Expr> axes;     // kept axes, then reduced ones; int64
  std::vector<ir::Expr> numbers;  // of the program's numbers
  ir::Expr acc;                   // what has been combined so far; of reductions
  DType sum;                      // the type of `acc`
  /// Input i at this point. Narrow integers come as int32 where the device packs them.
  ir::Expr load(std::size_t i) const { return element(i, nullptr); }
  /// Input i, which is `whole`, `distance` elements behind this point's.
  ir::Expr load_at(std::size_t i, const ir::Expr& distance) const { return element(i, distance); }
  std::function<ir::Expr(std::size_t, const ir::Expr&)> element;
};

struct DeviceProgram {
  struct Input {
    NDArray array;
    Dims strides;                // along the kept axes, then the reduced ones
    bool random_access = false;  // elements at computed places are read too
  };
  struct Number {
    Scalar value;
    Elem elem = Elem::int64;
  };
  std::string_view name;  // of the operation, for errors
  std::string variant;    // what distinguishes programs of one name and the same inputs' types
  Dims reduced;
  std::vector<Input> inputs;
  std::vector<Number> numbers;
  bool positions = false;  // the value depends on `DeviceScope::axes`
  Dims first;              // where the axes begin, kept ones first; empty: at 0
  bool onto = false;       // a reduction goes on from what `out` holds
  /// Of reductions: the value before the first term, of a type that sums are computed in.
  std::function<ir::Expr(DType)> init;
  std::function<ir::Expr(const DeviceScope&)> value;
};

/// Builds once for each name, variant and element types, and for each rank or shape; then runs.
/// Throws what the target refuses, before any work, with the operation and the device. What the
/// machine has no room for (a refusal whose slug ends in "capacity") is done in halves, along the
/// longest axis.
void device_run(const NDArray& out, const DeviceProgram& program);
/// The same where the layout of `out` along the kept axes is given.
void device_run(const NDArray& out, const Dims& kept, const Dims& strides,
                const DeviceProgram& program);
/// The expression as an operand of type `elem`: narrow integers are computed with 32 bits.
ir::Expr device_cast(const ir::Expr& x, Elem elem);

}  // namespace weft
