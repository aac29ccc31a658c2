// SPDX-License-Identifier: Apache-2.0
#include "weft/schedule/analysis.h"

#include <algorithm>

#include "weft/base/hash.h"
#include "weft/base/text.h"
#include "weft/ir/atomic.h"
#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/schedule/counted_box.h"
#include "weft/schedule/rebind.h"

namespace weft::schedule {
namespace {

using namespace ir;

bool same_region(const std::vector<Range>& a, const std::vector<Range>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!same_expr(a[i].min, b[i].min) || !same_expr(a[i].extent, b[i].extent)) return false;
  }
  return true;
}

/// "R" iterators that index an output, or null.
const VarNode* reduce_iter_in_output(const BlockNode* block) {
  const auto reduce = iters_of(block, IterKind::reduce);
  if (reduce.empty()) return nullptr;
  for (const BufferRegion& w : block->writes) {
    for (const Range& r : w.region) {
      for (const VarNode* v : reduce) {
        if (uses_var(r.min, v) || uses_var(r.extent, v)) return v;
      }
    }
  }
  return nullptr;
}

std::string other_writer(const std::vector<Leaf>& scope, const BlockNode* block) {
  for (const BufferRegion& w : block->writes) {
    for (const Leaf& leaf : scope) {
      if (leaf.block() != block && writes(leaf.block(), w.buffer.get())) {
        return cat("it is not the only writer of \"", w.buffer->name, "\": ", name_of(leaf.block()),
                   " writes it too");
      }
    }
  }
  return {};
}

/// The product of a fused mark's digits; a predicate may have narrowed the mark's own extent, or
/// given it one that exceeds this.
Expr full_extent(const arith::IterMark& mark, const arith::Analyzer& analyzer) {
  Expr full = make_const(1, mark.extent->dtype);
  for (const arith::IterSplit& part : mark.source->splits) full = full * part.extent;
  return analyzer.simplify(full);
}

bool is_narrowed(const arith::IterMark& mark, const arith::Analyzer& analyzer) {
  return !mark.var && !analyzer.prove_equal(full_extent(mark, analyzer), mark.extent);
}

bool is_whole(const arith::IterSplit& split) {
  return is_const_int_value(split.lower_factor, 1) && same_expr(split.extent, split.mark->extent);
}

/// At least as many values as a split takes; constant where that is possible.
Expr upper_width(const arith::IterSplit& split, const arith::Analyzer& analyzer) {
  if (!is_narrowed(*split.mark, analyzer)) return split.extent;
  return is_whole(split) && is_const_int(split.extent) ? split.extent
                                                       : full_extent(*split.mark, analyzer);
}

/// Marks among the splits that a predicate has narrowed.
void count_narrowed(const arith::IterSum& sum, const arith::Analyzer& analyzer,
                    std::unordered_set<const void*>& out) {
  for (const arith::IterSplit& split : sum.splits) {
    if (split.mark->var) continue;
    if (is_narrowed(*split.mark, analyzer)) out.insert(split.mark.get());
    count_narrowed(*split.mark->source, analyzer, out);
  }
}

bool is_true(const Expr& e) { return is_const_int_value(e, 1); }

arith::IterMapResult detect(const std::vector<Range>& region,
                            const std::vector<const ForNode*>& loops, const Expr& predicate,
                            arith::MapLevel level, const arith::Analyzer& analyzer) {
  Exprs mins;
  for (const Range& r : region) mins.push_back(r.min);
  return arith::detect_iter_map(mins, as_iters(loops), predicate, level, analyzer);
}

