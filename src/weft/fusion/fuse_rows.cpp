// SPDX-License-Identifier: Apache-2.0
// Which steps of a plan become one kernel over rows.

#include <algorithm>
#include <optional>
#include <set>

#include "weft/fusion/fuse.h"
#include "weft/fusion/fuse_steps.h"

namespace weft {

using device::RowExtent;

namespace {

/// A shape whose axes from `first` on are reduced: a matrix of rows.
struct Rows {
  Dims shape;
  int first = 0;

  std::int64_t count() const { return extent(0, first); }
  std::int64_t columns() const { return extent(first, shape.size()); }
  std::int64_t extent(int from, int to) const {
    std::int64_t n = 1;
    for (int i = from; i < to; ++i) n *= shape[i];
    return n;
  }
  bool operator==(const Rows& o) const { return shape == o.shape && first == o.first; }

  /// How a value of this shape moves over the matrix when it is broadcast; none: in another way.
  std::optional<RowExtent> extent_of(const Dims& s) const {
    const int missing = shape.size() - s.size();
    if (missing < 0) return {};
    auto size = [&](int axis) { return axis < missing ? 1 : s[axis - missing]; };
    auto part = [&](int from, int to) -> std::optional<bool> {  // whether it moves there
      bool all = true, none = true;
      for (int i = from; i < to; ++i) all &= size(i) == shape[i], none &= size(i) == 1;
      return all || none ? std::optional(all && !(none && extent(from, to) == 1)) : std::nullopt;
    };
    const auto down = part(0, first), along = part(first, shape.size());
    if (!down || !along) return {};
    return *down ? (*along ? RowExtent::element : RowExtent::row)
                 : (*along ? RowExtent::column : RowExtent::one);
  }
};

bool moves_along(RowExtent e) { return e == RowExtent::element || e == RowExtent::column; }
bool has_kernel(Elem e) { return !is_complex(e) && !is_float8(e) && e != Elem::float64; }

/// The matrix that a reduction reads, where it reduces the last axes.
std::optional<Rows> rows_of(const Step& s) {
  if (s.kind != StepKind::reduce) return {};
  const ReduceOp op = s.node->reduction;
  if (op != ReduceOp::sum && op != ReduceOp::max && op != ReduceOp::min) return {};
  if (!is_real_float(s.elem) || s.node->mask == 0) return {};
  Rows rows{s.shape, 0};
  while (!(s.node->mask >> rows.first & 1)) ++rows.first;
  for (int i = rows.first; i < s.shape.size(); ++i)
    if (!(s.node->mask >> i & 1)) return {};
  return rows;
}

class RowGroup {
 public:
  RowGroup(const std::vector<Step>& steps, Rows rows) : steps_(steps), rows_(std::move(rows)) {
    for (std::size_t k = 0; k < steps.size(); ++k) consider(k);
    prune();
  }

  bool worthwhile() const {
    return members_.size() > 1 && std::any_of(members_.begin(), members_.end(), [&](std::size_t k) {
             return steps_[k].kind == StepKind::reduce;
           });
  }

  /// The plan's steps with the group as one.
  std::vector<Step> joined(const std::vector<int>& outputs) const {
    std::vector<Step> before, after;
    std::set<int> read(outputs.begin(), outputs.end());
    for (std::size_t k = 0; k < steps_.size(); ++k) {
      if (is_member(k)) continue;
      read.insert(steps_[k].in.begin(), steps_[k].in.end());
      (depends(steps_[k]) ? after : before).push_back(steps_[k]);
    }
    before.push_back(kernel(read));
    before.insert(before.end(), after.begin(), after.end());
    return before;
  }

  std::size_t arrays() const {
    std::set<int> moving;
    std::size_t count = 0;
    for (std::size_t k : members_) {
      count += extents_.at(k) == RowExtent::element;
      for (std::size_t i = 0; i < steps_[k].in.size(); ++i) {
        const RowExtent e = *rows_.extent_of(steps_[k].leaves[i]->shape);
        if (moves_along(e) && !made_.count(steps_[k].in[i])) moving.insert(steps_[k].in[i]);
      }
    }
    return count + moving.size();
  }
  const Rows& rows() const { return rows_; }

 private:
  bool is_member(std::size_t k) const {
    return std::find(members_.begin(), members_.end(), k) != members_.end();
  }
  bool depends(const Step& s) const {
    return std::any_of(s.in.begin(), s.in.end(),
                       [&](int i) { return made_.count(i) || behind_.count(i); });
  }

