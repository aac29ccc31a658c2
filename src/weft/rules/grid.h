// SPDX-License-Identifier: Apache-2.0
#pragma once
// The schedule of a function in which no loop is bound, for machines with groups of threads: the
// first rule of the table that matches a statement of the body schedules it.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weft/rules/facts.h"
#include "weft/rules/nest.h"
#include "weft/rules/nest_forms.h"
#include "weft/schedule/schedule.h"

namespace weft::rules {

struct GridSchedule {
  Schedule schedule;
  std::vector<std::string> applied;  // "argmax: reduce", a line for each scheduled statement
};

/// What the rules do whatever the decisions are, once for many schedules of a function.
struct GridStart {
  Facts facts;
  Sizes sizes;
  Schedule nests;                // element-wise chains are one block
  std::optional<Schedule> rows;  // all of it as passes over rows, where it is that
  std::vector<std::string> applied;
  std::unique_ptr<NestForms> forms = std::make_unique<NestForms>();
  GridStart(const ir::PrimFunc& f, std::shared_ptr<const TargetInfo> machine);
};

/// Whether the function is one for the rules: a root block, and no loop that is bound.
bool is_unscheduled(const ir::PrimFunc& f);
/// The rules' steps. What no step can bind stays as it is. `choices` takes the decisions; null: the
/// rules do.
GridSchedule grid_schedule(const GridStart& start, Choices* choices = nullptr);
/// The attribute of a function that schedule_for_grid made: the lines of GridSchedule::applied.
inline constexpr const char* kAppliedRules = "applied_rules";
/// The same as a function: what no step could bind runs in one thread, and what a block allocates
/// belongs to the thread that runs it. The function itself where is_unscheduled is false.
ir::PrimFunc schedule_for_grid(const ir::PrimFunc& f, std::shared_ptr<const TargetInfo> machine);

}  // namespace weft::rules
