// SPDX-License-Identifier: Apache-2.0
// Recognition of mixed-radix digits. Indices are simplified first, so that digits of split and
// fused loops mostly appear as variables or single quotients and remainders of one; what stays is
// read as sums of splits, where a sum that is itself a proper number is fused into a new mark.

#include "weft/arith/iter_map.h"

#include <algorithm>
#include <map>

#include "weft/arith/sum.h"
#include "weft/base/error.h"
#include "weft/ir/build.h"
#include "weft/ir/compare.h"

namespace weft::arith {

using namespace ir;

namespace {

struct NotAffine {
  std::string why;
};

class Detector {
 public:
  Detector(const std::vector<IterVar>& loops, const Analyzer& analyzer) : analyzer_(analyzer) {
    for (const IterVar& loop : loops) {
      auto mark = std::make_shared<IterMark>();
      mark->var = loop.var;
      mark->extent = analyzer.simplify(loop.dom.extent);
      loops_[loop.var.get()] = mark;
      order_.push_back(mark);
    }
  }

  /// A conjunct `sum < limit` of the predicate narrows the number that `sum` stands for.
  void constrain(const Expr& condition) {
    const auto* b = as<BinaryNode>(condition);
    if (const auto* c = as<CallNode>(condition); c && c->op == "likely")
      return constrain(c->args[0]);
    if (condition->kind == ExprKind::and_) {
      constrain(b->a);
      constrain(b->b);
      return;
    }
    if (is_const_int_value(condition, 1)) return;
    Expr sum, limit;
    if (condition->kind == ExprKind::lt) sum = b->a, limit = b->b;
    if (condition->kind == ExprKind::le) sum = b->a, limit = b->b + 1;
    if (condition->kind == ExprKind::gt) sum = b->b, limit = b->a;
    if (condition->kind == ExprKind::ge) sum = b->b, limit = b->a + 1;
    if (!sum || !is_index_type(sum->dtype))
      throw NotAffine{"the predicate is no conjunction of comparisons of indices"};
    // Constants go to the right.
    Sum s = to_sum(analyzer_.simplify(sum - limit)), left, right;
    right.constant = -s.constant;
    for (const Monomial& m : s.terms) {
      bool loop_term =
          std::any_of(m.atoms.begin(), m.atoms.end(), [&](const Expr& a) { return uses_loop(a); });
      if (loop_term) left.add(m);
      else right.add(Monomial{-m.coeff, m.atoms});
    }
    if (left.terms.empty()) return;  // says nothing about the loops
    if (std::all_of(left.terms.begin(), left.terms.end(),
                    [](const Monomial& m) { return m.coeff < 0; })) {
      throw NotAffine{"the predicate bounds an index from below"};
    }
    IterSum parsed = read(to_expr(left, sum->dtype));
    Expr bound = analyzer_.simplify(to_expr(right, sum->dtype));
    std::shared_ptr<IterMark> mark = fuse(parsed);
    if (!mark) throw NotAffine{"the predicate's index is no mixed-radix number of loops"};
    if (analyzer_.prove(ge(bound, mark->extent))) return;
    auto narrowed = std::make_shared<IterMark>();
    narrowed->source = std::make_shared<IterSum>(parsed);
    narrowed->extent = bound;
    constrained_.push_back(narrowed);
  }

  bool uses_loop(const Expr& e) const {
    bool found = false;
    for_each_expr(e, [&](const Expr& x) {
      found = found || (x->kind == ExprKind::var && loops_.count(as<VarNode>(x)));
    });
    return found;
  }

  IterSum read(const Expr& e) {
    IterSum out = read_plain(e);
    for (const auto& mark : constrained_) replace_prefix(out, mark);
    return out;
  }

