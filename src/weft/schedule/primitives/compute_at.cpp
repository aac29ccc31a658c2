// SPDX-License-Identifier: Apache-2.0
#include "weft/schedule/primitives/compute_at.h"

#include <algorithm>

#include "weft/base/text.h"
#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/schedule/analysis.h"
#include "weft/schedule/rebind.h"

namespace weft::schedule {
namespace {

using namespace ir;

enum class Direction : std::uint8_t { to_consumers, to_producers };

/// One move: what is asked, and what the checks have found so far.
struct Move {
  const State& s;
  std::string_view step;
  Direction direction;
  bool preserve_unit_loops;
  std::int64_t index;
  Path block{}, loop{};
  std::vector<Leaf> scope{};
  std::size_t self = npos;              // the block among the leaves
  std::vector<std::size_t> partners{};  // consumers (producers) that it moves to
  std::string slug(std::string_view reason) const { return cat("schedule.", step, ".", reason); }
  const Leaf& leaf() const { return scope[self]; }
  std::string name() const { return name_of(leaf().block()); }
  bool forward() const { return direction == Direction::to_consumers; }
};

bool is_under(const Leaf& leaf, const ForNode* loop) {
  return std::find(leaf.loops.begin(), leaf.loops.end(), loop) != leaf.loops.end();
}

std::string names_of(const Move& m, const std::vector<std::size_t>& which) {
  std::vector<std::string> out;
  for (std::size_t i : which) out.push_back(m.scope[i].block()->name);
  return quoted(out);
}

/// Loops that all partners stand in, for the note on legal choices.
std::string legal_loops(const Move& m) {
  if (m.partners.empty()) return "none";
  std::vector<const ForNode*> legal;
  for (const ForNode* loop : m.scope[m.partners[0]].loops) {
    const bool all = std::all_of(m.partners.begin(), m.partners.end(),
                                 [&](std::size_t i) { return is_under(m.scope[i], loop); });
    if (all && !is_under(m.leaf(), loop)) legal.push_back(loop);
  }
  return cat(quoted(loop_names(legal)), " around ", names_of(m, m.partners));
}

Verdict check_places(Move& m, BlockRef block, const LoopRef& loop) {
  WEFT_TRY(locate_inner(m.s, block, m.step, m.block));
  WEFT_TRY(locate(m.s, loop, m.loop));
  m.scope = leaves(m.block.scope()->block->body);
  m.self = index_of(m.scope, m.block.realize()->block.get());
  m.partners = m.forward() ? consumers_of(m.scope, m.self) : producers_of(m.scope, m.self);
  const ForNode* target = m.loop.loop();
  if (m.loop.scope() != m.block.scope()) {
    Refusal r = refuse(
        m.s, m.slug("scope"),
        cat(m.step, " of ", m.name(), " at ", name_of(target), " would cross a block boundary"),
        target);
    r.note(cat("legal: ", legal_loops(m)));
    return r;
  }
  if (is_under(m.leaf(), target)) {
    Refusal r = refuse(
        m.s, m.slug("inside"),
        cat(m.step, ": block ", m.name(), " already stands inside loop ", name_of(target)), target);
    r.note(cat("legal: ", legal_loops(m)));
    return r;
  }
  const char* kind = m.forward() ? "consumer" : "producer";
  if (m.partners.empty()) {
    Refusal r = refuse(m.s, m.slug("partner"),
                       cat(m.step, ": block ", m.name(), " has no ", kind, " to move to"),
                       m.leaf().realize);
    r.note(cat("blocks of the scope: ", quoted(block_names(m.s.mod))));
    const auto others = m.forward() ? producers_of(m.scope, m.self) : consumers_of(m.scope, m.self);
    if (!others.empty())
      r.repair(cat("sch.", m.forward() ? "reverse_compute_at" : "compute_at",
                   " moves a block to its ", m.forward() ? "producers" : "consumers", ", here ",
                   names_of(m, others)));
    return r;
  }
  if (!m.forward()) {
    // Producers that stand before the loop are complete there, as far as check_consumer finds;
    // those inside decide what one iteration takes.
    std::size_t first = 0;
    while (first < m.scope.size() && !is_under(m.scope[first], target)) ++first;
    std::vector<std::size_t> inside;
    for (std::size_t i : m.partners) {
      if (i >= first) inside.push_back(i);
    }
    if (!inside.empty()) m.partners = std::move(inside);
  }
  for (std::size_t i : m.partners) {
    if (is_under(m.scope[i], target)) continue;
    Refusal r =
        refuse(m.s, m.slug("not_under"),
               cat(m.step, ": ", m.name(), " cannot move into loop ", name_of(target),
                   ", because its ", kind, " ", name_of(m.scope[i].block()), " stands outside"),
               m.scope[i].realize);
    r.note(cat("found: the ", kind, "s of ", m.name(), " are ", names_of(m, m.partners)));
    r.note(cat("legal: ", legal_loops(m)));
    return r;
  }
  return std::nullopt;
}

/// The predicate must follow from the iterators' domains: then regenerated loops need no trace of
/// it.
bool predicate_is_domain(const Move& m) {
  const BlockRealizeNode* realize = m.leaf().realize;
  if (is_const_int_value(realize->predicate, 1)) return true;
  arith::Analyzer analyzer;
  bind_path(analyzer, m.block);
  for (const Expr& part : conjuncts(realize->predicate)) {
    bool implied = analyzer.prove(part);
    for (std::size_t i = 0; i < realize->iter_values.size() && !implied; ++i) {
      const Range& dom = realize->block->iters[i].dom;
      const Expr& v = realize->iter_values[i];
      implied =
          same_expr(analyzer.simplify(part), analyzer.simplify(lt(v, dom.min + dom.extent))) ||
          same_expr(analyzer.simplify(part), analyzer.simplify(ge(v, dom.min)));
    }
    if (!implied) return false;
  }
  return true;
}

Verdict check_blocks(const Move& m) {
  const BlockNode* block = m.leaf().block();
  arith::Analyzer analyzer;
  bind_path(analyzer, m.block);
  if (auto complete = why_not_complete(m.scope, block); !complete.empty()) {
    if (auto reduction = why_not_reduction(m.scope, m.leaf(), analyzer, m.s.facts.get());
        !reduction.empty()) {
      Refusal r = refuse(m.s, m.slug("block"),
                         cat(m.step, ": block ", m.name(), " is neither complete nor a reduction"),
                         m.leaf().realize);
      r.note(cat("not complete: ", complete));
      r.note(cat("not a reduction: ", reduction));
      return r;
    }
  }
  if (m.forward()) {
    const auto& own = m.block.scope()->block->alloc_buffers;
    for (const BufferRegion& w : block->writes) {
      if (std::find(own.begin(), own.end(), w.buffer) != own.end()) continue;
      Refusal r = refuse(m.s, m.slug("output"),
                         cat(m.step, ": block ", m.name(), " writes \"", w.buffer->name,
                             "\", which is an output of its scope"),
                         m.leaf().realize);
      r.note("legal: blocks whose results only this scope uses");
      return r;
    }
  }
  const auto around = concerned(m.scope, m.self, m.loop.loop());
  if (auto why = why_not_pipeline(around, m.s.facts.get()); !why.empty()) {
    Refusal r = refuse(
        m.s, m.slug("pipeline"),
        cat(m.step, " of ", m.name(), " needs a scope in which data only flows forward: ", why),
        m.leaf().realize);
    return r;
  }
  const bool reproducible =
      m.forward() ? predicate_is_domain(m) : covers_domain(m.leaf(), analyzer);
  if (!reproducible) {
    Refusal r = refuse(m.s, m.slug("predicate"),
                       cat(m.step, ": block ", m.name(),
                           " does not run its whole iteration domain, or not provably"),
                       m.leaf().realize);
    r.note(
        "legal: blocks whose predicate says no more than their iterators' domains; move a block "
        "before reshaping its loops");
    return r;
  }
  return std::nullopt;
}

/// Bound loops at or above the target whose points share the buffer: each point needs what all
/// need.
std::vector<const ForNode*> shared_loops(const Move& m, const Buffer& buffer) {
  std::vector<const ForNode*> out;
  if (!m.forward()) return out;
  auto around = m.loop.loops();
  around.push_back(m.loop.loop());
  for (const ForNode* loop : around) {
    if (loop->for_kind == ForKind::bound && !m.s.machine->is_private(buffer->scope, loop->axis))
      out.push_back(loop);
  }
  return out;
}

/// What the partners touch of `buffer` during one iteration of the target.
std::vector<Range> touched(const Move& m, const Buffer& buffer) {
  std::vector<Range> all;
  for (std::size_t i : m.partners) {
    const Leaf& partner = m.scope[i];
    arith::Analyzer analyzer;
    bind_path(analyzer, m.loop);
    bind_loops(analyzer, partner.loops);
    auto loops = shared_loops(m, buffer);
    for (const ForNode* loop : loops_below(partner, m.loop.loop())) loops.push_back(loop);
    const auto& regions = m.forward() ? partner.block()->reads : partner.block()->writes;
    for (const BufferRegion& r : regions) {
      if (r.buffer != buffer) continue;
      auto box =
          relax(bound_region(r, partner.realize), loops, partner.realize->predicate, analyzer);
      for (std::size_t d = 0; d < box.size(); ++d) {
        if (!box[d].min || !box[d].extent)
          box[d] = {make_zero(buffer->shape[d]->dtype), buffer->shape[d]};
      }
      all = all.empty() ? box : arith::union_regions(all, box, analyzer);
    }
  }
  return all;
}

/// Narrows `found` to the values of one iterator for which [coeff * v + base, + width) meets
/// `need`.
void narrow(std::optional<Range>& found, std::int64_t coeff, const Expr& base, const Expr& width,
            const Range& need, const arith::Analyzer& analyzer) {
  Expr first, last;  // inclusive
  if (coeff == 1) {
    first = need.min - base - (width - 1);
    last = need.min + need.extent - 1 - base;
  } else if (coeff == -1) {
    first = base - (need.min + need.extent - 1);
    last = base + (width - 1) - need.min;
  } else if (coeff > 1) {
    const Expr step = make_int(coeff, base->dtype);
    first = floordiv(need.min - base - (width - 1) + (coeff - 1), step);
    last = floordiv(need.min + need.extent - 1 - base, step);
  } else {
    return;
  }
  const Range range{analyzer.simplify(first), analyzer.simplify(last - first + 1)};
  std::int64_t was = 0, now = 0;
  const bool smaller = found && is_const_int(range.extent, &now) &&
                       (!is_const_int(found->extent, &was) || now < was);
  if (!found || smaller) found = range;
}

/// v // c in `high` and v % c in `low`.
bool narrow_digits(std::optional<Range>& found, const Expr& index, const Range& need, const Var& v,
                   const std::vector<std::pair<Expr, Range>>& all,
                   const arith::Analyzer& analyzer) {
  const auto* n = as<BinaryNode>(index);
  if (!n || n->kind != ExprKind::floordiv || n->a.get() != v.get()) return false;
  Range range{analyzer.simplify(need.min * n->b), analyzer.simplify(need.extent * n->b)};
  for (const auto& [other, low] : all) {
    const auto* m = as<BinaryNode>(other);
    if (!m || m->kind != ExprKind::floormod || m->a.get() != v.get() || !same_expr(m->b, n->b))
      continue;
    if (is_const_int_value(need.extent, 1))
      range = {analyzer.simplify(range.min + low.min), low.extent};
  }
  if (!found) found = range;
  return true;
}

/// The values that the block's iterators must take in one iteration of the target; absent: their
/// domain.
std::vector<std::optional<Range>> solve(const Move& m, const arith::Analyzer& analyzer) {
  const BlockNode* block = m.leaf().block();
  std::vector<std::optional<Range>> out(block->iters.size());
  std::vector<Var> iters;
  for (const IterVar& iter : block->iters) iters.push_back(iter.var);
  std::vector<std::pair<Expr, Range>> facts;  // index written (read) -> needed (made)
  std::vector<Expr> widths;
  for (const BufferRegion& r : m.forward() ? block->writes : block->reads) {
    const auto need = touched(m, r.buffer);
    for (std::size_t d = 0; d < need.size(); ++d) {
      facts.push_back({r.region[d].min, need[d]});
      widths.push_back(r.region[d].extent);
    }
  }
  for (std::size_t k = 0; k < facts.size(); ++k) {
    const auto& [index, need] = facts[k];
    auto linear = arith::detect_linear(index, iters);
    if (linear) {
      std::size_t which = npos;
      int used = 0;
      for (std::size_t i = 0; i < iters.size(); ++i) {
        if (linear->coeffs[i] == 0) continue;
        which = i;
        ++used;
      }
      if (used == 1)
        narrow(out[which], linear->coeffs[which], linear->base, widths[k], need, analyzer);
      continue;
    }
    for (std::size_t i = 0; i < iters.size(); ++i) {
      if (uses_var(index, iters[i].get()))
        narrow_digits(out[i], index, need, iters[i], facts, analyzer);
    }
  }
  return out;
}

/// Loops, bindings and predicate of the block in its new place.
Stmt regenerate(const Move& m, const std::vector<std::optional<Range>>& ranges,
                arith::Analyzer& analyzer) {
  const BlockNode* block = m.leaf().block();
  std::vector<std::pair<Var, Expr>> nest;
  Exprs values;
  Expr predicate = make_bool(true);
  for (std::size_t i = 0; i < block->iters.size(); ++i) {
    const IterVar& iter = block->iters[i];
    const Range& dom = iter.dom;
    const DType type = iter.var->dtype;
    Range range = ranges[i].value_or(dom);
    std::int64_t dmin = 0, dext = 0, rmin = 0, rext = 0;
    const bool fixed_domain = is_const_int(dom.min, &dmin) && is_const_int(dom.extent, &dext);
    // A producer may as well make all; a consumer takes what its place has, or takes it again.
    if (fixed_domain && is_const_int(range.extent, &rext) && rext >= dext &&
        (m.forward() || is_const_int(range.min)))
      range = dom;
    if (fixed_domain && is_const_int(range.min, &rmin) && is_const_int(range.extent, &rext)) {
      const std::int64_t first = std::max(rmin, dmin), end = std::min(rmin + rext, dmin + dext);
      range = {make_int(first, type), make_int(std::max<std::int64_t>(end - first, 0), type)};
    }
    Expr value = range.min;
    if (m.preserve_unit_loops || !is_const_int_value(range.extent, 1)) {
      const Var var = make_var(cat("ax", nest.size()), type);
      analyzer.bind(var, Range{make_zero(type), range.extent});
      nest.push_back({var, range.extent});
      value = analyzer.simplify(range.min + Expr(var));
    }
    const Expr low = ge(value, dom.min), high = lt(value, dom.min + dom.extent);
    if (!analyzer.prove(low)) predicate = both(predicate, analyzer.simplify(low));
    if (!analyzer.prove(high)) predicate = both(predicate, analyzer.simplify(high));
    values.push_back(value);
  }
  Stmt s = block_realize(values, predicate, m.leaf().realize->block);
  for (std::size_t i = nest.size(); i-- > 0;) {
    s = make_for(nest[i].first, make_zero(nest[i].first->dtype), nest[i].second, std::move(s));
  }
  return s;
}

/// The slots that keep the block behind its producers and before its consumers.
Verdict choose_slot(const Move& m, const std::vector<Stmt>& stmts, std::size_t& slot) {
  std::size_t low = 0, high = stmts.size();
  const auto before = producers_of(m.scope, m.self), after = consumers_of(m.scope, m.self);
  for (std::size_t k = 0; k < stmts.size(); ++k) {
    for (const Leaf& leaf : leaves(stmts[k])) {
      const std::size_t i = index_of(m.scope, leaf.block());
      if (std::find(before.begin(), before.end(), i) != before.end()) low = std::max(low, k + 1);
      if (std::find(after.begin(), after.end(), i) != after.end()) high = std::min(high, k);
    }
  }
  const bool legal =
      m.index == -1 || m.index == -2 ||
      (m.index >= static_cast<std::int64_t>(low) && m.index <= static_cast<std::int64_t>(high));
  if (low > high || !legal) {
    Refusal r =
        refuse(m.s, m.slug("slot"),
               low > high ? cat(m.step, ": ", m.name(), " has no place in ", name_of(m.loop.loop()),
                                " that is behind its producers and before its consumers")
                          : cat(m.step, " of ", m.name(), " at ", name_of(m.loop.loop()),
                                " got the slot ", m.index),
               m.loop.loop());
    r.note(low > high ? cat("found: producers up to statement ", low - 1,
                            ", consumers from statement ", high)
                      : cat("legal: ", low, " to ", high, ", -1 (last), -2 (first)"));
    return r;
  }
  slot = m.index == -1 ? high : m.index == -2 ? low : static_cast<std::size_t>(m.index);
  return std::nullopt;
}

/// A consumer may only run what is there, all of it, and a reduction no step twice.
Verdict check_consumer(const Move& m, const Stmt& body) {
  const auto path = find_block(body, m.leaf().block()->id);
  const auto scope = leaves(path->scope()->block->body);
  const std::size_t self = index_of(scope, path->realize()->block.get());
  const Leaf& leaf = scope[self];
  arith::Analyzer analyzer;
  bind_path(analyzer, *path);
  const auto around = concerned(scope, self);
  std::string why = why_not_covered(around, index_of(around, leaf.block()), m.s.facts.get());
  if (why.empty() && !covers_domain(leaf, analyzer))
    why = "some of its iterations would not run, or not provably";
  if (why.empty()) {
    // The loop by its variable: its node is another one since the block stands in it.
    const auto at = std::find_if(leaf.loops.begin(), leaf.loops.end(),
                                 [&](const ForNode* l) { return l->var == m.loop.loop()->var; });
    const std::vector<const ForNode*> own(at == leaf.loops.end() ? at : at + 1, leaf.loops.end());
    bool split_reduction = false;
    for (std::size_t i = 0; i < leaf.block()->iters.size(); ++i) {
      if (leaf.block()->iters[i].kind == IterKind::spatial) continue;
      for (const ForNode* loop : leaf.loops) {
        const bool below = std::find(own.begin(), own.end(), loop) != own.end();
        if (!below && uses_var(leaf.realize->iter_values[i], loop->var.get()))
          split_reduction = true;
      }
    }
    if (split_reduction &&
        !arith::detect_iter_map(leaf.realize->iter_values, as_iters(leaf.loops),
                                leaf.realize->predicate, arith::MapLevel::bijective, analyzer)
             .ok()) {
      why = "its reduction would take some steps more than once";
    }
  }
  if (why.empty()) return std::nullopt;
  Refusal r =
      refuse(m.s, m.slug("incomplete"),
             cat(m.step, ": ", m.name(), " cannot run inside ", name_of(m.loop.loop()), ": ", why),
             m.leaf().realize);
  r.note(
      "legal: loops in each iteration of which the producers finish just what some iterations of "
      "the consumer need");
  return r;
}

Verdict move(Move& m, BlockRef block, const LoopRef& loop, Outcome<Done>& out) {
  WEFT_TRY(check_places(m, block, loop));
  WEFT_TRY(check_blocks(m));
  const Stmt without = remove(m.block);
  if (!without) {
    return refuse(m.s, m.slug("only"),
                  cat(m.step, ": block ", m.name(), " is the only one of its scope"),
                  m.leaf().realize)
        .note("legal: scopes with several blocks");
  }
  arith::Analyzer analyzer;
  bind_path(analyzer, m.loop);
  const auto ranges = solve(m, analyzer);
  const Stmt nest = regenerate(m, ranges, analyzer);
  const auto target = find_loop(without, m.loop.loop()->var.get());
  auto stmts = statements(target->loop()->body);
  std::size_t slot = 0;
  WEFT_TRY(choose_slot(m, stmts, slot));
  stmts.insert(stmts.begin() + static_cast<std::ptrdiff_t>(slot), nest);
  Stmt body = replace(*target, with_body(target->loop(), seq(std::move(stmts))));
  if (!m.forward()) WEFT_TRY(check_consumer(m, body));
  out.mod = with_body(m.s.mod, m.block.func, std::move(body));
  return std::nullopt;
}

}  // namespace

Verdict ComputeAt::transform(const State& s, Outcome<Result>& out) const {
  Move m{s, kName, Direction::to_consumers, preserve_unit_loops, index};
  return move(m, block, loop, out);
}

Verdict ReverseComputeAt::transform(const State& s, Outcome<Result>& out) const {
  Move m{s, kName, Direction::to_producers, preserve_unit_loops, index};
  return move(m, block, loop, out);
}

}  // namespace weft::schedule
