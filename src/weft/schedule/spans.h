// SPDX-License-Identifier: Apache-2.0
#pragma once
// What indices reach exactly while loops run: the ground of cover and of complete domains.

#include <algorithm>
#include <optional>
#include <vector>

#include "weft/arith/analyzer.h"
#include "weft/ir/build.h"
#include "weft/ir/visit.h"
#include "weft/schedule/counted_box.h"

namespace weft::schedule {

inline bool is_true(const ir::Expr& e) { return ir::is_const_int_value(e, 1); }
inline bool mentions(const ir::Expr& e, const std::vector<const ir::ForNode*>& loops) {
  return std::any_of(loops.begin(), loops.end(),
                     [&](const ir::ForNode* loop) { return ir::uses_var(e, loop->var.get()); });
}

/// Absent where what is reached is not a provable box.
std::optional<std::vector<Span>> exact_spans(const std::vector<ir::Range>& region,
                                             const std::vector<const ir::ForNode*>& loops,
                                             const ir::Expr& predicate,
                                             const arith::Analyzer& analyzer);

}  // namespace weft::schedule
