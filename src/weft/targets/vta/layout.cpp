// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/vta/layout.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "weft/base/integers.h"
#include "weft/ir/build.h"

namespace weft::vta {

using namespace ir;

namespace {

constexpr std::int64_t kMaxPad = 15;
constexpr std::int64_t kDefaultAlign = 64;  // of a buffer that is declared without one

std::int64_t extent_or_one(const Expr& e) {
  std::int64_t n = 1;
  is_const_int(e, &n);
  return n;
}

std::vector<std::int64_t> strides(const Buffer& b) {
  std::vector<std::int64_t> out(b->ndim(), 1);
  for (std::size_t d = b->ndim(); d-- > 1;) out[d - 1] = out[d] * extent_or_one(b->shape[d]);
  return out;
}

/// Whether different points of the axes give different indices, without windows: a mixed radix.
bool mixed_radix(const Linear& l, const Task& s, bool strided) {
  std::vector<std::pair<std::int64_t, std::int64_t>> parts;  // |coeff|, extent
  for (const auto& [v, c] : l.terms) {
    for (const Axis& a : s.axes) {
      if (a.var.get() == v) parts.emplace_back(c < 0 ? -c : c, a.extent);
    }
  }
  std::sort(parts.begin(), parts.end());
  if (!strided && !parts.empty() && parts[0].first != 1) return false;
  std::int64_t reach = 1;
  for (auto [c, n] : parts) {
    if (c < reach) return false;
    reach = c * n;
  }
  return true;
}

}  // namespace

bool uses(const Operand& o, const Axis& a) {
  return std::any_of(o.index.begin(), o.index.end(),
                     [&](const Linear& l) { return l.coeff(a.var.get()) != 0; });
}

std::int64_t outer_extent(const Task& s, const Lanes& l, const Config& c, std::size_t axis) {
  std::int64_t n = s.axes[axis].extent;
  auto i = static_cast<int>(axis);
  if (i == l.batch) return ceil_div(n, c.batch());
  if (i == l.out) return ceil_div(n, c.block_out());
  if (i == l.in) return ceil_div(n, c.block_in());
  return n;
}

Operand target_of(const Segment& segment) {
  Operand o;
  o.buffer = segment.store;
  o.index = segment.index;
  for (const Expr& e : segment.store->shape) o.bounds.push_back({0, extent_or_one(e)});
  return o;
}

namespace {

/// Windows of one place with a stride, as 1 x 1 convolutions have them, leave rows out. Columns of
/// a transfer are neighbours, so the innermost dimension is read as a whole.
void skip_rows(Layout& l, const Operand& o, const Task& s) {
  bool columns = true;
  for (std::size_t i = l.dims.size(); i-- > 0;) {
    PackedDim& p = l.dims[i];
    if (p.extent == 1) continue;
    if (std::exchange(columns, false) || !p.window) continue;
    std::int64_t step = 0;
    for (const Axis& a : s.axes) {
      if (a.extent > 1) step = std::gcd(step, o.index[p.dim].coeff(a.var.get()));
    }
    if (step > 1) p.step = step, p.shift = range_of(o.index[p.dim], s.axes).first;
  }
}

std::optional<Layout> layout_with(const Operand& o, const Task& s, std::array<int, 2> lane_axis,
                                  std::array<std::int64_t, 2> lanes, bool may_replicate,
                                  bool strided, bool dma_pads) {
  Layout out;
  out.lanes = lanes;
  out.lane_axis = lane_axis;
  std::vector<std::int64_t> step = strides(o.buffer);
  std::vector<bool> has(s.axes.size(), false);
  struct Loop {
    std::int64_t extent, from, lane;  // flat step in the array
  };
  std::vector<Loop> loops;
  auto flat_step = [&](const Axis& a) {
    std::int64_t total = 0;
    for (std::size_t d = 0; d < o.index.size(); ++d)
      total += o.index[d].coeff(a.var.get()) * step[d];
    return total;
  };
  std::int64_t offset = 0;
  bool guarded = false, rearranged = false;
  for (std::size_t d = 0; d < o.index.size(); ++d) {
    const Linear& l = o.index[d];
    auto [low, high] = range_of(l, s.axes);
    bool outside = low < o.bounds[d].low || high >= o.bounds[d].high;
    if (l.terms.empty() && !outside) {
      offset += l.base * step[d];
      continue;
    }
    if (!outside && mixed_radix(l, s, strided)) {
      offset += l.base * step[d];
      std::vector<std::pair<std::int64_t, std::size_t>> order;
      for (std::size_t a = 0; a < s.axes.size(); ++a) {
        std::int64_t c = l.coeff(s.axes[a].var.get());
        if (c != 0) order.emplace_back(c < 0 ? c : -c, a);
        rearranged |= c < 0;
      }
      std::sort(order.begin(), order.end());
      for (auto [c, a] : order) {
        if (has[a]) {
          rearranged = true;
          continue;
        }
        has[a] = true;
        PackedDim p;
        p.axis = a;
        std::int64_t lane = 1;
        for (std::size_t k = 0; k < 2; ++k) {
          if (lane_axis[k] == static_cast<int>(a)) lane = lanes[k];
        }
        p.extent = ceil_div(s.axes[a].extent, lane);
        guarded |= s.axes[a].extent % lane != 0;
        out.dims.push_back(p);
        loops.push_back({p.extent, flat_step(s.axes[a]), lane});
      }
      continue;
    }
    for (const auto& [v, c] : l.terms) {
      for (std::size_t k = 0; k < 2; ++k) {
        if (lane_axis[k] >= 0 && s.axes[static_cast<std::size_t>(lane_axis[k])].var.get() == v)
          return std::nullopt;
      }
    }
    PackedDim p;
    p.window = true, p.dim = d;
    std::int64_t size = extent_or_one(o.buffer->shape[d]);
    if (outside && !dma_pads) {
      p.extent = high - low + 1, p.shift = low;
      rearranged = true;
    } else {
      p.extent = size;
      out.guard |= outside;
    }
    out.dims.push_back(p);
    loops.push_back({p.extent, step[d], 1});
  }
  for (std::size_t k = 0; k < 2; ++k) {
    if (lane_axis[k] < 0) {
      out.replicate[k] = may_replicate;
      guarded |= lanes[k] > 1;
      continue;
    }
    if (has[static_cast<std::size_t>(lane_axis[k])]) continue;
    if (!may_replicate) return std::nullopt;
    out.replicate[k] = true, rearranged |= lanes[k] > 1;
  }
  for (const PackedDim& p : out.dims) out.elements *= p.extent;
  // The array itself, when every step agrees.
  std::int64_t total = 1, at = lanes[0] * lanes[1];
  for (const Expr& e : o.buffer->shape) total *= extent_or_one(e);
  // Arrays are taken to begin at whole elements but where their declaration says less.
  const std::int64_t element = at * o.buffer->dtype.bytes();
  const bool aligned = o.buffer->align >= std::min<std::int64_t>(element, kDefaultAlign);
  bool same = aligned && !guarded && !rearranged && offset == 0 && total == out.elements * at;
  for (std::size_t k = 0; k < 2; ++k) {
    if (lanes[k] == 1 || lane_axis[k] < 0) continue;
    std::int64_t want = k == 0 ? lanes[1] : 1;
    same = same && flat_step(s.axes[static_cast<std::size_t>(lane_axis[k])]) == want;
  }
  for (std::size_t i = loops.size(); i-- > 0;) {
    same = same && (loops[i].extent == 1 || loops[i].from * loops[i].lane == at);
    at *= loops[i].extent;
  }
  out.identity = same;
  if (same && dma_pads && !out.guard) skip_rows(out, o, s);
  // DMA pads rows and columns only: the two innermost dimensions, at most 15 elements.
  if (out.guard) {
    int inner = 0;  // dimensions inside this one
    for (std::size_t i = out.dims.size(); i-- > 0;) {
      const PackedDim& p = out.dims[i];
      if (p.extent > 1) ++inner;
      if (!p.window) continue;
      const Bounds& bound = o.bounds[p.dim];
      auto [low, high] = range_of(o.index[p.dim], s.axes);
      bool outside = low < bound.low || high >= bound.high;
      // Every tile must hold something: a window may not lie in the padding altogether.
      std::int64_t window = 0;
      for (const Axis& a : s.axes) {
        if (a.reduce) window += std::abs(o.index[p.dim].coeff(a.var.get())) * (a.extent - 1);
      }
      bool empty = low + window < bound.low || high - window >= bound.high;
      if (outside &&
          (empty || inner > 2 || bound.low - low > kMaxPad || high - bound.high + 1 > kMaxPad))
        return std::nullopt;
    }
  }
  return out;
}

}  // namespace

std::optional<Layout> layout_of(const Operand& o, const Task& s, std::array<int, 2> lane_axis,
                                std::array<std::int64_t, 2> lanes, bool may_replicate,
                                bool dma_pads) {
  // As it is, padded by DMA; else rearranged, with only what is read, padded by the host.
  for (bool pads : {true, false}) {
    if (pads && !dma_pads) continue;
    std::optional<Layout> l = layout_with(o, s, lane_axis, lanes, may_replicate, false, pads);
    if (l && l->identity) return l;
  }
  return layout_with(o, s, lane_axis, lanes, may_replicate, true, false);
}

Lanes choose_lanes(const Task& s, const Config& c) {
  bool product = s.kind == Task::Kind::product;
  auto count = static_cast<int>(s.axes.size());
  bool found = false;
  Lanes best;
  double best_work = 0, best_moved = 0;
  for (bool swapped : {false, true}) {
    if (swapped && !product) break;
    const Operand &x = swapped ? s.w : s.x, &w = swapped ? s.x : s.w;
    for (int batch = -1; batch < count; ++batch) {
      if (c.batch() == 1 && batch >= 0) break;
      for (int out = -1; out < count; ++out) {
        for (int in = -1; in < (product ? count : 0); ++in) {
          auto axis = [&](int i) -> const Axis& { return s.axes[static_cast<std::size_t>(i)]; };
          if (batch >= 0 && (batch == out || axis(batch).reduce)) continue;
          if (out >= 0 && axis(out).reduce) continue;
          if (product) {
            if (batch >= 0 && (!uses(x, axis(batch)) || uses(w, axis(batch)))) continue;
            if (out >= 0 && (uses(x, axis(out)) || !uses(w, axis(out)))) continue;
            if (in >= 0 && (!axis(in).reduce || !uses(x, axis(in)) || !uses(w, axis(in)))) continue;
          }
          Lanes l{batch, out, in, swapped};
          double work = static_cast<double>(batch < 0 ? c.batch() : 1) *
                        static_cast<double>(out < 0 ? c.block_out() : 1) *
                        static_cast<double>(product && in < 0 ? c.block_in() : 1);
          for (int i = 0; i < count; ++i) {
            std::int64_t lane = i == batch ? c.batch()
                                : i == out ? c.block_out()
                                : i == in  ? c.block_in()
                                           : 1;
            work *= static_cast<double>(outer_extent(s, l, c, static_cast<std::size_t>(i)) * lane);
          }
          if (found && work > best_work) continue;
          double moved = 0;
          bool good = true;
          auto consider = [&](const Operand& o, std::array<int, 2> a, std::array<std::int64_t, 2> n,
                              bool replicate) {
            if (!good) return;
            std::optional<Layout> layout = layout_of(o, s, a, n, replicate, true);
            good = layout.has_value();
            if (good && !layout->identity)
              moved += static_cast<double>(layout->elements * n[0] * n[1]);
          };
          if (product) {
            consider(x, {batch, in}, {c.batch(), c.block_in()}, false);
            consider(w, {out, in}, {c.block_out(), c.block_in()}, false);
          }
          if (s.kind == Task::Kind::reduction)
            consider(s.x, {batch, out}, {c.batch(), c.block_out()}, true);
          for (const Segment& segment : s.chain) {
            if (segment.store)
              consider(target_of(segment), {batch, out}, {c.batch(), c.block_out()}, false);
          }
          for (const Operand& o : s.operands)
            consider(o, {batch, out}, {c.batch(), c.block_out()}, true);
          if (!good || (found && work == best_work && moved >= best_moved)) continue;
          found = true, best = l, best_work = work, best_moved = moved;
        }
      }
    }
  }
  WEFT_CHECK(found, "block \"", s.name, "\" has no layout, though one without lanes always fits");
  return best;
}

}  // namespace weft::vta
