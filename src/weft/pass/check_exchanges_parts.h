// SPDX-License-Identifier: Apache-2.0
// The two judges of check_exchanges: proofs first, a run with concrete indices for what they leave
// open.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "weft/ir/node.h"
#include "weft/machine/target_info.h"

namespace weft::pass {

/// Why the iterations of a loop must not run in step; the text names accesses and iterations.
using Exchanges = std::unordered_map<const ir::ForNode*, std::string>;

/// Loops of which proofs leave something open, and the buffers in question.
struct OpenExchanges {
  std::unordered_set<const ir::ForNode*> loops;
  std::unordered_set<const ir::BufferNode*> buffers;
  Exchanges by_data;  // loops with places that data chooses
  /// Stores that leave the same values in the same elements in each iteration of a loop.
  std::unordered_map<const ir::ForNode*, std::unordered_set<const ir::StmtNode*>> repeated;
};

/// Whether both are bound to an axis that has one position at a time.
bool same_axis(const ir::ForNode* outer, const ir::ForNode* inner, const TargetInfo& machine);
OpenExchanges open_exchanges(const ir::PrimFunc& f, const TargetInfo& machine);

/// Runs the body in the order of its loops, as far as `max_accesses` go, and finds uses of one
/// element whose order would change.
Exchanges run_exchanges(const ir::Stmt& body, const TargetInfo& machine, const OpenExchanges& open,
                        std::int64_t max_accesses);

}  // namespace weft::pass