  /// The sum as one number: its splits chain from scale 1 upward. Null when they do not.
  std::shared_ptr<IterMark> fuse(const IterSum& sum) {
    if (sum.splits.empty()) return nullptr;
    Expr expected = make_int(1, sum.splits.back().scale->dtype), extent = expected;
    for (std::size_t i = sum.splits.size(); i-- > 0;) {
      const IterSplit& s = sum.splits[i];
      if (!analyzer_.prove_equal(s.scale, expected)) return nullptr;
      expected = analyzer_.simplify(s.scale * s.extent);
    }
    if (sum.splits.size() == 1) {
      const IterSplit& s = sum.splits[0];
      if (is_const_int_value(s.lower_factor, 1) &&
          analyzer_.prove_equal(s.extent, s.mark->extent)) {
        return std::const_pointer_cast<IterMark>(s.mark);
      }
    }
    for (const auto& known : fused_) {
      if (same_sum(*known->source, sum)) return known;
    }
    auto mark = std::make_shared<IterMark>();
    mark->source = std::make_shared<IterSum>(IterSum{sum.splits, make_int(0)});
    mark->extent = expected;
    fused_.push_back(mark);
    return mark;
  }

  /// Digits of each mark must not overlap; with `complete`, none may be missing.
  void check_digits(const std::vector<IterSum>& sums, MapLevel level) {
    std::map<const IterMark*, std::vector<IterSplit>> by_mark;
    std::vector<const IterMark*> pending;
    auto note = [&](const IterSplit& s) {
      auto& list = by_mark[s.mark.get()];
      if (list.empty()) pending.push_back(s.mark.get());
      list.push_back(s);
    };
    for (const IterSum& sum : sums) {
      for (const IterSplit& s : sum.splits) note(s);
    }
    // A mark may have digits in an index and others in a narrowed sum: all are known before any
    // mark is checked.
    for (std::size_t n = 0; n < pending.size(); ++n) {
      if (!pending[n]->source) continue;
      for (const IterSplit& s : pending[n]->source->splits) note(s);
    }
    for (const IterMark* mark : pending) {
      std::vector<IterSplit> list = by_mark[mark];
      Expr at = make_int(1);
      std::vector<bool> used(list.size(), false);
      bool gap = false;
      for (std::size_t done = 0; done < list.size(); ++done) {
        std::size_t next = list.size();
        for (std::size_t i = 0; i < list.size() && next == list.size(); ++i) {
          if (!used[i] && analyzer_.prove_equal(list[i].lower_factor, at)) next = i;
        }
        if (next == list.size()) {  // the lowest digit above `at`, leaving a gap
          for (std::size_t i = 0; i < list.size(); ++i) {
            if (used[i] || !analyzer_.prove_equal(floormod(list[i].lower_factor, at), make_int(0)))
              continue;
            if (next == list.size() ||
                analyzer_.prove(lt(list[i].lower_factor, list[next].lower_factor)))
              next = i;
          }
          gap = true;
          if (next == list.size() || analyzer_.prove(lt(list[next].lower_factor, at))) {
            throw NotAffine{cat("digits of \"", name_of(*mark), "\" are used twice")};
          }
        }
        used[next] = true;
        at = analyzer_.simplify(list[next].lower_factor * list[next].extent);
      }
      bool full = analyzer_.prove_equal(at, mark->extent);
      if (level == MapLevel::bijective && (gap || !full))
        throw NotAffine{cat("a digit of \"", name_of(*mark), "\" is not used")};
      if (!full && !analyzer_.prove_equal(floormod(mark->extent, at), make_int(0)) &&
          !analyzer_.prove(le(mark->extent, at))) {
        throw NotAffine{cat("\"", name_of(*mark), "\" does not divide into its digits")};
      }
    }
    if (level == MapLevel::bijective) {
      for (const auto& loop : order_) {
        if (!by_mark.count(loop.get()) && !is_const_int_value(loop->extent, 1))
          throw NotAffine{cat("loop \"", loop->var->name, "\" is not used")};
      }
    }
  }

  bool chains(const IterSum& sum) { return sum.splits.empty() || fuse(sum) != nullptr; }