/// The terms of a predicate that matter to a region: those on loops that do not occur in it only
/// have to be satisfiable. False when that is not provable.
bool relevant_conditions(const std::vector<Range>& region, const std::vector<const ForNode*>& loops,
                         const Expr& predicate, const arith::Analyzer& analyzer,
                         std::vector<Expr>& out) {
  if (!predicate) return true;
  for (const Expr& part : conjuncts(predicate)) {
    if (analyzer.prove(part)) continue;
    bool shared = false;
    VarMap first;
    for (const ForNode* loop : loops) {
      if (!uses_var(part, loop->var.get())) continue;
      first[loop->var.get()] = loop->min;
      for (const Range& r : region) shared |= uses_var(r.min, loop->var.get());
    }
    if (shared || first.empty()) {
      out.push_back(part);
    } else if (!analyzer.prove(substitute(part, first))) {
      return false;
    }
  }
  return true;
}

std::optional<std::vector<Span>> digit_spans(const std::vector<Range>& region,
                                             const std::vector<const ForNode*>& loops,
                                             const std::vector<Expr>& conditions,
                                             const arith::Analyzer& analyzer) {
  Expr condition = make_bool(true);
  for (const Expr& part : conditions) condition = both(condition, part);
  auto map = detect(region, loops, condition, arith::MapLevel::none, analyzer);
  if (!map.ok()) return std::nullopt;
  std::vector<Span> out;
  std::unordered_set<const void*> narrowed;
  for (std::size_t i = 0; i < region.size(); ++i) {
    const auto& sum = map.indices[i];
    count_narrowed(sum, analyzer, narrowed);
    Span span{sum.base, {region[i].extent}};
    // From the finest digit upward: no step may leap over what is covered so far.
    for (std::size_t k = sum.splits.size(); k-- > 0;) {
      const arith::IterSplit& split = sum.splits[k];
      if (!analyzer.prove(ge(split.scale, make_const(1, split.scale->dtype)))) return std::nullopt;
      for (const Expr& width : span.widths) {
        if (!analyzer.prove(le(split.scale, width))) return std::nullopt;
      }
      std::vector<Expr> extents = {split.extent};
      if (is_narrowed(*split.mark, analyzer)) {
        if (!is_whole(split)) return std::nullopt;
        extents.push_back(full_extent(*split.mark, analyzer));
      }
      std::vector<Expr> widths;
      for (const Expr& width : span.widths) {
        for (const Expr& extent : extents)
          widths.push_back(analyzer.simplify(width + (extent - 1) * split.scale));
      }
      span.widths = std::move(widths);
    }
    out.push_back(std::move(span));
  }
  // Every condition must have shown up as a narrowed index; otherwise it hides instances we cannot
  // place.
  if (narrowed.size() < conditions.size()) return std::nullopt;
  return out;
}

std::optional<std::vector<Span>> exact_spans(const std::vector<Range>& region,
                                             const std::vector<const ForNode*>& loops,
                                             const Expr& predicate,
                                             const arith::Analyzer& analyzer) {
  std::vector<Expr> conditions;
  if (!relevant_conditions(region, loops, predicate, analyzer, conditions)) return std::nullopt;
  auto out = digit_spans(region, loops, conditions, analyzer);
  return out || conditions.empty() ? out : counted_box(region, loops, conditions, analyzer);
}

std::vector<const ForNode*> without(std::vector<const ForNode*> loops, const VarMap& gone) {
  std::erase_if(loops, [&](const ForNode* loop) { return gone.count(loop->var.get()) > 0; });
  return loops;
}

/// A reduction is not finished inside its own loops.
bool is_finished_under(const Leaf& writer, const std::vector<const ForNode*>& loops) {
  for (std::size_t i = 0; i < writer.block()->iters.size(); ++i) {
    if (writer.block()->iters[i].kind != IterKind::reduce) continue;
    for (const ForNode* loop : loops) {
      if (uses_var(writer.realize->iter_values[i], loop->var.get())) return false;
    }
  }
  return true;
}

