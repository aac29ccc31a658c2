// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rows whose second operand is a number for which there is a cheaper way to the value: powers by
// multiplication and square root, integer division by multiplication, limits that are no NaN.

#include "weft/array/ops.h"
#include "weft/host/kernel_lists.h"

namespace weft {

struct ConstantOperandKernel {
  ElementwiseFn fn = nullptr;                  // null: no such way
  alignas(16) std::int64_t constants[3] = {};  // its second operand
};
/// Limits of float32 and float64 from below and above, if there is a way for them.
ConstantOperandKernel constant_limits_kernel(Elem kernel, const Scalar& low, const Scalar& high);
/// out = x by such a way, of the kernel's type; arrays of one shape on the host.
void run_constant_operand(const ConstantOperandKernel& row, Elem kernel, const NDArray& out,
                          const NDArray& x);
/// For arrays of `kernel`'s type and this number on the right.
ConstantOperandKernel constant_operand_kernel(Op op, Elem kernel, const Scalar& number);

/// The exponent as a number; 0 where the scalar is complex or beyond 64 bits.
inline double exponent_of(const Scalar& number) {
  if (number.kind == Kind::real) return number.z.real();
  return number.kind == Kind::complex || number.large || number.beyond
             ? 0
             : static_cast<double>(number.i);
}

}  // namespace weft
