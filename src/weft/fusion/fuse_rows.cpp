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

/// A shape of which some axes are reduced: rows of the elements along these. None reduced: a map.
struct Rows {
  Dims shape;
  std::uint64_t mask = 0;
  bool host = false;  // kernels of hosts take operands that are broadcast in any way

  bool reduced(int axis) const { return mask >> axis & 1; }
  std::int64_t count() const { return extent(false); }
  std::int64_t columns() const { return extent(true); }
  std::int64_t extent(bool along) const {
    std::int64_t n = 1;
    for (int i = 0; i < shape.size(); ++i)
      if (reduced(i) == along) n *= shape[i];
    return n;
  }
  bool operator==(const Rows& o) const { return shape == o.shape && mask == o.mask; }
  /// The shape with ones where axes are reduced.
  Dims of_rows() const {
    Dims out = shape;
    for (int i = 0; i < out.size(); ++i)
      if (reduced(i)) out[i] = 1;
    return out;
  }

  /// How a value of this shape moves over the matrix when it is broadcast; none: in another way.
  std::optional<RowExtent> extent_of(const Dims& s) const {
    const int missing = shape.size() - s.size();
    if (missing < 0) return {};
    bool moves[2] = {}, rests[2] = {};  // down the rows, along them
    for (int i = 0; i < shape.size(); ++i) {
      const std::int64_t size = i < missing ? 1 : s[i - missing];
      if (size != 1 && size != shape[i]) return {};
      moves[reduced(i)] |= size != 1;
      rests[reduced(i)] |= size == 1 && shape[i] != 1;
    }
    if (!host && ((moves[0] && rests[0]) || (moves[1] && rests[1]))) return {};
    return moves[0] ? (moves[1] ? RowExtent::element : RowExtent::row)
                    : (moves[1] ? RowExtent::column : RowExtent::one);
  }
};

bool moves_along(RowExtent e) { return e == RowExtent::element || e == RowExtent::column; }
bool reduces(const Step& s) { return s.node->kind == LazyKind::reduce; }
/// Whether the step's value can be part of a kernel: operations that stand alone have a form too.
bool has_form(const Step& s) {
  return s.kind == StepKind::map || s.kind == StepKind::reduce || s.single;
}
bool has_kernel(Elem e, bool host) {
  return !is_complex(e) && !is_float8(e) && (host || e != Elem::float64);
}

/// The matrix whose rows a step reduces: on a grid those of the last axes.
std::optional<Rows> rows_of(const Step& s, bool host) {
  if (!has_form(s) || !reduces(s) || s.node->mask == 0) return {};
  const Rows rows{s.shape, s.node->mask, host};
  if (host) return rows;
  const ReduceOp op = s.node->reduction;
  if (op != ReduceOp::sum && op != ReduceOp::max && op != ReduceOp::min) return {};
  if (!is_real_float(s.elem)) return {};
  for (int i = 0; i + 1 < s.shape.size(); ++i)
    if (rows.reduced(i) && !rows.reduced(i + 1)) return {};
  return rows.reduced(s.shape.size() - 1) ? std::optional(rows) : std::nullopt;
}

class RowGroup {
 public:
  /// `seed`: the first step of a group of maps, which those join that read what the group reads.
  RowGroup(const std::vector<Step>& steps, Rows rows, std::size_t seed = 0)
      : steps_(steps), rows_(std::move(rows)) {
    for (std::size_t k = seed; k < steps.size(); ++k) consider(k);
    if (rows_.mask != 0) prune();
  }