/// A loop of the reduction alone. Its block is one unit here: whatever the loop's extent, outputs
/// with an init are written, and those without are read as well, so that another block writes them.
bool is_reduction_only(const Leaf& leaf, const ForNode* loop) {
  bool used = false;
  for (std::size_t i = 0; i < leaf.block()->iters.size(); ++i) {
    if (!uses_var(leaf.realize->iter_values[i], loop->var.get())) continue;
    if (leaf.block()->iters[i].kind != IterKind::reduce) return false;
    used = true;
  }
  return used;
}

/// Binds the loops; false when one may have no iteration. A loop over an axis of `buffer` has one
/// wherever the buffer has an element.
bool bind_running(arith::Analyzer& analyzer, const std::vector<const ForNode*>& loops,
                  const Buffer& buffer = nullptr) {
  auto is_axis = [&](const Expr& extent) {
    return buffer && std::any_of(buffer->shape.begin(), buffer->shape.end(),
                                 [&](const Expr& n) { return analyzer.prove_equal(extent, n); });
  };
  for (const ForNode* loop : loops) {
    if (!analyzer.prove(ge(loop->extent, make_const(1, loop->extent->dtype))) &&
        !is_axis(loop->extent))
      return false;
    analyzer.bind(loop->var, Range{loop->min, loop->extent});
  }
  return true;
}

bool mentions(const Expr& e, const std::vector<const ForNode*>& loops) {
  return std::any_of(loops.begin(), loops.end(),
                     [&](const ForNode* loop) { return uses_var(e, loop->var.get()); });
}

/// The parts of a predicate that are not settled once `given` holds: those without any of `own`
/// loops are the same for all iterations of these, and `given` may imply them.
Expr unsettled(const Expr& predicate, const std::vector<const ForNode*>& own, const Expr& given,
               arith::Analyzer& analyzer) {
  Expr out = make_bool(true);
  for (const Expr& part : conjuncts(predicate)) {
    const Expr least = analyzer.simplify(part);  // i * 8 + k < 40 with k < 8 is i < 5
    if (!mentions(least, own)) {
      const arith::Analyzer::Constraint scope(analyzer, given);
      if (analyzer.prove(least)) continue;
    }
    out = both(out, part);
  }
  return out;
}

/// The parts of a predicate that may be false although `region` lies within the buffer: those that
/// only keep it from reaching over an edge hide nothing that anybody reads.
Expr beyond_edges(const Expr& predicate, const std::vector<Range>& region, const Buffer& buffer,
                  arith::Analyzer& analyzer) {
  Expr within = make_bool(true), out = make_bool(true);
  for (std::size_t d = 0; d < region.size(); ++d)
    within = both(within, both(ge(region[d].min, make_zero(region[d].min->dtype)),
                               lt(region[d].min, buffer->shape[d])));
  for (const Expr& part : conjuncts(predicate)) {
    const arith::Analyzer::Constraint scope(analyzer, within);
    if (!analyzer.prove(part)) out = both(out, part);
  }
  return out;
}

