// SPDX-License-Identifier: Apache-2.0
#pragma once
// Plain C11: the rows of the C-like emitter's table.

#include "weft/target/emit_c.h"

namespace weft::c {

const CSpelling& spelling();

/// For text that becomes part of a program ("c:library=1"): functions are static and have no
/// entries, pointers may be equal, exp, log and tanh of float32 are straight-line code that
/// vectorises, 16-bit floats are the compiler's, other mathematics may be the C library's vector
/// functions.
const CSpelling& library_spelling();

/// Either of them; with vectors of so many bytes (16, 32 or 64; 0: with loops).
const CSpelling& vector_spelling(bool library, int bytes);

}  // namespace weft::c
