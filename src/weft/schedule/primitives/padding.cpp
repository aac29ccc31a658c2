// SPDX-License-Identifier: Apache-2.0
#include "weft/schedule/primitives/padding.h"

#include <algorithm>

#include "weft/base/text.h"
#include "weft/ir/build.h"
#include "weft/ir/reduction_pattern.h"
#include "weft/ir/regions.h"
#include "weft/ir/text.h"
#include "weft/schedule/analysis.h"
#include "weft/schedule/primitives/block_iters.h"
#include "weft/schedule/primitives/cache_parts.h"
#include "weft/schedule/rebind.h"

namespace weft::schedule {

using namespace ir;

// ---- decompose_padding

namespace {

/// begin <= iterator < end for each iterator, from conjuncts that bound one iterator each. False:
/// some conjunct does not.
bool box_of(const Expr& condition, const std::vector<IterVar>& iters,
            const arith::Analyzer& analyzer, std::vector<std::pair<Expr, Expr>>& box) {
  for (const IterVar& iter : iters)
    box.push_back({iter.dom.min, analyzer.simplify(iter.dom.min + iter.dom.extent)});
  for (const Expr& part : conjuncts(condition)) {
    const auto* b = is_compare(part->kind) ? as<BinaryNode>(part) : nullptr;
    if (!b || part->kind == ExprKind::eq || part->kind == ExprKind::ne || !b->a->dtype.is_int())
      return false;
    const bool less = part->kind == ExprKind::lt || part->kind == ExprKind::le;
    const bool strict = part->kind == ExprKind::lt || part->kind == ExprKind::gt;
    // value < 0 over the integers, where value is affine in one iterator.
    Expr value = less ? b->a - b->b : b->b - b->a;
    if (!strict) value = value - 1;
    std::size_t which = npos;
    for (std::size_t i = 0; i < iters.size(); ++i) {
      if (!uses_var(value, iters[i].var.get())) continue;
      if (which != npos) return false;
      which = i;
    }
    if (which == npos) return false;
    const auto linear = arith::detect_linear(value, {iters[which].var});
    if (!linear || (linear->coeffs[0] != 1 && linear->coeffs[0] != -1)) return false;
    auto& [begin, end] = box[which];
    if (linear->coeffs[0] == 1) {
      end = analyzer.simplify(min(end, make_zero(linear->base->dtype) - linear->base));
    } else {
      begin = analyzer.simplify(max(begin, linear->base + 1));
    }
  }
  return true;
}

}  // namespace

Verdict DecomposePadding::transform(const State& s, Outcome<Result>& out) const {
  Path path, target;
  WEFT_TRY(locate_inner(s, block, kName, path));
  WEFT_TRY(locate(s, loop, target));
  const BlockRealizeNode* realize = path.realize();
  const BlockNode* old = realize->block.get();
  const auto refusal = [&](std::string_view slug, std::string why, std::string legal) {
    return refuse(s, cat("schedule.decompose_padding.", slug),
                  cat("decompose_padding of ", name_of(old), ": ", why), realize)
        .note(cat("legal: ", legal));
  };
  std::string why;
  const auto nest = own_nest(path, why);
  if (!nest)
    return refusal("nest", why,
                   "blocks whose iterators are the loops of a nest of their own; "
                   "before split, fuse and compute_at");
  std::size_t at = nest->top;
  while (at < path.nodes.size() && path.nodes[at] != target.target()) ++at;
  if (at == path.nodes.size())
    return refusal("loop", cat("loop ", name_of(target.loop()), " is not one of its own"),
                   quoted(loop_names(nest->loops)));
  const auto* stored = as<StoreNode>(old->body);
  const auto* choice = stored ? as<CallNode>(stored->value) : nullptr;
  Expr condition, inside, constant;
  if (choice && choice->op == "if_then_else")
    condition = choice->args[0], inside = choice->args[1], constant = choice->args[2];
  if (const auto* pick = stored ? as<SelectNode>(stored->value) : nullptr)
    condition = pick->condition, inside = pick->a, constant = pick->b;
  if (!condition || old->init || !inside || as<LoadNode>(inside) == nullptr ||
      (constant->kind != ExprKind::int_imm && constant->kind != ExprKind::float_imm))
    return refusal("pattern", "its body is no choice between one load and a constant",
                   "B[...] = if_then_else(inside, A[...], constant)");
  arith::Analyzer analyzer;
  bind_iters(analyzer, old);
  std::vector<std::pair<Expr, Expr>> box;
  if (!box_of(condition, old->iters, analyzer, box))
    return refusal("condition",
                   cat("the condition ", print(condition), " is not bounds of one iterator each"),
                   "conjunctions of i + c < n and i + c >= 0");
  // The filling nest: copies of the loops from the target on, those outside stay shared.
  auto fill = make_ref<BlockNode>();
  fill->id = fresh_block_id();
  fill->name = cat(old->name, "_fill");
  VarMap iters, loops;
  Exprs fill_values, copy_values;
  Expr predicate = make_bool(true);
  std::vector<std::pair<Var, Expr>> fill_nest, copy_nest;
  for (std::size_t i = 0; i < old->iters.size(); ++i) {
    const Var v = make_var(old->iters[i].var->name, old->iters[i].var->dtype);
    fill->iters.push_back({v, old->iters[i].dom, IterKind::spatial});
    iters[old->iters[i].var.get()] = v;
  }
  VarMap bound;
  for (std::size_t k = nest->top; k + 1 < path.nodes.size(); ++k) {
    const auto* l = as<ForNode>(path.nodes[k]);
    const auto which = static_cast<std::size_t>(
        std::find(nest->loops.begin(), nest->loops.end(), l) - nest->loops.begin());
    const auto& [begin, end] = box[which];
    if (k < at) {  // outside: the iterations that the box leaves out only fill
      const Expr v = l->var;
      if (!analyzer.prove(le(begin, old->iters[which].dom.min)))
        predicate = both(predicate, ge(v, begin));
      if (!analyzer.prove(ge(end, l->extent))) predicate = both(predicate, lt(v, end));
      continue;
    }
    const Var var = make_var(cat(l->var->name, "_fill"), l->var->dtype);
    loops[l->var.get()] = var;
    fill_nest.push_back({var, l->extent});
    bound[l->var.get()] = analyzer.simplify(Expr(l->var) + begin);
    copy_nest.push_back({l->var, analyzer.simplify(end - begin)});
  }
  for (const Expr& v : realize->iter_values) {
    fill_values.push_back(substitute(v, loops));
    copy_values.push_back(substitute(v, bound));
  }
  Exprs where;
  for (const Expr& e : stored->indices) where.push_back(substitute(e, iters));
  fill->body = store(stored->buffer, constant, where);
  fill->writes = {point_region(stored->buffer, where)};
  auto copy = edit(realize->block);
  copy->body = store(stored->buffer, inside, stored->indices);
  AccessRegions found = detect_block_regions(*copy);
  copy->reads = std::move(found.reads);
  copy->writes = std::move(found.writes);
  Stmt filling = block_realize(std::move(fill_values), make_bool(true), fill);
  for (std::size_t i = fill_nest.size(); i-- > 0;)
    filling = make_for(fill_nest[i].first, make_zero(fill_nest[i].first->dtype),
                       fill_nest[i].second, std::move(filling));
  Stmt copying = block_realize(std::move(copy_values), predicate, copy);
  for (std::size_t i = copy_nest.size(); i-- > 0;) {
    const auto* l = as<ForNode>(path.nodes[at + i]);
    copying =
        make_for(copy_nest[i].first, make_zero(copy_nest[i].first->dtype), copy_nest[i].second,
                 std::move(copying), l->for_kind, l->axis, l->annotations);
  }
  out.mod = with_body(s.mod, path.func, replace(path, seq({filling, copying}), at));
  out.result = {fill->id};
  return std::nullopt;
}

// ---- pad_einsum

namespace {

void factors_of(const Expr& e, Exprs& out) {
  if (e->kind == ExprKind::mul) {
    factors_of(as<BinaryNode>(e)->a, out);
    factors_of(as<BinaryNode>(e)->b, out);
  } else {
    out.push_back(e);
  }
}

/// The load under a cast.
const LoadNode* factor_load(const Expr& e) {
  return as<LoadNode>(e->kind == ExprKind::cast ? as<CastNode>(e)->value : e);
}

/// Iterators of a block and by how much each becomes longer.
struct Lengthened {
  std::vector<IterVar> iters;  // with their new extents
  Exprs growth;                // null: this one stays

