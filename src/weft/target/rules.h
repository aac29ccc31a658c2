// SPDX-License-Identifier: Apache-2.0
#pragma once
// Schedules are written before a target is chosen: the rules they are checked against are the
// generic table plus the rows of every back end of this build (axes, memories, instructions).

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "weft/rules/facts.h"
#include "weft/rules/host.h"
#include "weft/schedule/rules.h"
#include "weft/schedule/schedule.h"
#include "weft/target/target.h"

namespace weft {

/// A target's rows as schedule rules.
schedule::ScheduleRules rules_of(const TargetInfo& info);
/// What the rules of schedules may know of a machine with groups of threads.
rules::Context context_of(const TargetInfo& info);
/// The same of a processor.
rules::HostFacts host_facts_of(const TargetInfo& info);
/// Whether programs without a schedule get one from rules on this target.
bool has_rules(std::string_view target);
/// The default schedule of a function, its decisions taken by `choices`, as steps; null where the
/// target leaves none open, or the function is scheduled. Throws Error(schedule, …) where answers
/// lead to a refused step.
std::unique_ptr<schedule::Schedule> open_schedule(const ir::PrimFunc& f, std::string_view target,
                                                  rules::Choices& choices);
/// How long a scheduled function is expected to run on a target, in seconds. `measured`: limits of
/// the device beside those of the target's table (DeviceInfo.limits).
double expected_seconds(const ir::PrimFunc& f, std::string_view target,
                        const std::map<std::string, std::int64_t>& measured);
/// Generic rules and those of all back ends with default options; made once.
std::shared_ptr<const schedule::ScheduleRules> all_rules();

}  // namespace weft
