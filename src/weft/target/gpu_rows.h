// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rows that back ends with grids of groups share: the generic axes and memories under a device's
// limits.

#include "weft/target/target.h"

namespace weft {

struct GroupLimits {
  std::int64_t threads = 1024;  // points of one group
  std::int64_t thread_extent[3] = {1024, 1024, 64};
  std::int64_t block_extent[3] = {2147483647, 65535, 65535};
  std::int64_t shared_bytes = 49152;
  std::int64_t processors = 64;  // groups run on so many at once
  std::int64_t lanes = 32;       // points whose neighbouring accesses are one transfer
};

/// generic_target_info() with limits filled in.
TargetInfo grid_target_info(const GroupLimits& limits);

}  // namespace weft
