// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where a program's parallelism goes when its author did not say. Per nest of loops: 16 lanes along
// the loop in which memory is read and written side by side (a reduction's lanes join at the end),
// QPUs along what is left of the parallel loops. Loops that were marked vectorized or parallel are
// taken for the lanes and the QPUs. Bound loops are left as they are.

#include "weft/ir/node.h"
#include "weft/machine/target_info.h"

namespace weft::qpu::tensor {

ir::PrimFunc default_schedule(const ir::PrimFunc& f, const TargetInfo& info);

}  // namespace weft::qpu::tensor