/// Whether, wherever the loops around both stand, `write` of `writer` covers `read` of `reader`.
bool is_covered(const Leaf& writer, const BufferRegion& write, const Leaf& reader,
                const BufferRegion& read) {
  std::size_t common = 0;
  while (common < writer.loops.size() && common < reader.loops.size() &&
         writer.loops[common] == reader.loops[common]) {
    ++common;
  }
  const auto offset = static_cast<std::ptrdiff_t>(common);
  const std::vector<const ForNode*> shared(reader.loops.begin(), reader.loops.begin() + offset);
  if (!is_finished_under(writer, shared)) return false;
  const std::vector<const ForNode*> own(writer.loops.begin() + offset, writer.loops.end());
  const VarMap first_of = standing(own, writer.realize->predicate);
  std::vector<const ForNode*> written, reduced;
  for (const ForNode* loop : without(own, first_of))
    (is_reduction_only(writer, loop) ? reduced : written).push_back(loop);
  const std::vector<const ForNode*> needed(reader.loops.begin() + offset, reader.loops.end());
  arith::Analyzer analyzer;
  bind_loops(analyzer, reader.loops);  // all of them: where the reader does not run, none is asked
  if (!bind_running(analyzer, written, read.buffer)) return false;
  Expr when = make_bool(true);
  for (const Expr& part : conjuncts(substitute(writer.realize->predicate, first_of))) {
    if (!mentions(part, reduced)) {
      when = both(when, part);
      continue;
    }
    VarMap first;
    for (const ForNode* loop : reduced) first[loop->var.get()] = loop->min;
    const arith::Analyzer::Scope scope(analyzer);
    bind_loops(analyzer, reduced);
    if (mentions(part, written) || !analyzer.prove(substitute(part, first))) return false;
  }
  const Expr& runs = reader.realize->predicate;
  auto made = bound_region(write, writer.realize);
  for (Range& r : made) r = substitute(r, first_of);
  const auto region = bound_region(read, reader.realize);
  const auto by_counting = [&] {
    // A condition on loops that the region does not name is let go: more is read then.
    std::vector<const ForNode*> silent;
    for (const ForNode* loop : reader.loops) {
      if (std::none_of(region.begin(), region.end(),
                       [&](const Range& r) { return uses_var(r.min, loop->var.get()); }))
        silent.push_back(loop);
    }
    Expr least = make_bool(true);
    for (const Expr& part : conjuncts(runs)) {
      if (!mentions(part, silent)) least = both(least, part);
    }
    return counted_cover({made, written, when}, {region, needed, least}, shared, read.buffer);
  };
  auto have = exact_spans(made, written, unsettled(when, written, runs, analyzer), analyzer);
  if (!have && !is_true(when)) {  // what is written within the buffer, then
    const Expr inner = beyond_edges(when, made, read.buffer, analyzer);
    have = exact_spans(made, written, unsettled(inner, written, runs, analyzer), analyzer);
  }
  if (!have) return by_counting();
  const auto want = relax(region, needed, runs, analyzer);
  std::optional<std::vector<Span>> tight;
  if (!is_true(runs))
    tight = exact_spans(region, needed, unsettled(runs, needed, runs, analyzer), analyzer);
  for (std::size_t d = 0; d < want.size(); ++d) {
    const Expr& base = (*have)[d].base;
    const auto& widths = (*have)[d].widths;
    const bool whole = analyzer.prove(le(base, make_zero(base->dtype))) &&
                       std::all_of(widths.begin(), widths.end(), [&](const Expr& width) {
                         return analyzer.prove(ge(base + width, read.buffer->shape[d]));
                       });
    if (whole) continue;  // wherever the read lies
    if (!want[d].min || !want[d].extent) return by_counting();
    if (!analyzer.prove(le(base, want[d].min)) && !analyzer.prove(le(base, make_zero(base->dtype))))
      return by_counting();
    // What is read ends at the smallest of these; what is written, at the smallest of its own.
    std::vector<Expr> ends = {want[d].min + want[d].extent, read.buffer->shape[d]};
    if (tight) {
      for (const Expr& width : (*tight)[d].widths) ends.push_back((*tight)[d].base + width);
    }
    for (const Expr& width : widths) {
      const Expr end = base + width;
      const bool reached = std::any_of(ends.begin(), ends.end(),
                                       [&](const Expr& e) { return analyzer.prove(ge(end, e)); });
      if (!reached) return by_counting();
    }
  }
  return true;
}

}  // namespace

VarMap standing(const std::vector<const ForNode*>& loops, const Expr& predicate) {
  VarMap out;
  for (const ForNode* loop : loops) {
    if (is_const_int_value(loop->extent, 1)) out[loop->var.get()] = loop->min;
  }
  if (is_true(predicate)) return out;
  for (const Expr& part : conjuncts(predicate)) {
    const auto* bound = as<BinaryNode>(part);
    if (!bound || (part->kind != ExprKind::lt && part->kind != ExprKind::le)) continue;
    const Expr fails = part->kind == ExprKind::lt ? ge(bound->a, bound->b) : gt(bound->a, bound->b);
    for (const ForNode* loop : loops) {
      if (!is_const_int(loop->extent) || out.count(loop->var.get()) ||
          !uses_var(part, loop->var.get()))
        continue;
      arith::Analyzer later;
      bind_loops(later, loops);
      later.bind(loop->var, Range{loop->min + 1, loop->extent - 1});
      if (later.prove(fails)) out[loop->var.get()] = loop->min;
    }
  }
  return out;
}

