// SPDX-License-Identifier: Apache-2.0
#pragma once
// The nests of loops that the default schedule places, and what it knows about them.

#include <optional>
#include <vector>

#include "weft/ir/node.h"
#include "weft/schedule/schedule.h"

namespace weft::qpu::tensor {

inline constexpr std::int64_t kLanes = 16;

struct Loop {
  schedule::LoopRef ref;
  const ir::ForNode* node = nullptr;
  const ir::IterVar* iter = nullptr;
  std::int64_t extent = 0;  // 0: known at run time only
};

/// The one leaf block of a nest and its loops, each feeding one iterator by itself.
struct Nest {
  ir::Block block;
  std::vector<Loop> loops;
};

/// Nests below the root; `block` is null for those of another shape.
void nests(const ir::Stmt& s, std::vector<Nest>& out);
/// Those of a function; empty where it has no root block.
std::vector<Nest> nests_of(const ir::PrimFunc& f);

/// Whether a reduction's lanes can join (what lower_cross_thread_reduction takes).
bool joins(const Nest& nest);

/// The loop along which lanes are cheapest; null: there is none.
const Loop* lane_loop(const Nest& nest, std::optional<std::size_t> forced = std::nullopt);

/// A nest that finishes rows, with the reductions of these rows and what lies between them, as one
/// launch: a QPU takes whole rows, reductions stay in registers. False: no such group ends at nest
/// number `last`, or some step of it is refused, which leaves the schedule changed.
bool place_rows(schedule::Schedule& sch, const std::vector<Nest>& all, std::size_t last,
                std::int64_t qpus);

}  // namespace weft::qpu::tensor
