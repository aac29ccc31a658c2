// SPDX-License-Identifier: Apache-2.0
#pragma once
// Back ends without groups of threads whose default schedules can be asked for with other
// decisions.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weft/ir/node.h"
#include "weft/schedule/schedule.h"
#include "weft/target/target.h"

namespace weft {

/// Takes one decision: one of `options`, of which the first is the default schedule's own.
using Choose =
    std::function<std::int64_t(const std::string& name, const std::vector<std::int64_t>& options)>;

/// What a back end also is when its default schedule leaves decisions to others.
class OpenSchedules {
 public:
  virtual ~OpenSchedules() = default;
  /// The default schedule of a function, its decisions taken by `choose`; null: the function is
  /// scheduled. It may begin at another form of the function (`Schedule::start`), which is the same
  /// for all answers. Throws Error(lower | schedule, ...) where nothing fits.
  virtual std::unique_ptr<schedule::Schedule> open_schedule(const ir::PrimFunc& f,
                                                            const Target& target,
                                                            const Choose& choose) const = 0;
};

}  // namespace weft