 private:
  static std::string name_of(const IterMark& mark) {
    return mark.var ? mark.var->name : "fused loops";
  }

  static bool same_split(const IterSplit& a, const IterSplit& b) {
    return a.mark == b.mark && same_expr(a.lower_factor, b.lower_factor) &&
           same_expr(a.extent, b.extent) && same_expr(a.scale, b.scale);
  }
  static bool same_sum(const IterSum& a, const IterSum& b) {
    return a.splits.size() == b.splits.size() &&
           std::equal(a.splits.begin(), a.splits.end(), b.splits.begin(), same_split);
  }

  void add(IterSum& sum, const IterSum& other, std::int64_t factor) {
    for (IterSplit s : other.splits) {
      s.scale = analyzer_.simplify(s.scale * factor);
      sum.splits.push_back(s);
    }
    sum.base = analyzer_.simplify(sum.base + other.base * factor);
  }

  void sort(IterSum& sum) {
    std::stable_sort(sum.splits.begin(), sum.splits.end(),
                     [&](const IterSplit& a, const IterSplit& b) {
                       std::int64_t x, y;
                       if (is_const_int(a.scale, &x) && is_const_int(b.scale, &y)) return x > y;
                       return analyzer_.prove(gt(a.scale, b.scale));
                     });
  }

  /// (sum // divisor) and (sum % divisor) of a fused number.
  IterSum digit(const Expr& operand, const Expr& divisor, bool quotient) {
    IterSum inner = read(operand);
    if (inner.splits.empty()) {
      inner.base = quotient ? floordiv(inner.base, divisor) : floormod(inner.base, divisor);
      return inner;
    }
    if (uses_loop(divisor)) throw NotAffine{"a loop variable appears in a divisor"};
    if (!is_const_int_value(inner.base, 0))
      throw NotAffine{"an offset stands inside a quotient or remainder"};
    IterSum out;
    out.base = make_int(0);
    if (inner.splits.size() == 1 && is_const_int_value(inner.splits[0].scale, 1)) {
      out.splits.push_back(cut(inner.splits[0], divisor, quotient));
      if (is_const_int_value(out.splits[0].extent, 1)) out.splits.clear();
      return out;
    }
    std::shared_ptr<IterMark> mark = fuse(inner);
    if (!mark) throw NotAffine{"a quotient or remainder is taken of what is no mixed-radix number"};
    IterSplit whole{mark, make_int(1), mark->extent, make_int(1)};
    out.splits.push_back(cut(whole, divisor, quotient));
    if (is_const_int_value(out.splits[0].extent, 1)) out.splits.clear();
    return out;
  }

  IterSplit cut(IterSplit s, const Expr& divisor, bool quotient) {
    bool top = analyzer_.prove_equal(s.lower_factor * s.extent, s.mark->extent);
    bool divides = analyzer_.prove_equal(floormod(s.extent, divisor), make_int(0));
    if (quotient) {
      if (divides) {
        s.extent = analyzer_.simplify(floordiv(s.extent, divisor));
      } else if (top || analyzer_.prove(le(s.mark->extent, s.lower_factor * s.extent))) {
        s.extent = analyzer_.simplify(floordiv(s.extent + divisor - 1, divisor));
        ragged = true;
      } else {
        throw NotAffine{cat("the divisor ", 0, " does not divide a digit's extent")};
      }
      s.lower_factor = analyzer_.simplify(s.lower_factor * divisor);
    } else {
      if (analyzer_.prove(le(s.extent, divisor))) return s;
      if (!divides) throw NotAffine{"a remainder does not divide its digit's extent"};
      s.extent = divisor;
    }
    return s;
  }

