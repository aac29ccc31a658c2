// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/qpu/tensor/lane_choice.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include "weft/ir/build.h"
#include "weft/ir/visit.h"
#include "weft/stages/linear.h"

namespace weft::qpu::tensor {

using namespace ir;
using stages::linear_in;

Expr flat_index(const Buffer& b, const Exprs& indices) {
  Exprs strides = strides_of(b);
  Expr out = make_int(0);
  for (std::size_t d = 0; d < indices.size(); ++d)
    out = out + cast(dtypes::int64, indices[d]) * cast(dtypes::int64, strides[d]);
  return out;
}

namespace {

constexpr double kApart = 16, kScatter = 64;  // costs of an access that is not side by side
constexpr double kJoin = 6;                   // of joining the lanes of a sum

/// Cost of 16 accesses when neighbouring lanes differ in `v`.
double access_cost(const Buffer& b, const Exprs& indices, const VarNode* v, bool write) {
  auto l = linear_in(flat_index(b, indices), v);
  if (!l) return write ? kScatter : kApart;
  if (l->constant(1)) return 1;
  if (l->constant(0)) return write ? 0 : 1;
  if (!l->coeff.is_constant()) return write ? 4 : 2;  // a run-time stride is often 1
  return write ? kScatter : kApart;
}

double cost(const Nest& nest, const Loop& loop) {
  double out = 0;
  const VarNode* v = loop.iter->var.get();
  const Block& block = nest.block;
  for_each_stmt(block->body, [&](const Stmt& s) {
    if (const auto* t = as<StoreNode>(s)) out += access_cost(t->buffer, t->indices, v, true);
  });
  for_each_expr(block->body, [&](const Expr& e) {
    const auto* l = as<LoadNode>(e);
    if (!l) return;
    for (const BufferRegion& w : block->writes)
      if (w.buffer == l->buffer) return;  // the accumulator
    out += access_cost(l->buffer, l->indices, v, false);
  });
  const bool joined = loop.iter->kind == IterKind::reduce;
  if (joined) out += 0.5;
  if (loop.extent > 0) {
    std::int64_t vectors = (loop.extent + kLanes - 1) / kLanes;
    if (joined) out += kJoin / static_cast<double>(vectors);
    out *= static_cast<double>(vectors * kLanes) / static_cast<double>(loop.extent);
  }
  return out;
}

/// Loads of the block, without those of the accumulator.
std::vector<const LoadNode*> loads_of(const Block& block) {
  std::vector<const LoadNode*> out;
  for_each_expr(block->body, [&](const Expr& e) {
    const auto* load = as<LoadNode>(e);
    const bool own =
        load && std::any_of(block->writes.begin(), block->writes.end(),
                            [&](const BufferRegion& w) { return w.buffer == load->buffer; });
    if (load && !own) out.push_back(load);
  });
  return out;
}

}  // namespace

const Loop* lane_loop(const Nest& nest, std::optional<std::size_t> forced) {
  const bool can_join = joins(nest);
  const Loop* lane = nullptr;
  double best = 0;
  for (std::size_t i = nest.loops.size(); i-- > 0;) {  // the innermost of equals
    const Loop& l = nest.loops[i];
    if (l.iter->kind == IterKind::reduce && !can_join) continue;
    if (forced && i != *forced) continue;
    double c = cost(nest, l);
    if (!lane || c < best) lane = &l, best = c;
  }
  return lane;
}

/// The loop whose steps read the same vectors and words of their own that all lanes share: rows of
/// a product whose lanes lie along columns. Null: there is none.
const Loop* row_loop(const Nest& nest, const Loop& lane) {
  const Block& block = nest.block;
  const VarNode* l = lane.iter->var.get();
  for (const Loop& r : nest.loops) {
    if (r.node == lane.node || r.iter->kind != IterKind::spatial || r.extent == 1) continue;
    bool common = false, own = false, good = true;
    for_each_expr(block->body, [&](const Expr& e) {
      const auto* load = as<LoadNode>(e);
      if (!load) return;
      for (const BufferRegion& w : block->writes)
        if (w.buffer == load->buffer) return;  // the accumulator
      bool by_lane = false, by_row = false;
      for (const Expr& i : load->indices) {
        by_lane = by_lane || uses_var(i, l);
        by_row = by_row || uses_var(i, r.iter->var.get());
      }
      common = common || (by_lane && !by_row);
      own = own || by_row;
      good = good && !(by_lane && by_row);
    });
    if (good && common && own) return &r;
  }
  return nullptr;
}

const Loop* step_loop(const Nest& nest, const Loop& row) {
  const Loop* steps = nullptr;
  int sums = 0;
  for (const Loop& l : nest.loops) {
    if (l.iter->kind != IterKind::reduce) continue;
    sums += l.extent != 1;
    bool beside = false;
    for (const LoadNode* load : loads_of(nest.block)) {
      const Expr at = flat_index(load->buffer, load->indices);
      auto by_row = linear_in(at, row.iter->var.get());
      auto by_step = linear_in(at, l.iter->var.get());
      beside = beside || (by_row && !by_row->constant(0) && by_step && by_step->constant(1));
    }
    if (beside || !steps) steps = &l;
  }
  if (!steps || (steps->extent > 0 && steps->extent < kLanes && sums != 1)) return nullptr;
  return steps;
}

namespace {

/// Clocks of a step of the sum: so many a row, and so much for the vector that the rows share; one
/// row alone reads its words as it goes.
std::int64_t tile_clocks(std::int64_t rows) {
  constexpr std::int64_t kRow = 14, kShared = 36, kAlone = 32;
  return rows == 1 ? kAlone : rows * kRow + kShared;
}
constexpr std::int64_t kTile = 1000;  // clocks of a tile beside its steps: addresses, stores
// Clocks of a row that is the QPU's only one: a step, and what is beside the steps. Several rows of
// a QPU are done together, each in the clocks of `tile_clocks`.
constexpr std::int64_t kOnlyRow = 56, kOnlyStart = 350;
constexpr std::int64_t kEmpty = 100;  // of finding that there is no tile
// The same of one of several products, whose rows may be few: a step of a row alone, what a tile
// and a row of it take beside their steps.
constexpr std::int64_t kRowStep = 65, kStart = 120, kRowStart = 110;

}  // namespace

std::vector<TilePlan> plan_tiles(const Loop& row, const Loop& lane, std::int64_t others, bool known,
                                 std::int64_t depth, std::int64_t qpus) {
  constexpr std::int64_t kMost = 8;  // rows
  if (!known || row.extent <= 0) return {{kMost, 1, 0, 0, qpus}};
  std::vector<TilePlan> out;
  auto parts = [](std::int64_t n, std::int64_t of) { return (n + of - 1) / of; };
  const std::int64_t columns = parts(lane.extent, kLanes);
  auto consider = [&](TilePlan plan, std::int64_t clocks) {
    plan.clocks = clocks;
    out.push_back(plan);
  };
  for (std::int64_t rows = 1; rows <= std::min(kMost, row.extent); ++rows) {
    const std::int64_t tall = parts(row.extent, rows), tiles = tall * columns * others;
    const std::int64_t step = qpus / std::gcd(columns * others, qpus);
    const std::int64_t filled = parts(tall, step) * step, all = filled * columns * others / qpus;
    if (others != 1) {  // products side by side are often small
      const std::int64_t term = rows == 1 ? kRowStep : tile_clocks(rows);
      const std::int64_t tile = term * depth + kStart + rows * kRowStart;
      std::int64_t even = std::min(qpus, tiles);
      while (tiles % even) --even;
      consider({rows, 1, 0, 0, qpus}, parts(tiles, qpus) * tile);
      if (tiles % qpus) consider({rows, 1, 0, 0, even}, tiles / even * tile);
      // A QPU has the same rows of tiles of each product: an empty one is another QPU's full one.
      if (filled != tall) consider({rows, 1, 0, filled, qpus}, all * tile);
      continue;
    }
    const std::int64_t turns = parts(tiles, qpus);
    auto clocks = [&](std::int64_t count) {
      if (rows == 1 && count == 1) return kOnlyRow * depth + kOnlyStart;
      return count * (tile_clocks(rows) * depth + kTile);
    };
    if (row.extent % rows == 0 && lane.extent % kLanes == 0)
      consider({rows, 1, 0, 0, qpus}, clocks(turns));
    for (std::int64_t down = 1; down <= std::min(qpus, tall); ++down) {
      const std::int64_t across = std::min(qpus / down, columns);
      consider({rows, down, across, 0, qpus}, clocks(parts(tall, down) * parts(columns, across)));
    }
    consider({rows, 1, 0, filled, qpus}, clocks(turns) + (all - turns) * kEmpty);
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const TilePlan& a, const TilePlan& b) { return a.clocks < b.clocks; });
  return out;
}

