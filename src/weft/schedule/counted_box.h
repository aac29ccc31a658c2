// SPDX-License-Identifier: Apache-2.0
#pragma once
// The box of points that a nest reaches, found by running its loops. For nests of constant extents
// whose digits no rule can tell apart: a tile fetched by more threads than it has elements, where a
// predicate cuts a number whose quotient and remainder are the indices.

#include <optional>
#include <vector>

#include "weft/arith/analyzer.h"
#include "weft/schedule/state.h"

namespace weft::schedule {

/// [base, base + the smallest of widths).
struct Span {
  ir::Expr base;
  std::vector<ir::Expr> widths;
};

/// Exactly what the points `region` (extents 1) reach while `loops` run under all `conditions`.
/// Absent when that is no box, when a condition mentions more than the loops, or when finding out
/// takes more than 32768 steps.
std::optional<std::vector<Span>> counted_box(const std::vector<ir::Range>& region,
                                             const std::vector<const ir::ForNode*>& loops,
                                             const std::vector<ir::Expr>& conditions,
                                             const arith::Analyzer& analyzer);

/// One side of a question of cover: what a block touches of a buffer in one run of the loops that
/// both blocks stand in. Ends of regions are constant; loops and conditions may use the shared
/// ones.
struct Touched {
  const std::vector<ir::Range>& region;
  const std::vector<const ir::ForNode*>& loops;  // its own
  const ir::Expr& predicate;
};

/// Whether, for every run of the shared loops, all that `read` touches inside the buffer is touched
/// by `write`. By counting: false when a loop is not constant or there are too many points.
bool counted_cover(const Touched& write, const Touched& read,
                   const std::vector<const ir::ForNode*>& shared, const ir::Buffer& buffer);

}  // namespace weft::schedule
