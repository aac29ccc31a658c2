// SPDX-License-Identifier: Apache-2.0
#include "weft/schedule/counted_box.h"

#include <algorithm>

#include "weft/arith/sum.h"
#include "weft/ir/build.h"
#include "weft/ir/eval.h"
#include "weft/ir/visit.h"

namespace weft::schedule {

using namespace ir;

namespace {

constexpr std::int64_t kMostPoints = 32768;

struct Loop {
  const ForNode* node;
  std::int64_t min = 0, extent = 0;
};

/// An integer expression of loop variables as postfix code.
class Code {
 public:
  /// False when it is made of anything else.
  bool compile(const Expr& e, const std::vector<Loop>& loops) {
    std::int64_t n = 0;
    if (is_const_int(e, &n)) {
      steps_.push_back({Step::constant, n, {}, {}});
      return true;
    }
    if (const auto* v = as<VarNode>(e)) {
      for (std::size_t i = 0; i < loops.size(); ++i) {
        if (loops[i].node->var.get() != v) continue;
        steps_.push_back({Step::loop, static_cast<std::int64_t>(i), {}, {}});
        return true;
      }
      return false;
    }
    if (const auto* c = as<CallNode>(e); c && c->op == "likely") return compile(c->args[0], loops);
    if (const auto* c = as<CastNode>(e);
        c && arith::is_index_type(c->dtype) && arith::is_index_type(c->value->dtype))
      return compile(c->value, loops);
    if (!is_binary(e->kind)) return false;
    const auto* b = as<BinaryNode>(e);
    if (b->a->dtype.is_float() || !compile(b->a, loops) || !compile(b->b, loops)) return false;
    steps_.push_back({Step::binary, 0, e->kind, b->a->dtype});
    return true;
  }

  /// False: a division by zero.
  bool run(const std::vector<std::int64_t>& at, std::int64_t& out) {
    stack_.clear();
    for (const Step& s : steps_) {
      if (s.kind == Step::constant) {
        stack_.push_back(s.value);
      } else if (s.kind == Step::loop) {
        stack_.push_back(at[static_cast<std::size_t>(s.value)]);
      } else {
        const std::int64_t b = stack_.back();
        stack_.pop_back();
        if (!eval_int_binary(s.op, s.type, stack_.back(), b, &stack_.back())) return false;
      }
    }
    out = stack_.back();
    return true;
  }

 private:
  struct Step {
    enum Kind : std::uint8_t { constant, loop, binary } kind;
    std::int64_t value;
    ExprKind op;
    DType type;
  };
  std::vector<Step> steps_;
  std::vector<std::int64_t> stack_;
};

/// The points that the loops reach, as one number in [0, volume) each: all of them or none of use.
bool is_full(const std::vector<std::vector<std::int64_t>>& points, std::vector<std::int64_t>& low,
             std::vector<std::int64_t>& width) {
  low = width = points[0];
  for (const auto& p : points) {
    for (std::size_t d = 0; d < p.size(); ++d) {
      low[d] = std::min(low[d], p[d]);
      width[d] = std::max(width[d], p[d]);
    }
  }
  std::int64_t volume = 1;
  for (std::size_t d = 0; d < low.size(); ++d) {
    width[d] = width[d] - low[d] + 1;
    if (width[d] > kMostPoints) return false;
    volume *= width[d];
    if (volume > static_cast<std::int64_t>(points.size())) return false;
  }
  std::vector<bool> seen(static_cast<std::size_t>(volume));
  std::int64_t count = 0;
  for (const auto& p : points) {
    std::int64_t at = 0;
    for (std::size_t d = 0; d < p.size(); ++d) at = at * width[d] + (p[d] - low[d]);
    const auto where = static_cast<std::size_t>(at);
    count += seen[where] ? 0 : 1;
    seen[where] = true;
  }
  return count == volume;
}

}  // namespace

std::optional<std::vector<Span>> counted_box(const std::vector<Range>& region,
                                             const std::vector<const ForNode*>& all,
                                             const std::vector<Expr>& conditions,
                                             const arith::Analyzer& analyzer) {
  std::vector<Loop> loops;
  std::int64_t points = 1;
  for (const ForNode* loop : all) {
    const VarNode* v = loop->var.get();
    auto used = [&](const auto& list, auto&& expr) {
      return std::any_of(list.begin(), list.end(),
                         [&](const auto& item) { return uses_var(expr(item), v); });
    };
    if (!used(region, [](const Range& r) { return r.min; }) &&
        !used(conditions, [](const Expr& e) { return e; }))
      continue;
    Loop constant{loop};
    if (!is_const_int(loop->min, &constant.min) || !is_const_int(loop->extent, &constant.extent) ||
        constant.extent < 1 || constant.extent > kMostPoints)
      return std::nullopt;
    points *= constant.extent;
    if (points > kMostPoints) return std::nullopt;
    loops.push_back(constant);
  }
  VarMap first;
  for (const Loop& l : loops) first[l.node->var.get()] = l.node->min;
  std::vector<Span> out;
  std::vector<Code> indices(region.size()), filters;
  for (std::size_t d = 0; d < region.size(); ++d) {
    if (!is_const_int_value(region[d].extent, 1)) return std::nullopt;
    const Expr base = analyzer.simplify(substitute(region[d].min, first));
    if (!indices[d].compile(analyzer.simplify(region[d].min - base), loops)) return std::nullopt;
    out.push_back({base, {}});
  }
  for (const Expr& condition : conditions) {
    if (!filters.emplace_back().compile(condition, loops)) return std::nullopt;
  }
  std::vector<std::vector<std::int64_t>> reached;
  std::vector<std::int64_t> at;
  for (const Loop& l : loops) at.push_back(l.min);
  for (std::int64_t n = 0; n < points; ++n) {
    std::int64_t value = 1;
    bool runs = true;
    for (Code& filter : filters) {
      if (!filter.run(at, value)) return std::nullopt;
      runs = runs && value != 0;
    }
    if (runs) {
      std::vector<std::int64_t> point(region.size());
      for (std::size_t d = 0; d < region.size(); ++d) {
        if (!indices[d].run(at, point[d])) return std::nullopt;
      }
      reached.push_back(std::move(point));
    }
    for (std::size_t i = loops.size(); i-- > 0;) {
      if (++at[i] < loops[i].min + loops[i].extent) break;
      at[i] = loops[i].min;
    }
  }
  std::vector<std::int64_t> low, width;
  if (reached.empty() || !is_full(reached, low, width)) return std::nullopt;
  for (std::size_t d = 0; d < region.size(); ++d) {
    const DType type = out[d].base->dtype;
    out[d].base = analyzer.simplify(out[d].base + make_int(low[d], type));
    out[d].widths = {make_int(width[d], type)};
  }
  return out;
}

}  // namespace weft::schedule
