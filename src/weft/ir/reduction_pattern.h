// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a reduction block computes, read from its init and body: which buffers it accumulates into
// and how an accumulated value joins another. Known: +, *, min, max, and, or; pairs of them,
// component by component; argmin and argmax with either rule for ties; and any combination whose
// block says "commutative_reducer" (te.comm_reducer does), since no program can prove that order
// does not matter.

#include <optional>
#include <vector>

#include "weft/ir/node.h"

namespace weft::ir {

struct ReductionPattern {
  std::vector<const StoreNode*> updates;  // one per component, equal indices
  Reducer reducer;                        // lhs: accumulated, rhs: what joins
  Exprs rest;                             // what joins, per component
  Exprs start;                            // what the block's init stores, per component
};

/// Absent when the block's form is none of these.
std::optional<ReductionPattern> match_reduction(const BlockNode* block);

/// The annotation by which a block vouches for its combination.
constexpr const char* kCommutative = "commutative_reducer";

/// Stores to targets[i][at] what the reducer makes of `lhs` and `rhs`; several results are computed
/// before any is stored.
Stmt store_joined(const ReducerNode& reducer, const std::vector<Buffer>& targets, const Exprs& lhs,
                  const Exprs& rhs, const Exprs& at);

}  // namespace weft::ir