  bool any(IterKind kind) const {
    for (std::size_t i = 0; i < iters.size(); ++i)
      if (growth[i] && iters[i].kind == kind) return true;
    return false;
  }
  /// The extent of an axis that is read or written at `index`, or null where it stays. False: the
  /// index is no sum of the longer iterators times positive numbers, and others.
  bool extent(const Expr& index, const Expr& now, const arith::Analyzer& analyzer,
              Expr& out) const {
    out = nullptr;
    for (std::size_t i = 0; i < iters.size(); ++i) {
      if (!growth[i] || !uses_var(index, iters[i].var.get())) continue;
      if (index.get() == iters[i].var.get()) {
        out = iters[i].dom.extent;
        continue;
      }
      const auto linear = arith::detect_linear(index, {iters[i].var});
      if (!linear || linear->coeffs[0] < 1) return false;
      out = (out ? out : now) + growth[i] * make_const(linear->coeffs[0], now->dtype);
    }
    if (out) out = analyzer.simplify(out);
    return true;
  }
};

/// Loads of what joins the sum; absent where one lies in an index, or where zeros beyond an
/// operand's end could stop the program.
std::optional<std::vector<const LoadNode*>> loads_of(const Expr& value) {
  std::vector<const LoadNode*> out;
  bool plain = true;
  for_each_expr(value, [&](const Expr& e) {
    if (const auto* l = as<LoadNode>(e)) {
      out.push_back(l);
      for (const Expr& index : l->indices)
        for_each_expr(index, [&](const Expr& x) { plain = plain && x->kind != ExprKind::load; });
    }
    const bool divides = e->kind == ExprKind::div || e->kind == ExprKind::mod ||
                         e->kind == ExprKind::floordiv || e->kind == ExprKind::floormod;
    if (divides && e->dtype.is_int())
      for_each_expr(as<BinaryNode>(e)->b,
                    [&](const Expr& x) { plain = plain && x->kind != ExprKind::load; });
  });
  if (!plain) return std::nullopt;
  return out;
}

/// Whether a block is a sum, from 0, of products of loads, each with one axis for every longer
/// reduction, whose iterator is the index there and no part of another. `lacks`: an operand that
/// has none, and the reduction.
bool is_einsum(const BlockNode* block, const ReductionPattern& pattern, const Lengthened& longer,
               std::pair<const LoadNode*, const VarNode*>& lacks) {
  const auto* start = as<StoreNode>(block->init);
  if (!start || pattern.reducer->result[0]->kind != ExprKind::add ||
      !((start->value->kind == ExprKind::float_imm && as<FloatImmNode>(start->value)->value == 0) ||
        is_const_int_value(start->value, 0)))
    return false;
  Exprs factors;
  factors_of(pattern.rest[0], factors);
  for (const Expr& e : factors) {
    const LoadNode* l = factor_load(e);
    if (!l) return false;
    for (std::size_t i = 0; i < longer.iters.size(); ++i) {
      const IterVar& iter = longer.iters[i];
      if (!longer.growth[i] || iter.kind != IterKind::reduce) continue;
      std::size_t used = 0, plain = 0;
      for (const Expr& x : l->indices) {
        if (uses_var(x, iter.var.get())) ++used;
        if (x.get() == iter.var.get()) ++plain;
      }
      if (used == 0) lacks = {l, iter.var.get()};
      else if (used != 1 || plain != 1) return false;
    }
  }
  return true;
}

/// for v..: to[v] = from[v] over `to`; what lies at or beyond `ends` counts 0 unless it is cropped.
Stmt pad_copy(const Buffer& from, const Buffer& to, const Exprs& ends, const std::string& name,
              bool crop, std::uint64_t& id) {
  const Buffer& domain = to;
  auto block = make_ref<BlockNode>();
  block->id = id = fresh_block_id();
  block->name = name;
  Exprs at, values;
  Expr inside = make_bool(true);
  std::vector<std::pair<Var, Expr>> nest;
  for (std::size_t d = 0; d < domain->ndim(); ++d) {
    const DType type = domain->shape[d]->dtype;
    const Var v = make_var(cat("v", d), type), loop = make_var(cat("ax", d), type);
    block->iters.push_back({v, {make_zero(type), domain->shape[d]}, IterKind::spatial});
    at.push_back(v);
    values.push_back(loop);
    nest.push_back({loop, domain->shape[d]});
    arith::Analyzer analyzer;
    if (!crop && !analyzer.prove_equal(ends[d], to->shape[d]))
      inside = both(inside, lt(v, ends[d]));
  }
  Expr value = load(from, at);
  if (!is_const_int_value(inside, 1)) value = if_then_else(inside, value, make_zero(from->dtype));
  block->body = store(to, value, at);
  AccessRegions found = detect_block_regions(*block);
  block->reads = std::move(found.reads);
  block->writes = std::move(found.writes);
  Stmt s = block_realize(std::move(values), make_bool(true), block);
  for (std::size_t i = nest.size(); i-- > 0;)
    s = make_for(nest[i].first, make_zero(nest[i].first->dtype), nest[i].second, std::move(s));
  return s;
}

}  // namespace

Verdict PadEinsum::transform(const State& s, Outcome<Result>& out) const {
  Path path;
  WEFT_TRY(locate_inner(s, block, kName, path));
  const BlockNode* old = path.realize()->block.get();
  const auto refusal = [&](std::string_view slug, std::string why, std::string legal) {
    return refuse(s, cat("schedule.pad_einsum.", slug),
                  cat("pad_einsum of ", name_of(old), ": ", why), path.realize())
        .note(cat("legal: ", legal));
  };
  const std::int64_t least = multiples ? 1 : 0;
  const bool negative =
      std::any_of(padding.begin(), padding.end(), [&](auto n) { return n < least; });
  if (padding.size() != old->iters.size() || negative)
    return refusal("padding",
                   negative
                       ? std::string(multiples ? "a padding is below 1" : "a padding is negative")
                       : cat("it has ", old->iters.size(), " iterators, ", padding.size(),
                             " paddings were given"),
                   cat("one number of at least ", least, " for each iterator"));
  const auto pattern = match_reduction(old);
  const bool one = pattern && pattern->updates.size() == 1;
  const auto operands = one ? loads_of(pattern->rest[0]) : std::nullopt;
  const auto no_pattern = [&](const char* what, const char* legal) {
    return refusal("pattern", cat("it is not ", what), legal);
  };
  if (!operands)
    return no_pattern("a reduction of one value that is read at its iterators",
                      "C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]");
  std::string why;
  const auto nest = own_nest(path, why);
  if (!nest)
    return refusal("nest", why,
                   "blocks whose iterators are the loops of a nest of their own; "
                   "pad before split, fuse and compute_at");
  arith::Analyzer analyzer;
  Lengthened longer{old->iters, {}};
  for (std::size_t i = 0; i < longer.iters.size(); ++i) {
    Expr& extent = longer.iters[i].dom.extent;
    const Expr unit = make_const(padding[i], extent->dtype);
    const Expr now = analyzer.simplify(multiples ? floordiv(extent + (padding[i] - 1), unit) * unit
                                                 : extent + unit);
    const bool same = analyzer.prove_equal(now, extent);
    longer.growth.push_back(same ? nullptr : analyzer.simplify(now - extent));
    if (!same) extent = now;
  }
  if (longer.any(IterKind::reduce)) {
    std::pair<const LoadNode*, const VarNode*> lacks{nullptr, nullptr};
    if (!is_einsum(old, *pattern, longer, lacks))
      return no_pattern(
          "a sum, from 0, of products of loads whose longer terms are plain iterators",
          "C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]; any reduction where only "
          "results are lengthened");
    if (lacks.first)
      return refusal("operand",
                     cat("\"", lacks.first->buffer->name, "\" has no axis of the reduction \"",
                         lacks.second->name, "\": 0 * inf would join the sum"),
                     "paddings of reductions that index every operand");
  }
  auto stmts = statements(path.scope()->block->body);
  const std::size_t top = top_statement(stmts, path);
  // The longer buffer, null where it stays; false where an index does not tell how long.
  // `ends`: how much of it counts; terms that a reduction did not have count nothing, whatever the
  // operand holds there.
  const auto grown = [&](const Buffer& from, const Exprs& indices, Buffer& longest, Exprs& ends) {
    ends = from->shape;
    auto to = edit(from);
    to->name = cat(from->name, "_pad");
    to->strides.clear();
    to->elem_offset = nullptr;
    to->scope = "global";
    bool changed = false;
    for (std::size_t d = 0; d < indices.size(); ++d) {
      Expr extent;
      if (!longer.extent(indices[d], from->shape[d], analyzer, extent)) return false;
      if (extent) to->shape[d] = extent, changed = true;
      for (std::size_t i = 0; i < old->iters.size(); ++i) {
        if (longer.growth[i] && old->iters[i].kind == IterKind::reduce &&
            indices[d].get() == old->iters[i].var.get())
          ends[d] = old->iters[i].dom.extent;
      }
    }
    longest = changed ? Buffer(to) : nullptr;
    return true;
  };
  const auto no_index = [&](const Buffer& buffer) {
    return refusal("index",
                   cat("an index of \"", buffer->name,
                       "\" is no sum of lengthened iterators times positive numbers"),
                   "A[vi + vk], A[vi * 2]; sch.transform_block_layout cuts an iterator into its "
                   "digits");
  };
  std::vector<Stmt> before, after;
  std::vector<Buffer> made;
  BufferMap map;
  std::uint64_t id = 0;
  for (const LoadNode* l : *operands) {
    Buffer to;
    Exprs ends;
    if (!grown(l->buffer, l->indices, to, ends)) return no_index(l->buffer);
    if (!to) continue;
    if (const auto before_it = map.find(l->buffer.get()); before_it != map.end()) {
      if (std::equal(to->shape.begin(), to->shape.end(), before_it->second->shape.begin(),
                     [&](const Expr& x, const Expr& y) { return analyzer.prove_equal(x, y); }))
        continue;
      return refusal("operand", cat("\"", l->buffer->name, "\" is an operand twice"),
                     "products of different buffers; sch.cache_read makes a second one");
    }
    for (std::size_t k = top; k < stmts.size(); ++k) {
      if (touches(stmts[k], l->buffer.get(), false, true))
        return refusal("place", cat("\"", l->buffer->name, "\" is written in or after its nest"),
                       "operands that are finished before the nest");
    }
    before.push_back(pad_copy(l->buffer, to, ends, to->name, false, id));
    out.result.push_back({id});
    made.push_back(to);
    map[l->buffer.get()] = to;
  }
  const Buffer& result = pattern->updates[0]->buffer;
  Buffer to;
  Exprs ends;
  if (!grown(result, pattern->updates[0]->indices, to, ends)) return no_index(result);
  if (to) {
    for (std::size_t k = 0; k < stmts.size(); ++k) {
      if (k != top && touches(stmts[k], result.get(), k < top, true))
        return refusal("place",
                       cat("other statements write \"", result->name, "\" or read it before"),
                       "results that only the block writes");
    }
    after.push_back(pad_copy(to, result, ends, to->name, true, id));
    out.result.push_back({id});
    made.push_back(to);
    map[result.get()] = to;
  }
  auto padded = edit(path.realize()->block);
  padded->iters = longer.iters;
  Stmt nested = with_block(path.realize(), padded);
  for (std::size_t k = path.nodes.size() - 1; k-- > nest->top;) {
    const auto* l = as<ForNode>(path.nodes[k]);
    const auto which = static_cast<std::size_t>(
        std::find(nest->loops.begin(), nest->loops.end(), l) - nest->loops.begin());
    nested = make_for(l->var, l->min, longer.iters[which].dom.extent, std::move(nested),
                      l->for_kind, l->axis, l->annotations);
  }
  nested = use_buffers(nested, {old->id}, map);
  const Stmt whole = replace(path, nested, nest->top);
  Path inner = *find_block(whole, old->id);
  inner.func = path.func;
  stmts = statements(inner.scope()->block->body);
  before.push_back(stmts[top]);
  before.insert(before.end(), after.begin(), after.end());
  stmts[top] = seq(std::move(before));
  out.mod = add_to_scope(s, inner, made, seq(std::move(stmts)));
  return std::nullopt;
}

}  // namespace weft::schedule
