// SPDX-License-Identifier: Apache-2.0
// What a stage reads of a box's borders: whether the cells beyond the buffer can stand for the
// conditions around the reads, and whether it reads corners.
#include <algorithm>
#include <cmath>

#include "weft/arith/analyzer.h"
#include "weft/ir/build.h"
#include "weft/ir/visit.h"
#include "weft/targets/wse/emit_csl.h"

namespace weft::wse {

using namespace ir;

namespace {

bool is_positive_zero(const Expr& e) {
  if (const auto* f = as<FloatImmNode>(e)) return f->value == 0 && !std::signbit(f->value);
  const auto* i = as<IntImmNode>(e);
  return i && i->value == 0;
}

/// The iterator that alone moves along dimension d of the box, one element a step; the number of
/// iterators where none does, one more where the access is of another form.
std::size_t single_iterator(const Stage& s, const LocalArray& a, std::size_t d) {
  std::size_t found = s.iters.size();
  for (std::size_t k = 0; k < s.iters.size(); ++k) {
    if (a.coef[d][k] == 0) continue;
    if (a.coef[d][k] != 1 || found != s.iters.size()) return s.iters.size() + 1;
    found = k;
  }
  return found;
}

/// Whether nothing but zeros is ever beyond the buffer in the box: it begins as zeros, and every
/// PE's own part, of which borders are copies, lies inside.
bool zero_beyond(const StageProgram& p, const LocalArray& a) {
  const Redistribution& m = a.move;
  if (m.kind != Redistribution::Kind::halo) return false;
  const std::vector<std::int64_t>& shape = p.buffers[a.buffer].shape;
  for (std::size_t d = 0; d < m.parts.size(); ++d) {
    const Redistribution::Part& part = m.parts[d];
    if (part.partition == Partition::xy || a.along_data(d)) return false;
    const std::int64_t parts = part.partition == Partition::x   ? p.width
                               : part.partition == Partition::y ? p.height
                                                                : 1;
    if (m.box[d] * parts != shape[d] || (parts > 1 && part.chunk != m.box[d])) return false;
  }
  return true;
}

class BorderReads final : public Rewriter {
 public:
  BorderReads(const StageProgram& p, const Stage& s) : p_(p), s_(s) {}
  Expr rewrite(const Expr& e) override {
    Expr condition, yes, no;
    if (const auto* s = as<SelectNode>(e)) {
      condition = s->condition, yes = s->a, no = s->b;
    } else if (const auto* c = as<CallNode>(e); c && c->op == "if_then_else") {
      condition = c->args[0], yes = c->args[1], no = c->args[2];
    }
    if (condition && is_positive_zero(no)) {
      const Expr inner = rewrite(yes);  // conditions may be nested
      if (const auto* load = as<LoadNode>(inner); load && zero_where_false(condition, *load))
        return inner;
    }
    return Rewriter::rewrite(e);
  }

 private:
  /// Wherever the read stays in the buffer the condition holds, and elsewhere the box has zeros.
  bool zero_where_false(const Expr& condition, const LoadNode& load) const {
    std::vector<std::int64_t> at;
    const LocalArray* a = find_local(p_, s_, load, &at);
    if (!a || !zero_beyond(p_, *a)) return false;
    struct Range {
      std::int64_t begin, end;
    };
    std::vector<Range> inside;
    for (const StageIter& i : s_.iters) inside.push_back({0, i.extent});
    for (std::size_t d = 0; d < at.size(); ++d) {
      const std::size_t k = single_iterator(s_, *a, d);
      if (k > s_.iters.size()) return false;
      const std::int64_t last = at[d] + (k < s_.iters.size() ? s_.iters[k].chunk - 1 : 0);
      if (at[d] < 0 || last >= a->extent[d]) return false;  // not in the box
      const std::int64_t index = at[d] + a->base[d], shape = p_.buffers[a->buffer].shape[d];
      if (k == s_.iters.size()) {
        if (index < 0 || index >= shape) return false;
        continue;
      }
      inside[k].begin = std::max(inside[k].begin, -index);
      inside[k].end = std::min(inside[k].end, shape - index);
    }
    arith::Analyzer here;
    for (std::size_t k = 0; k < inside.size(); ++k) {
      if (inside[k].begin >= inside[k].end) return false;
      const Var& v = s_.iters[k].var;
      here.bind(v, {make_int(inside[k].begin, v->dtype),
                    make_int(inside[k].end - inside[k].begin, v->dtype)});
    }
    return here.prove(condition);
  }

  const StageProgram& p_;
  const Stage& s_;
};

}  // namespace

Expr without_border_conditions(const StageProgram& p, const Stage& s, const Expr& value) {
  return BorderReads(p, s).rewrite(value);
}

bool reads_corners(const StageProgram& p, const Stage& s, const LocalArray& a) {
  const Redistribution& m = a.move;
  bool corners = s.panels || s.guard;
  for_each_expr(s.value, [&](const Expr& e) {
    const auto* load = as<LoadNode>(e);
    std::vector<std::int64_t> at;
    if (!load || find_local(p, s, *load, &at) != &a) return;
    int sides = 0;
    for (std::size_t d = 0; d < at.size(); ++d) {
      if (m.parts[d].partition == Partition::none) continue;
      const std::size_t k = single_iterator(s, a, d);
      if (k > s.iters.size() || a.along_data(d)) {
        corners = true;
        return;
      }
      const std::int64_t last = at[d] + (k < s.iters.size() ? s.iters[k].chunk - 1 : 0);
      sides += at[d] < m.before[d] || last >= a.extent[d] - m.after[d];
    }
    corners |= sides > 1;
  });
  return corners;
}

}  // namespace weft::wse
