// SPDX-License-Identifier: Apache-2.0
#pragma once
// Table rows of complex numbers as pairs of IR expressions (elements/complex_ir.h), by the row's
// number.

#include "weft/elements/complex_ir.h"
#include "weft/elements/elem.h"
#include "weft/elements/op.h"

namespace weft {

/// The row's value; without imaginary part where it is real or a truth value. Throws RowUnsupported
/// (row_ir.h) for rows that have no complex numbers.
complex_ir::Complex row_value(Op op, const std::vector<complex_ir::Complex>& in);
complex_ir::Complex reduce_value(ReduceOp op, const complex_ir::Complex& a,
                                 const complex_ir::Complex& x);

}  // namespace weft
