// SPDX-License-Identifier: Apache-2.0
#pragma once
// Atomic additions: stores that read, add and write one element as one step, so that any number of
// points may add to one place. In the tree such a store is `A[i] = atomic_add(A[i], v)`; the text
// says `T.atomic_add(A[i], v)`. Read by a pass that does not know of them it is an ordinary
// addition, which is their meaning where points run one after another.

#include "weft/ir/node.h"

namespace weft::ir {

/// Adds `value` to an element of int32, int64, uint32, uint64, float32 or float64 as one step; the
/// order of additions is not fixed. "ir.atomic.type" for other types.
Stmt atomic_add(const Buffer& buffer, const Exprs& indices, Expr value);
/// Whether every machine's text can add such elements in one step.
bool can_add_atomically(DType type);

/// The call when the store is an atomic addition; null when it is an ordinary store.
const CallNode* as_atomic(const StoreNode* s);
/// Whether s holds an atomic addition to the buffer; to any when it is null.
bool adds_atomically(const Stmt& s, const BufferNode* buffer = nullptr);

}  // namespace weft::ir
