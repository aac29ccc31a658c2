// SPDX-License-Identifier: Apache-2.0
#include "weft/schedule/primitives/for_kind.h"

#include <algorithm>
#include <map>

#include "weft/base/text.h"
#include "weft/ir/atomic.h"
#include "weft/ir/build.h"
#include "weft/schedule/analysis.h"

namespace weft::schedule {
namespace {

using namespace ir;

struct Kind {
  std::string_view step;
  ForKind kind;
  const AxisInfo* axis = nullptr;  // of a bind
};

Stmt with_kind(const ForNode* loop, ForKind kind, std::string axis) {
  return make_for(loop->var, loop->min, loop->extent, loop->body, kind, std::move(axis),
                  loop->annotations);
}

/// Every access to the buffer is under the loop and its storage is the function's own, so lowering
/// gives each iteration its own copy.
bool only_used_under(const Path& path, const BufferNode* buffer) {
  for (const Stmt& s : path.nodes) {
    const auto* realize = as<BlockRealizeNode>(s);
    if (!realize) continue;
    const auto& own = realize->block->alloc_buffers;
    const bool here =
        std::any_of(own.begin(), own.end(), [&](const Buffer& b) { return b.get() == buffer; });
    if (!here) continue;
    for (const Leaf& leaf : leaves(realize->block->body)) {
      const bool inside = std::any_of(leaf.loops.begin(), leaf.loops.end(),
                                      [&](const ForNode* l) { return l == path.loop(); });
      if (!inside && (reads(leaf.block(), buffer) || writes(leaf.block(), buffer))) return false;
    }
    return path.scope() == realize;
  }
  return false;
}

Verdict check_iters(const State& s, const Kind& kind, const Path& path, const Leaf& leaf,
                    bool& uses_loop) {
  const ForNode* loop = path.loop();
  auto around = path.loops();
  around.insert(around.end(), leaf.loops.begin(), leaf.loops.end());
  bool feeds_spatial = false;
  for (std::size_t i = 0; i < leaf.block()->iters.size(); ++i) {
    feeds_spatial |= leaf.block()->iters[i].kind == IterKind::spatial &&
                     uses_var(leaf.realize->iter_values[i], loop->var.get());
  }
  for (std::size_t i = 0; i < leaf.block()->iters.size(); ++i) {
    if (!uses_var(leaf.realize->iter_values[i], loop->var.get())) continue;
    uses_loop = true;
    const IterVar& iter = leaf.block()->iters[i];
    const bool reduce = iter.kind == IterKind::reduce;
    if (iter.kind == IterKind::spatial) continue;
    // Points that reduce work on one result; a loop that also counts results has several.
    if (reduce && kind.axis && kind.axis->reduces && !feeds_spatial) continue;
    if (reduce && why_not_additions({leaf}, leaf.block()).empty()) continue;
    Refusal r = refuse(
        s, cat("schedule.", kind.step, ".iterator"),
        cat(kind.step, " of ", name_of(loop), " would run the ", reduce ? "reduction " : "ordered ",
            "iterator \"", iter.var->name, "\" of block ", name_of(leaf.block()), " in parallel"),
        leaf.realize);
    std::vector<std::string> legal;
    for (const ForNode* other : around) {
      bool fine = false;
      for (std::size_t k = 0; k < leaf.block()->iters.size(); ++k) {
        if (!uses_var(leaf.realize->iter_values[k], other->var.get())) continue;
        fine = leaf.block()->iters[k].kind == IterKind::spatial;
        if (!fine) break;
      }
      if (fine) legal.push_back(other->var->name);
    }
    r.note(cat("loops of ", name_of(leaf.block()),
               " that feed only spatial iterators: ", quoted(legal)));
    if (reduce && kind.axis) {
      std::vector<std::string> axes;
      for (const AxisInfo& a : s.machine->axes) {
        if (a.reduces) axes.push_back(a.name);
      }
      r.note(cat("axes that can reduce: ", quoted(axes)));
      if (!axes.empty())
        r.repair(
            cat("sch.bind(", loop->var->name, ", \"", axes[0], "\") reduces across its points"));
    } else if (reduce) {
      r.note("rfactor turns a reduction loop into a spatial one");
      if (!legal.empty()) {
        const bool inner = kind.kind == ForKind::vectorized;  // vectors want the innermost loop
        r.repair(cat("sch.", kind.step, "(", inner ? legal.back() : legal.front(), ")"));
      }
    }
    return r;
  }
  return std::nullopt;
}

/// Why the block's instances are not independent under the loop.
std::string why_dependent(const std::vector<Leaf>& under, std::size_t index,
                          const std::vector<const ForNode*>& around,
                          const arith::Analyzer& analyzer, Facts* facts) {
  if (why_not_complete(under, under[index].block()).empty()) return {};
  if (updates_atomically(under[index].block()->body))
    return why_not_additions(under, under[index].block());
  // Bindings are affine in all loops together: (i_0 * 256 + i_1) // 80 is not in i_1 alone.
  Leaf leaf = under[index];
  leaf.loops.insert(leaf.loops.begin(), around.begin(), around.end());
  std::string why = why_not_reduction(under, leaf, analyzer, facts);
  if (why.empty()) return {};
  // The two halves of a decomposed reduction: each iteration starts its own accumulators.
  const bool half = is_update(leaf.block()) || why_not_complete({leaf}, leaf.block()).empty();
  if (!half) return why_not_complete({leaf}, leaf.block());
  if (auto affine = why_not_affine(leaf, analyzer, facts); !affine.empty())
    return cat("its bindings are not affine: ", affine);
  for (const BufferRegion& w : leaf.block()->writes) {
    std::vector<std::size_t> writers;
    for (std::size_t i = 0; i < under.size(); ++i) {
      if (writes(under[i].block(), w.buffer.get())) writers.push_back(i);
    }
    for (std::size_t k = 1; k < writers.size(); ++k) {
      if (!is_update(under[writers[k]].block()))
        return cat("\"", w.buffer->name, "\" has several writers under the loop");
    }
  }
  return {};
}

Verdict check_independent(const State& s, const Kind& kind, const Path& path) {
  const ForNode* loop = path.loop();
  std::int64_t extent = 0;
  if (is_const_int(loop->extent, &extent) && extent <= 1) return std::nullopt;  // nothing to race
  // The loop alone, so that its variable counts as a loop of each leaf.
  std::vector<Leaf> under = leaves(path.target());
  std::vector<bool> uses(under.size(), false);
  for (std::size_t i = 0; i < under.size(); ++i) {
    bool uses_loop = false;
    WEFT_TRY(check_iters(s, kind, path, under[i], uses_loop));
    uses[i] = uses_loop;
  }
  std::vector<const ForNode*> around = path.loops();
  std::erase(around, loop);
  for (std::size_t i = 0; i < under.size(); ++i) {
    arith::Analyzer analyzer;
    bind_path(analyzer, path);
    bind_loops(analyzer, under[i].loops);
    const BlockNode* block = under[i].block();
    if (auto why = why_dependent(under, i, around, analyzer, s.facts.get()); !why.empty()) {
      Refusal r =
          refuse(s, cat("schedule.", kind.step, ".dependent"),
                 cat(kind.step, " of ", name_of(loop), " needs independent iterations, but block ",
                     name_of(block), " is neither complete nor a reduction: ", why),
                 under[i].realize);
      r.note(
          "legal: loops over blocks whose iterations write different elements and read only "
          "finished ones");
      return r;
    }
    if (uses[i] || why_not_complete({under[i]}, block).empty() ||
        why_not_additions({under[i]}, block).empty())
      continue;
    std::vector<const ForNode*> all = around;
    all.insert(all.end(), under[i].loops.begin(), under[i].loops.end());
    if (standing(all, under[i].realize->predicate).count(loop->var.get())) continue;
    for (const BufferRegion& w : block->writes) {
      const bool own = kind.axis ? s.machine->is_private(w.buffer->scope, kind.axis->name)
                                 : only_used_under(path, w.buffer.get());
      if (own) continue;
      Refusal r = refuse(s, cat("schedule.", kind.step, ".race"),
                         cat(kind.step, " of ", name_of(loop),
                             " would make all iterations accumulate into the same \"",
                             w.buffer->name, "\" in block ", name_of(block)),
                         under[i].realize);
      r.note(cat("\"", w.buffer->name, "\" lives in scope \"", w.buffer->scope, "\" and ",
                 name_of(loop), " does not index it"));
      return r;
    }
  }
  if (under.size() > 1) {
    if (auto why = why_not_pipeline(leaves_under(path), s.facts.get()); !why.empty()) {
      Refusal r = refuse(
          s, cat("schedule.", kind.step, ".not_covered"),
          cat(kind.step, " of ", name_of(loop), " needs independent iterations, but ", why), loop);
      r.note(
          "legal: nests in which every read was written in the same iteration or before the loop");
      return r;
    }
  }
  return std::nullopt;
}

Verdict set_kind(const State& s, const Kind& kind, const Path& path, Outcome<Done>& out) {
  WEFT_TRY(check_independent(s, kind, path));
  out.mod =
      with_body(s.mod, path.func,
                replace(path, with_kind(path.loop(), kind.kind, kind.axis ? kind.axis->name : "")));
  return std::nullopt;
}

void collect_bound(const Stmt& s, std::vector<const ForNode*>& out) {
  if (const auto* loop = as<ForNode>(s); loop && loop->for_kind == ForKind::bound)
    out.push_back(loop);
  for (const Stmt& child : children(s)) collect_bound(child, out);
}

/// Bound loops of the kernel that the loop will belong to: everything under the outermost bound
/// loop around.
std::vector<const ForNode*> kernel_loops(const Path& path) {
  std::vector<const ForNode*> out;
  for (const Stmt& s : path.nodes) {
    const auto* loop = as<ForNode>(s);
    if (!loop || (loop->for_kind != ForKind::bound && s != path.target())) continue;
    collect_bound(s, out);
    break;
  }
  out.erase(std::remove(out.begin(), out.end(), path.loop()), out.end());
  return out;
}

Verdict check_extents(const State& s, const AxisInfo& axis, const Path& path) {
  const ForNode* loop = path.loop();
  std::int64_t extent = 0;
  const bool constant = is_const_int(loop->extent, &extent);
  if (constant && axis.limit > 0 && extent > axis.limit) {
    Refusal r = refuse(
        s, "schedule.bind.limit",
        cat("bind of ", name_of(loop), " to \"", axis.name, "\" needs ", extent, " points"), loop);
    r.note(cat("legal: at most ", axis.limit));
    r.repair(cat("split ", name_of(loop), " first, for example sch.split(", loop->var->name,
                 ", [None, ", axis.limit, "])"));
    return r;
  }
  std::map<std::string, std::int64_t> group;
  if (constant) group[axis.name] = extent;
  for (const ForNode* other : kernel_loops(path)) {
    const AxisInfo* rule = s.machine->axis(other->axis);
    std::int64_t n = 0;
    const bool known = is_const_int(other->extent, &n);
    if (other->axis == axis.name && !axis.is_virtual() && constant && known && n != extent) {
      Refusal r = refuse(
          s, "schedule.bind.extent",
          cat("bind of ", name_of(loop), " (extent ", extent, ") to \"", axis.name,
              "\" does not fit ", name_of(other), " of the same kernel, which has extent ", n),
          loop);
      r.note(cat("legal: extent ", n, ", or another axis"));
      r.repair(cat("sch.split(", loop->var->name, ", [None, ", n, "]) and bind the inner loop"));
      return r;
    }
    if (rule && known && !axis.group.empty() && rule->group == axis.group) group[other->axis] = n;
  }
  std::int64_t product = 1;
  std::vector<std::string> parts;
  for (const auto& [name, n] : group) {
    product *= std::max<std::int64_t>(n, 1);
    parts.push_back(cat(name, " = ", n));
  }
  if (axis.group_limit > 0 && product > axis.group_limit) {
    Refusal r = refuse(s, "schedule.bind.group_limit",
                       cat("bind of ", name_of(loop), " to \"", axis.name, "\" makes ", product,
                           " points of \"", axis.group, "\" in all"),
                       loop);
    r.note(cat("found: ", join(parts)));
    r.note(cat("legal: a product of at most ", axis.group_limit));
    return r;
  }
  return std::nullopt;
}

bool goes_on(const BlockNode* block, const BufferNode* buffer) {
  return reads(block, buffer) || updates_atomically(block->body, buffer) || block->init;
}

/// Whether each iteration of `outer` begins the buffer anew before block `at` of `under` goes on
/// from it: the block's own init, unless a loop outside has taken its first step before, or a block
/// that stands before it.
bool begins_anew(const std::vector<Leaf>& under, std::size_t at, const BufferNode* buffer,
                 const std::vector<const ForNode*>& outside) {
  for (std::size_t i = 0; i <= at; ++i) {
    const BlockNode* block = under[i].block();
    if (!writes(block, buffer) || (!block->init && goes_on(block, buffer))) continue;
    bool steps_outside = false;
    for (std::size_t k = 0; k < block->iters.size(); ++k) {
      if (!block->init || block->iters[k].kind != IterKind::reduce) continue;
      for (const ForNode* loop : outside)
        steps_outside |= uses_var(under[i].realize->iter_values[k], loop->var.get());
    }
    if (!steps_outside) return true;
  }
  return false;
}

/// What `inner` repeats for each iteration of `outer`, on the same axis, runs once there.
Verdict check_repeated(const State& s, const AxisInfo& axis, const Path& path, const ForNode* outer,
                       const ForNode* inner) {
  if (is_const_int_value(outer->extent, 1) || is_const_int_value(inner->extent, 1))
    return std::nullopt;
  std::vector<const ForNode*> outside = path.loops();
  outside.erase(std::find(outside.begin(), outside.end(), outer), outside.end());
  const std::vector<Leaf> under = leaves(outer->body);
  for (std::size_t i = 0; i < under.size(); ++i) {
    const Leaf& leaf = under[i];
    if (std::find(leaf.loops.begin(), leaf.loops.end(), inner) == leaf.loops.end()) continue;
    for (const BufferRegion& w : leaf.block()->writes) {
      const BufferNode* buffer = w.buffer.get();
      if (!goes_on(leaf.block(), buffer) || begins_anew(under, i, buffer, outside)) continue;
      Refusal r = refuse(
          s, "schedule.bind.repeated",
          cat("bind of ", name_of(path.loop()), " puts ", name_of(inner), " and ", name_of(outer),
              " around it on \"", axis.name, "\", but block ", name_of(leaf.block()),
              " goes on from \"", w.buffer->name, "\" in each iteration of ", name_of(outer)),
          leaf.realize);
      r.note(cat("on one axis the iterations of ", name_of(outer),
                 " would not repeat the block; legal: blocks that begin \"", w.buffer->name,
                 "\" anew inside ", name_of(outer)));
      r.repair(cat("bind ", name_of(outer), " to another axis, or leave it serial"));
      return r;
    }
  }
  return std::nullopt;
}

/// Two nested loops on one axis become one: only sound when the inner blocks do the same for every
/// outer iteration and their results are visible to all points.
Verdict check_nested(const State& s, const AxisInfo& axis, const Path& path) {
  if (axis.is_virtual()) return std::nullopt;
  std::vector<std::pair<const ForNode*, const ForNode*>> pairs;  // outer, inner
  const std::vector<const ForNode*> around = path.loops();
  for (const ForNode* outer : path.loops()) {
    if (outer->for_kind == ForKind::bound && outer->axis == axis.name)
      pairs.push_back({outer, path.loop()});
  }
  std::vector<const ForNode*> below;
  collect_bound(path.loop()->body, below);
  for (const ForNode* inner : below) {
    if (inner->axis == axis.name) pairs.push_back({path.loop(), inner});
  }
  for (const auto& [outer, inner] : pairs) {
    for (const Leaf& leaf : leaves(inner->body)) {
      const bool both =
          std::any_of(leaf.realize->iter_values.begin(), leaf.realize->iter_values.end(),
                      [&, o = outer](const Expr& e) { return uses_var(e, o->var.get()); });
      if (both) {
        Refusal r = refuse(s, "schedule.bind.nested",
                           cat("bind of ", name_of(path.loop()), " puts ", name_of(inner), " and ",
                               name_of(outer), " around it on \"", axis.name, "\", but block ",
                               name_of(leaf.block()), " depends on ", name_of(outer)),
                           leaf.realize);
        r.note("legal: another axis for one of them");
        for (const AxisInfo& other : s.machine->axes) {
          const bool free = other.group == axis.group && other.name != axis.name &&
                            std::none_of(around.begin(), around.end(),
                                         [&](const ForNode* l) { return l->axis == other.name; });
          if (!free) continue;
          r.repair(cat("sch.bind(", path.loop()->var->name, ", \"", other.name, "\")"));
          break;
        }
        return r;
      }
      for (const BufferRegion& w : leaf.block()->writes) {
        if (!s.machine->is_private(w.buffer->scope, axis.name)) continue;
        Refusal r = refuse(s, "schedule.bind.private",
                           cat("bind of ", name_of(path.loop()), " would let each point of \"",
                               axis.name, "\" fill only its part of its own \"", w.buffer->name,
                               "\" (scope \"", w.buffer->scope, "\")"),
                           leaf.realize);
        std::vector<std::string> visible;
        for (const MemoryInfo& row : s.machine->memories) {
          if (!s.machine->is_private(row.scope, axis.name)) visible.push_back(row.scope);
        }
        r.note(
            cat("legal: scopes that the points of \"", axis.name, "\" share: ", quoted(visible)));
        return r;
      }
    }
    WEFT_TRY(check_repeated(s, axis, path, outer, inner));
  }
  return std::nullopt;
}

}  // namespace

Verdict Parallel::transform(const State& s, Outcome<Result>& out) const {
  Path path;
  WEFT_TRY(locate(s, loop, path));
  return set_kind(s, {kName, ForKind::parallel}, path, out);
}

Verdict Vectorize::transform(const State& s, Outcome<Result>& out) const {
  Path path;
  WEFT_TRY(locate(s, loop, path));
  return set_kind(s, {kName, ForKind::vectorized}, path, out);
}

Verdict Unroll::transform(const State& s, Outcome<Result>& out) const {
  Path path;
  WEFT_TRY(locate(s, loop, path));
  out.mod =
      with_body(s.mod, path.func, replace(path, with_kind(path.loop(), ForKind::unrolled, "")));
  return std::nullopt;
}

Verdict Bind::transform(const State& s, Outcome<Result>& out) const {
  Path path;
  WEFT_TRY(locate(s, loop, path));
  const AxisInfo* axis = s.machine->axis(thread_axis);
  if (!axis) {
    Refusal r = refuse(s, "schedule.bind.axis",
                       cat("bind of ", name_of(path.loop()), " names the axis \"", thread_axis,
                           "\", which no target has"));
    r.note(cat("legal: ", quoted(names_of(s.machine->axes))));
    r.help = did_you_mean(thread_axis, names_of(s.machine->axes));
    return r;
  }
  WEFT_TRY(check_extents(s, *axis, path));
  WEFT_TRY(check_nested(s, *axis, path));
  return set_kind(s, {kName, ForKind::bound, axis}, path, out);
}

}  // namespace weft::schedule
