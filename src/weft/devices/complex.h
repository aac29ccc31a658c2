// SPDX-License-Identifier: Apache-2.0
#pragma once
// Complex numbers on devices that the host cannot address. Memory holds pairs (re, im), so what
// moves or adds elements works on the real view with one axis more; rows of the operation table are
// maps over pairs of expressions (elements/complex_ir.h), the host's own; a product is one real
// product.

#include <span>

#include "weft/array/ops.h"

namespace weft {

/// As device_elementwise, device_fill, ... (devices/dispatch.h), where an operand, the result or
/// the type of the computation is complex.
void complex_elementwise(Op op, Elem compute, const NDArray& out, std::span<const Arg> args);
void complex_fill(const NDArray& out, const Scalar& value);
void complex_select(const NDArray& out, const NDArray& condition, const Arg& a, const Arg& b);
void complex_copy(const NDArray& dst, const NDArray& src);
void complex_reduce(ReduceOp op, Elem kernel, const NDArray& out, const NDArray& x,
                    std::uint64_t mask);
NDArray complex_scan(ReduceOp op, const NDArray& x, int axis, Elem elem);
/// out (batch, m, n) is compact and complex; a and b are of any type.
void complex_matmul(const NDArray& out, const NDArray& a, const NDArray& b);

}  // namespace weft