std::vector<TilePlan> tile_plans(const Nest& nest, const Loop& lane, std::int64_t qpus) {
  if (lane.iter->kind != IterKind::spatial) return {};
  const Loop* row = row_loop(nest, lane);
  if (!row || !step_loop(nest, *row)) return {};
  std::int64_t others = 1, depth = 1;
  bool known = lane.extent > 0;
  for (const Loop& l : nest.loops) {
    if (l.iter->kind == IterKind::reduce) {
      depth *= l.extent > 0 ? l.extent : kUnknownDepth;
    } else if (l.node != row->node && l.node != lane.node && l.extent != 1) {
      known = known && l.extent > 0;
      others *= std::max<std::int64_t>(l.extent, 1);
    }
  }
  return plan_tiles(*row, lane, others, known, depth, qpus);
}

namespace {

// Clocks of a QPU, measured on products and sums whose placements were given.
constexpr double kVector = 28;    // a vector side by side, or a word for all lanes, per step
constexpr double kInto = 40;      // a vector of terms that lanes add up
constexpr double kGathered = 70;  // the same from places that lie apart
constexpr double kAgain = 18, kAgainApart = 28;  // both where other results have read the same
constexpr double kKept = 12;                     // vectors that registers keep (hoist_reads)
constexpr double kStreamed = 75;                 // words apart, of lines that later steps read on
constexpr double kStrewn = 250;                  // words apart, of other lines at each step
constexpr double kStep = 45;                     // least of a step
constexpr double kJoined = 310;                  // lanes joined, and their one word stored
// A sum of vectors that other results read again: what a result takes beside its vectors, each
// vector, and what the first result takes more. Few vectors are written out, more are a loop.
constexpr std::int64_t kWritten = 8;  // from so many on a loop
constexpr double kFew = 300, kFewVector = 55, kFewCold = 200, kFewColdVector = 90;
constexpr double kLoop = 215, kLoopVector = 38, kLoopCold = 350;
constexpr double kFinish = 150, kFinishApart = 1300;  // a vector of results stored
constexpr double kWord = 0.6;                         // of the memory, for a word that is read once
constexpr std::int64_t kSet = 64;  // words from a line to one that a cache keeps in its place

/// Clocks of a sum of known sizes on the busiest QPU.
class Clocks {
 public:
  Clocks(const Nest& nest, std::int64_t qpus)
      : nest_(nest), qpus_(qpus), loads_(loads_of(nest.block)) {}

