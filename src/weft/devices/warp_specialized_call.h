// SPDX-License-Identifier: Apache-2.0
#pragma once
// Launches of kernels for whole products: what warp_specialized.cpp and
// warp_specialized_convolution.cpp share.

#include "weft/devices/warp_specialized.h"
#include "weft/devices/warp_specialized_kernel.h"

namespace weft::device {

/// An operand as the copy engine sees it: extents innermost first, strides in elements.
struct BulkTensor {
  Storage* storage = nullptr;
  std::uint64_t offset = 0;
  int axes = 4;
  std::int64_t extents[5] = {}, strides[4] = {};
};
BulkTensor tensor_of(const NDArray& x, std::initializer_list<std::int64_t> extents,
                     std::initializer_list<std::int64_t> strides);

/// kGemmParams; along x before y, inner before outer.
struct GemmParams {
  std::int64_t tiles_m = 1, tiles_n = 1, batches = 1, parts = 1, steps = 1, part = 1, m = 1, n = 1,
               inner = 1, move_a[2] = {}, move_b[2] = {}, patches[2] = {1, 1}, before[2] = {},
               window = 1, chunks = 1, turned = 0, wide = 1, high = 1, slab = 0, to_image = 0,
               to_y = 0, to_x = 0, to_channel = 0, gap[2] = {1, 1}, common[2] = {1, 1},
               inverse[2] = {}, each = 1, to_group = 0;
  std::int64_t blocks_per_sm = 1;  // blocks of a processor
};
/// Products as this kernel has them: tiles of 64 or 128 rows and whole pieces of 64 columns, no
/// clusters, rows of tiles along m.
inline rules::GemmShape warp_specialized_shape() {
  rules::GemmShape shape;
  shape.column_unit = 64, shape.most_rows = 128, shape.most_cluster = 1, shape.turns = false;
  return shape;
}
/// The tile of a choice.
inline void take(const rules::GemmDecisions& choice, WarpSpecializedGemm& spec) {
  WEFT_CHECK(!choice.turned && choice.cluster_blocks() == 1 && choice.columns % 64 == 0,
             "a tile that the kernel of windows does not have");
  spec.groups = static_cast<int>(choice.rows / 64);
  spec.columns = static_cast<int>(choice.columns), spec.stages = static_cast<int>(choice.slots);
}
/// Builds the kernel on the first use on this device, then launches.
void run_warp_specialized(const Ref<Device>& device, const WarpSpecializedGemm& spec,
                          std::initializer_list<const BulkTensor*> tensors, const NDArray& to,
                          const GemmParams& numbers);  // tensors: a, b and, where it is copied, out

/// out = the sum over the first axis of float32 `parts`, in that order, rounded once.
void add_parts(const NDArray& out, const NDArray& parts);

}  // namespace weft::device
