// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/vta/tiles.h"

#include <algorithm>

#include "weft/targets/vta/chain.h"

namespace weft::vta {

namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Candidate sizes along one axis: those with different numbers of tiles, thinned out when many.
std::vector<std::int64_t> candidates(std::int64_t extent, std::size_t most) {
  std::vector<std::int64_t> out;
  for (std::int64_t t = extent; t >= 1;) {
    out.push_back(t);
    if (t == 1) break;
    std::int64_t n = ceil_div(extent, t) + 1;  // one tile more
    t = std::min(t - 1, ceil_div(extent, n));
  }
  if (out.size() <= most) return out;
  std::vector<std::int64_t> thin;
  for (std::size_t i = 0; i < most; ++i) thin.push_back(out[i * (out.size() - 1) / (most - 1)]);
  // The powers of two among the small ones matter most.
  for (std::int64_t t : out) {
    if ((t & (t - 1)) == 0 && std::find(thin.begin(), thin.end(), t) == thin.end())
      thin.push_back(t);
  }
  return thin;
}

struct Shape {
  std::int64_t transfers = 1, rows = 1;
};

/// How a tile of this layout moves: rectangles of rows.
Shape moves(const Operand& o, const Layout& l, const Task& s,
            const std::vector<std::int64_t>& tile) {
  Shape out;
  int stage = 0;  // 0: columns grow, 1: rows grow, 2: one transfer each
  bool whole = true;
  for (std::size_t i = l.dims.size(); i-- > 0;) {
    const PackedDim& p = l.dims[i];
    std::int64_t n = 1;
    if (p.window) {
      for (std::size_t a = 0; a < s.axes.size(); ++a)
        n += std::abs(o.index[p.dim].coeff(s.axes[a].var.get())) * (tile[a] - 1);
      n = std::min(n, p.extent);
    } else {
      n = std::min(tile[p.axis], p.extent);
    }
    if (n > 1) {
      if (!whole) ++stage, whole = true;
      if (stage == 1) out.rows *= n;
      if (stage > 1) out.transfers *= n;
    }
    whole = whole && n == p.extent;
  }
  return out;
}

}  // namespace

Laid lay_out(const Task& s, const Config& c) {
  Laid out;
  out.lanes = choose_lanes(s, c);
  const Lanes& l = out.lanes;
  std::array<std::int64_t, 2> acc{c.batch(), c.block_out()};
  if (s.kind == Task::Kind::product) {
    out.x = layout_of(l.swapped ? s.w : s.x, s, {l.batch, l.in}, {c.batch(), c.block_in()}, false,
                      true);
    out.w = layout_of(l.swapped ? s.x : s.w, s, {l.out, l.in}, {c.block_out(), c.block_in()}, false,
                      false);
  } else if (s.kind == Task::Kind::reduction) {
    out.x = layout_of(s.x, s, {l.batch, l.out}, acc, true, false);
  }
  for (const Operand& o : s.operands)
    out.operands.push_back(*layout_of(o, s, {l.batch, l.out}, acc, true, false));
  for (const Segment& segment : s.chain) {
    out.stores.push_back(
        segment.store ? *layout_of(target_of(segment), s, {l.batch, l.out}, acc, false, false)
                      : Layout{});
  }
  return out;
}

std::int64_t tile_elements(const Operand& o, const Layout& l, const Task& s,
                           const std::vector<std::int64_t>& tile) {
  std::int64_t out = 1;
  for (const PackedDim& p : l.dims) {
    std::int64_t n = 1;
    if (p.window) {
      for (std::size_t a = 0; a < s.axes.size(); ++a)
        n += std::abs(o.index[p.dim].coeff(s.axes[a].var.get())) * (tile[a] - 1);
    } else {
      n = tile[p.axis];
    }
    out *= n;
  }
  return out;
}

int level_of(const Operand& o, const Task& s, const Tiles& t) {
  int level = -1;
  for (std::size_t i = 0; i < t.order.size(); ++i) {
    if (t.count(t.order[i]) > 1 && uses(o, s.axes[t.order[i]])) level = static_cast<int>(i);
  }
  return level;
}

