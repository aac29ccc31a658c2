// SPDX-License-Identifier: Apache-2.0
#include "weft/schedule/analysis.h"

#include <algorithm>

#include "weft/base/text.h"
#include "weft/ir/atomic.h"
#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/schedule/counted_box.h"
#include "weft/schedule/rebind.h"
#include "weft/schedule/spans.h"

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

/// What a writer makes while the loops around it and its reader stand.
struct Made {
  std::vector<Range> region;          // of one instance
  std::vector<const ForNode*> loops;  // that move it
  Expr when = make_bool(true);        // the instances that run
};

/// With the first `common` loops of the writer standing. False where it may make nothing, or has
/// not finished.
bool made_by(const Leaf& writer, const BufferRegion& write, std::size_t common,
             arith::Analyzer& analyzer, Made& out) {
  const auto offset = writer.loops.begin() + static_cast<std::ptrdiff_t>(common);
  if (!is_finished_under(writer, {writer.loops.begin(), offset})) return false;
  const std::vector<const ForNode*> own(offset, writer.loops.end());
  const VarMap first_of = standing(own, writer.realize->predicate);
  std::vector<const ForNode*> reduced;
  for (const ForNode* loop : without(own, first_of))
    (is_reduction_only(writer, loop) ? reduced : out.loops).push_back(loop);
  if (!bind_running(analyzer, out.loops, write.buffer)) return false;
  for (const Expr& part : conjuncts(substitute(writer.realize->predicate, first_of))) {
    if (!mentions(part, reduced)) {
      out.when = both(out.when, part);
      continue;
    }
    VarMap first;
    for (const ForNode* loop : reduced) first[loop->var.get()] = loop->min;
    const arith::Analyzer::Scope scope(analyzer);
    bind_loops(analyzer, reduced);
    if (mentions(part, out.loops) || !analyzer.prove(substitute(part, first))) return false;
  }
  out.region = bound_region(write, writer.realize);
  for (Range& r : out.region) r = substitute(r, first_of);
  return true;
}

/// Exactly what is made where `runs` holds, if that is a provable box; else of what lies within the
/// buffer.
std::optional<std::vector<Span>> spans_of(const Made& made, const Buffer& buffer, const Expr& runs,
                                          arith::Analyzer& analyzer) {
  auto out = exact_spans(made.region, made.loops, unsettled(made.when, made.loops, runs, analyzer),
                         analyzer);
  if (out || is_true(made.when)) return out;
  const Expr inner = beyond_edges(made.when, made.region, buffer, analyzer);
  return exact_spans(made.region, made.loops, unsettled(inner, made.loops, runs, analyzer),
                     analyzer);
}

/// Whether a span covers the whole axis of `buffer`.
bool is_whole_axis(const Span& span, const Expr& extent, const arith::Analyzer& analyzer) {
  return analyzer.prove(le(span.base, make_zero(span.base->dtype))) &&
         std::all_of(span.widths.begin(), span.widths.end(), [&](const Expr& width) {
           return analyzer.prove(ge(span.base + width, extent));
         });
}

/// Whether the nest, once it is through, has made the whole buffer, whoever reads it.
bool makes_whole(const Leaf& writer, const BufferRegion& write) {
  arith::Analyzer analyzer;
  Made made;
  if (!made_by(writer, write, 0, analyzer, made)) return false;
  const auto have = spans_of(made, write.buffer, make_bool(true), analyzer);
  if (!have) return false;
  for (std::size_t d = 0; d < have->size(); ++d) {
    if (!is_whole_axis((*have)[d], write.buffer->shape[d], analyzer)) return false;
  }
  return true;
}

/// The loops around both.
std::size_t common_loops(const Leaf& a, const Leaf& b) {
  std::size_t out = 0;
  while (out < a.loops.size() && out < b.loops.size() && a.loops[out] == b.loops[out]) ++out;
  return out;
}

