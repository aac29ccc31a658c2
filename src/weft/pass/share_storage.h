// SPDX-License-Identifier: Apache-2.0
#pragma once
// Allocations of one scope and element type whose lifetimes within a sequence of statements are
// disjoint become one, as large as the largest. Runs before insert_barriers, which then sees one
// buffer and keeps the users apart. Memory that points share is always worth it; other memory from
// kLargeBytes on, since small private arrays live in registers.

#include <cstdint>
#include <string>
#include <vector>

#include "weft/ir/node.h"

namespace weft::pass {

constexpr std::int64_t kLargeBytes = 4096;

/// The annotation "holds" of an Allocate names the buffers that it replaced.
ir::PrimFunc share_storage(const ir::PrimFunc& f);

struct SharedStorage {
  std::string buffer;              // that remains
  std::vector<std::string> holds;  // names of those it replaced
  std::int64_t saved_bytes = 0;    // per instance
};
/// What share_storage did to f, read from its annotations.
std::vector<SharedStorage> shared_storage(const ir::PrimFunc& f);

}  // namespace weft::pass