  bool worthwhile() const {
    if (members_.size() < 2) return false;
    auto is_reduction = [&](std::size_t k) { return reduces(steps_[k]); };
    if (rows_.mask != 0 && std::none_of(members_.begin(), members_.end(), is_reduction))
      return false;
    if (!rows_.host) return true;
    // A few operations on a few elements take no longer than a launch.
    constexpr std::int64_t kFew = 1024, kLong = 1 << 16;
    constexpr std::size_t kOperations = 3;
    std::size_t operations = 0;
    for (std::size_t k : members_) {
      const Step& s = steps_[k];
      operations += s.kind == StepKind::eager ? 1
                    : s.brief.empty()         ? kOperations + 1
                                              : s.brief.size();
    }
    const std::int64_t count = rows_.count(), size = count * rows_.columns();
    if (size == 0 || (size <= kFew && operations <= kOperations)) return false;
    // One long row has no parts that threads could take in several passes.
    return rows_.mask == 0 || count > 1 || size < kLong;
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
    if (!has_form(s) || !has_kernel(s.elem, rows_.host)) return {};
    std::optional<RowExtent> extent;
    if (reduces(s)) {
      if (rows_of(s, rows_.host) == rows_) extent = RowExtent::row;
    } else if (s.shape == rows_.shape) {
      extent = RowExtent::element;
    } else if (s.shape == rows_.of_rows()) {
      extent = RowExtent::row;
    }
    bool arrays = false;
    for (std::size_t i = 0; extent && i < s.in.size(); ++i) {
      if (s.in[i] < 0) continue;  // a number
      arrays = true;
      const LazyNode& leaf = *s.leaves[i];
      const auto e = rows_.extent_of(leaf.shape);
      if (!e || !has_kernel(leaf.elem, rows_.host) || behind_.count(s.in[i])) return {};
      if (moves_along(*e) && !reduces(s) && extent == RowExtent::row) return {};
      const auto made = made_.find(s.in[i]);
      if (made != made_.end() && !is_aligned(leaf.shape, made->second)) return {};
    }
    return arrays ? extent : std::nullopt;
  }
  /// A row's numbers without the reduced axes may be read as if they lay along other ones.
  bool is_aligned(const Dims& s, RowExtent made) const {
    const Dims want = made == RowExtent::element ? rows_.shape : rows_.of_rows();
    const int missing = want.size() - s.size();
    for (int i = 0; i < want.size(); ++i)
      if ((i < missing ? 1 : s[i - missing]) != want[i]) return false;
    return true;
  }
  /// Whether the kernel has room for the step's arrays, and reason to compute it.
  bool takes(const Step& s) const {
    if (!rows_.host) return true;
    constexpr std::size_t kMostArrays = 24;
    std::set<int> all = read_;
    bool shared = false;
    for (int slot : s.in) {
      if (slot < 0) continue;
      shared |= made_.count(slot) > 0 || !all.insert(slot).second;
    }
    return all.size() + members_.size() < kMostArrays &&
           (rows_.mask != 0 || members_.empty() || shared);
  }

  void consider(std::size_t k) {
    const Step& s = steps_[k];
    if (const auto extent = extent_of(s); extent && takes(s)) {
      for (int slot : s.in)
        if (slot >= 0 && !made_.count(slot)) read_.insert(slot);
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
                       [&](int slot) { return slot < 0 || read.count(slot) > 0; });
  }

  /// Maps that neither exchange values with the rest of the group nor share what they read leave
  /// it.
  void prune() {
    for (std::size_t i = members_.size(); i-- > 0;) {
      const std::size_t k = members_[i];
      const Step& s = steps_[k];
      if (reduces(s)) continue;
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
    if (rows_.host) {
      of_host(step, read);
      return step;
    }
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
      row.reduces = reduces(s);
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

  void of_host(Step& step, const std::set<int>& read) const {
    RowKernelStep& rows = *step.rows;
    step.shape = rows_.shape;
    rows.mask = rows_.mask;
    for (std::size_t k : members_) {
      const Step& s = steps_[k];
      rows.values.push_back(s.node);
      rows.kept.push_back(read.count(s.out) > 0);
      if (rows.kept.back()) {
        rows.out.push_back(s.out);
        rows.elems.push_back(s.elem);
        rows.shapes.push_back(s.node.shape());
      }
      for (std::size_t i = 0; i < s.in.size(); ++i) {
        const LazyNode* leaf = s.leaves[i];
        if (s.in[i] < 0 || made_.count(s.in[i]) ||
            std::find(step.leaves.begin(), step.leaves.end(), leaf) != step.leaves.end())
          continue;
        step.leaves.push_back(leaf);
        step.in.push_back(s.in[i]);
      }
    }
  }

  const std::vector<Step>& steps_;
  Rows rows_;
  std::set<int> read_;                        // slots that members read and none makes
  std::vector<std::size_t> members_;          // in the plan's order
  std::map<std::size_t, RowExtent> extents_;  // of members' results
  std::map<int, RowExtent> made_;             // slots that members make
  std::set<int> behind_;                      // slots that others make of those
};

}  // namespace

std::vector<Step> join_rows(std::vector<Step> steps, const std::vector<int>& outputs,
                            const Ref<Device>& device) {
  const bool host = !device || device->info().host_accessible;
  std::vector<Rows> tried;
  for (std::size_t k = 0; k < steps.size(); ++k) {
    const auto rows = rows_of(steps[k], host);
    if (!rows || std::find(tried.begin(), tried.end(), *rows) != tried.end()) continue;
    tried.push_back(*rows);
    const RowGroup group(steps, *rows);
    if (!group.worthwhile()) continue;
    if (!host && !device::fused_rows_fit(device, rows->count(), rows->columns(), group.arrays()))
      continue;
    steps = group.joined(outputs);
    k = static_cast<std::size_t>(-1);
  }
  for (std::size_t k = 0; host && k < steps.size(); ++k) {
    if (!has_form(steps[k]) || reduces(steps[k])) continue;
    const RowGroup group(steps, Rows{steps[k].shape, 0, host}, k);
    if (group.worthwhile()) steps = group.joined(outputs);
  }
  return steps;
}

}  // namespace weft
