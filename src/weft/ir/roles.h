// SPDX-License-Identifier: Apache-2.0
#pragma once
// Threads in roles that hand work to one another: tokens in shared memory, bulk copies whose bytes
// a token counts, tiles that groups of points multiply. Rows in intrinsics.def, the whole in
// docs/design/roles.md. A swizzled tile lies in rows of 128 bytes, from a multiple of 1024 bytes
// on; the piece of 16 bytes p of row r lies at p ^ r % 8.

#include <cstdint>
#include <string_view>

#include "weft/ir/node.h"

namespace weft::ir {

/// How many leading arguments of the call are addresses of elements; 0 for all other calls. One of
/// them may be a tensor_map instead.
int role_addresses(std::string_view op);

/// Where the box, or the coordinates, of a bulk copy begin among its arguments.
std::size_t bulk_numbers(std::string_view op);

/// Whether the order of the statement's points is kept by tokens: barriers are the author's.
bool uses_tokens(const Stmt& s);

/// How many blocks the clusters of a kernel have: what its cluster_meet say, 1 where there are
/// none. Throws Error(verify, "ir.cluster.size") where they disagree or state no constant from 1
/// to 8.
std::int64_t cluster_blocks(const Stmt& s);

/// The same as an attribute of a kernel whose calls have been spelled for a target.
inline constexpr const char* kClusterBlocks = "cluster_blocks";

/// Where byte `at` of a swizzled tile lies, from the tile's beginning.
constexpr std::int64_t swizzled(std::int64_t at) { return at ^ ((at >> 7 & 7) << 4); }

/// A bulk copy's box: extents and steps, in the order of the array's axes. Steps are 1 when they
/// are not given. `first` is where the numbers of the call begin.
struct BulkBox {
  std::vector<std::int64_t> extents, steps;
};
/// Throws Error(verify, "ir.bulk.box") unless the call states `rank` or 2 * rank constants.
BulkBox bulk_box(const CallNode* call, std::size_t first, std::size_t rank);

}  // namespace weft::ir
