// SPDX-License-Identifier: Apache-2.0
#pragma once
// Float8 numbers for machines without them: stored as uint8, computed with as float32.

#include "weft/ir/node.h"

namespace weft::pass {

/// Buffers of float8_e4m3fn and float8_e5m2 become buffers of uint8. A value of one of these types
/// becomes a float32 that the type has: loads and stores convert by integer arithmetic, and what an
/// operation gives is rounded to the type at once (to nearest even; beyond the largest number NaN
/// in float8_e4m3fn and infinite in float8_e5m2).
ir::PrimFunc lower_float8(const ir::PrimFunc& kernel);

}  // namespace weft::pass
