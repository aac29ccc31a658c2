// SPDX-License-Identifier: Apache-2.0
#pragma once
// Launches of kernels for whole products: what device_whole.cpp and device_whole_conv.cpp share.

#include "weft/devices/whole.h"
#include "weft/devices/whole_kernel.h"

namespace weft::device {

/// An operand as the copy engine sees it: extents innermost first, strides in elements.
struct WholeTensor {
  Storage* storage = nullptr;
  std::uint64_t offset = 0;
  int axes = 4;
  std::int64_t extents[5] = {}, strides[4] = {};
};
WholeTensor tensor_of(const NDArray& x, std::initializer_list<std::int64_t> extents,
                      std::initializer_list<std::int64_t> strides);

/// kWholeNumbers; along x before y, inner before outer.
struct WholeNumbers {
  std::int64_t tiles_m = 1, tiles_n = 1, batches = 1, parts = 1, steps = 1, part = 1, m = 1, n = 1,
               inner = 1, move_a[2] = {}, move_b[2] = {}, patches[2] = {1, 1}, before[2] = {},
               window = 1, chunks = 1, turned = 0, wide = 1, high = 1, slab = 0, to_image = 0,
               to_y = 0, to_x = 0, to_channel = 0;
};
/// Products as this kernel has them: tiles of 64 or 128 rows and whole pieces of 64 columns, no
/// clusters, rows of tiles along m.
inline rules::GemmShape whole_shape() {
  rules::GemmShape shape;
  shape.column_unit = 64, shape.most_rows = 128, shape.most_cluster = 1, shape.turns = false;
  return shape;
}
/// The tile of a choice.
inline void take(const rules::GemmDecisions& choice, WholeProduct& spec) {
  WEFT_CHECK(!choice.turned && choice.cluster_blocks() == 1 && choice.columns % 64 == 0,
             "a tile that the kernel of windows does not have");
  spec.groups = static_cast<int>(choice.rows / 64);
  spec.columns = static_cast<int>(choice.columns), spec.stages = static_cast<int>(choice.slots);
}
/// Builds the kernel on the first use on this device, then launches.
void run_whole(const Ref<Device>& device, const WholeProduct& spec,
               std::initializer_list<const WholeTensor*> tensors, const NDArray& to,
               const WholeNumbers& numbers);  // tensors: a, b and, where it is copied, out

/// out = the sum over the first axis of float32 `parts`, in that order, rounded once.
void add_parts(const NDArray& out, const NDArray& parts);

}  // namespace weft::device
