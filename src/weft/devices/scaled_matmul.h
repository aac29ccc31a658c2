// SPDX-License-Identifier: Apache-2.0
#pragma once
// Products of float8 matrices whose sums are scaled.

#include "weft/array/ndarray.h"

namespace weft {

/// Each float32; one number, or one for each row of a, column of b, column. Undefined: absent.
struct ProductScales {
  NDArray a, b, bias;
};
/// (a[m, k] @ b[k, n]) * scales.a * scales.b + scales.bias, summed up in float32 and rounded once
/// to `out`, of float8 operands. Where the machine multiplies float8 tiles they are read as they
/// are (a in rows along k, b in columns along k; others are copied); elsewhere both become float32.
NDArray scaled_matmul(const NDArray& a, const NDArray& b, const ProductScales& scales, Elem out);

/// sums * scales.a * scales.b + scales.bias, float32.
NDArray apply_scales(NDArray sums, const ProductScales& scales);

}  // namespace weft
