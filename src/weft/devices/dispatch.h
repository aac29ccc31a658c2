// SPDX-License-Identifier: Apache-2.0
#pragma once
// Operations on arrays that the host cannot address: table rows become programs, programs are built
// for the array's device by the compiler and kept. Operands may be any views.

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "weft/array/ops.h"
#include "weft/devices/machine_program.h"

namespace weft {

/// out = row(args) on out's device. Throws Error(device, "array.<op>.kernel") when there is no way.
void device_elementwise(Op op, Elem compute, const NDArray& out, std::span<const Arg> args);
/// All elements become `value`; out = condition ? a : b. False where the device has no such kernel.
bool device_fill(const NDArray& out, const Scalar& value);
bool device_select(const NDArray& out, const NDArray& condition, const Arg& a, const Arg& b);
/// x below diagonal k and on it (`lower`), or above and on it; zeros elsewhere. Undefined where the
/// device has no such kernel.
NDArray device_triangle(const NDArray& x, std::int64_t k, bool lower);
/// dst = src, converted, broadcast; not overlapping; one device.
void device_copy(const NDArray& dst, const NDArray& src);
/// out[kept] = combination over the axes in `mask`; out is compact in the order of x's kept axes.
void device_reduce(ReduceOp op, Elem kernel, const NDArray& out, const NDArray& x,
                   std::uint64_t mask);
/// out (batch, m, n) = a (batch, m, k) times b (batch, k, n), any strides, out compact.
void device_matmul(const NDArray& out, const NDArray& a, const NDArray& b);
/// a b + bias in one launch, of matrices and a row of one type; undefined where there is no such
/// kernel.
NDArray device_linear(const NDArray& a, const NDArray& b, const NDArray& bias);

/// Whether contractions of arrays like this one have a kernel on its device.
bool device_has_contraction(const NDArray& x);

}  // namespace weft
