// SPDX-License-Identifier: Apache-2.0
#include "weft/autograd/gpu/gradients.h"

#include "weft/array/ops.h"
#include "weft/array/turned.h"

namespace weft::device {

using ir::Expr;

namespace {

/// Axes along which an operand was repeated to get the shape.
std::uint64_t repeated_axes(const Dims& operand, const Dims& shape) {
  const int before = shape.size() - operand.size();
  std::uint64_t mask = 0;
  for (int i = 0; i < shape.size(); ++i) {
    if (i < before || (operand[i - before] == 1 && shape[i] != 1)) mask |= std::uint64_t{1} << i;
  }
  return mask;
}

}  // namespace

std::vector<NDArray> grid_gradients(const Ref<Device>& device, Map map, const Dims& shape,
                                    std::span<const Operand> operands, const MapValues& values,
                                    bool short_values) {
  if (const Turned turned(map.arrays, shape); turned.any()) {
    map.arrays = turned.arrays();
    std::vector<Operand> views;
    for (const Operand& x : operands) views.push_back({turned.extents(x.shape), x.elem});
    std::vector<NDArray> out =
        grid_gradients(device, map, turned.extents(shape), views, values, short_values);
    for (std::size_t k = 0; k < out.size(); ++k) out[k] = turned.back(out[k], operands[k].shape);
    return out;
  }
  constexpr std::size_t kMostOfSums = 11;  // arrays
  std::vector<NDArray> out(operands.size()), whole;
  std::vector<std::size_t> places;
  const bool empty = checked_size(shape) == 0;
  const std::uint64_t key = map.key;
  // Names the operands whose gradients a kernel has. Those of many are one kernel each.
  const bool few = operands.size() <= 8;
  const auto named = [&](std::uint64_t which) { return key << 9 | which; };
  for (std::size_t k = 0; k < operands.size(); ++k) {
    const auto& [own, elem] = operands[k];
    const std::uint64_t mask = repeated_axes(own, shape);
    if (!mask) {
      out[k] = NDArray::empty(device, elem, own);
      if (empty) continue;
      if (few) {
        whole.push_back(out[k]);
        places.push_back(k);
        continue;
      }
    } else if (empty) {
      out[k] = full(device, elem, own, Scalar(0));
      continue;
    }
    map.value = [&, k](const std::vector<Expr>& loads, const std::vector<Expr>& numbers) {
      return values(loads, numbers)[k];
    };
    map.key = named(few ? std::uint64_t{1} << k : 256 + k);
    if (!mask) {
      grid_map(out[k], map);
      continue;
    }
    Dims kept;
    for (int i = 0; i < shape.size(); ++i)
      if (!(mask >> i & 1)) kept.push_back(shape[i]);
    NDArray sums = NDArray::empty(device, elem, kept);
    if (short_values && map.arrays.size() <= kMostOfSums) {
      grid_reduce(ReduceOp::sum, sum_elem(elem), sums, map, shape, mask);
    } else {
      const NDArray terms = NDArray::empty(device, sum_elem(elem), shape);
      grid_map(terms, map);
      grid_reduce(ReduceOp::sum, sum_elem(elem), sums, terms, mask);
    }
    out[k] = sums.reshape(own);
  }
  if (whole.empty()) return out;
  std::uint64_t set = 0;
  for (std::size_t k : places) set |= std::uint64_t{1} << k;
  map.key = named(set);
  grid_map(whole, map, [&](const std::vector<Expr>& loads, const std::vector<Expr>& numbers) {
    const std::vector<Expr> all = values(loads, numbers);
    std::vector<Expr> some;
    for (std::size_t k : places) some.push_back(all[k]);
    return some;
  });
  return out;
}

}  // namespace weft::device
