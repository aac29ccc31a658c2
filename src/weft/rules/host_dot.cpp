// SPDX-License-Identifier: Apache-2.0
#include "weft/rules/host_dot.h"

#include <algorithm>

#include "weft/base/integers.h"
#include "weft/base/text.h"
#include "weft/ir/build.h"
#include "weft/ir/reduction_pattern.h"
#include "weft/ir/visit.h"
#include "weft/machine/dot_limits.h"
#include "weft/schedule/tree.h"

namespace weft::rules {

using namespace ir;

namespace {

constexpr std::int64_t kCopyLanes = 16;

/// Both factors of a sum of products, each a load that is widened to the sum's type.
std::optional<std::pair<const LoadNode*, const LoadNode*>> narrow_factors(const BlockNode* node) {
  const auto pattern = match_reduction(node);
  if (!pattern || pattern->updates.size() != 1 ||
      pattern->reducer->result[0]->kind != ExprKind::add)
    return std::nullopt;
  const auto* start = as<StoreNode>(node->init);
  const bool zero =
      start &&
      (is_const_int_value(start->value, 0) ||
       (start->value->kind == ExprKind::float_imm && as<FloatImmNode>(start->value)->value == 0));
  const auto* product =
      pattern->rest[0]->kind == ExprKind::mul ? as<BinaryNode>(pattern->rest[0]) : nullptr;
  if (!zero || !product) return std::nullopt;
  const auto load_of = [&](const Expr& e) -> const LoadNode* {
    const auto* c = as<CastNode>(e);
    return c && e->dtype == pattern->updates[0]->buffer->dtype ? as<LoadNode>(c->value) : nullptr;
  };
  const LoadNode *a = load_of(product->a), *b = load_of(product->b);
  if (!a || !b || a->buffer == b->buffer) return std::nullopt;
  return std::pair{a, b};
}

/// The instruction for these types; false: there is none, and wider copies gain nothing.
bool choose(const TargetInfo& machine, DType sum, DType a, DType b, DotTerms& out) {
  if (a.is_integral() && b.is_integral() && sum.is_integral() && sum.bits == 32) {
    const bool bytes = a.bits == 8 && b.bits == 8;
    if (bytes) {
      out.terms = machine.limit(
          a.is_int() == b.is_int() ? limits::kDotEqualBytes : limits::kDotMixedBytes, 1);
      if (out.terms > 1) return true;
      out.shift = a.is_int() && b.is_int() && machine.limit(limits::kDotMixedBytes, 1) > 1;
      out.terms = machine.limit(limits::kDotMixedBytes, 1);
      if (out.shift) return true;
    }
    const auto fits = [](DType t) { return t.bits == 8 || t == dtypes::int16; };
    out.terms = fits(a) && fits(b) ? machine.limit(limits::kDotWords, 1) : 1;
    if (a != dtypes::int16 || b != dtypes::int16) out.held = dtypes::int16;
    return out.terms > 1;
  }
  if (sum != dtypes::float32 || !a.is_float() || !b.is_float() || a.bits != 16 || b.bits != 16)
    return false;
  if (a.is_bfloat() && b.is_bfloat()) out.terms = machine.limit(limits::kDotBfloat16, 1);
  if (out.terms == 1) out.held = dtypes::float32;
  return true;
}

/// The axis that is the iterator and nothing else; absent where another index has it too.
std::optional<std::size_t> axis_of(const LoadNode* l, const VarNode* iterator) {
  std::optional<std::size_t> out;
  for (std::size_t d = 0; d < l->indices.size(); ++d) {
    if (!uses_var(l->indices[d], iterator)) continue;
    if (out || l->indices[d].get() != iterator) return std::nullopt;
    out = d;
  }
  return out;
}

}  // namespace

const BlockNode* block_node(const Schedule& sch, BlockRef block) {
  return schedule::find_block(sch.mod(), block)->realize()->block.get();
}

std::optional<DotTerms> match_dot(const Nest& nest, const TargetInfo& machine,
                                  std::int64_t across) {
  const auto factors = narrow_factors(nest.node);
  if (!factors || across != 1) return std::nullopt;
  const auto [a, b] = *factors;
  DotTerms out;
  if (!choose(machine, nest.node->writes[0].buffer->dtype, a->buffer->dtype, b->buffer->dtype, out))
    return std::nullopt;
  if (out.terms == 1) return out;
  // The longest of the sum's loops: the fewest terms are added that count nothing.
  std::int64_t most = 0;
  for (std::size_t r = 0; r < nest.reduction.size(); ++r) {
    const NestLoop& l = nest.reduction[r];
    const VarNode* v = nest.node->iters[nest.spatial.size() + r].var.get();
    if (!l.constant || l.extent < 2 || l.extent <= most || !axis_of(a, v) || !axis_of(b, v))
      continue;
    most = l.extent;
    out.reduction = r;
  }
  if (most == 0) return std::nullopt;
  return out;
}

void lay_out_rows(Schedule& sch, BlockRef block, const BufferNode* rows, const DotTerms& dot,
                  std::optional<BlockRef> padded) {
  const BlockNode* node = block_node(sch, block);
  std::size_t first = 0;  // of the sum's iterators
  while (node->iters[first].kind == IterKind::spatial) ++first;
  const VarNode* term = node->iters[first + dot.reduction].var.get();
  const LoadNode* l = nullptr;
  for_each_expr(node->body, [&](const Expr& e) {
    const auto* each = as<LoadNode>(e);
    if (each && each->buffer.get() == rows) l = each;
  });
  const std::size_t axes = l->indices.size(), axis = dot.terms == 1 ? axes : *axis_of(l, term);
  const bool beside = dot.terms == 1 || axis + 1 == axes;
  if (beside && !dot.held && !padded && l->buffer->strides.empty()) return;
  std::int64_t read = 0;
  while (node->reads[static_cast<std::size_t>(read)].buffer.get() != rows) ++read;
  const BlockRef copy = padded ? *padded : sch.cache_read(block, read, "global");
  if (dot.held) sch.unsafe_set_dtype(copy, 0, to_string(*dot.held));
  if (beside) {
    const std::vector<LoopRef> loops = sch.get_loops(copy);
    return sch.vectorize(sch.split(loops.back(), {std::nullopt, factor(kCopyLanes)})[1]);
  }
  std::string names, to;
  for (std::size_t d = 0; d < axes; ++d) {
    names += cat(d ? ", d" : "d", d);
    to += d == axis ? cat("d", d, " // ", dot.terms, ", ") : cat("d", d, ", ");
  }
  sch.transform_layout(copy, schedule::BufferChoice{"write", 0, {}},
                       schedule::IndexMap::parse(
                           cat("lambda ", names, ": (", to, "d", axis, " % ", dot.terms, ")")));
  const std::vector<LoopRef> loops = sch.get_loops(copy);
  const auto terms = sch.split(loops[axis], {std::nullopt, factor(dot.terms)});
  // Neighbours of the operand lie along its last axis.
  const auto lanes = sch.split(loops.back(), {std::nullopt, factor(kCopyLanes)});
  std::vector<LoopRef> order;
  for (std::size_t d = 0; d + 1 < axes; ++d) order.push_back(d == axis ? terms[0] : loops[d]);
  for (const LoopRef& loop : {lanes[0], lanes[1], terms[1]}) order.push_back(loop);
  sch.reorder(order);
  sch.annotate(terms[1], "neighbours", Json(true));
  sch.vectorize(lanes[1]);
}

}  // namespace weft::rules
