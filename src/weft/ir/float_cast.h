// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a float becomes as an integer, said once for the interpreter and the emitters.

#include "weft/base/dtype.h"

namespace weft::ir {

/// The signed type through which a number without its fraction reaches the integer type `to`, so
/// that negative numbers and those that are too large for a narrow type wrap alike everywhere; `to`
/// itself where there is none.
inline DType carrier_of_float(DType to) {
  if (!to.is_integral() || to.is_bool()) return to;
  if (to.bits < 32) return dtypes::int32.with_lanes(to.lanes);
  return to.is_uint() && to.bits == 32 ? dtypes::int64.with_lanes(to.lanes) : to;
}

}  // namespace weft::ir