void bind_loops(arith::Analyzer& analyzer, const std::vector<const ForNode*>& loops) {
  for (const ForNode* loop : loops) analyzer.bind(loop->var, Range{loop->min, loop->extent});
}

void bind_iters(arith::Analyzer& analyzer, const BlockNode* block) {
  for (const IterVar& iter : block->iters) analyzer.bind(iter.var, iter.dom);
}

void bind_path(arith::Analyzer& analyzer, const Path& path) {
  for (const Stmt& s : path.nodes) {
    if (const auto* loop = as<ForNode>(s)) analyzer.bind(loop->var, Range{loop->min, loop->extent});
    if (const auto* realize = as<BlockRealizeNode>(s)) bind_iters(analyzer, realize->block.get());
  }
}

void bind_around(arith::Analyzer& analyzer, const Path& path) {
  bind_path(analyzer, path.prefix(path.nodes.size() - 2));
}

std::vector<IterVar> as_iters(const std::vector<const ForNode*>& loops) {
  std::vector<IterVar> out;
  out.reserve(loops.size());
  for (const ForNode* loop : loops)
    out.push_back({loop->var, {loop->min, loop->extent}, IterKind::spatial});
  return out;
}

std::string why_not_affine(const Leaf& leaf, const arith::Analyzer& analyzer) {
  if (leaf.loops.empty()) return {};
  auto map = arith::detect_iter_map(leaf.realize->iter_values, as_iters(leaf.loops),
                                    leaf.realize->predicate, arith::MapLevel::surjective, analyzer);
  if (!map.ok()) return map.error;
  return {};
}

bool covers_domain(const Leaf& leaf, const arith::Analyzer& analyzer) {
  if (is_true(leaf.realize->predicate) && leaf.block()->iters.empty()) return true;
  arith::Analyzer around;  // a loop without an iteration covers an empty domain only
  for (const IterVar& iter : leaf.block()->iters) around.bind(iter.var, iter.dom);
  if (!bind_running(around, leaf.loops)) return false;
  std::vector<Range> points;
  for (const Expr& v : leaf.realize->iter_values) points.push_back({v, make_const(1, v->dtype)});
  auto reached = relax_exact(points, leaf.loops, leaf.realize->predicate, analyzer);
  if (!reached) return false;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Range& dom = leaf.block()->iters[i].dom;
    const Range& got = (*reached)[i];
    if (!analyzer.prove(le(got.min, dom.min))) return false;
    if (!analyzer.prove(ge(got.min + got.extent, dom.min + dom.extent))) return false;
  }
  return true;
}

std::string why_not_complete(const std::vector<Leaf>& scope, const BlockNode* block) {
  for (const IterVar& iter : block->iters) {
    if (iter.kind != IterKind::spatial) {
      return cat("its iterator \"", iter.var->name, "\" is not spatial");
    }
  }
  if (updates_atomically(block->body)) return "it adds to what its output held before";
  if (auto why = other_writer(scope, block); !why.empty()) return why;
  for (const BufferRegion& w : block->writes) {
    if (reads(block, w.buffer.get()))
      return cat("it reads \"", w.buffer->name, "\", which it writes");
  }
  return {};
}