  double of(const Loop& lane) const {
    if (lane.iter->kind == IterKind::reduce) return joined(lane);
    const auto plans = tile_plans(nest_, lane, qpus_);
    return plans.empty() ? spatial(lane) : tiled(lane, plans[0]);
  }
  double tiled(const Loop& lane, const TilePlan& plan) const {
    const double apart = apart_store(lane) ? kFinishApart - kFinish : 0;
    return static_cast<double>(plan.clocks) + turns(lane) * apart;
  }
  /// Without tiles.
  double spatial(const Loop& lane) const {
    const auto depth = static_cast<double>(points(IterKind::reduce, lane));
    const double finish = apart_store(lane) ? kFinishApart : kFinish;
    double step = 0;
    for (const LoadNode* load : loads_) step += read(*load, lane);
    return std::max(turns(lane) * (depth * std::max(step, kStep) + finish), memory());
  }

 private:
  std::int64_t points(IterKind kind, const Loop& lane) const {
    std::int64_t out = 1;
    for (const Loop& l : nest_.loops)
      if (l.iter->kind == kind && l.node != lane.node) out *= l.extent;
    return out;
  }
  static std::int64_t parts(std::int64_t n, std::int64_t of) { return (n + of - 1) / of; }

  /// Vectors of results that the busiest QPU has.
  double turns(const Loop& lane) const {
    const std::int64_t others = points(IterKind::spatial, lane);
    return static_cast<double>(parts(parts(lane.extent, kLanes) * others, qpus_));
  }

