// SPDX-License-Identifier: Apache-2.0
#pragma once
// Plain C11: the row of the C-like emitter's table.

#include "weft/target/emit_c.h"

namespace weft::c {

const CSpelling& spelling();

}  // namespace weft::c
