// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/vta/tiles.h"

#include <algorithm>

#include "weft/base/integers.h"
#include "weft/targets/vta/chain.h"
#include "weft/targets/vta/tile_flow.h"

namespace weft::vta {

namespace {

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

}  // namespace

StageLayout lay_out(const Task& s, const Config& c) {
  StageLayout out;
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

bool kept_whole(const Operand& o, const Task& s, const Lanes& l, const Config& c) {
  std::int64_t elements = 1, readers = 1;
  for (std::size_t a = 0; a < s.axes.size(); ++a) {
    if (s.axes[a].reduce) continue;
    (uses(o, s.axes[a]) ? elements : readers) *= outer_extent(s, l, c, a);
  }
  return readers > 1 && elements <= c.depth(MemType::acc) / 8;
}

namespace {

class Search {
 public:
  Search(const Task& s, const StageLayout& laid, const Config& c, const TimingParams& t,
         const TileConstraints& constraints)
      : s_(s),
        task_(s, laid, c),
        c_(c),
        t_(t),
        constraints_(constraints),
        first_(s.axes.size(), 0) {
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

  /// Those with the fewest cycles by a sum of averages, best first; of products then in the order
  /// of what their tiles take one after the other.
  std::vector<Tiles> run(std::size_t most_kept) {
    most_kept_ = most_kept;
    std::size_t wide = 0;
    for (std::int64_t n : best_.outer) wide += n > 1;
    std::size_t most = wide <= 3 ? 24 : wide <= 4 ? 12 : wide <= 5 ? 8 : 5;
    for (int places : {2, 1}) {
      places_ = places;
      Tiles t = best_;
      for (int order = 0; order < (constraints_.all_orders ? 4 : 2); ++order) {
        arrange(t, order);
        order_ = order;
        walk(t, 0, most);
      }
      if (top_.empty()) continue;
      if (!product_) return std::move(top_);
      for (Tiles& found : top_)
        found.cycles = static_cast<double>(flow_cycles(task_, c_, t_, found, places_));
      std::stable_sort(top_.begin(), top_.end(),
                       [](const Tiles& a, const Tiles& b) { return a.cycles < b.cycles; });
      return std::move(top_);
    }
    too_big();
  }

 private:
  static constexpr int kColumnsFirst = 1, kLastFirst = 2;  // bits of an order

  int rank(std::size_t a, int order) const {
    const Axis& axis = s_.axes[a];
    if (axis.reduce) return 4;
    if (!product_) return 1;
    const bool in_x = uses(*x_, axis), in_w = uses(*w_, axis);
    if (in_x && in_w) return 0;
    return in_w == ((order & kColumnsFirst) == 0) ? 1 : 2;
  }

  /// Tile loops: shared axes, then rows before columns or the other way, then sums; axes of one
  /// kind as they are, or from the last to the first.
  void arrange(Tiles& t, int order) const {
    t.order.clear();
    for (std::size_t a = 0; a < s_.axes.size(); ++a) t.order.push_back(a);
    if (order & kLastFirst) std::reverse(t.order.begin(), t.order.end());
    std::stable_sort(t.order.begin(), t.order.end(),
                     [&](std::size_t a, std::size_t b) { return rank(a, order) < rank(b, order); });
  }

  void walk(Tiles& t, std::size_t a, std::size_t most) {
    if (a == s_.axes.size()) {
      if ((order_ & kColumnsFirst) && !order_matters(t)) return;
      if ((order_ & kLastFirst) && !turn_matters(t)) return;
      if (constraints_.threads > 1 && !threads_fit(t)) return;
      double cycles = cost(t);
      if (cycles >= 0) keep(t, cycles);
      return;
    }
    const bool given = a < constraints_.tile.size() && constraints_.tile[a] > 0;
    for (std::int64_t n : given ? std::vector{std::min(constraints_.tile[a], t.outer[a])}
                                : candidates(t.outer[a], most)) {
      t.tile[a] = n;
      walk(t, a + 1, most);
      if (whole_[a]) break;  // the first candidate is all of it
    }
    t.tile[a] = 1;
  }

  void keep(const Tiles& t, double cycles) {
    if (top_.size() == most_kept_) {
      if (cycles >= top_.back().cycles) return;
      top_.pop_back();
    }
    auto later = [](double value, const Tiles& other) { return value < other.cycles; };
    auto at = std::upper_bound(top_.begin(), top_.end(), cycles, later);
    top_.insert(at, t)->cycles = cycles;
  }

  /// Whether both rows and columns have several tiles.
  bool order_matters(const Tiles& t) const {
    bool x = false, w = false;
    for (std::size_t a = 0; product_ && a < s_.axes.size(); ++a) {
      if (s_.axes[a].reduce || t.count(a) == 1) continue;
      const bool in_x = uses(*x_, s_.axes[a]), in_w = uses(*w_, s_.axes[a]);
      x = x || (in_x && !in_w), w = w || (in_w && !in_x);
    }
    return x && w;
  }

  /// Whether two axes of one kind have several tiles.
  bool turn_matters(const Tiles& t) const {
    int several[5] = {};
    for (std::size_t a = 0; a < s_.axes.size(); ++a) several[rank(a, order_)] += t.count(a) > 1;
    return *std::max_element(std::begin(several), std::end(several)) > 1;
  }

  bool threads_fit(const Tiles& t) const {
    for (std::size_t a = 0; a < s_.axes.size(); ++a) {
      if (!s_.axes[a].reduce && t.count(a) % constraints_.threads == 0) return true;
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

  /// Elements that tiles take on chip, and micro-operations of one product.
  struct Needs {
    std::int64_t inp = 0, wgt = 0, acc = 0, uop = 0;
  };

  Needs needs(const Tiles& t) const {
    Needs out;
    std::int64_t acc = 1, big[2] = {1, 1};
    double out_runs = 1;
    out.uop = 1;
    for (std::size_t a = 0; a < s_.axes.size(); ++a) {
      if (!s_.axes[a].reduce) acc *= t.tile[a], out_runs *= static_cast<double>(t.count(a));
      out.uop *= t.tile[a];
      std::int64_t e = t.tile[a];
      if (e > big[0]) std::swap(e, big[0]);
      if (e > big[1]) std::swap(e, big[1]);
    }
    out.uop = product_ || reduction_ ? out.uop / (big[0] * big[1]) : 0;
    auto of = [&](const TiledOperand& o) {
      return o.elements(t.tile) * places(runs(t, o.level(t)));
    };
    out.acc = acc * task_.chain.buffers * places(out_runs);
    if (product_) out.inp = of(*task_.x), out.wgt = of(*task_.w);
    if (reduction_) out.acc += of(*task_.x);
    for (const TiledChainOperand& o : task_.operands)
      out.acc += o.whole ? o.elements(t.outer) : of(o);
    return out;
  }

  std::int64_t most_uops() const { return c_.depth(MemType::uop) / 4; }
  bool fits(const Needs& n) const {
    return n.inp <= c_.depth(MemType::inp) && n.wgt <= c_.depth(MemType::wgt) &&
           n.acc <= c_.depth(MemType::acc) && n.uop <= most_uops();
  }

  /// Estimated cycles; negative: does not fit.
  double cost(const Tiles& t) const {
    const Needs need = needs(t);
    if (!fits(need)) return -1;
    std::int64_t acc = 1;
    double out_runs = 1, all_runs = 1, steps = 1;
    for (std::size_t a = 0; a < s_.axes.size(); ++a) {
      double n = static_cast<double>(t.count(a));
      all_runs *= n;
      steps *= static_cast<double>(t.outer[a]);
      if (!s_.axes[a].reduce) acc *= t.tile[a], out_runs *= n;
    }
    double out_elements = steps / reduced(t);
    double loads = 0, compute = 0, first = 0;
    auto transfer = [&](const TiledOperand& o, std::int64_t bytes) {
      const DmaTransfers m = o.moves(t.tile, first_);
      return static_cast<double>(m.transfers * t_.latency + m.rows * m.transfers * t_.row_cycles) +
             static_cast<double>(m.elements * bytes) / static_cast<double>(t_.bus_bytes);
    };
    auto fetched = [&](const TiledOperand& o, MemType mem, double& into) {
      double n = runs(t, o.level(t));
      double each = transfer(o, c_.elem_bytes(mem));
      into += n * each;
      return each;
    };
    if (product_) {
      const double ex = fetched(*task_.x, MemType::inp, loads),
                   ew = fetched(*task_.w, MemType::wgt, loads);
      first = ex + ew;
      compute +=
          steps + all_runs * static_cast<double>(t_.gemm_fill) + static_cast<double>(need.uop) / 2;
    }
    if (reduction_) {
      fetched(*task_.x, MemType::acc, compute);
      compute += 2 * steps;
    }
    for (const TiledChainOperand& o : task_.operands) {
      if (!o.whole) fetched(o, o.mem, compute);
    }
    double chain = static_cast<double>(task_.chain.cycles(t_.alu_imm_uop, t_.alu_acc_uop) + 1);
    compute += out_elements * chain + out_runs * static_cast<double>(task_.chain.steps.size()) *
                                          static_cast<double>(t_.alu_fill);
    double stores = 0, tail = 0;
    for (const TiledOperand& o : task_.stores) {
      tail = transfer(o, c_.elem_bytes(MemType::out));
      stores += out_runs * tail;
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

  /// Nothing fits: what the given tiles, or the smallest, would take with one place for everything.
  [[noreturn]] void too_big() const {
    Tiles t = best_;
    for (std::size_t a = 0; a < s_.axes.size(); ++a) {
      const bool given = a < constraints_.tile.size() && constraints_.tile[a] > 0;
      t.tile[a] = whole_[a] ? t.outer[a] : given ? std::min(constraints_.tile[a], t.outer[a]) : 1;
    }
    arrange(t, 0);
    const Needs n = needs(t);
    std::vector<std::string> over, notes;
    auto scope = [&](const char* name, std::int64_t need, std::int64_t have, MemType mem) {
      if (need > have) over.push_back(name);
      notes.push_back(cat(name, ": ", need, " of ", have, " elements of ", c_.elem_bytes(mem),
                          " bytes", need > have ? ", too many" : ""));
    };
    if (product_) scope("vta.inp", n.inp, c_.depth(MemType::inp), MemType::inp);
    if (product_) scope("vta.wgt", n.wgt, c_.depth(MemType::wgt), MemType::wgt);
    scope("vta.acc", n.acc, c_.depth(MemType::acc), MemType::acc);
    if (n.uop > most_uops()) {
      over.emplace_back("the micro-operation memory");
      notes.push_back(cat("micro-operations: ", n.uop, ", at most ", most_uops(),
                          " of one product leave room for others"));
    }
    Error error(ErrorKind::lower, "vta.accepts.capacity",
                cat("block \"", s_.name, "\" does not fit with the smallest tiles",
                    over.empty() ? std::string() : cat(": too small is ", join(over, " and "))));
    for (std::string& note : notes) error.note(std::move(note));
    for (std::size_t a = 0; a < s_.axes.size(); ++a) {
      if (whole_[a] && t.outer[a] > 1)
        error.note(cat("axis \"", s_.axes[a].var->name, "\" stays whole: LOAD pads its window"));
    }
    if (const std::string help = smaller(t); !help.empty()) error.help(help);
    throw error;
  }

  /// Which of the given tiles to make smaller, and how small: one if that is enough, or all. Empty:
  /// none was given, or that does not help.
  std::string smaller(const Tiles& given) const {
    std::vector<std::size_t> axes;
    for (std::size_t a = 0; a < s_.axes.size(); ++a) {
      if (a < constraints_.tile.size() && constraints_.tile[a] > 0 && !whole_[a] &&
          given.tile[a] > 1)
        axes.push_back(a);
    }
    auto named = [&](std::size_t a, std::int64_t n) {
      return cat(n, " instead of ", given.tile[a], " of axis \"", s_.axes[a].var->name, "\"");
    };
    for (std::size_t a : axes) {
      Tiles t = given;
      while (t.tile[a] > 1 && !fits(needs(t))) --t.tile[a];
      if (fits(needs(t))) return cat("a tile that fits: ", named(a, t.tile[a]));
    }
    Tiles t = given;
    for (bool shrunk = true; shrunk && !fits(needs(t));) {
      shrunk = false;
      for (std::size_t a : axes) shrunk |= t.tile[a] > 1, t.tile[a] = (t.tile[a] + 1) / 2;
    }
    if (!fits(needs(t))) return "";
    std::vector<std::string> parts;
    for (std::size_t a : axes) parts.push_back(named(a, t.tile[a]));
    return cat("tiles that fit: ", join(parts, ", "));
  }

  const Task& s_;
  const TiledTask task_;
  const Config& c_;
  TimingParams t_;
  const TileConstraints& constraints_;
  bool product_ = false, reduction_ = false;
  int order_ = 0;
  std::size_t most_kept_ = 1;
  std::vector<Tiles> top_;
  int places_ = 2;
  const Operand *x_ = nullptr, *w_ = nullptr;
  std::vector<bool> whole_;
  const std::vector<std::int64_t> first_;  // a tile at the beginning of all axes
  Tiles best_;
};

}  // namespace

std::vector<Tiles> rank_tiles(const Task& s, const StageLayout& laid, const Config& c,
                              const TimingParams& timing, const TileConstraints& constraints,
                              std::size_t most) {
  // Each tiling of a product is timed, which takes about 30 us.
  const bool several = s.kind == Task::Kind::product || constraints.all_orders;
  return Search(s, laid, c, timing, constraints).run(several ? most : 1);
}

Tiles choose_tiles(const Task& s, const StageLayout& laid, const Config& c,
                   const TimingParams& timing, const TileConstraints& constraints) {
  return rank_tiles(s, laid, c, timing, constraints).front();
}

}  // namespace weft::vta
