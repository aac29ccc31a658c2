// SPDX-License-Identifier: Apache-2.0
#pragma once
// CUDA C: the row of the C-like emitter's table.

#include "weft/target/emit_c.h"

namespace weft::cuda {

const CSpelling& spelling();

}  // namespace weft::cuda
