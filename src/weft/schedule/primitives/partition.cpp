// SPDX-License-Identifier: Apache-2.0
#include "weft/schedule/primitives/partition.h"

#include <algorithm>

#include "weft/base/text.h"
#include "weft/ir/build.h"
#include "weft/schedule/analysis.h"
#include "weft/schedule/primitives/loop_checks.h"
#include "weft/schedule/rebind.h"

namespace weft::schedule {
namespace {

using namespace ir;

class Rename final : public Rewriter {
 public:
  explicit Rename(const std::string& suffix) : suffix_(suffix) {}
  Block rewrite_block(const Block& block) override {
    auto out = edit(Rewriter::rewrite_block(block));
    out->name += suffix_;
    return out;
  }

 private:
  const std::string& suffix_;
};

/// A reduction of which only later steps run: it adds to what is there.
Block as_update(const Block& block) {
  auto out = edit(block);
  out->init = nullptr;
  out->reads = block->writes;
  for (const BufferRegion& r : block->reads) {
    if (!writes(block.get(), r.buffer.get())) out->reads.push_back(r);
  }
  return out;
}

/// Inits that no instance under `s` runs are left out.
Stmt without_idle_inits(const Path& around, Stmt s) {
  const Stmt before = s;
  for (const Leaf& leaf : leaves(before)) {
    if (!leaf.block()->init) continue;
    arith::Analyzer analyzer;
    bind_loops(analyzer, around.loops());
    bind_loops(analyzer, leaf.loops);
    bool runs = true;
    for (std::size_t i = 0; i < leaf.block()->iters.size(); ++i) {
      const IterVar& iter = leaf.block()->iters[i];
      if (iter.kind == IterKind::reduce)
        runs = runs && !analyzer.prove(gt(leaf.realize->iter_values[i], iter.dom.min));
    }
    if (runs) continue;
    s = replace(*find_stmt(s, leaf.realize),
                with_block(leaf.realize, as_update(leaf.realize->block)));
  }
  return s;
}

std::string lengths_text(const Factors& factors) {
  std::vector<std::string> out;
  for (const Factor& f : factors) out.push_back(f ? cat(f->value) : "None");
  return cat("[", join(out), "]");
}

/// Lengths of all parts, the rest included.
Verdict part_lengths(const State& s, const ForNode* loop, std::int64_t extent,
                     const Factors& factors, std::vector<std::int64_t>& out) {
  const auto wrong = [&](std::string found) {
    Refusal r = refuse(s, "schedule.loop_partition.lengths",
                       cat("loop_partition of ", name_of(loop), " (extent ", extent, ") by ",
                           lengths_text(factors), ": ", found),
                       loop);
    r.note(cat("legal: lengths of at least 1 that leave at least 1 for a None, at most ", extent,
               " in all"));
    r.repair(cat("sch.loop_partition(", loop->var->name, ", [",
                 std::max<std::int64_t>(extent / 2, 1), ", None])"));
    return r;
  };
  std::size_t open = npos;
  std::int64_t total = 0;
  for (std::size_t i = 0; i < factors.size(); ++i) {
    if (!factors[i]) {
      if (open != npos) return wrong("more than one length is None");
      open = i;
      out.push_back(0);
      continue;
    }
    const std::int64_t n = factors[i]->value;
    if (n < 1) return wrong(cat("the length ", n));
    if (n > extent || total + n > extent) return wrong("the lengths exceed the extent");
    total += n;
    out.push_back(n);
  }
  if (out.empty()) return wrong("there is no length");
  if (open != npos) {
    if (total == extent) return wrong("nothing is left for None");
    out[open] = extent - total;
  } else if (total < extent) {
    out.push_back(extent - total);
  }
  return std::nullopt;
}

}  // namespace

Stmt loop_part(const Path& path, const Var& var, const Expr& begin, const Expr& extent,
               const std::string& suffix) {
  const ForNode* old = path.loop();
  Stmt body = suffix.empty() ? old->body : Rename(suffix).rewrite(deep_copy(old->body));
  std::vector<IterVar> loops = as_iters(path.loops());
  loops.push_back({var, {make_zero(var->dtype), extent}, IterKind::spatial});
  body = Rebinder(loops, {{old->var.get(), begin + Expr(var)}}).rewrite(body);
  Stmt out = make_for(var, make_zero(var->dtype), extent, std::move(body), old->for_kind, old->axis,
                      old->annotations);
  return without_idle_inits(path, std::move(out));
}

Verdict LoopPartition::transform(const State& s, Outcome<Result>& out) const {
  Path path;
  WEFT_TRY(locate(s, loop, path));
  const ForNode* old = path.loop();
  WEFT_TRY(check_plain_loop(s, kName, old));
  WEFT_TRY(check_starts_at_zero(s, kName, old));
  std::int64_t extent = 0;
  if (!is_const_int(old->extent, &extent)) {
    Refusal r =
        refuse(s, "schedule.loop_partition.symbolic",
               cat("loop_partition of ", name_of(old), ", whose extent is not constant"), old);
    r.note("legal: loops of constant extent");
    r.repair(cat("sch.split(", old->var->name, ", [None, 16], tail=\"peel\") cuts symbolic loops"));
    return r;
  }
  std::vector<std::int64_t> lengths;
  WEFT_TRY(part_lengths(s, old, extent, factors, lengths));
  std::vector<Stmt> parts;
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const DType type = old->var->dtype;
    const Var var = make_var(cat(old->var->name, "_p", i), type);
    parts.push_back(loop_part(path, var, make_int(begin, type), make_int(lengths[i], type),
                              i == 0 ? "" : cat("_p", i)));
    out.result.push_back({var});
    begin += lengths[i];
  }
  out.mod = with_body(s.mod, path.func, replace(path, seq(std::move(parts))));
  return std::nullopt;
}

