// SPDX-License-Identifier: Apache-2.0
#include "weft/fusion/host_passes.h"

#include <algorithm>

namespace weft::fuse {

namespace {

/// About how many additions an operation takes.
double own_cost(const Lazy& x) {
  constexpr double kRoot = 4, kFunction = 16, kHalf = 2;
  if (x->kind == LazyKind::cast) return elem_bytes(x.elem()) == 2 ? kHalf : 1;
  if (x->kind != LazyKind::elementwise) return 1;
  switch (x->op) {
    case Op::add:
    case Op::subtract:
    case Op::multiply:
    case Op::maximum:
    case Op::minimum:
    case Op::negative:
    case Op::abs:
    case Op::square:
    case Op::relu:
    case Op::equal:
    case Op::not_equal:
    case Op::less:
    case Op::less_equal:
    case Op::greater:
    case Op::greater_equal:
    case Op::logical_and:
    case Op::logical_or:
    case Op::logical_not: return 1;
    case Op::divide:
    case Op::reciprocal:
    case Op::sqrt: return kRoot;
    default: return kFunction;
  }
}

}  // namespace

HostPasses::HostPasses(const HostKernel& kernel, std::int64_t may_hold)
    : kernel_(kernel), room_(may_hold) {
  for (int i = 0; i < kernel.shape.size(); ++i)
    if (kernel.mask >> i & 1) row_ *= kernel.shape[i];
  for (std::size_t k = 0; k < kernel.leaves.size(); ++k) {
    bool moves = kernel.mask == 0;
    for (int i = 0; i < kernel.shape.size(); ++i)
      moves |= (kernel.mask >> i & 1) && kernel.shape[i] > 1 && kernel.steps[k][i] != 0;
    leaf_moves_[kernel.leaves[k]] = moves;
    leaf_number_[kernel.leaves[k]] = k;
  }
  std::size_t count = 1;
  std::size_t out = 0;
  for (std::size_t k = 0; k < kernel.values.size(); ++k) {
    const Lazy& x = kernel.values[k];
    const bool reduces = x->kind == LazyKind::reduce;
    if (reduces) reduced_.insert(x.node());
    if (reduces) count = std::max(count, level(x->in[0]) + 1);
    else if (kernel.kept[k] && !is_row_result(x)) count = std::max(count, level(x) + 1);
    out += kernel.kept[k];
  }
  passes_.resize(count);
  for (std::size_t k = 0; k < kernel.values.size(); ++k) {
    const Lazy& x = kernel.values[k];
    if (x->kind == LazyKind::reduce) passes_[level(x->in[0])].reductions.push_back(k);
    if (!kernel.kept[k]) continue;
    if (x->kind == LazyKind::reduce || is_row_result(x)) {
      of_rows_.push_back(k);
    } else {
      passes_[level(x)].elements.push_back(k);
      if (moves(x)) stored_[x.node()] = level(x);
    }
  }
  for (std::size_t p = 0; p < count; ++p)
    for (const Lazy& x : roots(p)) compute(x, p);
  for (std::size_t p = 0; p < count; ++p) {
    std::unordered_set<const LazyNode*> seen;
    for (const Lazy& x : roots(p)) read(x, p, seen);
  }
}

/// One element for each row: its shape has ones where the kernel's axes are reduced.
bool HostPasses::is_row_result(const Lazy& x) const {
  const Dims& s = x.shape();
  bool any = false;
  for (int i = 0; i < kernel_.shape.size(); ++i)
    any |= (kernel_.mask >> i & 1) && kernel_.shape[i] > 1 && s[i] == 1;
  return any;
}

bool HostPasses::moves(const Lazy& x) const {
  if (auto it = leaf_moves_.find(x.node()); it != leaf_moves_.end()) return it->second;
  if (reduced_.count(x.node()) || x->kind == LazyKind::number) return false;
  if (auto it = moves_.find(x.node()); it != moves_.end()) return it->second;
  const bool any = std::any_of(x->in.begin(), x->in.end(), [&](const Lazy& i) { return moves(i); });
  return moves_[x.node()] = any;
}

/// The first pass in which the value can be computed.
std::size_t HostPasses::level(const Lazy& x) const {
  if (is_leaf(x) || x->kind == LazyKind::number) return 0;
  if (auto it = levels_.find(x.node()); it != levels_.end()) return it->second;
  std::size_t most = 0;
  for (const Lazy& i : x->in) most = std::max(most, level(i));
  return levels_[x.node()] = most + reduced_.count(x.node());
}

double HostPasses::cost(const Lazy& x) const {
  if (x->kind == LazyKind::number || reduced_.count(x.node()) || !moves(x)) return 0;
  if (is_leaf(x)) return 1;
  if (auto it = costs_.find(x.node()); it != costs_.end()) return it->second;
  double total = own_cost(x);
  for (const Lazy& i : x->in) total += cost(i);
  return costs_[x.node()] = total;
}

std::vector<Lazy> HostPasses::roots(std::size_t pass) const {
  std::vector<Lazy> out;
  for (std::size_t k : passes_[pass].reductions) out.push_back(kernel_.values[k]->in[0]);
  for (std::size_t k : passes_[pass].elements) out.push_back(kernel_.values[k]);
  return out;
}

void HostPasses::compute(const Lazy& x, std::size_t pass) {
  constexpr double kHeld = 6;  // dearer values are stored and loaded
  if (is_leaf(x) || !moves(x)) return;
  if (auto it = stored_.find(x.node()); it != stored_.end() && it->second < pass) return;
  const auto [at, first] = computed_.emplace(x.node(), pass);
  if (!first && at->second < pass && cost(x) > kHeld && x.elem() != Elem::boolean) {
    const std::int64_t bytes = row_ * elem_bytes(x.elem());
    if (bytes <= room_) {
      room_ -= bytes;
      passes_[at->second].held.push_back(x);
      stored_[x.node()] = at->second;
      return;
    }
  }
  if (!first && at->second == pass) return;
  if (!first) at->second = pass;  // computed again: what lies below was seen for another pass
  for (const Lazy& i : x->in) compute(i, pass);
}

void HostPasses::read(const Lazy& x, std::size_t pass, std::unordered_set<const LazyNode*>& seen) {
  if (x->kind == LazyKind::number || !seen.insert(x.node()).second) return;
  HostPass& p = passes_[pass];
  if (!moves(x)) return p.numbers.push_back(x);
  if (is_leaf(x)) return p.leaves.push_back(leaf_number_.at(x.node()));
  if (auto it = stored_.find(x.node()); it != stored_.end() && it->second < pass) return;
  for (const Lazy& i : x->in) read(i, pass, seen);
}

}  // namespace weft::fuse
