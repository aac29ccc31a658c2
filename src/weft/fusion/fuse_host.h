// SPDX-License-Identifier: Apache-2.0
#pragma once
// Programs of fused kernels for devices that the host addresses: loops over constant extents, the
// outer ones shared among threads, the innermost in vectors.

#include <vector>

#include "weft/fusion/lazy.h"
#include "weft/ir/node.h"

namespace weft::fuse {

/// Values over the positions of a shape: element-wise ones, reductions of such along some axes, and
/// numbers of what is left when these axes are gone. All that is read and written once stays in the
/// caches: a row (the positions that reductions join) is finished before the next one begins.
struct HostKernel {
  Dims shape;
  std::uint64_t mask = 0;               // the axes that reductions join; none: a map
  std::vector<Lazy> values;             // each after those that it reads
  std::vector<bool> kept;               // of these: written to memory
  std::vector<Dims> out_steps;          // of the kept ones over `shape`, in elements
  std::vector<const LazyNode*> leaves;  // arrays that are read
  std::vector<Dims> steps;              // of these over `shape`
  /// When nothing is left of the shape and the work is long, a lone reduction writes so many
  /// results, in the type of its sums, for a second pass.
  std::int64_t parts = 1;
};
/// main(kept values..., leaves...).
ir::PrimFunc host_kernel(const HostKernel& kernel);
std::int64_t host_reduce_parts(const Dims& shape, std::uint64_t mask);

}  // namespace weft::fuse
