// SPDX-License-Identifier: Apache-2.0
#include "weft/schedule/counted_box.h"

#include <algorithm>
#include <set>

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

namespace {

/// The loops of both kinds that one side's expressions use, and these as code.
class Side {
 public:
  Side(const Touched& t, const std::vector<const ForNode*>& shared) {
    auto used = [&](const ForNode* loop) {
      const VarNode* v = loop->var.get();
      return uses_var(t.predicate, v) ||
             std::any_of(t.region.begin(), t.region.end(),
                         [&](const Range& r) { return uses_var(r.min, v); });
    };
    for (std::size_t i = 0; i < shared.size() + t.loops.size(); ++i) {
      const bool own = i >= shared.size();
      const ForNode* loop = own ? t.loops[i - shared.size()] : shared[i];
      Loop constant{loop};
      const bool known =
          is_const_int(loop->min, &constant.min) && is_const_int(loop->extent, &constant.extent);
      const bool needed = used(loop);
      if ((needed || own) && (!known || constant.extent < 1)) return;
      if (!needed) continue;
      if (!own) shared_.push_back(i);
      points_ *= std::min(constant.extent, 2 * kMostPoints);
      if (points_ > kMostPoints) return;
      loops_.push_back(constant);
    }
    width_ = t.region.size();
    for (const Range& r : t.region) {
      std::int64_t n = 0;
      if (!is_const_int(r.extent, &n) || n < 1 || !codes_.emplace_back().compile(r.min, loops_))
        return;
      extents_.push_back(n);
      volume_ *= std::min(n, 2 * kMostPoints);
      if (volume_ * points_ > kMostPoints) return;
    }
    good_ = codes_.emplace_back().compile(t.predicate, loops_);
  }
  bool good() const { return good_; }
  /// Places, among the shared loops, of those that this side uses; they come first in `at`.
  const std::vector<std::size_t>& shared() const { return shared_; }

  /// Calls f(values of the shared loops used, point); false when an expression has no value.
  template <typename F>
  bool each(const F& f) {
    std::vector<std::int64_t> at, low(width_), point(width_);
    for (const Loop& l : loops_) at.push_back(l.min);
    for (std::int64_t n = 0; n < points_; ++n) {
      std::int64_t runs = 0;
      if (!codes_.back().run(at, runs)) return false;
      for (std::size_t d = 0; runs && d < width_; ++d) {
        if (!codes_[d].run(at, low[d])) return false;
      }
      const std::vector<std::int64_t> key(at.begin(),
                                          at.begin() + static_cast<std::ptrdiff_t>(shared_.size()));
      for (std::int64_t k = 0; runs && k < volume_; ++k) {
        std::int64_t rest = k;
        for (std::size_t d = width_; d-- > 0; rest /= extents_[d])
          point[d] = low[d] + rest % extents_[d];
        f(key, point);
      }
      for (std::size_t i = loops_.size(); i-- > 0;) {
        if (++at[i] < loops_[i].min + loops_[i].extent) break;
        at[i] = loops_[i].min;
      }
    }
    return true;
  }

 private:
  std::vector<Loop> loops_;
  std::vector<std::size_t> shared_;
  std::vector<Code> codes_;  // one per dimension, then the predicate
  std::vector<std::int64_t> extents_;
  std::size_t width_ = 0;
  std::int64_t points_ = 1, volume_ = 1;
  bool good_ = false;
};

}  // namespace

bool counted_cover(const Touched& write, const Touched& read,
                   const std::vector<const ForNode*>& shared, const Buffer& buffer) {
  std::vector<std::int64_t> shape;
  for (const Expr& e : buffer->shape) {
    if (!is_const_int(e, &shape.emplace_back())) return false;
  }
  Side writer(write, shared), reader(read, shared);
  // What is written may depend on the shared loops that the reader's expressions name, no others.
  std::vector<std::size_t> places;
  for (std::size_t s : writer.shared()) {
    const auto found = std::find(reader.shared().begin(), reader.shared().end(), s);
    if (found == reader.shared().end()) return false;
    places.push_back(static_cast<std::size_t>(found - reader.shared().begin()));
  }
  if (!writer.good() || !reader.good()) return false;
  auto inside = [&](const std::vector<std::int64_t>& point) {
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (point[d] < 0 || point[d] >= shape[d]) return false;
    }
    return true;
  };
  std::set<std::vector<std::int64_t>> made;
  const bool counted = writer.each([&](std::vector<std::int64_t> key, const auto& point) {
    key.insert(key.end(), point.begin(), point.end());
    if (inside(point)) made.insert(std::move(key));
  });
  bool covered = true;
  return counted && reader.each([&](const auto& key, const auto& point) {
    if (!covered || !inside(point)) return;
    std::vector<std::int64_t> wanted;
    for (std::size_t p : places) wanted.push_back(key[p]);
    wanted.insert(wanted.end(), point.begin(), point.end());
    covered = made.count(wanted) != 0;
  }) && covered;
}

}  // namespace weft::schedule