namespace {

/// The loops are neighbours in one sequence, in order.
Verdict check_neighbours(const State& s, const std::vector<Path>& paths) {
  for (std::size_t i = 1; i < paths.size(); ++i) {
    const Path& a = paths[i - 1];
    const Path& b = paths[i];
    bool next = a.nodes.size() == b.nodes.size() && a.nodes.size() > 1 && a.func == b.func &&
                a.nodes[a.nodes.size() - 2] == b.nodes[b.nodes.size() - 2];
    if (next) {
      const auto list = children(a.nodes[a.nodes.size() - 2]);
      const auto at = std::find(list.begin(), list.end(), a.target());
      next = at != list.end() && at + 1 != list.end() && *(at + 1) == b.target();
    }
    if (next) continue;
    Refusal r = refuse(s, "schedule.merge.neighbours",
                       cat("merge needs loop ", name_of(b.loop()), " directly after ",
                           name_of(a.loop()), " in the same body"),
                       b.loop());
    r.note(cat("found: ", name_of(a.loop()), " under ", quoted(loop_names(a.loops())), ", ",
               name_of(b.loop()), " under ", quoted(loop_names(b.loops()))));
    r.note("legal: loops that follow each other; merge the loops around them first");
    return r;
  }
  return std::nullopt;
}

/// Whether each iteration of the merged loop writes elements of its own in this leaf.
bool writes_own_elements(const Leaf& leaf, const VarNode* loop, const BufferNode* buffer) {
  for (std::size_t i = 0; i < leaf.block()->iters.size(); ++i) {
    const IterVar& iter = leaf.block()->iters[i];
    if (iter.kind != IterKind::spatial || !uses_var(leaf.realize->iter_values[i], loop)) continue;
    for (const BufferRegion& w : leaf.block()->writes) {
      if (w.buffer.get() != buffer) continue;
      for (const Range& r : w.region) {
        if (r.min.get() == iter.var.get() && is_const_int_value(r.extent, 1)) return true;
      }
    }
  }
  return false;
}

/// Why a later nest cannot run its iterations between those of an earlier one; empty: it can.
std::string why_entangled(const Leaf& a, const Leaf& b, const VarNode* loop, Facts* facts) {
  for (const BufferRegion& w : b.block()->writes) {
    const BufferNode* buffer = w.buffer.get();
    const bool both = writes(a.block(), buffer);
    if (!both && reads(a.block(), buffer))
      return cat(name_of(b.block()), " overwrites \"", buffer->name,
                 "\", which later iterations of ", name_of(a.block()), " read");
    if (both && (!is_update(b.block()) || !writes_own_elements(a, loop, buffer)))
      return cat(name_of(a.block()), " and ", name_of(b.block()), " both write \"", buffer->name,
                 "\"");
  }
  for (const BufferRegion& w : a.block()->writes) {
    if (reads(b.block(), w.buffer.get())) {
      if (auto why = why_not_covered({a, b}, 1, facts); !why.empty()) return why;
      break;
    }
  }
  return {};
}

}  // namespace

