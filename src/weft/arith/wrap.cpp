// SPDX-License-Identifier: Apache-2.0
// Arithmetic on data, and on loop variables that are known to leave their type, wraps at the ends
// of the type; sums (sum.h) know no ends. Whether the two agree is decided from ranges.

#include <algorithm>

#include "weft/arith/analyzer_impl.h"

namespace weft::arith {

using namespace ir;

namespace {

__extension__ using Wide = __int128;

/// Constants beyond this are not added to others: sums are kept in 64 bits.
constexpr Wide kMost = Wide{1} << 62;

struct Reach {
  Wide low = 0, high = 0;
  bool data = false, wraps = false;
  bool known = true;  ///< made of numbers and of variables that have both bounds
};

Reach of_type(DType t) {
  const Wide half = Wide{1} << (t.bits - 1);
  if (t.is_bool()) return {0, 1};
  return t.is_uint() ? Reach{0, 2 * half - 1} : Reach{-half, half - 1};
}

bool inside(const Reach& r, const Reach& outer) {
  return r.low >= outer.low && r.high <= outer.high;
}

class Ranges {
 public:
  explicit Ranges(const Analyzer::Impl& facts) : facts_(facts) {}

  Reach of(const Expr& e) const {
    switch (e->kind) {
      case ExprKind::int_imm: {
        const Wide v = as<IntImmNode>(e)->value;
        return {v, v, false, v >= kMost || v <= -kMost, true};
      }
      case ExprKind::var: return variable(e);
      case ExprKind::cast: {
        const auto* c = as<CastNode>(e);
        if (!is_index_type(c->value->dtype)) return leaf(e);
        Reach r = of(c->value);
        if (inside(r, of_type(e->dtype)) || !(r.data || r.known)) return r;
        Reach out = of_type(e->dtype);
        out.data = r.data, out.wraps = r.wraps || !r.data, out.known = r.known;
        return out;
      }
      case ExprKind::add:
      case ExprKind::sub:
      case ExprKind::mul:
      case ExprKind::floordiv:
      case ExprKind::div:
      case ExprKind::floormod:
      case ExprKind::mod:
      case ExprKind::min:
      case ExprKind::max: return binary(as<BinaryNode>(e));
      default: return leaf(e);
    }
  }

 private:
  Reach variable(const Expr& e) const {
    const auto* v = as<VarNode>(e);
    if (facts_.data.count(v)) return leaf(e);
    auto found = facts_.vars.find(v);
    if (found != facts_.vars.end() && found->second.value) return of(found->second.value);
    // Half the digits for what has no bounds: a product of two such variables is an index.
    const Wide most = Wide{1} << (e->dtype.bits / 2 - 1);
    Reach out{-most, most};
    out.known = false;
    if (found == facts_.vars.end()) return out;
    const Bounds b = found->second.bounds;
    out.known = b.bounded();
    if (b.min != Bounds::kMin) out.low = b.min, out.high = std::max(out.high, out.low);
    if (b.max != Bounds::kMax) out.high = b.max, out.low = std::min(out.low, out.high);
    return out;
  }

  Reach leaf(const Expr& e) const {
    Reach out = of_type(e->dtype);
    const Bounds b = facts_.atom_bounds(e);
    const Reach known{b.min, b.max};
    if (b.bounded() && inside(known, out)) out = known;
    out.data = true;
    return out;
  }

  Reach binary(const BinaryNode* e) const {
    const Reach x = of(e->a), y = of(e->b), type = of_type(e->dtype);
    Reach out = type;
    switch (e->kind) {
      case ExprKind::add: out = {x.low + y.low, x.high + y.high}; break;
      case ExprKind::sub: out = {x.low - y.high, x.high - y.low}; break;
      case ExprKind::mul: {
        const Wide c[4] = {x.low * y.low, x.low * y.high, x.high * y.low, x.high * y.high};
        out = {*std::min_element(c, c + 4), *std::max_element(c, c + 4)};
        break;
      }
      case ExprKind::min: out = {std::min(x.low, y.low), std::min(x.high, y.high)}; break;
      case ExprKind::max: out = {std::max(x.low, y.low), std::max(x.high, y.high)}; break;
      case ExprKind::floordiv:
      case ExprKind::div:
        if (y.low > 0) out = {std::min(x.low, Wide{0}), std::max(x.high, Wide{0})};
        break;
      default:  // remainders
        if (y.low > 0) out = {e->kind == ExprKind::mod && x.low < 0 ? 1 - y.high : 0, y.high - 1};
    }
    out.data = x.data || y.data;
    out.known = x.known && y.known;
    // Indices whose variables have no bounds are taken to stay inside.
    out.wraps = x.wraps || y.wraps || ((out.data || out.known) && !inside(out, type));
    if (!inside(out, type)) out.low = type.low, out.high = type.high;
    return out;
  }

  const Analyzer::Impl& facts_;
};

}  // namespace

bool Analyzer::Impl::may_wrap(const Expr& e) const { return Ranges(*this).of(e).wraps; }

}  // namespace weft::arith
