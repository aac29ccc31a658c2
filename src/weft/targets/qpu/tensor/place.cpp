// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/qpu/tensor/place.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "weft/arith/analyzer.h"
#include "weft/ir/build.h"
#include "weft/ir/visit.h"
#include "weft/targets/qpu/tensor/lane_choice.h"

namespace weft::qpu::tensor {

using namespace ir;
using schedule::Schedule;

bool collapses(const Nest& nest) {
  const Block& block = nest.block;
  Exprs vars;
  for (const Loop& l : nest.loops) vars.push_back(l.iter->var);
  bool good = nest.loops.size() > 1;
  arith::Analyzer analyzer;
  auto whole = [&](const Buffer& b, const Exprs& indices) {
    if (!b->strides.empty() || indices.size() != vars.size()) return false;
    for (std::size_t d = 0; d < indices.size(); ++d) {
      if (indices[d].get() != vars[d].get()) return false;
      if (!analyzer.prove_equal(cast(dtypes::int64, b->shape[d]),
                                cast(dtypes::int64, nest.loops[d].node->extent)))
        return false;
    }
    return true;
  };
  for_each_stmt(block->body, [&](const Stmt& s) {
    if (const auto* t = as<StoreNode>(s)) good = good && whole(t->buffer, t->indices);
  });
  for_each_expr(block->body, [&](const Expr& e) {
    if (const auto* l = as<LoadNode>(e)) good = good && whole(l->buffer, l->indices);
  });
  return good;
}

namespace {

/// A sum whose lanes lie along columns.
struct Tiled {
  const Loop *row, *lane;
  std::vector<LoopRef> outer, inner;  // loops of other results; of the sum
};

bool cut_tiles(Schedule& sch, const Tiled& sum, const TilePlan& plan) {
  const std::vector<LoopRef> r = plan.tall > 0 ? sch.split(sum.row->ref, {plan.tall, plan.rows})
                                               : sch.split(sum.row->ref, {std::nullopt, plan.rows});
  const std::vector<LoopRef> c = sch.split(sum.lane->ref, {std::nullopt, kLanes});
  if (plan.across > 0) {
    const std::vector<LoopRef> down = sch.split(r[0], {std::nullopt, plan.down});
    const std::vector<LoopRef> across = sch.split(c[0], {std::nullopt, plan.across});
    std::vector<LoopRef> order = {down[1], across[1], down[0], across[0], r[1], c[1]};
    order.insert(order.end(), sum.inner.begin(), sum.inner.end());
    sch.reorder(order);
    sch.bind(sch.fuse({down[1], across[1]}), "qpu");
    sch.bind(c[1], "lane");
    return true;
  }
  std::vector<LoopRef> outer = sum.outer;
  outer.push_back(r[0]);
  outer.push_back(c[0]);
  std::vector<LoopRef> order = outer;
  order.push_back(r[1]);
  order.push_back(c[1]);
  order.insert(order.end(), sum.inner.begin(), sum.inner.end());
  sch.reorder(order);
  const LoopRef tiles = sch.fuse(outer);
  const std::vector<LoopRef> parts = sch.split(tiles, {std::nullopt, plan.qpus});
  sch.reorder({parts[1], parts[0]});
  sch.bind(parts[1], "qpu");
  sch.bind(c[1], "lane");
  return true;
}

/// Tiles of rows by 16 columns, divided among the QPUs along the rows of tiles, so that a tile's
/// words stay in the cache for all tiles beside it.
bool place_tiles(Schedule& sch, const Nest& nest, const Loop& lane, std::int64_t qpus,
                 const Placement& placement) {
  constexpr std::size_t kTries = 8;
  if (placement.tiles == Placement::kNoTiles || !joins(nest)) return false;
  std::vector<TilePlan> plans = tile_plans(nest, lane, qpus);
  if (plans.empty()) return false;
  if (placement.tiles) plans = {plans[*placement.tiles]};
  const Loop* row = row_loop(nest, lane);
  const Loop* steps = step_loop(nest, *row);
  Tiled sum{row, &lane, {}, {}};
  for (const Loop& l : nest.loops) {
    if (l.iter->kind == IterKind::reduce) {
      if (l.node != steps->node) sum.inner.push_back(l.ref);
    } else if (l.node != row->node && l.node != lane.node && l.extent != 1) {
      sum.outer.push_back(l.ref);
    }
  }
  sum.inner.push_back(steps->ref);
  plans.resize(std::min(plans.size(), kTries));
  return std::any_of(plans.begin(), plans.end(), [&](const TilePlan& plan) {
    return attempt(sch, [&] { return cut_tiles(sch, sum, plan); });
  });
}

/// How many QPUs share chunks of 16 lanes one by one, instead of whole rows of them; 0: rows. Each
/// then has one chunk of every few rows, so that no turn divides a number. A QPU that has a row
/// keeps what all chunks of it read, so it must be worth it: a sixth fewer chunks for the busiest
/// one. A few chunks without sums take no longer than starting more QPUs.
std::int64_t shares_chunks(std::int64_t rows, std::int64_t chunks, std::int64_t qpus, bool sums) {
  if (chunks < 2 || chunks > qpus || (rows < qpus && !sums)) return 0;
  const std::int64_t among = qpus / chunks;  // QPUs that have the same chunk
  const std::int64_t by_row = (rows + qpus - 1) / qpus * chunks;
  const std::int64_t by_chunk = (rows + among - 1) / among;
  return 6 * by_chunk <= 5 * by_row ? among * chunks : 0;
}

/// Each QPU takes one chunk of every `qpus / chunks`-th row.
LoopRef share_chunks(Schedule& sch, std::vector<LoopRef> rows, const Loop& lane,
                     std::int64_t chunks, const std::vector<Loop>& sums, std::int64_t qpus) {
  std::vector<LoopRef> order = rows;
  order.push_back(lane.ref);
  for (const Loop& l : sums) order.push_back(l.ref);
  sch.reorder(order);
  const LoopRef row = rows.size() > 1 ? sch.fuse(rows) : rows[0];
  const std::vector<LoopRef> turns = sch.split(row, {std::nullopt, qpus / chunks});
  const std::vector<LoopRef> parts = sch.split(lane.ref, {std::nullopt, kLanes});
  sch.reorder({turns[1], parts[0], turns[0], parts[1]});
  sch.bind(sch.fuse({turns[1], parts[0]}), "qpu");
  sch.bind(parts[1], "lane");
  return parts[1];
}

/// As `share` says; `outer`: loops of other results, `count` in all, `rows` in the last of them.
LoopRef share_out(Schedule& sch, std::vector<LoopRef> outer, std::int64_t count, std::int64_t rows,
                  const Loop& lane, const std::vector<Loop>& sums, std::int64_t qpus,
                  const Placement::Share& share) {
  const bool along_results = lane.iter->kind == IterKind::spatial;
  const std::vector<LoopRef> parts = sch.split(lane.ref, {std::nullopt, kLanes});
  std::vector<LoopRef> order;
  if (share.height > 1) {
    const std::vector<LoopRef> tall = sch.split(outer.back(), {std::nullopt, share.height});
    outer.back() = tall[0];
    order.push_back(tall[1]);
    count = count / rows * ((rows + share.height - 1) / share.height);
  }
  if (along_results && share.chunks) {
    outer.push_back(parts[0]);
    count *= (lane.extent + kLanes - 1) / kLanes;
  } else if (along_results) {
    order.insert(order.begin(), parts[0]);
  }
  if (along_results) order.push_back(parts[1]);
  for (const Loop& l : sums)
    if (l.node != lane.node) order.push_back(l.ref);
  if (!along_results) order.insert(order.end(), parts.begin(), parts.end());
  order.insert(order.begin(), outer.begin(), outer.end());
  sch.reorder(order);
  const LoopRef whole = outer.size() > 1 ? sch.fuse(outer) : outer[0];
  const std::int64_t n = std::min(count, qpus);
  if (share.near) {
    sch.bind(sch.split(whole, {n, std::nullopt})[0], "qpu");
  } else {
    const std::vector<LoopRef> turns = sch.split(whole, {std::nullopt, n});
    sch.reorder({turns[1], turns[0]});
    sch.bind(turns[1], "qpu");
  }
  sch.bind(parts[1], "lane");
  return parts[1];
}

}  // namespace

std::optional<LoopRef> place(Schedule& sch, const Nest& nest, std::int64_t qpus,
                             const Placement& placement) {
  if (!nest.block || nest.loops.empty()) return std::nullopt;
  std::vector<Loop> spatial, reduce;
  for (const Loop& l : nest.loops) {
    if (is_const_int_value(l.node->extent, 0)) return std::nullopt;
    (l.iter->kind == IterKind::spatial ? spatial : reduce).push_back(l);
  }
  const Loop* lane = placement.lane ? lane_loop(nest, placement.lane) : fastest_lane(nest, qpus);
  if (!lane || lane->extent == 1) return std::nullopt;  // one point after the other
  if (place_tiles(sch, nest, *lane, qpus, placement)) return std::nullopt;
  if (placement.may_collapse && reduce.empty() && collapses(nest)) {
    std::vector<LoopRef> all;
    for (const Loop& l : spatial) all.push_back(l.ref);
    LoopRef whole = sch.fuse(all);
    std::vector<LoopRef> parts = sch.split(whole, {std::nullopt, qpus, kLanes});
    sch.reorder({parts[1], parts[0], parts[2]});
    sch.bind(parts[1], "qpu");
    sch.bind(parts[2], "lane");
    return parts[2];
  }
  bool lane_spatial = lane->iter->kind == IterKind::spatial;
  std::vector<LoopRef> outer, order;
  std::int64_t product = 1, last = 1;  // points of `outer`, of its last loop
  bool known = true;
  for (const Loop& l : spatial) {
    if (l.node == lane->node) continue;
    if (l.extent == 1) {
      if (!lane_spatial) order.push_back(l.ref);  // no loop of results may lie inside a joined sum
      continue;
    }
    outer.push_back(l.ref);
    known = known && l.extent > 0;
    product *= std::max<std::int64_t>(l.extent, 1);
    last = l.extent;
  }
  if (placement.share && !outer.empty() && known)
    return share_out(sch, outer, product, last, *lane, reduce, qpus, *placement.share);
  std::int64_t chunks = lane->extent > 0 ? (lane->extent + kLanes - 1) / kLanes : 0;
  bool by_chunk = lane_spatial && (outer.empty() || (known && product < qpus && chunks > product));
  if (by_chunk) {
    std::vector<LoopRef> parts = sch.split(lane->ref, {std::nullopt, qpus, kLanes});
    order.push_back(parts[1]);
    for (const LoopRef& l : outer) order.push_back(l);
    order.push_back(parts[0]);
    order.push_back(parts[2]);
    for (const Loop& l : reduce) order.push_back(l.ref);
    sch.reorder(order);
    sch.bind(parts[1], "qpu");
    sch.bind(parts[2], "lane");
    return parts[2];
  }
  std::optional<LoopRef> qpu;
  if (const std::int64_t n = shares_chunks(product, chunks, qpus, !reduce.empty());
      n > 0 && lane_spatial && known) {
    LoopRef lanes;
    if (attempt(sch, [&] {
          lanes = share_chunks(sch, outer, *lane, chunks, reduce, n);
          return true;
        }))
      return lanes;
  }
  if (!outer.empty()) {
    // Fusing wants neighbours.
    std::vector<LoopRef> first = outer;
    if (lane_spatial) first.push_back(lane->ref);
    for (const Loop& l : reduce) first.push_back(l.ref);
    if (first.size() > 1) sch.reorder(first);
    LoopRef rows = outer.size() > 1 ? sch.fuse(outer) : outer[0];
    std::int64_t n = known ? std::min(product, qpus) : qpus;
    std::vector<LoopRef> parts = sch.split(rows, {std::nullopt, n});
    qpu = parts[1];
    order.insert(order.begin(), {parts[1], parts[0]});
  }
  std::vector<LoopRef> parts = sch.split(lane->ref, {std::nullopt, kLanes});
  if (lane_spatial) order.insert(order.end(), parts.begin(), parts.end());
  for (const Loop& l : reduce)
    if (l.node != lane->node) order.push_back(l.ref);
  if (!lane_spatial) order.insert(order.end(), parts.begin(), parts.end());
  sch.reorder(order);
  if (qpu) sch.bind(*qpu, "qpu");
  sch.bind(parts[1], "lane");
  return parts[1];
}

}  // namespace weft::qpu::tensor