  /// What the step gives over the rows; none: it cannot be part of the kernel.
  std::optional<RowExtent> extent_of(const Step& s) const {
    if (s.kind != StepKind::map && s.kind != StepKind::reduce) return {};
    if (!has_kernel(s.elem)) return {};
    std::optional<RowExtent> extent;
    if (s.kind == StepKind::reduce) {
      if (rows_of(s) == rows_) extent = RowExtent::row;
    } else if (s.shape.size() == rows_.shape.size()) {
      extent = rows_.extent_of(s.shape);
      if (extent == RowExtent::column || extent == RowExtent::one) extent.reset();
    }
    if (!extent) return {};
    for (std::size_t i = 0; i < s.in.size(); ++i) {
      const LazyNode& leaf = *s.leaves[i];
      const auto e = rows_.extent_of(leaf.shape);
      if (!e || !has_kernel(leaf.elem) || behind_.count(s.in[i])) return {};
      const bool whole = moves_along(*e);
      if (whole && s.kind == StepKind::map && extent == RowExtent::row) return {};
      // A row's numbers without the reduced axes, read along the rows of a square matrix.
      const auto made = made_.find(s.in[i]);
      if (made != made_.end() && moves_along(made->second) != whole) return {};
    }
    return s.in.empty() ? std::nullopt : extent;
  }

  void consider(std::size_t k) {
    const Step& s = steps_[k];
    if (const auto extent = extent_of(s)) {
      members_.push_back(k);
      extents_[k] = *extent;
      made_[s.out] = *extent;
      return;
    }
    if (depends(s)) {
      for (int slot : s.results()) behind_.insert(slot);
    }
  }

  /// Whether the other members read all that the step reads.
  bool shares(std::size_t k) const {
    std::set<int> read;
    for (std::size_t m : members_)
      if (m != k) read.insert(steps_[m].in.begin(), steps_[m].in.end());
    return std::all_of(steps_[k].in.begin(), steps_[k].in.end(),
                       [&](int slot) { return read.count(slot) > 0; });
  }

  /// Maps that neither exchange values with the rest of the group nor share what they read leave
  /// it.
  void prune() {
    for (std::size_t i = members_.size(); i-- > 0;) {
      const std::size_t k = members_[i];
      const Step& s = steps_[k];
      if (s.kind == StepKind::reduce) continue;
      const bool reads =
          std::any_of(s.in.begin(), s.in.end(), [&](int slot) { return made_.count(slot) > 0; });
      const bool is_read = std::any_of(members_.begin(), members_.end(), [&](std::size_t m) {
        const auto& in = steps_[m].in;
        return std::find(in.begin(), in.end(), s.out) != in.end();
      });
      if (reads || is_read || shares(k)) continue;
      members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(i));
      made_.erase(s.out);
    }
  }

  Step kernel(const std::set<int>& read) const {
    Step step;
    step.kind = StepKind::rows;
    step.rows = std::make_shared<RowKernelStep>();
    device::FusedRows& p = step.rows->program;
    p.rows = rows_.count(), p.columns = rows_.columns();
    std::map<int, int> number;  // slot -> operand
    for (std::size_t k : members_) {
      const Step& s = steps_[k];
      for (std::size_t i = 0; i < s.in.size(); ++i) {
        if (made_.count(s.in[i]) || number.count(s.in[i])) continue;
        number[s.in[i]] = static_cast<int>(step.in.size());
        step.in.push_back(s.in[i]);
        p.extents.push_back(*rows_.extent_of(s.leaves[i]->shape));
        p.elems.push_back(s.leaves[i]->elem);
      }
    }
    for (std::size_t k : members_) {
      const Step& s = steps_[k];
      device::RowStep row;
      row.extent = extents_.at(k);
      row.reduces = s.kind == StepKind::reduce;
      if (row.reduces) row.op = s.node->reduction;
      row.elem = s.elem;
      for (int slot : s.in) row.in.push_back(number.at(slot));
      for (const LazyNode* n : s.numbers) row.numbers.push_back(n->number);
      row.value = [step = s](const std::vector<ir::Expr>& values,
                             const std::vector<ir::Expr>& numbers) {
        return step_value(step, values, numbers);
      };
      row.kept = read.count(s.out) > 0;
      if (row.kept) {
        step.rows->out.push_back(s.out);
        step.rows->elems.push_back(s.elem);
        step.rows->shapes.push_back(row.reduces ? s.node.shape() : s.shape);
      }
      number[s.out] = static_cast<int>(p.extents.size() + p.steps.size());
      p.steps.push_back(std::move(row));
      p.serial = s.serial;
    }
    return step;
  }

  const std::vector<Step>& steps_;
  Rows rows_;
  std::vector<std::size_t> members_;          // in the plan's order
  std::map<std::size_t, RowExtent> extents_;  // of members' results
  std::map<int, RowExtent> made_;             // slots that members make
  std::set<int> behind_;                      // slots that others make of those
};

}  // namespace

std::vector<Step> join_rows(std::vector<Step> steps, const std::vector<int>& outputs,
                            const Ref<Device>& device) {
  std::vector<Rows> tried;
  for (std::size_t k = 0; k < steps.size(); ++k) {
    const auto rows = rows_of(steps[k]);
    if (!rows || std::find(tried.begin(), tried.end(), *rows) != tried.end()) continue;
    tried.push_back(*rows);
    const RowGroup group(steps, *rows);
    if (!group.worthwhile() ||
        !device::fused_rows_fit(device, rows->count(), rows->columns(), group.arrays()))
      continue;
    steps = group.joined(outputs);
    k = static_cast<std::size_t>(-1);
  }
  return steps;
}

}  // namespace weft