  double joined(const Loop& lane) const {
    const std::int64_t results = points(IterKind::spatial, lane);
    const auto depth = static_cast<double>(points(IterKind::reduce, lane));
    const auto vectors = depth * static_cast<double>(parts(lane.extent, kLanes));
    double plain = 0, step = 0, once = 0, saved = 0, moving = 0;
    bool again_all = true;  // all vectors are read again for other results
    for (const LoadNode* load : loads_) {
      const auto by = along(*load, lane);
      if (!by || !by->constant(0)) {
        ++moving;
        again_all = again_all && reused(*load, lane);
      }
      const bool beside = by && by->constant(1);
      const double first = beside ? kInto : kGathered;
      const double again = beside ? kAgain : kAgainApart;
      plain += by && by->constant(0) ? kVector : first;
      if (by && by->constant(0)) {
        step += kVector;
      } else if (kept(*load, lane, results)) {
        const double part = std::min(1.0, kKept / vectors);
        once += first * vectors * part;
        step += again * (1 - part);
      } else {  // one of the vectors that are read for each result comes from memory
        const double less = reused(*load, lane) ? first - again : 0;
        step += first - std::min(saved, less);
        saved = std::max(saved, less);
      }
    }
    const auto turns = static_cast<double>(parts(results, qpus_));
    // Placements of many results, whose words the caches keep, take down to 0.7 of their estimate;
    // and where turns do not divide, the last one is asked for at each step.
    constexpr double kSure = 1.33;
    double clocks = turns * (vectors * plain + kJoined);
    if (again_all && moving > 0) {
      const bool few = vectors < kWritten;
      clocks =
          few ? turns * (kFew + kFewVector * moving * vectors) + kFewCold + kFewColdVector * vectors
              : turns * (kLoop + kLoopVector * moving * vectors) + kLoopCold;
    }
    if (results % std::min(results, qpus_) == 0)
      clocks = std::min(clocks, kSure * (turns * (vectors * step + kJoined) + once));
    return std::max(clocks, memory());
  }

  /// Whether a QPU reads the same words for all its results, of which it has every n-th: they move
  /// only with the last loops, whose points n is a multiple of.
  bool kept(const LoadNode& load, const Loop& lane, std::int64_t results) const {
    const std::int64_t n = std::min(results, qpus_);
    std::int64_t last = 1;
    for (std::size_t i = nest_.loops.size(); i-- > 0;) {
      const Loop& l = nest_.loops[i];
      if (l.iter->kind != IterKind::spatial || l.extent == 1 || l.node == lane.node) continue;
      const bool moves = std::any_of(load.indices.begin(), load.indices.end(),
                                     [&](const Expr& e) { return uses_var(e, l.iter->var.get()); });
      last *= l.extent;
      if (moves && n % last) return false;
    }
    return results > n;
  }

  double read(const LoadNode& load, const Loop& lane) const {
    const auto by = along(load, lane);
    if (by && (by->constant(0) || by->constant(1))) return kVector;
    const bool lines = std::any_of(nest_.loops.begin(), nest_.loops.end(), [&](const Loop& l) {
      if (l.iter->kind != IterKind::reduce || l.extent == 1) return false;
      const auto step = along(load, l);
      return step && step->constant(1);
    });
    if (reused(load, lane) && lines) return kVector;
    // Lines that take each other's place in the caches are not there for the next step.
    const bool sparse = !by || !by->coeff.is_constant() || by->coeff.constant % kSet == 0;
    return lines && !sparse ? kStreamed : kStrewn;
  }

