// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rules and schedules by a target's name, and the tables that they are asked with.

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "weft/rules/choices.h"
#include "weft/rules/host.h"
#include "weft/runtime/device.h"
#include "weft/schedule/schedule.h"
#include "weft/target/target.h"

namespace weft {

class OpenedSchedule;

/// Whether a target is a machine with groups of threads, whose schedules come from rules.
bool has_rules(std::string_view target);
/// Whether the decisions of a target's default schedule can be open.
bool opens_schedules(std::string_view target);
/// The default schedule of a function with its decisions open. What does not depend on them is done
/// once, for as many schedules as are wanted.
class OpenSchedule {
 public:
  OpenSchedule(ir::PrimFunc f, std::string_view target);
  ~OpenSchedule();
  /// As steps; null where the target leaves no decision open, or the function is scheduled. Throws
  /// Error(schedule, …) where answers lead to a refused step.
  std::unique_ptr<schedule::Schedule> made(rules::Choices& choices) const;
  const ir::PrimFunc& func() const { return func_; }

 private:
  ir::PrimFunc func_;
  std::unique_ptr<const OpenedSchedule> opened_;
};
/// How long a scheduled function is expected to run on a target, in seconds. `measured`: limits of
/// the device beside those of the target's table (DeviceInfo.limits).
double expected_seconds(const ir::PrimFunc& f, std::string_view target,
                        const std::map<std::string, std::int64_t>& measured);
/// Schedules are written before a target is chosen: the rows they are checked against are the
/// generic ones and those of all back ends with default options; made once.
std::shared_ptr<const TargetInfo> all_target_info();

/// The table of the machine behind a device: its target's rows, with what the device itself reports
/// in their place. Null: another process serves it. The reference stays valid.
const TargetInfo* target_info_of(const runtime::Device& device);

}  // namespace weft
