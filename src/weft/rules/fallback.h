// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the last rule of the table does with any nest: a thread for each result, the terms of one
// long reduction across the threads of a group.

#include "weft/rules/nest.h"

namespace weft::rules {

/// Buffers that only this nest uses need not leave its kernel. Whether anything was kept.
bool keep_in_nest(Schedule& sch, BlockRef block);
void schedule_fallback(Schedule& sch, BlockRef block, std::int64_t threads);
/// Blocks under common loops: threads run through as many of those as are independent, and keep
/// what the blocks hand to one another.
void schedule_together(Schedule& sch, const std::vector<BlockRef>& blocks, const Facts& facts);

}  // namespace weft::rules
