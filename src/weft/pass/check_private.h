// SPDX-License-Identifier: Apache-2.0
#pragma once
// Refuses ("lower.private.exchanged") programs that hand a value from one point to another through
// memory of which each point has its own copy: the program, read as loops, computes one thing and
// the machine another. Runs after convert_blocks and before compact_buffers, while indices still
// are the program's own. Accesses that stay within one point are recognised from their regions;
// what is left is run with concrete indices, point by point, and each element's last writer is
// compared with its reader. What the budget does not reach, or what depends on data, is accepted.

#include <cstdint>
#include <string_view>

#include "weft/ir/node.h"
#include "weft/machine/target_info.h"

namespace weft::pass {

/// Attribute of functions whose points run together: their loops over points hold statements that
/// barriers separate (insert_barriers), so that read as loops, one point after another, they mean
/// nothing. What their points exchange is not judged.
inline constexpr std::string_view kPointsTogether = "weft.points_together";

/// Returns f itself. `max_accesses` bounds the run with concrete indices.
ir::PrimFunc check_private(const ir::PrimFunc& f, const TargetInfo& machine,
                           std::int64_t max_accesses = 200'000);

}  // namespace weft::pass
