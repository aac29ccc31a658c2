// SPDX-License-Identifier: Apache-2.0
#pragma once
// What steps that put copies of buffers into a scope have in common.

#include <string>
#include <unordered_set>
#include <vector>

#include "weft/ir/visit.h"
#include "weft/schedule/state.h"

namespace weft::schedule {

/// Replaces buffers inside the blocks with these ids only.
ir::Stmt use_buffers(const ir::Stmt& body, std::unordered_set<std::uint64_t> blocks,
                     ir::BufferMap map);
/// A buffer like this one in another memory: "A_local".
ir::Buffer cache_of(const ir::Buffer& buffer, const std::string& scope);
/// for ax..: block name: to[v..] = from[v..] over `region`. `id`: of the new block.
ir::Stmt copy_nest(const ir::Buffer& from, const ir::Buffer& to,
                   const std::vector<ir::Range>& region, const std::string& name,
                   std::uint64_t& id);
const ir::BufferRegion* region_of(const std::vector<ir::BufferRegion>& regions,
                                  const ir::BufferNode* buffer);
/// Refuses an index beyond the block's reads or writes: "schedule.<step>.index".
Verdict check_buffer_index(const State& s, std::string_view step, const Path& path,
                           const std::vector<ir::BufferRegion>& regions, std::int64_t index,
                           std::string_view verb);
/// The program with another body of the path's scope, which also allocates `buffers`.
ir::IRModule add_to_scope(const State& s, const Path& path, const std::vector<ir::Buffer>& buffers,
                          ir::Stmt body);
/// Which of the scope's statements the path runs through.
std::size_t top_statement(const std::vector<ir::Stmt>& stmts, const Path& path);
/// Whether some block directly under `s` reads (writes) the buffer.
bool touches(const ir::Stmt& s, const ir::BufferNode* buffer, bool reading, bool writing);

}  // namespace weft::schedule
