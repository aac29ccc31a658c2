// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bits of whole numbers as elements, and the parts of floats, of arrays on the host; memory read as
// another element type, on any device.

#include <utility>

#include "weft/array/ndarray.h"

namespace weft {

/// Truth values along the last axis, eight to a uint8, the first one its highest bit or its lowest;
/// zeros fill the last.
NDArray packed_bits(const NDArray& x, bool highest_first);
/// Zeros and ones, eight for each uint8 along the last axis.
NDArray unpacked_bits(const NDArray& x, bool highest_first);
/// How many bits of the magnitude of whole numbers or truth values are set, uint8.
NDArray counted_bits(const NDArray& x);
/// m of x's type and e of int32 with x = m 2^e, 0.5 <= |m| < 1, of float32 and float64; 0,
/// infinities and NaN are their own m with e = 0.
std::pair<NDArray, NDArray> parts_of_floats(const NDArray& x);
/// The same memory as elements of another type. Where the sizes differ, the last axis has no gaps
/// and holds a whole number of the new elements, which also begin at whole multiples of their size.
NDArray with_elements_of(const NDArray& x, Elem elem);

}  // namespace weft
