// SPDX-License-Identifier: Apache-2.0
#pragma once
// Divides a lowered function at its top level into kernels: what touches the chip's memories is a
// device kernel, copies of global memory before and after are host kernels.

#include "weft/ir/node.h"

namespace weft::vta {

/// Error(lower, "vta.lower.stages") when a value would stay on chip across a host copy.
ir::PrimFunc split_stages(const ir::PrimFunc& f);
/// Whether a kernel works on global memory only.
bool is_host_kernel(const ir::PrimFunc& kernel);

}  // namespace weft::vta
