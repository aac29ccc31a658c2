// SPDX-License-Identifier: Apache-2.0
#pragma once
// Back ends whose default schedules can be asked for with other decisions.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weft/ir/node.h"
#include "weft/rules/choices.h"
#include "weft/schedule/schedule.h"
#include "weft/target/target.h"

namespace weft {

/// Takes one decision: one of `options`, of which the first is the default schedule's own.
using Choose =
    std::function<std::int64_t(const std::string& name, const std::vector<std::int64_t>& options)>;

/// The default schedule of one function with its decisions open. What does not depend on them is
/// done once, for as many schedules as are wanted.
class OpenedSchedule {
 public:
  virtual ~OpenedSchedule() = default;
  /// It may begin at another form of the function (`Schedule::start`), which is the same for all
  /// answers. Throws Error(lower | schedule, ...) where nothing fits.
  virtual schedule::Schedule made(rules::Choices& choices) const = 0;
};

/// What a back end also is when its default schedule leaves decisions to others.
class OpenSchedules {
 public:
  virtual ~OpenSchedules() = default;
  /// Null: the function is scheduled.
  virtual std::unique_ptr<const OpenedSchedule> open_schedule(const ir::PrimFunc& f,
                                                              const Target& target) const = 0;
};

/// By the rules for machines with groups of threads; for processors.
std::unique_ptr<const OpenedSchedule> open_grid_rules(const ir::PrimFunc& f, TargetInfo machine);
std::unique_ptr<const OpenedSchedule> open_host_rules(const ir::PrimFunc& f, TargetInfo machine);

}  // namespace weft