  std::optional<stages::LinearIn> along(const LoadNode& load, const Loop& loop) const {
    return linear_in(flat_index(load.buffer, load.indices), loop.iter->var.get());
  }
  /// Whether another result reads the same words again.
  bool reused(const LoadNode& load, const Loop& lane) const {
    return std::any_of(nest_.loops.begin(), nest_.loops.end(), [&](const Loop& l) {
      if (l.iter->kind != IterKind::spatial || l.extent == 1 || l.node == lane.node) return false;
      return std::none_of(load.indices.begin(), load.indices.end(),
                          [&](const Expr& e) { return uses_var(e, l.iter->var.get()); });
    });
  }
  /// What the memory takes at least for the words that only one result reads.
  double memory() const {
    double words = 0;
    for (const LoadNode* load : loads_) {
      double all = 1;
      bool again = false;
      for (const Loop& l : nest_.loops) {
        const bool moves =
            std::any_of(load->indices.begin(), load->indices.end(),
                        [&](const Expr& e) { return uses_var(e, l.iter->var.get()); });
        if (moves) all *= static_cast<double>(l.extent);
        else again = again || (l.iter->kind == IterKind::spatial && l.extent != 1);
      }
      if (!again) words += all;
    }
    return kWord * words;
  }
  bool apart_store(const Loop& lane) const {
    bool out = false;
    for_each_stmt(nest_.block->body, [&](const Stmt& s) {
      const auto* t = as<StoreNode>(s);
      if (!t) return;
      const auto by = linear_in(flat_index(t->buffer, t->indices), lane.iter->var.get());
      out = out || !by || !by->constant(1);
    });
    return out;
  }

  const Nest& nest_;
  std::int64_t qpus_;
  std::vector<const LoadNode*> loads_;
};

}  // namespace

std::vector<Estimate> estimates(const Nest& nest, std::int64_t qpus) {
  constexpr std::size_t kHeights = 3;
  std::vector<Estimate> out;
  const Clocks clocks(nest, qpus);
  for (std::size_t i = nest.loops.size(); i-- > 0;) {
    const Loop& lane = nest.loops[i];
    if (lane.extent <= 1) continue;
    if (lane.iter->kind == IterKind::reduce) {
      out.push_back({i, {}, clocks.of(lane)});
      continue;
    }
    const std::vector<TilePlan> plans = tile_plans(nest, lane, qpus);
    std::vector<std::int64_t> heights;
    for (std::size_t k = 0; k < plans.size() && heights.size() < kHeights; ++k) {
      if (std::find(heights.begin(), heights.end(), plans[k].rows) != heights.end()) continue;
      heights.push_back(plans[k].rows);
      out.push_back({i, k, clocks.tiled(lane, plans[k])});
    }
    out.push_back({i, Placement::kNoTiles, clocks.spatial(lane)});
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Estimate& a, const Estimate& b) { return a.clocks < b.clocks; });
  return out;
}

const Loop* fastest_lane(const Nest& nest, std::int64_t qpus) {
  constexpr double kClearly = 0.85;
  const Loop* cheapest = lane_loop(nest);
  bool sums = false, known = true;
  for (const Loop& l : nest.loops) {
    sums = sums || l.iter->kind == IterKind::reduce;
    known = known && l.extent > 0;
  }
  if (!cheapest || !sums || !known || !joins(nest)) return cheapest;
  const Clocks clocks(nest, qpus);
  const Loop* best = cheapest;
  double least = clocks.of(*cheapest) * kClearly;
  for (std::size_t i = nest.loops.size(); i-- > 0;) {
    const Loop& l = nest.loops[i];
    if (l.extent == 1) continue;
    if (const double c = clocks.of(l); c < least) best = &l, least = c;
  }
  return best;
}

}  // namespace weft::qpu::tensor
