// SPDX-License-Identifier: Apache-2.0
#pragma once
// Programs of fused kernels for devices that the host addresses: loops over constant extents, the
// outer ones shared among threads, the innermost in vectors.

#include <functional>
#include <vector>

#include "weft/array/dims.h"
#include "weft/host/kernels.h"
#include "weft/ir/build.h"

namespace weft::fuse {

/// Element types and steps of the operands; the value of one element from loads.
struct HostMap {
  Dims shape;
  std::vector<Dims> steps;  // out first, then the inputs, in elements
  std::vector<Elem> elems;  // likewise
  std::function<ir::Expr(const std::vector<ir::Expr>&)> value;  // of the output's type
};
ir::PrimFunc host_map(HostMap map);

/// out (compact over the kept axes) = combination over axes in `mask`; steps are of the inputs.
/// When nothing is kept and the work is long, `parts` > 1 results are written for a second pass.
struct HostReduce {
  ReduceOp op{};
  Elem kernel = Elem::float32;
  Dims shape;
  std::uint64_t mask = 0;
  std::vector<Dims> steps;
  std::vector<Elem> elems;
  std::function<ir::Expr(const std::vector<ir::Expr>&)> value;  // of type `kernel`
  std::int64_t parts = 1;
};
ir::PrimFunc host_reduce(HostReduce reduce);
std::int64_t host_reduce_parts(const Dims& shape, std::uint64_t mask);

}  // namespace weft::fuse
