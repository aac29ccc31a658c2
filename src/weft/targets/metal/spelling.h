// SPDX-License-Identifier: Apache-2.0
#pragma once
// The Metal shading language: the row of the C-like emitter's table.

#include "weft/target/emit_c.h"

namespace weft::metal {

const CSpelling& spelling();

}  // namespace weft::metal