std::string why_not_reduction(const std::vector<Leaf>& scope, const Leaf& leaf,
                              const arith::Analyzer& analyzer) {
  const BlockNode* block = leaf.block();
  if (!block->init) return "it has no init";
  if (auto why = why_not_affine(leaf, analyzer); !why.empty())
    return cat("its bindings are not affine: ", why);
  for (const IterVar& iter : block->iters) {
    if (iter.kind != IterKind::spatial && iter.kind != IterKind::reduce) {
      return cat("its iterator \"", iter.var->name, "\" is neither spatial nor a reduction");
    }
  }
  if (auto why = other_writer(scope, block); !why.empty()) return why;
  if (const VarNode* v = reduce_iter_in_output(block)) {
    return cat("its reduction iterator \"", v->name, "\" indexes the output");
  }
  return {};
}

std::string why_not_additions(const std::vector<Leaf>& scope, const BlockNode* block) {
  if (block->init) return "it has an init, which must come before every addition";
  bool only = true;
  for_each_stmt(block->body, [&](const Stmt& s) {
    const auto* store = as<StoreNode>(s);
    only = only && (!store || as_atomic(store));
  });
  if (!only) return "it also stores without adding";
  for (const BufferRegion& w : block->writes) {
    if (!updates_atomically(block->body, w.buffer.get()))
      return cat("it writes \"", w.buffer->name, "\" without adding");
    for (const Leaf& leaf : scope) {
      if (reads(leaf.block(), w.buffer.get()) ||
          (leaf.block() != block && writes(leaf.block(), w.buffer.get())))
        return cat("\"", w.buffer->name, "\", which it adds to, is used by block \"",
                   leaf.block()->name, "\" under the loop");
    }
  }
  return {};
}

bool is_update(const BlockNode* block) {
  if (block->init || block->writes.empty()) return false;
  for (const IterVar& iter : block->iters) {
    if (iter.kind != IterKind::spatial && iter.kind != IterKind::reduce) return false;
  }
  for (const BufferRegion& w : block->writes) {
    for (const BufferRegion& r : block->reads) {
      if (r.buffer == w.buffer && !same_region(r.region, w.region)) return false;
    }
  }
  return reduce_iter_in_output(block) == nullptr;
}

std::string why_repeated(const Leaf& leaf, const ForNode* top, const arith::Analyzer& analyzer) {
  const std::vector<const ForNode*> loops(std::find(leaf.loops.begin(), leaf.loops.end(), top),
                                          leaf.loops.end());
  const Expr& predicate = leaf.realize->predicate;
  std::string error = arith::detect_iter_map(leaf.realize->iter_values, as_iters(loops), predicate,
                                             arith::MapLevel::bijective, analyzer)
                          .error;
  const VarMap first = error.empty() ? VarMap() : standing(leaf.loops, predicate);
  if (first.empty()) return error;
  Exprs values;
  for (const Expr& v : leaf.realize->iter_values) values.push_back(substitute(v, first));
  return arith::detect_iter_map(values, as_iters(without(loops, first)),
                                analyzer.simplify(substitute(predicate, first)),
                                arith::MapLevel::bijective, analyzer)
      .error;
}

std::unordered_set<const VarNode*> iters_of(const BlockNode* block, IterKind kind) {
  std::unordered_set<const VarNode*> out;
  for (const IterVar& iter : block->iters) {
    if (iter.kind == kind) out.insert(iter.var.get());
  }
  return out;
}

bool reads(const BlockNode* block, const BufferNode* buffer) {
  return std::any_of(block->reads.begin(), block->reads.end(),
                     [&](const BufferRegion& r) { return r.buffer.get() == buffer; });
}

bool writes(const BlockNode* block, const BufferNode* buffer) {
  return std::any_of(block->writes.begin(), block->writes.end(),
                     [&](const BufferRegion& r) { return r.buffer.get() == buffer; });
}

std::vector<Range> bound_region(const BufferRegion& region, const BlockRealizeNode* realize) {
  VarMap map;
  for (std::size_t i = 0; i < realize->iter_values.size(); ++i) {
    map[realize->block->iters[i].var.get()] = realize->iter_values[i];
  }
  std::vector<Range> out;
  out.reserve(region.region.size());
  for (const Range& r : region.region) out.push_back(map.empty() ? r : substitute(r, map));
  return out;
}

