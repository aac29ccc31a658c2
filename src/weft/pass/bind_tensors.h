// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bulk copies that name an element of an array parameter are told the array's tensor_map instead,
// made on the host before the launch from the buffer's shape and strides, and the coordinates.
// Runs before flatten_buffers, while buffers know their shapes. Throws Error(lower,
// "lower.bulk.array" or "lower.bulk.row") for what a copy engine cannot read.

#include "weft/ir/node.h"

namespace weft::pass {

ir::PrimFunc bind_tensors(const ir::PrimFunc& f);

}  // namespace weft::pass