  IterSum read_plain(const Expr& e) {
    IterSum out;
    out.base = make_int(0, dtypes::int64);
    if (!uses_loop(e)) {
      out.base = e;
      return out;
    }
    Sum sum = to_sum(e);
    out.base = make_int(sum.constant, e->dtype);
    for (const Monomial& m : sum.terms) {
      Expr loop_atom, rest;
      for (const Expr& atom : m.atoms) {
        if (uses_loop(atom)) {
          if (loop_atom) throw NotAffine{"a product of loop variables"};
          loop_atom = atom;
        } else {
          rest = rest ? rest * atom : atom;
        }
      }
      if (!loop_atom) {
        out.base = out.base + monomial_expr(m.atoms) * m.coeff;
        continue;
      }
      IterSum part = read_atom(loop_atom);
      if (rest) {
        for (IterSplit& s : part.splits) s.scale = analyzer_.simplify(s.scale * rest);
        part.base = analyzer_.simplify(part.base * rest);
      }
      add(out, part, m.coeff);
    }
    out.base = analyzer_.simplify(out.base);
    // Equal digits twice (i + i) merge or overlap; unit digits vanish.
    std::erase_if(out.splits, [](const IterSplit& s) { return is_const_int_value(s.extent, 1); });
    sort(out);
    return out;
  }

  IterSum read_atom(const Expr& e) {
    IterSum out;
    out.base = make_int(0);
    if (const auto* v = as<VarNode>(e)) {
      const auto& mark = loops_.at(v);
      if (!is_const_int_value(mark->extent, 1))
        out.splits.push_back({mark, make_int(1), mark->extent, make_int(1)});
      return out;
    }
    if (e->kind == ExprKind::floordiv || e->kind == ExprKind::floormod) {
      return digit(as<BinaryNode>(e)->a, as<BinaryNode>(e)->b, e->kind == ExprKind::floordiv);
    }
    throw NotAffine{"an index is neither a sum nor a quotient or remainder of loops"};
  }

  /// Replaces the splits of a narrowed number (times a common scale) by one split of its mark.
  void replace_prefix(IterSum& sum, const std::shared_ptr<IterMark>& mark) {
    const auto& wanted = mark->source->splits;
    for (std::size_t start = 0; start + wanted.size() <= sum.splits.size(); ++start) {
      std::int64_t factor = 0, scale;
      std::int64_t unit;
      if (!is_const_int(sum.splits[start + wanted.size() - 1].scale, &scale) ||
          !is_const_int(wanted.back().scale, &unit) || unit == 0)
        continue;
      factor = scale / unit;
      bool match = factor > 0;
      for (std::size_t i = 0; i < wanted.size() && match; ++i) {
        const IterSplit &a = sum.splits[start + i], &b = wanted[i];
        match = a.mark == b.mark && same_expr(a.lower_factor, b.lower_factor) &&
                same_expr(a.extent, b.extent) && analyzer_.prove_equal(a.scale, b.scale * factor);
      }
      if (!match) continue;
      auto at = sum.splits.begin() + static_cast<std::ptrdiff_t>(start);
      at = sum.splits.erase(at, at + static_cast<std::ptrdiff_t>(wanted.size()));
      sum.splits.insert(at, IterSplit{mark, make_int(1), mark->extent, make_int(factor)});
      return;
    }
  }

 public:
  bool ragged = false;  // some quotient does not divide: the top digit is not always full

