// SPDX-License-Identifier: Apache-2.0
#pragma once
// Splits a lowered function: what stands outside its Launch statements becomes a host plan, each
// Launch a kernel function whose parameters are flat buffers, then scalars. Without a Launch the
// whole body is one kernel.

#include <string_view>

#include "weft/ir/node.h"
#include "weft/runtime/plan.h"

namespace weft {

/// An attribute of functions whose callers pass arrays that lie as declared, in terms of scalar
/// parameters: neither extents nor strides are received and compared.
inline constexpr std::string_view kDeclaredLayout = "weft.declared_layout";

/// An attribute of functions: so many blocks of a kernel shall fit a processor at once, which
/// bounds the registers of a thread on targets whose compilers take such a bound.
inline constexpr const char* kBlocksPerProcessor = "weft.blocks_per_processor";

struct SplitOptions {
  /// Alignment in bytes that whole-vector accesses of parameters may rely on, and calls then check;
  /// 1: none.
  int vector_align = 1;
  /// The function as it is becomes the one kernel: pointers of all tensors, then the scalar
  /// parameters, then for each tensor its extents and, if it has strides, those.
  bool whole = false;
};

struct SplitFunction {
  runtime::HostPlan plan;
  std::vector<ir::PrimFunc> kernels;
};

/// `original` declares the arguments (shapes, strides); `lowered` is its flat form
/// (pass/flatten_buffers.h).
SplitFunction split_host_device(const ir::PrimFunc& original, const ir::PrimFunc& lowered,
                                const SplitOptions& options = {});

}  // namespace weft
