// SPDX-License-Identifier: Apache-2.0
#include "weft/autograd/gpu/row_gradients.h"

#include "weft/array/constant_operand.h"
#include "weft/autograd/gpu/gradients.h"
#include "weft/elements/gradient_ir.h"
#include "weft/elements/row_ir.h"

namespace weft {

using ir::Expr;

namespace {

/// How the gradient of x ** p is written, p a number: squares and cubes are products.
enum class Power : std::uint8_t { cell, one, square, cube, any };

Power power_of(Op op, std::span<const RowOperand> operands) {
  if (op != Op::pow || operands[1].input >= 0) return Power::cell;
  const double p = exponent_of(operands[1].number);
  return p == 0   ? Power::cell
         : p == 1 ? Power::one
         : p == 2 ? Power::square
         : p == 3 ? Power::cube
                  : Power::any;
}

Expr power_value(Power power, const Expr& g, const Expr& x, const std::vector<Expr>& p) {
  const auto times = [](const Expr& a, const Expr& b) { return row_value(Op::multiply, {a, b}); };
  const Expr scaled = times(g, p[0]);
  if (power == Power::one) return scaled;
  if (power == Power::square) return times(scaled, x);
  if (power == Power::cube) return times(scaled, times(x, x));
  return times(scaled, row_value(Op::pow, {x, p[1]}));
}

bool on_grid_of_reals(const GradientCall& c) {
  const Ref<Device>& device = c.g.data().device();
  if (c.g.data().on_host() || !device::grid_of(device).present() || !is_real_float(c.g.elem()))
    return false;
  for (const Tensor& x : c.x)
    if (is_complex(x.elem()) || x.device() != device) return false;
  return true;
}

/// A value of arrays that broadcast to `shape`, in one kernel; of its sums along the axes where
/// `result` has one element.
NDArray mapped(std::string_view family, const Dims& shape, const Dims& result, Elem elem,
               std::span<const NDArray> in,
               const std::function<Expr(const std::vector<Expr>&)>& value) {
  std::vector<const NDArray*> arrays;
  for (const NDArray& a : in) arrays.push_back(&a);
  const NDArray out = NDArray::empty(in[0].device(), elem, result);
  device::Map map;
  map.family = family;
  map.arrays = arrays;
  map.compute = device::sum_elem(elem);
  map.value = [&](const std::vector<Expr>& loads, const std::vector<Expr>&) {
    std::vector<Expr> wide;
    for (const Expr& x : loads) wide.push_back(convert_value(x, map.compute));
    return value(wide);
  };
  std::uint64_t mask = 0;
  for (int i = 0; i < shape.size(); ++i)
    if (result[i] != shape[i]) mask |= std::uint64_t{1} << i;
  if (mask) device::grid_reduce(ReduceOp::sum, map.compute, out, map, shape, mask);
  else device::grid_map(out, map);
  return out;
}

}  // namespace

bool gradient_is_linked(const GradientCall& c) {
  bool linked = c.g.requires_grad() || c.out.requires_grad();
  for (const Tensor& x : c.x) linked = linked || x.requires_grad();
  return linked;
}

unsigned grid_row_gradients(Op op, const GradientCall& c, std::span<const RowOperand> operands,
                            std::vector<Tensor>& out) {
  if (gradient_is_linked(c) || !on_grid_of_reals(c)) return 0;
  const Power power = power_of(op, operands);
  std::vector<int> own;
  std::vector<device::Operand> wanted;
  std::uint32_t reads = 0;
  int operations = 0;
  bool worthwhile = false;  // a sum at the end, or a number that were an array otherwise
  for (int k = 0; k < static_cast<int>(operands.size()); ++k) {
    const RowOperand& operand = operands[static_cast<std::size_t>(k)];
    const GradientCell cell = gradient_cell(op, k);
    if (!operand.wanted || !cell.operations) continue;
    const Tensor& x = c.x[static_cast<std::size_t>(operand.input)];
    own.push_back(k);
    wanted.push_back({x.shape(), x.elem()});
    reads |= cell.reads;
    operations += cell.operations;
    worthwhile = worthwhile || !(x.shape() == c.g.shape());
  }
  for (std::size_t k = 0; k < operands.size(); ++k)
    worthwhile = worthwhile || (operands[k].input < 0 && (reads >> k & 1));
  if (own.empty() || (operations < 2 && !worthwhile)) return 0;

  std::vector<const NDArray*> arrays = {&c.g.data()};
  std::vector<Scalar> numbers;
  std::uint64_t form = 0;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    const bool number = operands[k].input < 0, read = reads >> k & 1;
    form |= static_cast<std::uint64_t>(number) << k;
    if (read && number) numbers.push_back(operands[k].number);
    else if (read) arrays.push_back(&c.x[static_cast<std::size_t>(operands[k].input)].data());
  }
  if (reads & GradientCell::kResult) arrays.push_back(&c.out.data());
  if (power == Power::any) numbers.emplace_back(exponent_of(numbers[0]) - 1);

