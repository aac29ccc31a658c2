// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tensor programs to instruction streams. Outer loops are run while recording; a loop nest around
// one statement is one unit and becomes one instruction (or a few): a copy between global memory
// and vta.inp, vta.wgt or vta.acc a rectangle of DMA, a sum of products GEMM, anything else on
// vta.acc a chain of ALU operations. Index expressions decide, as affine functions of the nest's
// loops; names and loop order do not matter. Tokens come afterwards (synchronise.h). What cannot be
// lowered is refused with the statement and the rule.

#include "weft/ir/node.h"
#include "weft/targets/vta/builder.h"

namespace weft::vta {

/// Kernels as Backend::emit gets them: flat buffers, no blocks. Throws Error(lower, "vta.lower.*").
Program lower(const std::vector<ir::PrimFunc>& kernels, const Config& config);

/// "vta.inp" -> inp and so on; false: no scope of this machine.
bool memory_of_scope(std::string_view scope, MemType& out);

}  // namespace weft::vta