std::vector<Range> relax(const std::vector<Range>& region, const std::vector<const ForNode*>& loops,
                         const Expr& predicate, const arith::Analyzer& analyzer) {
  if (loops.empty()) return region;
  if (predicate && !is_true(predicate)) {
    auto map = detect(region, loops, predicate, arith::MapLevel::none, analyzer);
    std::vector<Range> out;
    for (std::size_t i = 0; i < map.indices.size(); ++i) {
      Expr width = region[i].extent;
      for (const arith::IterSplit& split : map.indices[i].splits) {
        std::int64_t scale = 0;
        if (!is_const_int(split.scale, &scale) || scale <= 0) break;
        width = width + (upper_width(split, analyzer) - 1) * scale;
        if (&split == &map.indices[i].splits.back())
          out.push_back({map.indices[i].base, analyzer.simplify(width)});
      }
      if (map.indices[i].splits.empty()) out.push_back({map.indices[i].base, region[i].extent});
    }
    if (map.ok() && out.size() == region.size()) return out;
  }
  arith::DomainMap domain;
  for (const ForNode* loop : loops) domain[loop->var.get()] = Range{loop->min, loop->extent};
  return arith::relax_region(region, domain, analyzer);
}

std::optional<std::vector<Range>> relax_exact(const std::vector<Range>& region,
                                              const std::vector<const ForNode*>& loops,
                                              const Expr& predicate,
                                              const arith::Analyzer& analyzer) {
  auto spans = exact_spans(region, loops, predicate, analyzer);
  if (!spans) return std::nullopt;
  std::vector<Range> out;
  for (Span& span : *spans) {
    Expr width = span.widths[0];
    for (std::size_t i = 1; i < span.widths.size(); ++i) width = min(width, span.widths[i]);
    out.push_back({span.base, analyzer.simplify(width)});
  }
  return out;
}

std::vector<Range> clip(std::vector<Range> region, const Buffer& buffer,
                        const arith::Analyzer& analyzer) {
  for (std::size_t i = 0; i < region.size(); ++i) {
    Range& r = region[i];
    const Expr end = r.min + r.extent;
    const bool low = analyzer.prove_at_least(r.min, 0);
    const bool high = analyzer.prove(le(end, buffer->shape[i]));
    if (low && high) continue;
    const Expr from = low ? r.min : analyzer.simplify(max(r.min, make_zero(r.min->dtype)));
    const Expr to = high ? end : analyzer.simplify(min(end, buffer->shape[i]));
    r = {from, analyzer.simplify(to - from)};
  }
  return region;
}

std::vector<const ForNode*> loops_below(const Leaf& leaf, const ForNode* loop) {
  auto it = std::find(leaf.loops.begin(), leaf.loops.end(), loop);
  if (it == leaf.loops.end()) return leaf.loops;
  return {it + 1, leaf.loops.end()};
}

namespace {

constexpr std::size_t kMostFacts = 4096;

Facts::Key key_of(const Leaf& writer, const BufferRegion& write, const Leaf& reader,
                  const BufferRegion& read) {
  Facts::Key key;
  for (const Leaf* leaf : {&writer, &reader}) {
    key.parts.push_back(leaf->realize);
    key.stmts.emplace_back(leaf->realize);
    for (const ForNode* loop : leaf->loops) {
      for (const void* part :
           {static_cast<const void*>(loop->var.get()), static_cast<const void*>(loop->min.get()),
            static_cast<const void*>(loop->extent.get())})
        key.parts.push_back(part);
      key.exprs.push_back(loop->var);
      key.exprs.push_back(loop->min);
      key.exprs.push_back(loop->extent);
    }
    key.parts.push_back(nullptr);
  }
  key.parts.push_back(&write);  // inside the blocks that the realizes keep
  key.parts.push_back(&read);
  return key;
}

}  // namespace

