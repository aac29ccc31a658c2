// SPDX-License-Identifier: Apache-2.0
#include "weft/array/gpu/thin_product.h"

#include <algorithm>
#include <bit>

#include "weft/array/row_ir.h"
#include "weft/base/integers.h"

namespace weft::device {

namespace {

std::int64_t power_above(std::int64_t n) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(n)));
}

/// Into how many parts the depth goes: a block alone cannot use its share of the memory's rate when
/// there are fewer blocks than the processors hold; parts cost a second launch.
std::int64_t parts_of(const ThinPlan& plan, const ThinShape& shape, const Grid& grid) {
  const std::int64_t blocks = ceil_div(shape.rows, plan.rows()) * shape.batch;
  const std::int64_t resident =
      std::max<std::int64_t>(1, 1024 / (plan.x * plan.y));  // blocks of a busy processor
  const std::int64_t slots = grid.processors * resident;
  const std::int64_t most = std::max<std::int64_t>(1, shape.depth / (2 * plan.sweep()));
  constexpr std::int64_t kWorth = 1 << 18;  // bytes of one block that are worth a second launch
  const std::int64_t bytes = plan.rows() * shape.depth * shape.element_bytes;
  if (blocks >= slots || bytes < kWorth) return 1;
  return std::clamp<std::int64_t>(slots / blocks, 1, std::min<std::int64_t>(most, 256));
}

}  // namespace

ThinPlan plan_thin(const ThinShape& shape, const Grid& grid) {
  ThinPlan plan;
  plan.along_depth = shape.along_depth;
  plan.vector = shape.vector;
  plan.columns = power_above(shape.columns);
  const std::int64_t threads = std::min<std::int64_t>(256, grid.threads);
  constexpr std::int64_t kSums = 32;  // of a thread, in registers
  if (plan.along_depth) {
    plan.rows_each = plan.columns == 1 ? 1 : 2;
    plan.loads = plan.columns == 1 ? 4 : plan.columns <= 4 ? 2 : 1;
    const std::int64_t loads = ceil_div(shape.depth, plan.vector);
    plan.x = std::clamp<std::int64_t>(power_above(ceil_div(loads, 2 * plan.loads)), 1, threads);
    plan.y = threads / plan.x;
    // Fewer rows than a block has lines: more threads for each.
    while (plan.y > 1 && (plan.y / 2) * plan.rows_each >= shape.rows) plan.y /= 2;
  } else {
    while (plan.vector > 1 && plan.vector * plan.columns > kSums) plan.vector /= 2;
    plan.x = 32, plan.y = std::max<std::int64_t>(1, threads / 32);
    plan.loads = plan.columns <= 2 ? 8 : plan.columns <= 8 ? 4 : 2;
    while (plan.y > 1 && plan.y > shape.depth) plan.y /= 2;
  }
  plan.parts = parts_of(plan, shape, grid);
  return plan;
}