 private:
  const Analyzer& analyzer_;
  std::map<const VarNode*, std::shared_ptr<IterMark>> loops_;
  std::vector<std::shared_ptr<IterMark>> order_, constrained_, fused_;
};

/// An analyzer's view in which the loops are bound.
void bind_loops(Analyzer& analyzer, const std::vector<IterVar>& loops) {
  for (const IterVar& loop : loops) analyzer.bind(loop.var, loop.dom);
}

Expr mark_expr(const IterMark& mark) { return mark.var ? Expr(mark.var) : to_expr(*mark.source); }

Expr split_expr(const IterSplit& s) {
  Expr value = mark_expr(*s.mark);
  bool top = same_expr(simplify(s.lower_factor * s.extent), s.mark->extent);
  if (!is_const_int_value(s.lower_factor, 1)) value = floordiv(value, s.lower_factor);
  if (!top) value = floormod(value, s.extent);
  return value;
}

}  // namespace

Expr to_expr(const IterSum& sum) {
  Expr out;
  for (const IterSplit& s : sum.splits) {
    Expr term = split_expr(s) * s.scale;
    out = out ? out + term : term;
  }
  if (!out) return sum.base;
  return is_const_int_value(sum.base, 0) ? out : out + sum.base;
}

IterMapResult detect_iter_map(const std::vector<Expr>& indices, const std::vector<IterVar>& loops,
                              const Expr& predicate, MapLevel level, const Analyzer& outer) {
  IterMapResult out;
  try {
    Analyzer analyzer;
    bind_loops(analyzer, loops);
    Detector detector(loops, analyzer);
    for (const IterVar& loop : loops) {
      if (!is_const_int_value(loop.dom.min, 0))
        throw NotAffine{cat("loop \"", loop.var->name, "\" does not start at 0")};
    }
    if (predicate) detector.constrain(analyzer.simplify(predicate));
    for (const Expr& index : indices)
      out.indices.push_back(detector.read(analyzer.simplify(outer.simplify(index))));
    detector.check_digits(out.indices, level);
    if (level != MapLevel::none) {
      for (std::size_t i = 0; i < out.indices.size(); ++i) {
        if (!detector.chains(out.indices[i]))
          throw NotAffine{cat("index ", i, " has gaps or overlaps: it is no mixed-radix number")};
      }
    }
    if (level == MapLevel::bijective && detector.ragged)
      throw NotAffine{"a quotient does not divide its loop"};
  } catch (const NotAffine& reason) {
    out.indices.clear();
    out.error = reason.why;
  }
  return out;
}

std::vector<std::pair<Var, Expr>> inverse_iter_map(const std::vector<IterSum>& indices,
                                                   const std::vector<Expr>& outputs) {
  std::map<const IterMark*, Expr> value;  // of each mark, so far
  std::vector<std::pair<const IterMark*, Var>> leaves;
  auto give = [&](const IterSum& sum, const Expr& whole) {
    Expr number = is_const_int_value(sum.base, 0) ? whole : whole - sum.base;
    for (std::size_t i = 0; i < sum.splits.size(); ++i) {
      const IterSplit& s = sum.splits[i];
      Expr digit = is_const_int_value(s.scale, 1) ? number : floordiv(number, s.scale);
      if (i != 0) digit = floormod(digit, s.extent);
      Expr part = digit * s.lower_factor;
      auto [it, fresh] = value.emplace(s.mark.get(), part);
      if (!fresh) it->second = it->second + part;
    }
  };
  if (indices.size() != outputs.size()) return {};
  for (std::size_t i = 0; i < indices.size(); ++i) give(indices[i], outputs[i]);
  // Sums are distributed after all their digits are known: repeat until no sum is left.
  std::vector<std::pair<Var, Expr>> out;
  bool more = true;
  std::map<const IterMark*, bool> done;
  while (more) {
    more = false;
    for (const auto& [mark, e] : std::map<const IterMark*, Expr>(value)) {
      if (mark->var || done[mark]) continue;
      done[mark] = true;
      give(*mark->source, e);
      more = true;
    }
  }
  for (const auto& [mark, e] : value) {
    if (mark->var) out.emplace_back(mark->var, simplify(e));
  }
  return out;
}

std::optional<std::vector<SubspacePart>> subspace_divide(const std::vector<Expr>& bindings,
                                                         const std::vector<IterVar>& loops,
                                                         const std::vector<Var>& inner_loops,
                                                         const Expr& predicate,
                                                         const Analyzer& outer) {
  IterMapResult map = detect_iter_map(bindings, loops, predicate, MapLevel::surjective, outer);
  if (!map.ok()) return std::nullopt;
  Analyzer analyzer;
  bind_loops(analyzer, loops);
  std::unordered_set<const VarNode*> inner;
  for (const Var& v : inner_loops) inner.insert(v.get());
  // 0: outer only, 1: inner only, 2: both.
  std::function<int(const IterMark&)> side = [&](const IterMark& mark) {
    if (mark.var) return inner.count(mark.var.get()) ? 1 : 0;
    int kind = -1;
    for (const IterSplit& s : mark.source->splits) {
      int k = side(*s.mark);
      kind = kind < 0 ? k : kind == k ? k : 2;
    }
    return kind < 0 ? 0 : kind;
  };
  std::vector<SubspacePart> out;
  Expr outer_predicate = make_bool(true), inner_predicate = make_bool(true);
  for (const IterSum& whole : map.indices) {
    IterSum sum = whole;
    bool narrowed = false;
    Expr limit;
    if (sum.splits.size() == 1 && sum.splits[0].mark->source && side(*sum.splits[0].mark) == 2) {
      // One fused or narrowed number over both sides: open it when its low digits are inner.
      const IterSplit s = sum.splits[0];
      if (!is_const_int_value(s.lower_factor, 1) || !is_const_int_value(s.scale, 1))
        return std::nullopt;
      limit = s.mark->extent;
      IterSum opened = *s.mark->source;
      opened.base = sum.base;
      sum = opened;
      narrowed = true;
    }
    std::size_t cut = sum.splits.size();
    while (cut > 0 && side(*sum.splits[cut - 1].mark) == 1) --cut;
    for (std::size_t i = 0; i < cut; ++i) {
      if (side(*sum.splits[i].mark) != 0) return std::nullopt;
    }
    IterSum high{{sum.splits.begin(), sum.splits.begin() + static_cast<std::ptrdiff_t>(cut)},
                 make_int(0)};
    IterSum low{{sum.splits.begin() + static_cast<std::ptrdiff_t>(cut), sum.splits.end()},
                make_int(0)};
    SubspacePart part;
    part.inner_extent = make_int(1);
    for (const IterSplit& s : low.splits)
      part.inner_extent = analyzer.simplify(part.inner_extent * s.extent);
    part.outer_extent = make_int(1);
    for (const IterSplit& s : high.splits)
      part.outer_extent = analyzer.simplify(part.outer_extent * s.extent);
    for (IterSplit& s : high.splits)
      s.scale = analyzer.simplify(floordiv(s.scale, part.inner_extent));
    part.inner = to_expr(low);
    part.outer = analyzer.simplify(to_expr(high) + floordiv(sum.base, part.inner_extent));
    if (!is_const_int_value(sum.base, 0)) {
      if (!analyzer.prove_equal(floormod(sum.base, part.inner_extent), make_int(0)))
        return std::nullopt;
    }
    if (narrowed && !analyzer.prove_equal(limit, part.outer_extent * part.inner_extent)) {
      if (!analyzer.prove_equal(floormod(limit, part.inner_extent), make_int(0)))
        return std::nullopt;
      Expr rows = analyzer.simplify(floordiv(limit, part.inner_extent));
      outer_predicate = logical_and(outer_predicate, lt(part.outer, rows));
      part.outer_extent = rows;
    }
    out.push_back(part);
  }
  out.push_back({outer_predicate, nullptr, inner_predicate, nullptr});
  return out;
}

std::vector<Expr> simplify_iter_map(const std::vector<Expr>& indices,
                                    const std::vector<IterVar>& loops, const Expr& predicate,
                                    const Analyzer&) {
  Analyzer analyzer;
  bind_loops(analyzer, loops);
  std::vector<Expr> out;
  auto go = [&] {
    for (const Expr& e : indices) out.push_back(analyzer.simplify(e));
  };
  if (predicate && !is_const_int_value(predicate, 1)) {
    Analyzer::Constraint scope(analyzer, predicate);
    go();
  } else {
    go();
  }
  return out;
}

}  // namespace weft::arith
