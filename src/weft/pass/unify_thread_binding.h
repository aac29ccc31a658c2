// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bound loops become device kernels: each outermost bound loop is one Launch whose axes are all
// axes bound below it, once each. Extents are checked against the machine's rows. A store that is
// not under a loop of some launch axis, to memory the points of that axis share, is done by point 0
// alone. What remains on the host side and touches memory becomes a Launch without axes, unless the
// function has no bound loop at all.

#include "weft/ir/node.h"
#include "weft/machine/target_info.h"

namespace weft::pass {

ir::PrimFunc unify_thread_binding(const ir::PrimFunc& f, const TargetInfo& machine);

}  // namespace weft::pass
