// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the default schedule knows of the clocks that a placement of lanes takes.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "weft/ir/node.h"
#include "weft/targets/qpu/tensor/nest.h"
#include "weft/targets/qpu/tensor/place.h"

namespace weft::qpu::tensor {

inline constexpr std::int64_t kUnknownDepth =
    64;  // of a sum whose length is known at run time only

ir::Expr flat_index(const ir::Buffer& b, const ir::Exprs& indices);

/// The loop whose steps read the same vectors and words of their own that all lanes share: rows of
/// a product whose lanes lie along columns. Null: there is none.
const Loop* row_loop(const Nest& nest, const Loop& lane);

/// The loop of a sum whose words of a row lie side by side, or the last one; `lane` and `row` as
/// for row_loop. Null: tiles of rows do not pay.
const Loop* step_loop(const Nest& nest, const Loop& row);

/// How tiles of rows by 16 columns are divided: in turns among `qpus` (`across` 0), or `down` QPUs
/// share the rows of tiles and `across` the columns. `tall`: how many rows of tiles there are to
/// be, of which the last may be empty; 0: as many as there are.
struct TilePlan {
  std::int64_t rows = 8, down = 1, across = 0, tall = 0, qpus = 0;
  std::int64_t clocks = 0;  // of the busiest QPU, where the sizes are known
};

/// The fastest first, of `others` products side by side, whose sums have `depth` terms. Fewer rows
/// where tiles are too few for all QPUs. A number that does not divide is a guard, and tiles in
/// turns often cannot have one for the last turn beside those of rows or columns: rows of tiles are
/// added until the turns divide, or fewer QPUs take part.
std::vector<TilePlan> plan_tiles(const Loop& row, const Loop& lane, std::int64_t others, bool known,
                                 std::int64_t depth, std::int64_t qpus);

/// The same for a nest whose lanes lie along one of its loops; none where tiles do not pay.
std::vector<TilePlan> tile_plans(const Nest& nest, const Loop& lane, std::int64_t qpus);

/// Placements of a sum of known sizes, and the clocks that the busiest QPU is estimated to take;
/// the fastest first. Of tiles, the best plans of a few heights.
struct Estimate {
  std::size_t lane = 0;
  std::optional<std::size_t> tiles;
  double clocks = 0;
};
std::vector<Estimate> estimates(const Nest& nest, std::int64_t qpus);

/// lane_loop's choice, unless a sum of known sizes takes the busiest QPU clearly fewer clocks with
/// lanes along another loop.
const Loop* fastest_lane(const Nest& nest, std::int64_t qpus);

}  // namespace weft::qpu::tensor
