// SPDX-License-Identifier: Apache-2.0
#include "weft/schedule/spans.h"

#include <unordered_set>

#include "weft/arith/iter_map.h"
#include "weft/arith/sum.h"
#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/schedule/analysis.h"
#include "weft/schedule/rebind.h"

namespace weft::schedule {

using namespace ir;

namespace {

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

/// Narrowed numbers of which every digit is among the indices: each digit takes all its values, in
/// all combinations.
std::unordered_set<const void*> spread_numbers(const std::vector<arith::IterSum>& indices,
                                               const arith::Analyzer& analyzer) {
  std::unordered_set<const void*> out;
  std::vector<const arith::IterSplit*> all;
  for (const arith::IterSum& sum : indices) {
    for (const arith::IterSplit& split : sum.splits) {
      if (is_narrowed(*split.mark, analyzer)) all.push_back(&split);
    }
  }
  for (const arith::IterSplit* first : all) {
    const arith::IterMark& mark = *first->mark;
    if (!is_const_int_value(first->lower_factor, 1) || is_whole(*first) ||
        !analyzer.prove(le(mark.extent, full_extent(mark, analyzer))))
      continue;
    Expr reached = make_const(1, mark.extent->dtype);
    std::size_t digits = 0, used = 0;
    for (const arith::IterSplit* split : all) digits += split->mark == first->mark ? 1 : 0;
    for (bool more = true; more && used < digits;) {
      const auto next = std::find_if(all.begin(), all.end(), [&](const arith::IterSplit* split) {
        return split->mark == first->mark && analyzer.prove_equal(split->lower_factor, reached);
      });
      more = next != all.end();
      if (more) reached = analyzer.simplify((*next)->lower_factor * (*next)->extent), ++used;
    }
    if (used == digits && analyzer.prove_equal(reached, mark.extent)) out.insert(&mark);
  }
  return out;
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
  const std::unordered_set<const void*> spread = spread_numbers(map.indices, analyzer);
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
      if (!spread.count(split.mark.get()) && is_narrowed(*split.mark, analyzer)) {
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

/// Of indices that are sums of loops times numbers, each loop in one of them: as digit_spans finds
/// them. Absent where any is something else.
std::optional<std::vector<Span>> plain_spans(const std::vector<Range>& region,
                                             const std::vector<const ForNode*>& loops,
                                             const arith::Analyzer& analyzer) {
  std::vector<bool> used(loops.size(), false);
  std::vector<Span> out;
  for (const Range& r : region) {
    std::int64_t width = 0;
    if (!is_const_int(r.extent, &width) || !arith::is_index_type(r.min->dtype)) return std::nullopt;
    const arith::Sum sum = arith::to_sum(analyzer.simplify(r.min));
    arith::Sum base;
    base.constant = sum.constant;
    std::vector<std::pair<std::int64_t, std::int64_t>> digits;  // steps and counts
    for (const arith::Monomial& m : sum.terms) {
      const auto loop = std::find_if(loops.begin(), loops.end(), [&](const ForNode* l) {
        return m.atoms.size() == 1 && l->var.get() == m.atoms[0].get();
      });
      if (loop == loops.end()) {
        for (const Expr& atom : m.atoms) {
          if (mentions(atom, loops)) return std::nullopt;
        }
        base.add(m);
        continue;
      }
      const auto at = static_cast<std::size_t>(loop - loops.begin());
      std::int64_t count = 0;
      if (m.coeff <= 0 || used[at] || !is_const_int_value((*loop)->min, 0) ||
          !is_const_int((*loop)->extent, &count) || count < 1)
        return std::nullopt;
      used[at] = true;
      if (count > 1) digits.emplace_back(m.coeff, count);
    }
    std::sort(digits.begin(), digits.end());
    for (const auto& [step, count] : digits) {
      if (step > width) return std::nullopt;
      width += (count - 1) * step;
    }
    out.push_back({arith::to_expr(base, r.min->dtype), {make_int(width, r.extent->dtype)}});
  }
  return out;
}

}  // namespace

std::optional<std::vector<Span>> exact_spans(const std::vector<Range>& region,
                                             const std::vector<const ForNode*>& loops,
                                             const Expr& predicate,
                                             const arith::Analyzer& analyzer) {
  std::vector<Expr> conditions;
  if (!relevant_conditions(region, loops, predicate, analyzer, conditions)) return std::nullopt;
  if (conditions.empty()) {
    if (auto plain = plain_spans(region, loops, analyzer)) return plain;
  }
  auto out = digit_spans(region, loops, conditions, analyzer);
  return out || conditions.empty() ? out : counted_box(region, loops, conditions, analyzer);
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

}  // namespace weft::schedule
