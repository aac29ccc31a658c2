// SPDX-License-Identifier: Apache-2.0
#pragma once
// Every buffer becomes one-dimensional: indices are multiplied by strides. Symbols that only shapes
// and strides bound before (extents, strides, offsets) become scalar parameters after the others,
// so that the function stays closed; parameter i still stands for parameter i of the original. A
// parameter's elem_offset is taken to be folded into its pointer.

#include "weft/ir/node.h"

namespace weft::pass {

ir::PrimFunc flatten_buffers(const ir::PrimFunc& f);

}  // namespace weft::pass