std::uint64_t Facts::Key::hash() const {
  std::uint64_t h = parts.size();
  for (const void* p : parts) h = hash_combine(h, reinterpret_cast<std::uintptr_t>(p));
  return h;
}

std::optional<bool> Facts::find(const Key& key) const {
  std::lock_guard lock(mutex_);
  auto found = entries_.find(key.hash());
  if (found == entries_.end()) return std::nullopt;
  for (const Entry& e : found->second) {
    if (e.key.parts == key.parts) return e.value;
  }
  return std::nullopt;
}

void Facts::insert(Key key, bool value) {
  std::lock_guard lock(mutex_);
  if (count_++ >= kMostFacts) {
    entries_.clear();
    count_ = 1;
  }
  entries_[key.hash()].push_back({std::move(key), value});
}

std::string why_not_covered(const std::vector<Leaf>& scope, std::size_t consumer, Facts* facts) {
  const Leaf& reader = scope[consumer];
  for (const BufferRegion& read : reader.block()->reads) {
    std::string culprit;
    bool covered = true;
    for (std::size_t p = consumer; p-- > 0;) {
      const Leaf& writer = scope[p];
      const auto write =
          std::find_if(writer.block()->writes.begin(), writer.block()->writes.end(),
                       [&](const BufferRegion& w) { return w.buffer == read.buffer; });
      if (write == writer.block()->writes.end()) continue;
      Facts::Key key;
      std::optional<bool> known;
      if (facts) {
        key = key_of(writer, *write, reader, read);
        known = facts->find(key);
      }
      covered = known ? *known : is_covered(writer, *write, reader, read);
      if (facts && !known) facts->insert(std::move(key), covered);
      culprit = covered ? "" : writer.block()->name;
      if (covered) break;
    }
    if (!covered) {
      return cat(name_of(reader.block()), " reads more of \"", read.buffer->name, "\" than \"",
                 culprit, "\" provably finishes before it");
    }
  }
  return {};
}

std::string why_not_pipeline(const std::vector<Leaf>& scope, Facts* facts) {
  for (std::size_t i = 0; i < scope.size(); ++i) {
    if (auto why = why_not_covered(scope, i, facts); !why.empty()) return why;
    for (const BufferRegion& w : scope[i].block()->writes) {
      for (std::size_t j = 0; j < i; ++j) {
        if (reads(scope[j].block(), w.buffer.get()) && scope[j].block() != scope[i].block() &&
            !writes(scope[j].block(), w.buffer.get())) {
          return cat(name_of(scope[i].block()), " overwrites \"", w.buffer->name, "\" after ",
                     name_of(scope[j].block()), " has read it");
        }
      }
    }
  }
  return {};
}

std::size_t index_of(const std::vector<Leaf>& scope, const BlockNode* block) {
  for (std::size_t i = 0; i < scope.size(); ++i) {
    if (scope[i].block() == block) return i;
  }
  return npos;
}

std::vector<std::size_t> producers_of(const std::vector<Leaf>& scope, std::size_t i) {
  std::vector<std::size_t> out;
  for (std::size_t p = 0; p < i; ++p) {
    for (const BufferRegion& w : scope[p].block()->writes) {
      if (reads(scope[i].block(), w.buffer.get())) {
        out.push_back(p);
        break;
      }
    }
  }
  return out;
}

std::vector<std::size_t> consumers_of(const std::vector<Leaf>& scope, std::size_t i) {
  std::vector<std::size_t> out;
  for (std::size_t c = i + 1; c < scope.size(); ++c) {
    for (const BufferRegion& w : scope[i].block()->writes) {
      if (reads(scope[c].block(), w.buffer.get())) {
        out.push_back(c);
        break;
      }
    }
  }
  return out;
}

}  // namespace weft::schedule
