// SPDX-License-Identifier: Apache-2.0
#pragma once
// Integers of 64 bits on a machine that computes with 32: operands that fit 32 bits are narrowed,
// results are extended. Whether they fit is looked up in the data before any work; what does not is
// refused ("array.int64.range"). Each function is false where nothing has to be narrowed.

#include <span>
#include <string_view>

#include "weft/array/ops.h"

namespace weft {

/// Whether the device computes elements of `e` by the functions below.
bool narrows(const Ref<Device>& device, Elem e);
/// The values of x as int32 where x is concerned, else x.
NDArray narrow_integers(std::string_view operation, const NDArray& x);
/// Floats as int32 for a result of 64-bit integers. What is no finite number has no integer: the
/// machine's own conversion decides.
NDArray narrow_float(const NDArray& x);
bool narrow_elementwise(Op op, Elem compute, const NDArray& out, std::span<const Arg> args);
bool narrow_select(const NDArray& out, const NDArray& condition, const Arg& a, const Arg& b);
/// Like device_reduce.
bool narrow_reduce(ReduceOp op, Elem kernel, const NDArray& out, const NDArray& x,
                   std::uint64_t mask);

}  // namespace weft
