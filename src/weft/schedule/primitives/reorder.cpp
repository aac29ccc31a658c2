// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "weft/base/text.h"
#include "weft/ir/build.h"
#include "weft/schedule/analysis.h"
#include "weft/schedule/primitives/loops.h"

namespace weft::schedule {
namespace {

using namespace ir;

/// Every block under the chain must allow any order of its instances, and hand its results over
/// within one iteration of the whole chain.
Verdict check_blocks(const State& s, const Path& top) {
  const auto under = leaves(top.target());
  for (const Leaf& leaf : under) {
    for (const IterVar& iter : leaf.block()->iters) {
      if (iter.kind == IterKind::spatial || iter.kind == IterKind::reduce) continue;
      Refusal r = refuse(
          s, "schedule.reorder.iterator",
          cat("reorder cannot change the order of block ", name_of(leaf.block()),
              ", whose iterator \"", iter.var->name, "\" is neither spatial nor a reduction"),
          leaf.realize);
      r.note("legal: blocks with S and R iterators only");
      return r;
    }
    arith::Analyzer analyzer;
    bind_path(analyzer, top);
    bind_loops(analyzer, leaf.loops);
    // Loops above the chain are constants for it, so affinity within the chain is enough.
    if (auto why = why_not_affine(leaf, analyzer, s.facts.get()); !why.empty()) {
      Refusal r = refuse(s, "schedule.reorder.affine",
                         cat("reorder needs affine bindings, but those of block ",
                             name_of(leaf.block()), " are not: ", why),
                         leaf.realize);
      r.note("legal: each iterator bound to digits of loops that no other iterator uses");
      return r;
    }
  }
  for (const Leaf& leaf : under) {
    if (!leaf.block()->init || iters_of(leaf.block(), IterKind::reduce).empty()) continue;
    arith::Analyzer analyzer;
    bind_path(analyzer, top);
    bind_loops(analyzer, leaf.loops);
    if (auto why = why_repeated(leaf, top.loop(), analyzer); !why.empty()) {
      Refusal r = refuse(s, "schedule.reorder.repeated",
                         cat("reorder: the loops run through the reduction ", name_of(leaf.block()),
                             " more than once, or not provably once: ", why),
                         leaf.realize);
      r.note(
          "legal: reductions every loop around which is used completely by the iterators; "
          "decompose_reduction first");
      return r;
    }
  }
  if (under.size() < 2) return std::nullopt;
  if (auto why = why_not_pipeline(leaves_under(top), s.facts.get()); !why.empty()) {
    Refusal r = refuse(s, "schedule.reorder.not_covered",
                       cat("reorder would change what blocks hand over between iterations: ", why),
                       top.loop());
    r.note("legal: nests in which every read was written in the same iteration or before the nest");
    return r;
  }
  return std::nullopt;
}

/// A reduction's init belongs to its first step. Where several loops together make up both spatial
/// and reduction digits, another order of these loops would make another step the first.
Verdict check_first_step(const State& s, const Path& top,
                         const std::vector<const ForNode*>& chain) {
  for (const Leaf& leaf : leaves(top.target())) {
    if (!leaf.block()->init) continue;
    const auto is_mixed = [&](const ForNode* loop) {
      bool spatial = false, reduce = false;
      for (std::size_t i = 0; i < leaf.block()->iters.size(); ++i) {
        if (!uses_var(leaf.realize->iter_values[i], loop->var.get())) continue;
        (leaf.block()->iters[i].kind == IterKind::reduce ? reduce : spatial) = true;
      }
      return spatial && reduce;
    };
    std::vector<const ForNode*> before, after;
    for (const ForNode* loop : leaf.loops) {
      if (is_mixed(loop) && std::find(chain.begin(), chain.end(), loop) != chain.end())
        before.push_back(loop);
    }
    for (const ForNode* loop : chain) {
      if (is_mixed(loop)) after.push_back(loop);
    }
    if (before == after) continue;
    Refusal r = refuse(s, "schedule.reorder.first_step",
                       cat("reorder would change which step of the reduction ",
                           name_of(leaf.block()), " comes first"),
                       leaf.realize);
    r.note(cat("loops that feed spatial and reduction iterators together: ",
               quoted(loop_names(before))));
    r.note("legal: orders that keep these loops as they are; decompose_reduction first");
    return r;
  }
  return std::nullopt;
}

}  // namespace

Verdict Reorder::transform(const State& s, Outcome<Result>& out) const {
  if (loops.empty())
    return refuse(s, "schedule.reorder.loops", cat("reorder got ", loops.size(), " loops"))
        .note("legal: at least one");
  std::vector<Path> paths(loops.size());
  std::size_t deepest = 0, highest = 0;
  for (std::size_t i = 0; i < loops.size(); ++i) {
    WEFT_TRY(locate(s, loops[i], paths[i]));
    for (std::size_t j = 0; j < i; ++j) {
      if (!(loops[i] == loops[j])) continue;
      return refuse(s, "schedule.reorder.twice",
                    cat("reorder got loop ", name_of(paths[i].loop()), " twice"), paths[i].loop())
          .note("legal: each loop once");
    }
    if (paths[i].nodes.size() > paths[deepest].nodes.size()) deepest = i;
    if (paths[i].nodes.size() < paths[highest].nodes.size()) highest = i;
  }
  const Path& bottom = paths[deepest];
  const std::size_t first = paths[highest].nodes.size() - 1;
  // Positions of the listed loops in the chain.
  std::vector<std::size_t> positions;
  for (std::size_t i = first; i < bottom.nodes.size(); ++i) {
    const auto* loop = as<ForNode>(bottom.nodes[i]);
    if (!loop) {
      Refusal r =
          refuse(s, "schedule.reorder.chain",
                 cat("reorder needs loops of one chain, but ", name_of(paths[highest].loop()),
                     " and ", name_of(bottom.loop()), " are not perfectly nested"),
                 bottom.loop());
      r.note(cat("the nest of ", name_of(bottom.loop()),
                 ", outermost first: ", quoted(loop_names(bottom.loops()))));
      return r;
    }
    const bool listed = std::any_of(loops.begin(), loops.end(),
                                    [&](const LoopRef& l) { return l.var == loop->var; });
    if (listed) positions.push_back(i);
  }
  if (positions.size() != loops.size()) {
    const auto stray = std::find_if(paths.begin(), paths.end(), [&](const Path& p) {
      return std::none_of(positions.begin(), positions.end(),
                          [&](std::size_t i) { return bottom.nodes[i] == p.target(); });
    });
    auto names = loop_names(bottom.loops());
    names.push_back(bottom.loop()->var->name);
    Refusal r = refuse(s, "schedule.reorder.chain",
                       cat("reorder needs loops of one chain, but ", name_of(stray->loop()),
                           " is not around ", name_of(bottom.loop())),
                       stray->loop());
    r.note(cat("the chain of ", name_of(bottom.loop()), ", outermost first: ", quoted(names)));
    return r;
  }
  std::vector<const ForNode*> chain;
  for (std::size_t i = first; i < bottom.nodes.size(); ++i)
    chain.push_back(as<ForNode>(bottom.nodes[i]));
  for (std::size_t k = 0; k < loops.size(); ++k) {
    const auto it = std::find_if(paths.begin(), paths.end(),
                                 [&](const Path& p) { return p.loop()->var == loops[k].var; });
    chain[positions[k] - first] = it->loop();
  }
  for (std::size_t i = 0; i < chain.size(); ++i) {
    for (std::size_t j = i + 1; j < chain.size(); ++j) {
      if (!uses_var(chain[i]->extent, chain[j]->var.get()) &&
          !uses_var(chain[i]->min, chain[j]->var.get()))
        continue;
      Refusal r = refuse(s, "schedule.reorder.dependent",
                         cat("reorder cannot put ", name_of(chain[i]), " outside ",
                             name_of(chain[j]), ", because its range depends on it"),
                         chain[i]);
      r.note(cat("legal: orders with ", name_of(chain[j]), " outside ", name_of(chain[i])));
      return r;
    }
  }
  WEFT_TRY(check_blocks(s, paths[highest]));
  WEFT_TRY(check_first_step(s, paths[highest], chain));
  Stmt body = bottom.loop()->body;
  for (std::size_t i = chain.size(); i-- > 0;) body = with_body(chain[i], std::move(body));
  out.mod = with_body(s.mod, bottom.func, replace(bottom, std::move(body), first));
  return std::nullopt;
}

}  // namespace weft::schedule