namespace {

class Search {
 public:
  Search(const Task& s, const Laid& laid, const Config& c, const TimingParams& t,
         const TileWish& wish)
      : s_(s), laid_(laid), c_(c), t_(t), wish_(wish), chain_(compile_chain(s)) {
    for (std::size_t a = 0; a < s.axes.size(); ++a) {
      best_.outer.push_back(outer_extent(s, laid.lanes, c, a));
      best_.tile.push_back(1);
    }
    product_ = s.kind == Task::Kind::product;
    reduction_ = s.kind == Task::Kind::reduction;
    const Lanes& l = laid.lanes;
    x_ = product_ && l.swapped ? &s.w : &s.x;
    w_ = product_ && l.swapped ? &s.x : &s.w;
    // Windows that LOAD pads stay whole, so that no tile lies in the padding altogether.
    whole_.assign(s.axes.size(), false);
    for (const PackedDim& p : product_&& laid.x->guard ? laid.x->dims : std::vector<PackedDim>{}) {
      for (std::size_t a = 0; p.window && a < s.axes.size(); ++a) {
        if (s.axes[a].reduce && x_->index[p.dim].coeff(s.axes[a].var.get()) != 0) whole_[a] = true;
      }
    }
  }

  Tiles run() {
    std::size_t wide = 0;
    for (std::int64_t n : best_.outer) wide += n > 1;
    std::size_t most = wide <= 3 ? 24 : wide <= 4 ? 12 : wide <= 5 ? 8 : 5;
    for (int places : {2, 1}) {
      places_ = places;
      Tiles t = best_;
      for (int order : {0, 1}) {
        arrange(t, order);
        walk(t, 0, most);
      }
      if (found_) return best_;
    }
    too_big();
  }

