// SPDX-License-Identifier: Apache-2.0
#pragma once
// Loops annotated "nontemporal" (sch.annotate(loop, "nontemporal", True)): what is stored under
// them to global memory is wrapped in the intrinsic `nontemporal`, which later passes carry along
// and emitters spell as the machine's streaming store. The annotation goes.

#include "weft/ir/node.h"
#include "weft/machine/target_info.h"

namespace weft::pass {

ir::PrimFunc mark_nontemporal(const ir::PrimFunc& f, const TargetInfo& machine);

}  // namespace weft::pass
