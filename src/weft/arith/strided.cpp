// SPDX-License-Identifier: Apache-2.0
#include "weft/arith/strided.h"

#include <algorithm>

#include "weft/arith/sum.h"
#include "weft/ir/build.h"

namespace weft::arith {

using namespace ir;

namespace {

/// coeff * ((counter // lower) % count), where counter runs from 0 to its loop's extent.
struct Digit {
  std::size_t loop = 0;
  std::int64_t lower = 1, count = 0, coeff = 0;
};

class Digits {
 public:
  explicit Digits(const std::vector<IterVar>& loops) : loops_(loops) {
    for (const IterVar& l : loops) {
      std::int64_t n = 0;
      if (!is_const_int(l.dom.extent, &n) || n < 1) ok = false;
      extents.push_back(n);
    }
  }

  /// Takes coeff * atom apart; false: it is no digit of a loop.
  bool add(const Expr& atom, std::int64_t coeff) {
    std::optional<Digit> digit = read(atom);
    if (!digit) return false;
    digit->coeff = coeff;
    list.push_back(*digit);
    return true;
  }

  bool ok = true;
  std::vector<std::int64_t> extents;
  std::vector<Digit> list;

 private:
  std::optional<Digit> read(const Expr& e) const {
    if (const auto* v = as<VarNode>(e)) {
      for (std::size_t i = 0; i < loops_.size(); ++i) {
        if (loops_[i].var.get() == v) return Digit{i, 1, extents[i], 0};
      }
      return std::nullopt;
    }
    if (e->kind != ExprKind::floordiv && e->kind != ExprKind::floormod) return std::nullopt;
    const auto* b = as<BinaryNode>(e);
    std::int64_t divisor = 0;
    if (!is_const_int(b->b, &divisor) || divisor < 1) return std::nullopt;
    std::optional<Digit> of = read(b->a);
    if (!of) return std::nullopt;
    // The values of a digit are whole rounds of the next one, or fewer than one.
    if (e->kind == ExprKind::floormod) {
      if (of->count <= divisor) return of;
      if (of->count % divisor != 0) return std::nullopt;
      return Digit{of->loop, of->lower, divisor, 0};
    }
    if (of->count <= divisor) return Digit{of->loop, of->lower, 1, 0};
    if (of->count % divisor != 0) return std::nullopt;
    return Digit{of->loop, of->lower * divisor, of->count / divisor, 0};
  }

  const std::vector<IterVar>& loops_;
};

/// The loop's counter cut at every digit's ends, from the slowest part to the fastest.
bool walk(const Digits& digits, std::size_t loop, std::vector<StridedDim>* out) {
  std::vector<std::int64_t> cuts = {1, digits.extents[loop]};
  for (const Digit& d : digits.list) {
    if (d.loop != loop || d.count == 1) continue;
    cuts.push_back(d.lower);
    cuts.push_back(d.lower * d.count);
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  for (std::size_t i = cuts.size() - 1; i-- > 0;) {
    if (cuts[i + 1] % cuts[i] != 0) return false;
    StridedDim dim{cuts[i + 1] / cuts[i], 0};
    for (const Digit& d : digits.list) {
      if (d.loop == loop && d.count > 1 && d.lower <= cuts[i] && cuts[i + 1] <= d.lower * d.count)
        dim.stride += d.coeff * (cuts[i] / d.lower);
    }
    out->push_back(dim);
  }
  return true;
}

}  // namespace

std::optional<Strided> as_strided(const Expr& index, const std::vector<IterVar>& loops,
                                  const Analyzer& analyzer) {
  Digits digits(loops);
  if (!digits.ok) return std::nullopt;
  VarMap shifted;  // counters start at 0
  std::unordered_set<const VarNode*> inside;
  for (const IterVar& l : loops) {
    inside.insert(l.var.get());
    if (!is_const_int_value(l.dom.min, 0)) shifted[l.var.get()] = l.var + l.dom.min;
  }
  // Not with the analyzer's ranges of the loops: they are not those of the counters.
  const Expr moved = shifted.empty() ? analyzer.simplify(index) : substitute(index, shifted);
  Sum base;
  Sum sum = to_sum(moved);
  base.constant = sum.constant;
  for (Monomial& m : sum.terms) {
    if (m.atoms.size() == 1 && digits.add(m.atoms[0], m.coeff)) continue;
    for (const Expr& atom : m.atoms) {
      if (uses_any(atom, inside)) return std::nullopt;
    }
    base.add(std::move(m));
  }
  std::vector<StridedDim> dims;
  for (std::size_t i = 0; i < loops.size(); ++i) {
    if (!walk(digits, i, &dims)) return std::nullopt;
  }
  Strided out{to_expr(base, index->dtype), {}};
  for (const StridedDim& d : dims) {
    if (d.extent == 1) continue;
    StridedDim* last = out.dims.empty() ? nullptr : &out.dims.back();
    if (last && last->stride == d.stride * d.extent) *last = {last->extent * d.extent, d.stride};
    else out.dims.push_back(d);
  }
  return out;
}

}  // namespace weft::arith
