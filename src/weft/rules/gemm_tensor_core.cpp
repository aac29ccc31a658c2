// SPDX-License-Identifier: Apache-2.0
#include "weft/rules/gemm_tensor_core.h"

#include <algorithm>

#include "weft/base/integers.h"
#include "weft/ir/visit.h"
#include "weft/schedule/primitives/specialize_warps.h"
#include "weft/schedule/tree.h"

namespace weft::rules {

using namespace ir;

namespace {

constexpr std::int64_t kGroupRows = 16;  // rows of tiles that follow one another

/// The two factors of a product of 16-bit floats that a block adds up in float32.
struct Factors {
  const LoadNode *x = nullptr, *y = nullptr;
};
std::optional<Factors> factors_of(const BlockNode& block) {
  const auto* store = as<StoreNode>(block.body);
  if (!store || store->value->dtype != dtypes::float32) return std::nullopt;
  Factors out;
  bool others = false;
  for_each_expr(store->value, [&](const Expr& e) {
    const auto* l = as<LoadNode>(e);
    if (!l || l->buffer == store->buffer) return;
    const bool narrow = l->dtype.is_float() && l->dtype.bits <= 16;
    if (narrow && !out.x) out.x = l;
    else if (narrow && !out.y) out.y = l;
    else others = true;
  });
  if (!out.y || others || out.x->dtype.bits != out.y->dtype.bits) return std::nullopt;
  return out;
}

}  // namespace

std::optional<GemmMatch> read_gemm(const Nest& nest) {
  const std::size_t summed = nest.reduction.size();
  if (nest.mixed || !nest.node->init || summed < 1 || summed > 2) return std::nullopt;
  const auto factors = factors_of(*nest.node);
  if (!factors) return std::nullopt;
  GemmMatch out;
  out.loops.k = nest.reduction[0].loop;
  if (summed == 2) {
    if (nest.reduction[1].extent != kPieceProducts) return std::nullopt;
    out.loops.pieces = nest.reduction[1].loop;
  }
  std::int64_t batches = 1, m = 0, n = 0;
  // The loops feed one iterator each, in order.
  std::vector<const VarNode*> spatial;
  for (const IterVar& i : nest.node->iters)
    if (i.kind == IterKind::spatial) spatial.push_back(i.var.get());
  if (spatial.size() != nest.spatial.size()) return std::nullopt;
  auto uses = [](const LoadNode* l, const VarNode* v) {
    return std::any_of(l->indices.begin(), l->indices.end(),
                       [&](const Expr& e) { return uses_var(e, v); });
  };
  // Rows and columns are the innermost axes of one operand alone; what is outside of them, batches.
  for (std::size_t i = nest.spatial.size(); i-- > 0;) {
    const NestLoop& loop = nest.spatial[i];
    const bool x = uses(factors->x, spatial[i]), y = uses(factors->y, spatial[i]);
    std::int64_t& size = x ? m : n;
    if (x != y && !size) {
      size = loop.extent, (x ? out.loops.m : out.loops.n) = loop.loop;
    } else {
      batches *= loop.extent, out.loops.batch.insert(out.loops.batch.begin(), loop.loop);
    }
  }
  if (!m || !n) return std::nullopt;
  out.step = 128 / factors->x->dtype.bytes();
  GemmShape& shape = out.shape;
  shape.batches = batches, shape.m = m, shape.n = n, shape.k = nest.reduction[0].extent;
  shape.bytes = factors->x->dtype.bytes(), shape.pieces = summed == 2;
  return out;
}

std::optional<GemmMatch> match_gemm_tensor_core(const Nest& nest, const Facts& facts) {
  if (!facts.warp_products()) return std::nullopt;
  std::optional<GemmMatch> out = read_gemm(nest);
  if (!out || out->loops.pieces) return std::nullopt;
  out->machine = gemm_machine(facts);
  out->decisions = choose_gemm(out->machine, out->shape);
  return out;
}

void open_gemm_tensor_core(GemmMatch& match, const Facts& facts, const Questions& questions) {
  GemmDecisions& d = match.decisions;
  questions.ask("rows", d.rows, {64, 128, kMostGemmRows});
  std::vector<std::int64_t> columns;
  for (std::int64_t n = 64; n <= schedule::most_warp_columns(d.rows, false); n += kGemmColumnUnit)
    columns.push_back(n);
  d.columns = std::min(d.columns, columns.back());
  questions.ask("columns", d.columns, columns);
  std::vector<std::int64_t> slots;
  for (std::int64_t n = gemm_slots(match.machine, d.rows, d.columns); n >= 2; --n)
    slots.push_back(n);
  d.slots = slots.empty() ? d.slots : std::min(d.slots, slots[0]);
  questions.ask("slots", d.slots, slots);
  questions.ask("blocks", d.blocks, {0, facts.processors()});
  if (questions.open()) questions.expect(gemm_time(match.machine, match.shape, d));
}

void schedule_gemm_tensor_core(Schedule& sch, BlockRef product, const GemmMatch& match) {
  const GemmDecisions& d = match.decisions;
  const std::vector<BlockRef> consumers = sch.get_consumers(product);
  const auto* node = schedule::find_block(sch.mod(), product)->realize()->block.get();
  const std::size_t operands = node->reads.size();
  std::vector<BlockRef> copies;
  for (std::size_t i = 0; i < operands; ++i)
    copies.push_back(sch.cache_read(product, static_cast<std::int64_t>(i), "shared"));
  BlockRef store;
  if (consumers.size() == 1) store = consumers[0], sch.set_scope(product, 0, "local");
  else store = sch.cache_write(product, 0, "local");
  const auto m = sch.split(match.loops.m, {std::nullopt, factor(d.turned ? d.columns : d.rows)});
  const auto n = sch.split(match.loops.n, {std::nullopt, factor(d.turned ? d.rows : d.columns)});
  const auto k = sch.split(match.loops.k, {std::nullopt, factor(match.step)});
  std::vector<LoopRef> order = match.loops.batch;
  order.insert(order.end(), {m[0], n[0], k[0]});
  if (match.loops.pieces) order.push_back(*match.loops.pieces);
  order.insert(order.end(), {m[1], n[1], k[1]});
  sch.reorder(order);
  const LoopRef step = match.loops.pieces ? sch.fuse({k[0], *match.loops.pieces}) : k[0];
  for (BlockRef copy : copies) sch.compute_at(copy, step);
  sch.reverse_compute_at(store, n[0]);
  for (const LoopRef& batch : match.loops.batch) sch.parallel(batch);
  sch.bind(m[0], "blockIdx.y");
  sch.bind(n[0], "blockIdx.x");
  Json stages = Json::array();
  for (std::size_t i = 0; i < operands; ++i) stages.push_back(std::int64_t{0});
  stages.push_back(d.slots - 1);
  sch.annotate(step, "software_pipeline_stage", std::move(stages));
  const std::vector<std::int64_t> registers =
      d.rows > 128 ? std::vector<std::int64_t>{32, 160} : std::vector<std::int64_t>{40, 232};
  sch.specialize_warps(step, d.blocks, kGroupRows, registers, d.cluster,
                       match.loops.pieces ? kPieceProducts : 0, d.cluster_columns);
}

}  // namespace weft::rules
