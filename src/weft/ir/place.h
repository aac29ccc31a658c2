// SPDX-License-Identifier: Apache-2.0
#pragma once
// Places of elements. Data may choose one by a number of any integer type; they are counted in
// types in which the place of the last element has room.

#include "weft/ir/build.h"

namespace weft::ir {

/// The index, in int64 if its type is narrow or unsigned.
inline Expr as_place(const Expr& index) {
  const DType type = index->dtype;
  return type.is_int() && type.bits >= 32 ? index
                                          : cast(dtypes::int64.with_lanes(type.lanes), index);
}

}  // namespace weft::ir
