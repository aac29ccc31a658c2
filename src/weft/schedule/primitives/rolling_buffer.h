// SPDX-License-Identifier: Apache-2.0
#pragma once
// rolling_buffer.

#include "weft/schedule/describe.h"

namespace weft::schedule {

struct RollingBuffer {
  static constexpr std::string_view kName = "rolling_buffer";
  static constexpr std::string_view kDoc =
      "Makes the buffer of a producer that a loop computes window by window a circular one as long "
      "as the window: each iteration computes only what the one before has not, and indices wrap. "
      "Apply it last: the buffer no longer holds what later steps expect. Example: "
      "`sch.rolling_buffer(conv1, 0)` after `sch.compute_at(conv1, row)`.";
  using Result = Done;
  BlockRef block;
  std::int64_t write_buffer_index = 0;
  static void fields(auto&& f) {
    f("block", &RollingBuffer::block, "the producer, inside the loop of its consumers");
    f("write_buffer_index", &RollingBuffer::write_buffer_index, "which of the block's writes");
  }
  Verdict transform(const State&, Outcome<Result>&) const;
};

}  // namespace weft::schedule
