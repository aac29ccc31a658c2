// SPDX-License-Identifier: Apache-2.0
#pragma once
// The body of a function for given arguments.

#include "weft/ir/visit.h"

namespace weft::ir {

/// A deep copy in which free variables and buffers are replaced by those of the maps, in the shapes
/// of buffers that are allocated inside too.
Stmt instantiate(const Stmt& s, VarMap vars, BufferMap buffers);

}  // namespace weft::ir
