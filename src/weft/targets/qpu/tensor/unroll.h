// SPDX-License-Identifier: Apache-2.0
#pragma once
// Small loops of a constant number of steps inside another loop are written out, so that the outer
// one is straight code: its reads are asked for ahead, and those that stay the same are read once.

#include "weft/ir/node.h"

namespace weft::qpu::tensor {

/// A loop whose steps one QPU takes one after another.
inline bool serial_or_unrolled(const ir::ForNode* loop) {
  return loop->for_kind == ir::ForKind::serial || loop->for_kind == ir::ForKind::unrolled;
}

/// Of a kernel's body, after accumulators have become registers.
ir::Stmt unroll_small(const ir::Stmt& body);
/// A loop whose whole body stands under a condition, as straight code with the mark kPartialLast
/// (peel.h); null where it would be too long.
ir::Stmt unroll_guarded(const ir::ForNode* loop);

}  // namespace weft::qpu::tensor
