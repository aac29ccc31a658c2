// SPDX-License-Identifier: Apache-2.0
#pragma once
// Schedules are written before a target is chosen: the rules they are checked against are the
// generic table plus the rows of every back end of this build (axes, memories, instructions).

#include <memory>

#include "weft/rules/facts.h"
#include "weft/schedule/rules.h"
#include "weft/target/target.h"

namespace weft {

/// A target's rows as schedule rules.
schedule::ScheduleRules rules_of(const TargetInfo& info);
/// What the rules of schedules may know of a machine with groups of threads.
rules::Context context_of(const TargetInfo& info);
/// Generic rules and those of all back ends with default options; made once.
std::shared_ptr<const schedule::ScheduleRules> all_rules();

}  // namespace weft
