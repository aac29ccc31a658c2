// SPDX-License-Identifier: Apache-2.0
#pragma once
// A nest's lanes and QPUs as steps of a schedule.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "weft/base/error.h"
#include "weft/schedule/schedule.h"
#include "weft/targets/qpu/tensor/nest.h"

namespace weft::qpu::tensor {

/// What the placement of a nest leaves open. Absent: as the estimates of lane_choice.h have it.
struct Placement {
  static constexpr std::size_t kNoTiles = SIZE_MAX;
  std::optional<std::size_t> lane;   // number of the loop
  std::optional<std::size_t> tiles;  // number among tile_plans
  bool may_collapse = true;          // all loops may become one
  /// Without tiles: how results are shared out, where that is given.
  struct Share {
    bool chunks = false;      // chunks of 16 lanes one by one, not whole rows of them
    bool near = false;        // neighbours to one QPU, not to QPUs side by side
    std::int64_t height = 1;  // rows that a QPU does together
  };
  std::optional<Share> share;
};

/// All accesses of the nest run over whole arrays in the order of its loops.
bool collapses(const Nest& nest);

/// Runs a step of several primitives; one that is refused, or gives up, is undone as a whole.
template <typename F>
bool attempt(schedule::Schedule& sch, const F& f) {
  schedule::Schedule before = sch;
  try {
    if (f()) return true;
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::schedule) throw;
  }
  sch = before;
  return false;
}

/// The loop of the lanes, where there is one.
std::optional<schedule::LoopRef> place(schedule::Schedule& sch, const Nest& nest, std::int64_t qpus,
                                       const Placement& placement = {});

}  // namespace weft::qpu::tensor
