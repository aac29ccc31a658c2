// SPDX-License-Identifier: Apache-2.0
// The two judges of check_private: regions first, a run with concrete indices for what they leave
// open.
#pragma once

#include <cstdint>
#include <unordered_set>

#include "weft/ir/node.h"
#include "weft/machine/target_info.h"

namespace weft::pass {

using PrivateBuffers = std::unordered_set<const ir::BufferNode*>;

/// Whether a loop goes over the points of an axis of the machine.
bool is_axis(const ir::ForNode* loop);
/// Whether each point of the loop's axis has a copy of the buffer of its own.
bool divides_points(const ir::ForNode* loop, const ir::Buffer& b, const TargetInfo& machine);

/// Private buffers of which regions do not show that each point reads what it wrote itself.
PrivateBuffers unsettled_buffers(const ir::Stmt& body, const TargetInfo& machine);

/// Runs the body with concrete indices, point by point, as far as `max_accesses` go. Throws
/// `lower.private.exchanged` where a point reads what another wrote.
void run_points(const ir::Stmt& body, const TargetInfo& machine, PrivateBuffers watched,
                std::int64_t max_accesses);

}  // namespace weft::pass
