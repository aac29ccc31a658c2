// SPDX-License-Identifier: Apache-2.0
#include "weft/devices/update.h"

#include "weft/array/nest.h"
#include "weft/devices/grid.h"
#include "weft/elements/row_ir.h"

namespace weft {

using ir::Expr;

namespace {

Expr multiply(const Expr& x, const Expr& y) { return row_value(Op::multiply, {x, y}); }
Expr divide(const Expr& x, const Expr& y) { return row_value(Op::divide, {x, y}); }
Expr subtract(const Expr& x, const Expr& y) { return row_value(Op::subtract, {x, y}); }
Expr add(const Expr& x, const Expr& y) { return row_value(Op::add, {x, y}); }

/// The rule's results of values and numbers of one type.
std::vector<Expr> results_of(Step rule, const std::vector<Expr>& x, const std::vector<Expr>& c) {
  switch (rule) {
    case Step::descend: return {subtract(x[0], multiply(c[0], x[1]))};
    case Step::momentum: {
      const Expr w = add(multiply(x[1], c[1]), multiply(x[2], c[2]));
      return {subtract(x[0], multiply(w, c[0])), w};
    }
    case Step::nesterov: {
      const Expr w = add(multiply(x[1], c[1]), multiply(x[2], c[2]));
      return {subtract(x[0], multiply(add(x[2], multiply(w, c[1])), c[0])), w};
    }
    case Step::adam: {
      const Expr m = add(multiply(x[1], c[1]), multiply(x[3], c[6]));
      const Expr v = add(multiply(x[2], c[2]), multiply(multiply(x[3], x[3]), c[7]));
      const Expr root = add(row_value(Op::sqrt, {divide(v, c[5])}), c[3]);
      return {subtract(x[0], divide(multiply(m, divide(c[0], c[4])), root)), m, v};
    }
    case Step::running: break;
  }
  return {add(multiply(x[0], c[0]), multiply(x[2], c[1])),
          add(multiply(x[1], c[0]), multiply(x[3], c[2]))};
}

}  // namespace

bool update_in_place(Update rule, const NDArray& out, std::span<const NDArray> arrays,
                     std::span<const Scalar> numbers) {
  if (!is_real_float(out.elem()) || !device::grid_of(out.device()).present) return false;
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

std::vector<NDArray> step_of(Step rule, std::span<const NDArray> arrays,
                             std::span<const Scalar> numbers, double decay, double shrink) {
  const NDArray& first = arrays[0];
  if (!device::grid_of(first.device()).present) return {};
  std::vector<const NDArray*> in;
  bool wide = false;
  for (const NDArray& a : arrays) {
    if (a.device() != first.device() || a.shape() != first.shape() || !is_real_float(a.elem()))
      return {};
    wide = wide || a.elem() == Elem::float64;
    in.push_back(&a);
  }
  std::vector<Scalar> all(numbers.begin(), numbers.end());
  if (decay != 0) all.emplace_back(decay);
  if (shrink != 1) all.emplace_back(shrink);
  device::Map map;
  map.family = "step";
  map.key = static_cast<std::uint64_t>(rule) * 4 + (decay != 0) * 2 + (shrink != 1);
  map.arrays = in;
  map.numbers = all;
  map.compute = wide ? Elem::float64 : Elem::float32;
  // A rule gives as many results as it reads, but for the gradient; running statistics read two
  // more.
  const std::size_t count = rule == Step::running ? 2 : arrays.size() - 1;
  std::vector<NDArray> out;
  for (std::size_t k = 0; k < count; ++k)
    out.push_back(NDArray::empty(first.device(), arrays[k].elem(), first.shape()));
  device::grid_map(out, map, [&](const std::vector<Expr>& loads, const std::vector<Expr>& c) {
    std::vector<Expr> x;
    for (const Expr& e : loads) x.push_back(convert_value(e, map.compute));
    std::size_t last = numbers.size();
    if (decay != 0) x.back() = add(x.back(), multiply(x[0], c[last++]));
    if (shrink != 1) x[0] = multiply(x[0], c[last]);
    return results_of(rule, x, c);
  });
  return out;
}

}  // namespace weft
