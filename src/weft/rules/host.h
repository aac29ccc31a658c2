// SPDX-License-Identifier: Apache-2.0
#pragma once
// The schedule of a function without one on a processor. Element-wise blocks are left to the
// compiler, whose loops in vectors are as fast; it may not reorder sums, so reductions are
// scheduled here: rows into vectors of partial sums, columns and products into tiles of registers.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weft/rules/choices.h"
#include "weft/rules/facts.h"
#include "weft/rules/nest_forms.h"
#include "weft/schedule/schedule.h"

namespace weft::rules {

/// Whether nobody has scheduled the function: each block stands in its own loops, in their order,
/// one for each iterator, and no loop has a kind or an annotation.
bool is_plain(const ir::PrimFunc& f);
/// The function itself where is_plain is false, or where no rule matches.
ir::PrimFunc schedule_for_host(const ir::PrimFunc& f, const TargetInfo& machine);

/// What the rules do whatever the decisions are, once for many schedules of a plain function.
struct HostStart {
  TargetInfo machine;
  Sizes sizes;
  Schedule stages;                 // the function as it is
  std::optional<Schedule> joined;  // stages of chains are one block
  /// For each block the rules whose steps are legal, what the table takes first: of `joined`, where
  /// it is; of `stages`.
  std::vector<std::vector<std::string>> legal[2];
  std::unique_ptr<NestForms> forms = std::make_unique<NestForms>();
  HostStart(const ir::PrimFunc& f, TargetInfo machine);
};
/// The rules' steps with the decisions of `choices`. Throws Error(schedule, ...) where they lead to
/// a refused step.
Schedule host_schedule(const HostStart& start, Choices& choices);

}  // namespace weft::rules
