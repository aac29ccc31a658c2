// SPDX-License-Identifier: Apache-2.0
#pragma once
// The last rewriting before vector code, on kernels with flat memory: every launch gets the axes
// "qpu" and "lane"; guards that a loop does not change leave it; an element that a loop only
// updates lives in a register while the loop runs; loops whose last steps are guarded are divided
// into the full steps and the rest.

#include "weft/ir/node.h"

namespace weft::qpu::tensor {

ir::PrimFunc prepare(const ir::PrimFunc& f);

}  // namespace weft::qpu::tensor