namespace {

bool multiples(const Dims& steps, int count, std::int64_t of) {
  return std::all_of(steps.begin(), steps.begin() + count,
                     [&](std::int64_t s) { return s % of == 0; });
}
bool aligned(const NDArray& x, std::int64_t elements) {
  const std::int64_t bytes = elem_bytes(x.elem());
  return (x.handle()->address() + static_cast<std::uint64_t>(x.offset() * bytes)) %
             static_cast<std::uint64_t>(elements * bytes) ==
         0;
}

/// The product with the matrix on the left; `turned`: out is written with rows and columns
/// exchanged.
bool left_product(const NDArray& out, const NDArray& a, const NDArray& b_in, bool turned) {
  NDArray b = b_in;
  const int r = out.ndim();
  ThinShape shape;
  shape.rows = a.shape()[r - 2], shape.depth = a.shape()[r - 1], shape.columns = b.shape()[r - 1];
  const Dims batch(out.shape().data(), r - 2);
  for (std::int64_t extent : batch) shape.batch *= extent;
  shape.element_bytes = elem_bytes(a.elem());
  const std::int64_t step_m = a.strides()[r - 2], step_k = a.strides()[r - 1];
  if (shape.depth > 1 && step_k == 1) shape.along_depth = true;
  else if (shape.rows == 1 || step_m == 1) shape.along_depth = false;
  else if (shape.depth == 1) shape.along_depth = false;
  else return false;
  if (!shape.along_depth && shape.rows > 1 && step_m != 1) return false;
  // The widest load at whose multiples every line begins and ends.
  const std::int64_t line = shape.along_depth ? shape.depth : shape.rows,
                     lines = shape.along_depth ? shape.rows : shape.depth,
                     step = shape.along_depth ? step_m : step_k;
  shape.vector = 16 / shape.element_bytes;
  while (shape.vector > 1 &&
         !(aligned(a, shape.vector) && multiples(a.strides(), r - 2, shape.vector) &&
           line % shape.vector == 0 && (lines == 1 || step % shape.vector == 0)))
    shape.vector /= 2;
  const Grid& grid = grid_of(out.device());
  ThinSpec spec;
  spec.plan = plan_thin(shape, grid);
  const ThinPlan& plan = spec.plan;
  spec.sum = sum_elem(out.elem());
  spec.a = a.elem();
  if (plan.along_depth && plan.columns > 1 && b.strides()[r - 2] != 1 && shape.depth > 1) {
    // Few columns that lie next to each other: a small copy gives each its own line.
    b = b.transpose(r - 2, r - 1).contiguous().transpose(r - 2, r - 1);
  }
  spec.b = b.elem();
  const std::int64_t bk = b.strides()[r - 2], bn = b.strides()[r - 1];
  spec.wide_b = plan.along_depth && plan.vector > 1 && a.elem() == b.elem() && bk == 1 &&
                aligned(b, plan.vector) && (shape.columns == 1 || bn % plan.vector == 0) &&
                multiples(b.strides(), r - 2, plan.vector);
  const std::int64_t unit = plan.vector, unit_b = spec.wide_b ? plan.vector : 1;
  // Parts begin where loads do.
  std::int64_t part = ceil_div(shape.depth, plan.parts);
  part = std::max<std::int64_t>(1, ceil_div(part, plan.vector) * plan.vector);
  const std::int64_t parts = std::max<std::int64_t>(1, ceil_div(shape.depth, part));
  const std::int64_t blocks = ceil_div(shape.rows, plan.rows());
  const std::int64_t size = shape.batch * shape.rows * shape.columns;
  NDArray target = parts == 1 ? out : NDArray::empty(out.device(), spec.sum, Dims{parts, size});
  spec.out = target.elem();
  spec.rank_batch = batch.size();
  auto reach = [&](const NDArray& x) {
    std::int64_t most = 0;
    for (int i = 0; i < r; ++i)
      most += (x.shape()[i] + 4 * plan.sweep() + plan.rows()) * std::abs(x.strides()[i]);
    return most;
  };
  spec.narrow = fits_narrow(std::max({reach(a), reach(b), size * parts + 65536,
                                      blocks * parts * shape.batch, blocks * plan.rows()}));
  const ProgramKey key{
      "product.thin",
      {static_cast<int>(spec.out), static_cast<int>(spec.sum), static_cast<int>(spec.a),
       static_cast<int>(spec.b), spec.narrow, spec.wide_b, plan.along_depth, spec.rank_batch,
       plan.vector, plan.columns, plan.rows_each, plan.loads, plan.x, plan.y}};
  const std::int64_t step_a = plan.along_depth ? step_m : step_k;
  ProgramCall call(out.device());
  call.array(target).array(a).array(b);
  call.integer(blocks).integer(parts).integer(part).integer(shape.batch).integer(shape.rows);
  call.integer(shape.columns).integer(shape.depth);
  call.integer((plan.along_depth ? shape.rows : shape.depth) == 1 ? 0 : step_a / unit);
  call.integer(spec.wide_b ? 1 : bk).integer(shape.columns == 1 ? 0 : bn / unit_b);
  call.integer(turned ? 1 : shape.columns).integer(turned ? shape.rows : 1);
  call.integer(shape.rows * shape.columns).integer(size);
  for (std::int64_t v : batch) call.integer(v);
  for (int i = 0; i + 2 < r; ++i) call.integer(a.strides()[i] / unit);
  for (int i = 0; i + 2 < r; ++i) call.integer(b.strides()[i] / unit_b);
  call.run(key, [&] { return thin_kernel(spec); });
  if (parts > 1) grid_reduce(ReduceOp::sum, spec.sum, out.reshape(Dims{size}), target, 1);
  return true;
}

}  // namespace

bool thin_product(const NDArray& out, const NDArray& a, const NDArray& b) {
  const int r = out.ndim();
  const std::int64_t m = out.shape()[r - 2], n = out.shape()[r - 1];
  if (std::min(m, n) > kThinColumns || out.elem() == Elem::boolean) return false;
  // The larger operand is the matrix.
  if (n <= m) return left_product(out, a, b, false);
  return left_product(out, b.transpose(r - 2, r - 1), a.transpose(r - 2, r - 1), true);
}

}  // namespace weft::device
