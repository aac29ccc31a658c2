// SPDX-License-Identifier: Apache-2.0
#pragma once
// Signatures of kernels that are whole functions (SplitOptions::whole), for back ends that run the
// IR as it is.

#include "weft/ir/node.h"
#include "weft/runtime/binary.h"

namespace weft {

/// Pointers of all tensors, then scalar parameters, then extents (and strides where declared) per
/// tensor.
runtime::KernelSignature whole_signature(const ir::PrimFunc& f);

}  // namespace weft
