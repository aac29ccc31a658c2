// SPDX-License-Identifier: Apache-2.0
#pragma once
// Atomic updates: stores that read, combine and write one element as one step, so that any number
// of points may add to one place, or leave their largest value there. In the tree such a store is
// `A[i] = atomic_add(A[i], v)` or `A[i] = atomic_max(A[i], v)`; the text says
// `T.atomic_add(A[i], v)`. Read by a pass that does not know of them it is an ordinary combination,
// which is their meaning where points run one after another.

#include "weft/ir/node.h"

namespace weft::ir {

/// Adds `value` to an element of int32, int64, uint32, uint64, float32 or float64 as one step; the
/// order of additions is not fixed. "ir.atomic.type" for other types.
Stmt atomic_add(const Buffer& buffer, const Exprs& indices, Expr value);
/// Leaves the larger of an element of int32 or uint32 and `value` as one step.
Stmt atomic_max(const Buffer& buffer, const Exprs& indices, Expr value);
/// Either, by the intrinsic's name.
Stmt atomic_update(std::string_view op, const Buffer& buffer, const Exprs& indices, Expr value);
bool is_atomic(std::string_view op);
/// Whether every machine's text can update such elements in one step.
bool can_update_atomically(std::string_view op, DType type);

/// The call when the store is an atomic update; null when it is an ordinary store.
const CallNode* as_atomic(const StoreNode* s);
/// Whether s holds an atomic update of the buffer; of any when it is null.
bool updates_atomically(const Stmt& s, const BufferNode* buffer = nullptr);

}  // namespace weft::ir