  device::Map map;
  map.family = "row gradients";
  for (int k : own) form |= 4u << k;
  map.key = static_cast<std::uint64_t>(op) << 7 | form << 3 | static_cast<std::uint64_t>(power);
  map.arrays = arrays;
  map.numbers = numbers;
  map.compute = device::sum_elem(c.g.elem());
  const auto values = [&](const std::vector<Expr>& loads, const std::vector<Expr>& given) {
    std::size_t load = 0, number = 0;
    const auto next = [&] { return convert_value(loads[load++], map.compute); };
    const Expr g = next();
    std::vector<Expr> in(operands.size());
    for (std::size_t k = 0; k < operands.size(); ++k)
      if (reads >> k & 1) in[k] = operands[k].input < 0 ? given[number++] : next();
    const Expr result = reads & GradientCell::kResult ? next() : Expr();
    std::vector<Expr> all;
    for (int k : own)
      all.push_back(power == Power::cell ? gradient_value(op, k, g, in, result)
                                         : power_value(power, g, in[0], given));
    return all;
  };
  const auto found = device::grid_gradients(c.g.data().device(), map, c.g.shape(), wanted, values);
  unsigned done = 0;
  for (std::size_t i = 0; i < own.size(); ++i) {
    out[static_cast<std::size_t>(operands[static_cast<std::size_t>(own[i])].input)] =
        Tensor(found[i]);
    done |= 1u << own[i];
  }
  return done;
}

bool grid_where_gradients(const NDArray& condition, const GradientCall& c, int a, int b,
                          std::vector<Tensor>& out) {
  if (gradient_is_linked(c) || !on_grid_of_reals(c)) return false;
  const NDArray* const arrays[] = {&c.g.data(), &condition};
  std::vector<std::size_t> inputs;
  std::vector<bool> first;
  std::vector<device::Operand> wanted;
  for (int k : {a, b}) {
    if (k < 0) continue;
    inputs.push_back(static_cast<std::size_t>(k));
    first.push_back(inputs.size() == 1 && a >= 0);
    wanted.push_back({c.x[inputs.back()].shape(), c.x[inputs.back()].elem()});
  }
  device::Map map;
  map.family = "choice gradients";
  map.key = (a >= 0 ? 2u : 0u) + (b >= 0 ? 1u : 0u);
  map.arrays = arrays;
  map.compute = device::sum_elem(c.g.elem());
  const auto values = [&](const std::vector<Expr>& loads, const std::vector<Expr>&) {
    const Expr g = convert_value(loads[0], map.compute), zero = ir::make_const(0, g->dtype);
    const Expr chosen = convert_value(loads[1], Elem::boolean);
    std::vector<Expr> all;
    for (bool own : first)
      all.push_back(own ? ir::select(chosen, g, zero) : ir::select(chosen, zero, g));
    return all;
  };
  const auto found = device::grid_gradients(c.g.data().device(), map, c.g.shape(), wanted, values);
  for (std::size_t i = 0; i < inputs.size(); ++i) out[inputs[i]] = Tensor(found[i]);
  return true;
}

Tensor grid_extreme_gradient(const GradientCall& c, const Dims& kept) {
  const NDArray& x = c.x[0].data();
  if (gradient_is_linked(c) || !on_grid_of_reals(c) || x.size() == 0 || !is_real_float(x.elem()))
    return {};
  const auto hit = [](const Expr& a, const Expr& b) { return ir::eq(a, b); };
  const NDArray both[] = {x, c.out.data().reshape(kept)};
  const NDArray count =
      mapped("extreme counts", x.shape(), kept, device::sum_elem(x.elem()), both,
             [&](const std::vector<Expr>& v) { return ir::cast(v[0]->dtype, hit(v[0], v[1])); });
  const NDArray all[] = {both[0], both[1], c.g.data().reshape(kept), count};
  return Tensor(mapped(
      "extreme gradient", x.shape(), x.shape(), x.elem(), all, [&](const std::vector<Expr>& v) {
        // Beside NaN nothing is hit: 0 / 0, as on hosts.
        return ir::div(ir::select(hit(v[0], v[1]), v[2], ir::make_const(0, v[2]->dtype)), v[3]);
      }));
}

Tensor grid_logsumexp_gradient(const GradientCall& c, const Dims& kept) {
  const NDArray& x = c.x[0].data();
  if (gradient_is_linked(c) || !on_grid_of_reals(c) || x.size() == 0) return {};
  const NDArray all[] = {x, c.out.data().reshape(kept), c.g.data().reshape(kept)};
  return Tensor(
      mapped("logsumexp gradient", x.shape(), x.shape(), x.elem(), all,
             [&](const std::vector<Expr>& v) { return v[2] * ir::call("exp", {v[0] - v[1]}); }));
}

}  // namespace weft
