// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which loop makes a buffer too large for its on-chip memory, and how much of it fits.

#include <optional>
#include <string>

#include "weft/targets/vta/nest.h"

namespace weft::vta {

struct FillingLoop {
  std::string name;
  std::int64_t extent = 0;
  std::int64_t fits = 0;  // of its steps; at least one
};

/// Of the loops inside `a` around a store to its buffer, the one with the largest stride.
/// `lanes`: numbers of an element; `room`: elements that are free. Nothing where no loop decides,
/// or not even one of its steps fits.
std::optional<FillingLoop> filling_loop(const ir::AllocateNode& a, const Environment& env,
                                        std::int64_t lanes, std::int64_t room);

}  // namespace weft::vta
