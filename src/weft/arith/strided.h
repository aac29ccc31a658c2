// SPDX-License-Identifier: Apache-2.0
#pragma once
// A flat index as a walk with fixed strides: what a DMA engine, a data descriptor or a vectorized
// load can follow by counting. i0*64 + i1//4*16 + i1%4 over i0 < 8, i1 < 16 is
// (8, 64), (4, 16), (4, 1) from 0.

#include <optional>
#include <vector>

#include "weft/arith/analyzer.h"

namespace weft::arith {

struct StridedDim {
  std::int64_t extent = 1, stride = 0;  // in the index's unit; stride 0: the same place again
  bool operator==(const StridedDim&) const = default;
};

struct Strided {
  ir::Expr base;                 // of variables outside the loops
  std::vector<StridedDim> dims;  // outermost first; no extent is 1, no two that one would do for
};

/// The places that `index` visits while `loops` (outermost first, constant extents, any minimum)
/// run, in that order. Quotients and remainders of the loops by constants are digits; empty when
/// the index is not linear in such digits, or a digit's last round is not whole (7 // 2 digits).
std::optional<Strided> as_strided(const ir::Expr& index, const std::vector<ir::IterVar>& loops,
                                  const Analyzer& analyzer);

}  // namespace weft::arith
