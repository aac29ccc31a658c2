// SPDX-License-Identifier: Apache-2.0
#include "weft/devices/update.h"

#include "weft/array/nest.h"
#include "weft/devices/grid.h"
#include "weft/elements/row_ir.h"

namespace weft {

using ir::Expr;

bool update_in_place(Update rule, const NDArray& out, std::span<const NDArray> arrays,
                     std::span<const Scalar> numbers) {
  if (!is_real_float(out.elem()) || !device::grid_of(out.device()).present()) return false;
  if (out.size() == 0) return true;
  std::vector<const NDArray*> in = {&out};
  for (const NDArray& a : arrays) {
    check_same_device(out, a, "update");
    in.push_back(&a);
  }
  device::Map map;
  map.family = "update";
  map.key = static_cast<std::uint64_t>(rule);
  map.arrays = in;
  map.numbers = numbers;
  map.compute = out.elem() == Elem::float64 ? Elem::float64 : Elem::float32;
  map.value = [&](const std::vector<Expr>& loads, const std::vector<Expr>& c) {
    auto at = [&](std::size_t k) { return convert_value(loads[k], map.compute); };
    auto multiply = [](const Expr& x, const Expr& y) { return row_value(Op::multiply, {x, y}); };
    auto divide = [](const Expr& x, const Expr& y) { return row_value(Op::divide, {x, y}); };
    auto subtract = [](const Expr& x, const Expr& y) { return row_value(Op::subtract, {x, y}); };
    auto add = [](const Expr& x, const Expr& y) { return row_value(Op::add, {x, y}); };
    switch (rule) {
      case Update::blend: return add(multiply(c[0], at(0)), multiply(c[1], at(1)));
      case Update::blend_square:
        return add(multiply(c[0], at(0)), multiply(c[1], multiply(at(1), at(1))));
      case Update::descend: return subtract(at(0), multiply(c[0], at(1)));
      case Update::descend_root: break;
    }
    const Expr root = add(row_value(Op::sqrt, {divide(at(2), at(4))}), c[1]);
    return subtract(at(0), divide(multiply(divide(c[0], at(3)), at(1)), root));
  };
  device::grid_map(out, map);
  return true;
}

}  // namespace weft
