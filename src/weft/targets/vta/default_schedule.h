// SPDX-License-Identifier: Apache-2.0
#pragma once
// A schedule for functions that have none: the function is packed (pack.h), everything after that
// is public steps, so that what was done can be printed, edited and repeated by hand.

#include <map>
#include <memory>

#include "weft/schedule/schedule.h"
#include "weft/target/open_schedules.h"
#include "weft/targets/vta/config.h"
#include "weft/targets/vta/timing.h"

namespace weft::vta {

struct ScheduleOptions {
  /// Whole elements of a tile by the name of an axis (an iterator of the block that sums, or of
  /// the first of a chain), for those that shall not be chosen here.
  std::map<std::string, std::int64_t> tiles;
  std::int64_t threads = 1;  // virtual threads over the outermost tile loop with enough steps
  TimingParams timing;
  Choose choose;  // takes the decisions; empty: the tiles with the fewest estimated cycles
};

/// Whether some buffer already lies in a scope of this machine.
bool is_scheduled(const ir::PrimFunc& f);
/// Refuses ("vta.accepts.*") what has neither a schedule nor a default one.
Verdict accepts_default(const ir::PrimFunc& f, const Config& config);
/// The function packed and scheduled; `start()` of the result is the packed function, which the
/// trace replays on. `machine` has the scopes and instructions. Throws Error(lower,
/// "vta.accepts.*"), Error(schedule, "vta.schedule.*").
schedule::Schedule default_schedule(const ir::PrimFunc& f, const Config& config,
                                    std::shared_ptr<const TargetInfo> machine,
                                    const ScheduleOptions& options = {});

}  // namespace weft::vta
