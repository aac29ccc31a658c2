// SPDX-License-Identifier: Apache-2.0
#pragma once
// Checks that several loop steps share.

#include "weft/schedule/state.h"

namespace weft::schedule {

/// Refuses loops that are bound to an axis or annotated: reshaping them would lose that.
Verdict check_plain_loop(const State& s, std::string_view step, const ir::ForNode* loop);
Verdict check_starts_at_zero(const State& s, std::string_view step, const ir::ForNode* loop);

}  // namespace weft::schedule