Verdict Merge::transform(const State& s, Outcome<Result>& out) const {
  if (loops.size() < 2)
    return refuse(s, "schedule.merge.loops", cat("merge got ", loops.size(), " loops"))
        .note("legal: at least two");
  std::vector<Path> paths(loops.size());
  for (std::size_t i = 0; i < loops.size(); ++i) {
    WEFT_TRY(locate(s, loops[i], paths[i]));
    WEFT_TRY(check_plain_loop(s, kName, paths[i].loop()));
    WEFT_TRY(check_starts_at_zero(s, kName, paths[i].loop()));
  }
  WEFT_TRY(check_neighbours(s, paths));
  const Path& top = paths[0];
  arith::Analyzer analyzer;
  bind_around(analyzer, top);
  const ForNode* first = top.loop();
  for (const Path& path : paths) {
    const ForNode* loop = path.loop();
    if (loop->for_kind == first->for_kind && analyzer.prove_equal(loop->extent, first->extent))
      continue;
    Refusal r = refuse(s, "schedule.merge.extent",
                       cat("merge of ", name_of(first), " and ", name_of(loop),
                           ", which differ in extent or kind"),
                       loop);
    r.note("legal: loops of one kind whose extents are provably equal");
    return r;
  }
  std::vector<IterVar> around = as_iters(top.loops());
  around.push_back({first->var, {first->min, first->extent}, IterKind::spatial});
  std::vector<Stmt> bodies;
  std::vector<std::size_t> counts;
  for (const Path& path : paths) {
    const ForNode* loop = path.loop();
    const VarMap map{{loop->var.get(), Expr(first->var)}};
    bodies.push_back(loop == first ? first->body : Rebinder(around, map).rewrite(loop->body));
    counts.push_back(leaves(bodies.back()).size());
  }
  const Stmt merged = with_body(first, seq(std::move(bodies)));
  // The parent's sequence with the loops replaced by the one.
  Stmt body = replace(top, merged);
  for (std::size_t i = 1; i < paths.size(); ++i) {
    const auto gone = find_loop(body, loops[i].var.get());
    body = remove(*gone);
  }
  const auto place = find_loop(body, first->var.get());
  const auto scope = leaves_under(*place);
  std::size_t begin = counts[0];
  for (std::size_t n = 1; n < counts.size(); begin += counts[n++]) {
    for (std::size_t b = begin; b < begin + counts[n]; ++b) {
      for (std::size_t a = 0; a < begin; ++a) {
        const std::string why = why_entangled(scope[a], scope[b], first->var.get(), s.facts.get());
        if (why.empty()) continue;
        Refusal r = refuse(s, "schedule.merge.order",
                           cat("merge would change what the loops hand to each other: ", why),
                           paths[n].loop());
        r.note("legal: loops each iteration of which takes only what the same iteration made");
        return r;
      }
    }
  }
  out.mod = with_body(s.mod, top.func, std::move(body));
  out.result = {first->var};
  return std::nullopt;
}

}  // namespace weft::schedule
