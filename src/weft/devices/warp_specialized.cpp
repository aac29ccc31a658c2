// SPDX-License-Identifier: Apache-2.0
#include "weft/devices/warp_specialized.h"

#include <algorithm>

#include "weft/devices/warp_specialized_call.h"
#include "weft/elements/row_ir.h"

namespace weft::device {

BulkTensor tensor_of(const NDArray& x, std::initializer_list<std::int64_t> extents,
                     std::initializer_list<std::int64_t> strides) {
  BulkTensor out;
  out.storage = x.handle().get();
  out.offset = static_cast<std::uint64_t>(x.offset() * elem_bytes(x.elem()));
  out.axes = static_cast<int>(extents.size());
  std::copy(extents.begin(), extents.end(), out.extents);
  // The stride of an axis of one element is never used, but must be legal.
  std::size_t i = 0;
  for (std::int64_t s : strides) {
    ++i;
    out.strides[i - 1] = out.extents[i] == 1 ? 8 : s;
  }
  return out;
}

void run_warp_specialized(const Ref<Device>& device, const WarpSpecializedGemm& spec,
                          std::initializer_list<const BulkTensor*> tensors, const NDArray& to,
                          const GemmParams& numbers) {
  const ProgramKey key{
      "convolution.tiles",
      {static_cast<int>(spec.mode), static_cast<int>(spec.out), spec.type == dtypes::bfloat16,
       spec.a_along_m, spec.b_along_n, spec.groups, spec.columns, spec.stages, spec.patch[0],
       spec.patch[1], spec.patch[2], spec.step[0], spec.step[1], spec.pieces, spec.phases[0],
       spec.phases[1], spec.grouped}};
  const GemmParams& x = numbers;
  ProgramCall call(device);
  for (const BulkTensor* t : tensors) {
    if (call.count() < 2) call.pointer(t->storage, t->offset);
  }
  call.array(to);
  for (const BulkTensor* t : tensors) {
    for (int i = 0; i < t->axes; ++i) call.integer(t->extents[i]);
    for (int i = 0; i + 1 < t->axes; ++i) call.integer(t->strides[i]);
  }
  call.integer(std::min(grid_of(device).processors() * x.blocks_per_sm,
                        x.tiles_m * x.tiles_n * x.batches * x.parts));
  for (std::int64_t v :
       {x.tiles_m,   x.tiles_n,    x.batches,    x.parts,     x.steps,     x.part,
        x.m,         x.n,          x.inner,      x.move_a[0], x.move_a[1], x.move_b[0],
        x.move_b[1], x.patches[0], x.patches[1], x.before[0], x.before[1], x.window,
        x.chunks,    x.turned,     x.wide,       x.high,      x.slab,      x.to_image,
        x.to_y,      x.to_x,       x.to_channel, x.gap[0],    x.gap[1],    x.common[0],
        x.common[1], x.inverse[0], x.inverse[1], x.each,      x.to_group})
    call.integer(v);
  call.run(key, [&] { return warp_specialized_kernel(spec); });
}

void add_parts(const NDArray& out, const NDArray& parts) {
  const std::int64_t count = parts.shape()[0], size = parts.size() / count;
  const NDArray flat = out.reshape(Dims{size}), rows = parts.reshape(Dims{count, size});
  constexpr std::int64_t kMost = 8;  // that one map adds up
  if (count > kMost) return grid_reduce(ReduceOp::sum, Elem::float32, flat, rows, 1);
  std::vector<NDArray> each;
  for (std::int64_t i = 0; i < count; ++i) each.push_back(rows.select(0, i));
  std::vector<const NDArray*> arrays;
  for (const NDArray& x : each) arrays.push_back(&x);
  Map map;
  map.key = 0x7200 + static_cast<std::uint64_t>(count);
  map.arrays = arrays;
  map.compute = Elem::float32;
  map.value = [](const std::vector<ir::Expr>& x, const std::vector<ir::Expr>&) {
    ir::Expr sum = x[0];
    for (std::size_t i = 1; i < x.size(); ++i) sum = sum + x[i];
    return sum;
  };
  grid_map(flat, map);
}

}  // namespace weft::device
