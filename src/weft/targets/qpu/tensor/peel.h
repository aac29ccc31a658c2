// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "weft/ir/node.h"

namespace weft::qpu::tensor {

/// for v in 0..n: if c * v < limit: s  ->  the steps in which all lanes take part, then the rest.
/// Null: the loop is no such one. `only_last`: set where the rest is known to be one step.
ir::Stmt peel(const ir::ForNode* loop, const ir::LaunchAxis& lane, bool* only_last = nullptr);

/// On a loop whose last step alone is partial, and whose body is straight code.
inline constexpr const char* kPartialLast = "qpu.partial_last";

}  // namespace weft::qpu::tensor
