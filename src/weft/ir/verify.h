// SPDX-License-Identifier: Apache-2.0
#pragma once
// Well-formedness: variables defined before use and once, types agree, indices match ranks, block
// bodies touch the outside only through iterators and declared buffers, regions name visible
// buffers.

#include "weft/base/error.h"
#include "weft/ir/node.h"

namespace weft::ir {

/// Null when well-formed; else slug "verify.*" with the program around the culprit.
Verdict verify(const PrimFunc& f);
Verdict verify(const IRModule& m);

}  // namespace weft::ir
