// SPDX-License-Identifier: Apache-2.0
#pragma once
// OpenCL C 1.2: the row of the C-like emitter's table.

#include "weft/target/emit_c.h"

namespace weft::opencl {

const CSpelling& spelling();

}  // namespace weft::opencl
