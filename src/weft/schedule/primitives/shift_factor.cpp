// SPDX-License-Identifier: Apache-2.0
#include "weft/schedule/primitives/shift_factor.h"

#include "weft/base/text.h"
#include "weft/ir/build.h"
#include "weft/ir/reduction_pattern.h"
#include "weft/ir/regions.h"
#include "weft/schedule/analysis.h"
#include "weft/schedule/primitives/block_iters.h"
#include "weft/schedule/primitives/cache_parts.h"
#include "weft/schedule/rebind.h"

namespace weft::schedule {

using namespace ir;

namespace {

/// A block of its own loops, one for each iterator.
Stmt plain_nest(Ref<BlockNode> block, std::uint64_t& id) {
  block->id = id = fresh_block_id();
  AccessRegions found = detect_block_regions(*block);
  block->reads = std::move(found.reads);
  block->writes = std::move(found.writes);
  std::vector<Var> loops;
  Exprs values;
  for (const IterVar& iter : block->iters) {
    loops.push_back(make_var(cat("l_", iter.var->name), iter.var->dtype));
    values.push_back(loops.back());
  }
  const std::vector<IterVar> iters = block->iters;
  Stmt s = block_realize(std::move(values), make_bool(true), std::move(block));
  for (std::size_t i = iters.size(); i-- > 0;)
    s = make_for(loops[i], iters[i].dom.min, iters[i].dom.extent, std::move(s));
  return s;
}

/// The factor as a load under a cast to the sum's type.
const LoadNode* factor_of(const Expr& e, DType sum) {
  const auto* c = as<CastNode>(e);
  return c && e->dtype == sum ? as<LoadNode>(c->value) : nullptr;
}

Buffer made_like(const Buffer& buffer, const char* suffix, DType type, Exprs shape) {
  auto out = edit(buffer);
  out->name = cat(buffer->name, suffix);
  out->dtype = type;
  out->shape = std::move(shape);
  out->strides.clear();
  out->elem_offset = nullptr;
  out->scope = "global";
  return out;
}

}  // namespace

Verdict ShiftFactor::transform(const State& s, Outcome<Result>& out) const {
  Path path;
  WEFT_TRY(locate_inner(s, block, kName, path));
  const BlockRealizeNode* realize = path.realize();
  const BlockNode* old = realize->block.get();
  WEFT_TRY(check_buffer_index(s, kName, path, old->reads, read_buffer_index, "reads"));
  const Buffer x = old->reads[static_cast<std::size_t>(read_buffer_index)].buffer;
  const auto refusal = [&](std::string_view slug, std::string why, std::string legal) {
    return refuse(s, cat("schedule.shift_factor.", slug),
                  cat("shift_factor of \"", x->name, "\" in ", name_of(old), ": ", why), realize)
        .note(cat("legal: ", legal));
  };
  const auto pattern = match_reduction(old);
  const auto* start = as<StoreNode>(old->init);
  const auto* product = pattern && pattern->updates.size() == 1 &&
                                pattern->reducer->result[0]->kind == ExprKind::add &&
                                pattern->rest[0]->kind == ExprKind::mul
                            ? as<BinaryNode>(pattern->rest[0])
                            : nullptr;
  const LoadNode *a = nullptr, *b = nullptr;
  if (product && start && is_const_int_value(start->value, 0)) {
    a = factor_of(product->a, pattern->rest[0]->dtype);
    b = factor_of(product->b, pattern->rest[0]->dtype);
  }
  const bool first = a && a->buffer == x;
  const LoadNode *shifted = first ? a : b, *kept = first ? b : a;
  if (!a || !b || a->buffer == b->buffer || shifted->buffer != x)
    return refusal("pattern", "it is no sum from 0 of products of two buffers' elements",
                   "C[...] = C[...] + cast(x[...]) * cast(y[...])");
  const DType sum = pattern->rest[0]->dtype;
  if (!x->dtype.is_int() || x->dtype.bits > 32 || !sum.is_integral() || sum.bits < x->dtype.bits)
    return refusal("dtype",
                   cat("its elements are ", to_string(x->dtype), ", the sum's ", to_string(sum)),
                   "signed integers of up to 32 bits, summed in a type that is no narrower");
  std::string why;
  if (!own_nest(path, why))
    return refusal(
        "nest", why,
        "blocks whose iterators are the loops of a nest of their own; before split, fuse "
        "and compute_at");
  const Buffer result = pattern->updates[0]->buffer;
  auto stmts = statements(path.scope()->block->body);
  const std::size_t top = top_statement(stmts, path);
  for (std::size_t k = 0; k < stmts.size(); ++k) {
    if (k >= top && touches(stmts[k], x.get(), false, true))
      return refusal("place", "it is written in or after the nest",
                     "operands that are finished before");
    if (k != top && touches(stmts[k], result.get(), k < top, true))
      return refusal("place",
                     cat("other statements write \"", result->name, "\" or read it before"),
                     "results that only the block writes");
  }
  // The copy: x with its highest bit turned is x + h without a sign.
  const DType plain{TypeCode::uint_, x->dtype.bits, 1};
  const Buffer copy = made_like(x, "_shifted", plain, x->shape);
  auto copying = make_ref<BlockNode>();
  copying->name = copy->name;
  Exprs at;
  for (std::size_t d = 0; d < x->ndim(); ++d) {
    const DType type = x->shape[d]->dtype;
    const Var v = make_var(cat("v", d), type);
    copying->iters.push_back({v, {make_zero(type), x->shape[d]}, IterKind::spatial});
    at.push_back(v);
  }
  const Expr top_bit = make_const(std::int64_t{1} << (plain.bits - 1), plain);
  copying->body = store(
      copy, call("bitwise_xor", {call_typed(plain, "reinterpret", {load(x, at)}), top_bit}), at);
  // The sums of y, one for each of its results' iterators.
  auto summing = make_ref<BlockNode>();
  auto finishing = make_ref<BlockNode>();
  summing->name = cat(kept->buffer->name, "_sums");
  finishing->name = cat(old->name, "_rest");
  VarMap of_sum, of_rest;
  Exprs shape, sum_at, rest_at;
  for (const IterVar& iter : old->iters) {
    const bool reduces = iter.kind != IterKind::spatial;
    bool used = reduces;
    for (const Expr& e : kept->indices) used = used || uses_var(e, iter.var.get());
    if (!is_const_int_value(iter.dom.min, 0))
      return refusal("start", cat("the iterator \"", iter.var->name, "\" does not start at 0"),
                     "iterators from 0");
    if (used) {
      const Var v = make_var(iter.var->name, iter.var->dtype);
      of_sum[iter.var.get()] = v;
      summing->iters.push_back({v, iter.dom, iter.kind});
      if (!reduces) shape.push_back(iter.dom.extent), sum_at.push_back(v);
    }
    if (reduces) continue;
    const Var v = make_var(iter.var->name, iter.var->dtype);
    of_rest[iter.var.get()] = v;
    finishing->iters.push_back({v, iter.dom, iter.kind});
    if (used) rest_at.push_back(v);
  }
  if (shape.empty())
    shape.push_back(make_int(1)), sum_at.push_back(make_int(0)), rest_at.push_back(make_int(0));
  const Buffer sums = made_like(kept->buffer, "_sums", sum, std::move(shape));
  Exprs kept_at;
  for (const Expr& e : kept->indices) kept_at.push_back(substitute(e, of_sum));
  summing->init = store(sums, make_zero(sum), sum_at);
  summing->body = store(sums, load(sums, sum_at) + cast(sum, load(kept->buffer, kept_at)), sum_at);
  // The block itself, into a buffer of its own.
  const Buffer products = made_like(result, "_products", sum, result->shape);
  const Exprs& to = pattern->updates[0]->indices;
  const Expr one = cast(sum, load(copy, shifted->indices)), other = first ? product->b : product->a;
  auto changed = edit(realize->block);
  changed->init = store(products, make_zero(sum), as<StoreNode>(old->init)->indices);
  changed->body = store(products, load(products, to) + (first ? one * other : other * one), to);
  AccessRegions found = detect_block_regions(*changed);
  changed->reads = std::move(found.reads);
  changed->writes = std::move(found.writes);
  Exprs rest_to;
  for (const Expr& e : to) rest_to.push_back(substitute(e, of_rest));
  const Expr half = make_const(std::int64_t{1} << (plain.bits - 1), sum);
  finishing->body = store(result, load(products, rest_to) - load(sums, rest_at) * half, rest_to);
  std::uint64_t ids[3];
  std::vector<Stmt> parts{plain_nest(copying, ids[0]), plain_nest(summing, ids[1])};
  const Stmt rest = plain_nest(finishing, ids[2]);
  for (std::uint64_t id : ids) out.result.push_back({id});
  const Stmt whole = replace(path, with_block(realize, changed), path.nodes.size() - 1);
  Path inner = *find_block(whole, old->id);
  inner.func = path.func;
  stmts = statements(inner.scope()->block->body);
  parts.push_back(stmts[top]);
  parts.push_back(rest);
  stmts[top] = seq(std::move(parts));
  out.mod = add_to_scope(s, inner, {copy, sums, products}, seq(std::move(stmts)));
  return std::nullopt;
}

}  // namespace weft::schedule