 private:
  /// Tile loops: shared axes, then rows before columns or the other way, then sums.
  void arrange(Tiles& t, int order) const {
    t.order.clear();
    auto rank = [&](std::size_t a) {
      const Axis& axis = s_.axes[a];
      if (axis.reduce) return 4;
      if (!product_) return 1;
      bool in_x = uses(*x_, axis), in_w = uses(*w_, axis);
      if (in_x && in_w) return 0;
      return in_w == (order == 0) ? 1 : 2;
    };
    for (std::size_t a = 0; a < s_.axes.size(); ++a) t.order.push_back(a);
    std::stable_sort(t.order.begin(), t.order.end(),
                     [&](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
  }

  void walk(Tiles& t, std::size_t a, std::size_t most) {
    if (a == s_.axes.size()) {
      if (wish_.threads > 1 && !threads_fit(t)) return;
      double cycles = cost(t);
      if (cycles >= 0 && (!found_ || cycles < best_.cycles)) {
        found_ = true;
        best_ = t;
        best_.cycles = cycles;
      }
      return;
    }
    const bool given = a < wish_.tile.size() && wish_.tile[a] > 0;
    for (std::int64_t n :
         given ? std::vector{std::min(wish_.tile[a], t.outer[a])} : candidates(t.outer[a], most)) {
      t.tile[a] = n;
      walk(t, a + 1, most);
      if (whole_[a]) break;  // the first candidate is all of it
    }
    t.tile[a] = 1;
  }

  bool threads_fit(const Tiles& t) const {
    for (std::size_t a = 0; a < s_.axes.size(); ++a) {
      if (!s_.axes[a].reduce && t.count(a) % wish_.threads == 0) return true;
    }
    return false;
  }

  double runs(const Tiles& t, int level) const {
    double n = 1;
    for (int i = 0; i <= level; ++i)
      n *= static_cast<double>(t.count(t.order[static_cast<std::size_t>(i)]));
    return n;
  }

  std::int64_t places(double runs) const { return runs > 1 ? places_ : 1; }

  /// Estimated cycles; negative: does not fit.
  double cost(const Tiles& t) const {
    std::int64_t acc = 1, uops = 1, big[2] = {1, 1};
    double out_runs = 1, all_runs = 1, steps = 1;
    for (std::size_t a = 0; a < s_.axes.size(); ++a) {
      double n = static_cast<double>(t.count(a));
      all_runs *= n;
      steps *= static_cast<double>(t.outer[a]);
      if (!s_.axes[a].reduce) acc *= t.tile[a], out_runs *= n;
      uops *= t.tile[a];
      std::int64_t e = t.tile[a];
      if (e > big[0]) std::swap(e, big[0]);
      if (e > big[1]) std::swap(e, big[1]);
    }
    double out_elements = steps / reduced(t);
    uops /= big[0] * big[1];
    std::int64_t depth = c_.depth(MemType::acc);
    std::int64_t acc_need = acc * chain_.buffers * places(out_runs);
    double loads = 0, compute = 0, first = 0;
    auto transfer = [&](const Operand& o, const Layout& l, std::int64_t bytes) {
      Shape m = moves(o, l, s_, t.tile);
      return static_cast<double>(m.transfers * t_.latency + m.rows * m.transfers * t_.row_cycles) +
             static_cast<double>(tile_elements(o, l, s_, t.tile) * bytes) /
                 static_cast<double>(t_.bus_bytes);
    };
    auto fetched = [&](const Operand& o, const Layout& l, MemType mem, double& into) {
      double n = runs(t, level_of(o, s_, t));
      double each = transfer(o, l, c_.elem_bytes(mem));
      into += n * each;
      return std::pair{n, each};
    };
    if (product_) {
      auto [nx, ex] = fetched(*x_, *laid_.x, MemType::inp, loads);
      auto [nw, ew] = fetched(*w_, *laid_.w, MemType::wgt, loads);
      first = ex + ew;
      if (tile_elements(*x_, *laid_.x, s_, t.tile) * places(nx) > c_.depth(MemType::inp)) return -1;
      if (tile_elements(*w_, *laid_.w, s_, t.tile) * places(nw) > c_.depth(MemType::wgt)) return -1;
      if (uops > c_.depth(MemType::uop) / 4) return -1;
      compute +=
          steps + all_runs * static_cast<double>(t_.gemm_fill) + static_cast<double>(uops) / 2;
    }
    if (reduction_) {
      auto [n, each] = fetched(*x_, *laid_.x, MemType::acc8, compute);
      acc_need += tile_elements(*x_, *laid_.x, s_, t.tile) * places(n);
      if (uops > c_.depth(MemType::uop) / 4) return -1;
      compute += 2 * steps;
    }
    for (std::size_t i = 0; i < s_.operands.size(); ++i) {
      MemType mem = s_.operands[i].buffer->dtype == dtypes::int8 ? MemType::acc8 : MemType::acc;
      auto [n, each] = fetched(s_.operands[i], laid_.operands[i], mem, compute);
      acc_need += tile_elements(s_.operands[i], laid_.operands[i], s_, t.tile) * places(n);
    }
    if (acc_need > depth) return -1;
    double chain = static_cast<double>(chain_.cycles(t_.alu_imm_uop, t_.alu_acc_uop) + 1);
    compute += out_elements * chain + out_runs * static_cast<double>(chain_.steps.size()) *
                                          static_cast<double>(t_.alu_fill);
    double stores = 0, tail = 0;
    for (const ChainStep& step : chain_.steps) {
      if (step.kind != ChainStep::Kind::store) continue;
      const Segment& segment = s_.chain[step.segment];
      double each =
          transfer(target_of(segment), laid_.stores[step.segment], c_.elem_bytes(MemType::out));
      stores += out_runs * each, tail = each;
    }
    tail += static_cast<double>(acc) * chain;
    return std::max({loads, compute, stores}) + first + tail +
           all_runs * static_cast<double>(2 * t_.fetch_bytes / t_.bus_bytes);
  }

  double reduced(const Tiles& t) const {
    double n = 1;
    for (std::size_t a = 0; a < s_.axes.size(); ++a) {
      if (s_.axes[a].reduce) n *= static_cast<double>(t.outer[a]);
    }
    return n;
  }

  [[noreturn]] void too_big() const {
    std::vector<std::int64_t> one(s_.axes.size(), 1);
    Error error(ErrorKind::lower, "vta.accepts.capacity",
                cat("block \"", s_.name, "\" does not fit with the smallest tiles"));
    if (product_) {
      error.note(cat("vta.inp: ", tile_elements(*x_, *laid_.x, s_, one), " of ",
                     c_.depth(MemType::inp), " elements"));
      error.note(cat("vta.wgt: ", tile_elements(*w_, *laid_.w, s_, one), " of ",
                     c_.depth(MemType::wgt), " elements"));
    }
    std::int64_t acc = chain_.buffers;
    for (std::size_t i = 0; i < s_.operands.size(); ++i)
      acc += tile_elements(s_.operands[i], laid_.operands[i], s_, one);
    throw error.note(cat("vta.acc: ", acc, " of ", c_.depth(MemType::acc), " elements"));
  }

  const Task& s_;
  const Laid& laid_;
  const Config& c_;
  TimingParams t_;
  const TileWish& wish_;
  ChainProgram chain_;
  bool product_ = false, reduction_ = false, found_ = false;
  int places_ = 2;
  const Operand *x_ = nullptr, *w_ = nullptr;
  std::vector<bool> whole_;
  Tiles best_;
};

}  // namespace

Tiles choose_tiles(const Task& s, const Laid& laid, const Config& c, const TimingParams& timing,
                   const TileWish& wish) {
  return Search(s, laid, c, timing, wish).run();
}

}  // namespace weft::vta