/// Whether, wherever the loops around both stand, `write` of `writer` covers `read` of `reader`.
bool is_covered(const Leaf& writer, const BufferRegion& write, const Leaf& reader,
                const BufferRegion& read) {
  const auto offset = static_cast<std::ptrdiff_t>(common_loops(writer, reader));
  const std::vector<const ForNode*> shared(reader.loops.begin(), reader.loops.begin() + offset);
  const std::vector<const ForNode*> needed(reader.loops.begin() + offset, reader.loops.end());
  arith::Analyzer analyzer;
  bind_loops(analyzer, reader.loops);  // all of them: where the reader does not run, none is asked
  Made made;
  if (!made_by(writer, write, shared.size(), analyzer, made)) return false;
  const Expr& runs = reader.realize->predicate;
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
    return counted_cover({made.region, made.loops, made.when}, {region, needed, least}, shared,
                         read.buffer);
  };
  const auto have = spans_of(made, read.buffer, runs, analyzer);
  if (!have) return by_counting();
  const auto want = relax(region, needed, runs, analyzer);
  std::optional<std::vector<Span>> tight;
  if (!is_true(runs))
    tight = exact_spans(region, needed, unsettled(runs, needed, runs, analyzer), analyzer);
  for (std::size_t d = 0; d < want.size(); ++d) {
    const Expr& base = (*have)[d].base;
    const auto& widths = (*have)[d].widths;
    if (is_whole_axis((*have)[d], read.buffer->shape[d], analyzer))
      continue;  // wherever the read lies
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

std::string why_not_affine(const Leaf& leaf, const arith::Analyzer& analyzer, Facts* facts) {
  if (leaf.loops.empty()) return {};
  const auto why = [&](const arith::Analyzer& outer) {
    return arith::detect_iter_map(leaf.realize->iter_values, as_iters(leaf.loops),
                                  leaf.realize->predicate, arith::MapLevel::surjective, outer)
        .error;
  };
  // Whatever is around the nest, if its own loops are enough to see it.
  const bool always = facts && recall(facts, {&leaf}, {}, [&] {
                        arith::Analyzer own;
                        bind_loops(own, leaf.loops);
                        return why(own).empty();
                      });
  return always ? std::string() : why(analyzer);
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
                              const arith::Analyzer& analyzer, Facts* facts) {
  const BlockNode* block = leaf.block();
  if (!block->init) return "it has no init";
  if (auto why = why_not_affine(leaf, analyzer, facts); !why.empty())
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

Stmt outermost(const Leaf& leaf) {
  return leaf.loops.empty() ? Stmt(leaf.realize) : Stmt(leaf.loops.front());
}

bool covers_remembered(const Leaf& writer, const BufferRegion& write, const Leaf& reader,
                       const BufferRegion& read, Facts* facts) {
  const bool apart = common_loops(writer, reader) == 0;
  // Most nests are as they were when the last step asked.
  Facts::Owners nests;
  Facts::Key untouched;
  if (facts) {
    nests.stmts = {outermost(writer), outermost(reader)};
    untouched = {nests.stmts[0].get(), writer.realize, &write,
                 nests.stmts[1].get(), reader.realize, &read};
    if (facts->find(untouched)) return true;
  }
  // A nest that makes the whole buffer covers all that other nests read of it.
  const bool covered =
      (apart && recall(facts, {&writer}, {&write}, [&] { return makes_whole(writer, write); })) ||
      recall(facts, {&writer, &reader}, {&write, &read},
             [&] { return is_covered(writer, write, reader, read); });
  if (facts && covered) facts->insert(std::move(untouched), std::move(nests), true);
  return covered;
}

}  // namespace

std::string why_not_covered(const std::vector<Leaf>& scope, std::size_t consumer, Facts* facts,
                            const BufferNode* only) {
  const Leaf& reader = scope[consumer];
  for (const BufferRegion& read : reader.block()->reads) {
    if (only && read.buffer.get() != only) continue;
    std::string culprit;
    bool covered = true;
    for (std::size_t p = consumer; p-- > 0;) {
      const Leaf& writer = scope[p];
      const auto write =
          std::find_if(writer.block()->writes.begin(), writer.block()->writes.end(),
                       [&](const BufferRegion& w) { return w.buffer == read.buffer; });
      if (write == writer.block()->writes.end()) continue;
      covered = covers_remembered(writer, *write, reader, read, facts);
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

std::vector<Leaf> concerned(const std::vector<Leaf>& scope, std::size_t self,
                            const ForNode* under) {
  const auto nest_of = [](const Leaf& leaf) -> const StmtNode* {
    if (leaf.loops.empty()) return leaf.realize;
    return leaf.loops.front();
  };
  const auto meets = [](const Leaf& leaf, const std::vector<BufferRegion>& regions) {
    return std::any_of(regions.begin(), regions.end(), [&](const BufferRegion& r) {
      return reads(leaf.block(), r.buffer.get()) || writes(leaf.block(), r.buffer.get());
    });
  };
  std::size_t other = self;
  for (std::size_t i = 0; under && other == self && i < scope.size(); ++i) {
    const auto& loops = scope[i].loops;
    if (std::find(loops.begin(), loops.end(), under) != loops.end()) other = i;
  }
  const auto [first, last] = std::minmax(self, other);
  const StmtNode *const home = nest_of(scope[first]), *const end = nest_of(scope[last]);
  std::vector<Leaf> out;
  for (std::size_t i = 0; i < scope.size(); ++i) {
    const Leaf& leaf = scope[i];
    bool in = nest_of(leaf) == home || nest_of(leaf) == end;
    for (std::size_t w = 0; !in && w < scope.size(); ++w)
      in = nest_of(scope[w]) == home && meets(leaf, scope[w].block()->writes);
    const bool between = first < i && i < last;
    in = in || (between && (meets(leaf, scope[self].block()->writes) ||
                            meets(scope[self], leaf.block()->writes)));
    if (in) out.push_back(leaf);
  }
  return out;
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
