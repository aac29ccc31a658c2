// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/vta/tile_flow.h"
#include "weft/base/integers.h"

#include <algorithm>
#include <cmath>

namespace weft::vta {

namespace {}  // namespace

TiledOperand::TiledOperand(const Operand& o, const Layout& l, const Task& s) : guard_(l.guard) {
  for (const Axis& a : s.axes) uses_.push_back(uses(o, a));
  for (const PackedDim& p : l.dims) {
    Dim d;
    d.window = p.window, d.extent = p.extent;
    if (!p.window) {
      d.terms.push_back({p.axis, 1});
    } else {
      d.base = (o.index[p.dim].base - p.shift) / p.step;
      d.extent = (p.extent - 1 - (p.step > 1 ? p.shift : 0)) / p.step + 1;
      d.skips = p.step > 1;
      for (std::size_t a = 0; a < s.axes.size(); ++a) {
        const std::int64_t c = p.coeff(o.index[p.dim].coeff(s.axes[a].var.get()));
        if (c != 0) d.terms.push_back({a, c});
      }
    }
    dims_.push_back(std::move(d));
  }
}

std::int64_t TiledOperand::elements(const std::vector<std::int64_t>& tile) const {
  std::int64_t out = 1;
  for (const Dim& d : dims_) {
    std::int64_t n = 1;
    for (const Term& t : d.terms) n += std::abs(t.coeff) * (tile[t.axis] - 1);
    out *= n;
  }
  return out;
}

DmaTransfers TiledOperand::moves(const std::vector<std::int64_t>& tile,
                                 const std::vector<std::int64_t>& first) const {
  DmaTransfers out;
  std::int64_t all = 1;
  int stage = 0;  // 0: columns grow, 1: rows grow, 2: one transfer each
  bool whole = true;
  for (std::size_t i = dims_.size(); i-- > 0;) {
    const Dim& d = dims_[i];
    std::int64_t n = 1, kept, at = d.base;
    for (const Term& t : d.terms) {
      n += std::abs(t.coeff) * (tile[t.axis] - 1);
      at += t.coeff * (t.coeff > 0 ? first[t.axis] : first[t.axis] + tile[t.axis] - 1);
    }
    if (d.window) {
      kept = std::max<std::int64_t>(std::min(at + n, d.extent) - std::max<std::int64_t>(at, 0), 0);
      if (!guard_) n = kept;
    } else {
      n = kept = std::min(n, d.extent);
    }
    all *= n;
    out.elements *= kept;
    if (n > 1) {
      if (!whole || d.skips) ++stage, whole = true;
      if (stage == 1) out.rows *= kept;
      if (stage > 1) out.transfers *= kept;
    }
    whole = whole && kept == d.extent && !d.skips;
  }
  out.pads = all - out.elements;
  return out;
}

int TiledOperand::level(const Tiles& t) const {
  for (std::size_t i = t.order.size(); i-- > 0;) {
    if (uses_[t.order[i]] && t.count(t.order[i]) > 1) return static_cast<int>(i);
  }
  return -1;
}

namespace {

/// The loops over tiles, run in order with the clock of each stage.
class Flow {
 public:
  Flow(const TiledTask& task, const Config& c, const TimingParams& p, const Tiles& t, int places)
      : task_(task), s_(task.task), c_(c), p_(p), t_(t), chain_(task.chain), places_(places) {
    first_.assign(s_.axes.size(), 0);
    feeds_[0] = feed(*task.x, MemType::inp), feeds_[1] = feed(*task.w, MemType::wgt);
    for (const TiledChainOperand& o : task.operands) {
      if (o.whole) {
        whole_.push_back(o.moves(t.outer, first_));
      } else {
        operands_.push_back(feed(o, o.mem));
      }
    }
    tile_ = t.tile, at_.assign(t.order.size(), 0);
    for (std::size_t i = 0; i < t.order.size(); ++i) {
      if (!s_.axes[t.order[i]].reduce) spatial_ = i + 1;
    }
  }

  std::int64_t run() {
    begin();
    do {
      start_tile();
      do {
        sum();
      } while (next(spatial_, at_.size()));
      finish_tile();
    } while (next(0, spatial_));
    return std::max({clock_[0], clock_[1], clock_[2]});
  }

 private:
  enum { kLoad, kCompute, kStore };

  struct Feed {
    const TiledOperand* of = nullptr;
    std::int64_t bytes = 0, runs = 1;
    int level = -1;
    bool fresh = true;              // its tile must be fetched
    std::int64_t ready = 0;         // when the latest fetch is done
    std::int64_t released[2] = {};  // when the places were read for the last time
    int place = 0;
  };

  Feed feed(const TiledOperand& o, MemType mem) const {
    Feed out;
    out.of = &o, out.bytes = c_.elem_bytes(mem), out.level = o.level(t_);
    for (int i = 0; i <= out.level; ++i)
      out.runs *= t_.count(t_.order[static_cast<std::size_t>(i)]);
    return out;
  }

  /// Instructions are fetched ahead over the read port, micro-operations loaded at once.
  void begin() {
    std::int64_t sums = 1, tiles = 1, uops = 1, big[2] = {1, 1};
    for (std::size_t a = 0; a < s_.axes.size(); ++a) {
      (s_.axes[a].reduce ? sums : tiles) *= t_.count(a);
      uops *= t_.tile[a];
      std::int64_t e = t_.tile[a];
      if (e > big[0]) std::swap(e, big[0]);
      if (e > big[1]) std::swap(e, big[1]);
    }
    uops /= big[0] * big[1];
    const auto parts = [&](const Feed& f) {
      return f.runs * f.of->moves(t_.tile, first_).transfers;
    };
    std::int64_t each[3] = {
        parts(feeds_[0]) + parts(feeds_[1]),
        tiles * (sums + 1 + static_cast<std::int64_t>(chain_.steps.size() - task_.stores.size())),
        0};
    for (const Feed& f : operands_) each[kCompute] += parts(f);
    for (const TiledOperand& o : task_.stores)
      each[kStore] += tiles * o.moves(t_.tile, first_).transfers;
    const double all = static_cast<double>(each[0] + each[1] + each[2]);
    const auto longest = static_cast<double>(std::max({each[0], each[1], each[2]}));
    const double ahead = std::min(all, all / longest * kQueue);
    const auto beats = static_cast<double>(ceil_div(p_.fetch_bytes, p_.bus_bytes));
    read_free_ = static_cast<std::int64_t>(ahead * beats);
    fetch_each_ = (all - ahead) * beats / static_cast<double>(each[kLoad]);
    // As many as differ between the places that tiles have on chip.
    uops *= std::min<std::int64_t>(tiles * sums, 2 * places_);
    uops = std::min(uops, c_.depth(MemType::uop));
    clock_[kCompute] = read_free_;
    dma(kCompute, read_free_, {1, 1, uops, 0}, c_.elem_bytes(MemType::uop), 0);
    for (const DmaTransfers& m : whole_)
      dma(kCompute, read_free_, m, c_.elem_bytes(MemType::acc), 0);
  }

  /// One or more transfers on a stage; from `ready` on. The compute stage's come between loads that
  /// run ahead of it: the port is not kept from those, they only find it taken for as long.
  void dma(int stage, std::int64_t& port, const DmaTransfers& m, std::int64_t bytes,
           std::int64_t ready) {
    std::int64_t now = std::max(clock_[stage], ready);
    if (m.elements == 0) {
      clock_[stage] = now + p_.issue;
      return;
    }
    const std::int64_t per_row =
        ceil_div(m.elements / (m.transfers * m.rows) * bytes, p_.bus_bytes);
    const std::int64_t beats = m.rows * (per_row + p_.row_cycles);
    const std::int64_t pads = m.pads / m.transfers * p_.pad_cycles;
    for (std::int64_t i = 0; i < m.transfers; ++i) {
      if (stage == kCompute) {
        now += p_.issue + p_.latency + beats + pads;
        owed_ += static_cast<double>(beats);
        continue;
      }
      if (stage == kLoad) {
        owed_ += fetch_each_;
        const double due = std::floor(owed_);
        owed_ -= due, port += static_cast<std::int64_t>(due);
      }
      port = std::max(now + p_.issue + p_.latency, port) + beats;
      now = port + pads;
    }
    clock_[stage] = now;
  }

  void compute(std::int64_t uops, std::int64_t each, std::int64_t fill) {
    clock_[kCompute] += p_.issue + uops * each + fill;
  }

  std::int64_t elements() const {
    std::int64_t out = 1;
    for (std::size_t a = 0; a < tile_.size(); ++a) {
      if (!s_.axes[a].reduce) out *= tile_[a];
    }
    return out;
  }

  void start_tile() {
    for (Feed& f : operands_) {
      if (f.fresh) dma(kCompute, read_free_, f.of->moves(tile_, first_), f.bytes, 0);
      f.fresh = false;
    }
    std::int64_t& free = tile_free_[tiles_ % 2];
    if (tiles_ >= static_cast<std::int64_t>(places_))
      clock_[kCompute] = std::max(clock_[kCompute], free);
    compute(elements(), p_.gemm_uop, p_.gemm_fill);
  }

  void sum() {
    std::int64_t steps = 1, ready = 0;
    for (std::int64_t n : tile_) steps *= n;
    for (Feed& f : feeds_) {
      if (f.fresh) {
        if (f.runs > 1) f.place = places_ > 1 ? 1 - f.place : 0;
        dma(kLoad, read_free_, f.of->moves(tile_, first_), f.bytes, f.released[f.place]);
        f.ready = clock_[kLoad], f.fresh = false;
      }
      ready = std::max(ready, f.ready);
    }
    clock_[kCompute] = std::max(clock_[kCompute], ready);
    compute(steps, p_.gemm_uop, p_.gemm_fill);
    for (Feed& f : feeds_) f.released[f.place] = clock_[kCompute];
  }

  void finish_tile() {
    const std::int64_t n = elements();
    std::size_t stores = 0;
    for (const ChainStep& step : chain_.steps) {
      switch (step.kind) {
        case ChainStep::Kind::set:
          compute(n, p_.gemm_uop, p_.gemm_fill);
          compute(n, p_.alu_imm_uop, p_.alu_fill);
          break;
        case ChainStep::Kind::copy:
          compute(n, p_.gemm_uop, p_.gemm_fill);
          compute(n, p_.alu_acc_uop, p_.alu_fill);
          break;
        case ChainStep::Kind::imm: compute(n, p_.alu_imm_uop, p_.alu_fill); break;
        case ChainStep::Kind::acc: compute(n, p_.alu_acc_uop, p_.alu_fill); break;
        case ChainStep::Kind::store: {
          const DmaTransfers m = task_.stores[stores++].moves(tile_, first_);
          dma(kStore, write_free_, m, c_.elem_bytes(MemType::out), clock_[kCompute]);
          break;
        }
      }
    }
    tile_free_[tiles_ % 2] = clock_[kStore];
    ++tiles_;
  }

  /// The next step of the loops begin .. end; false: they begin again.
  bool next(std::size_t begin, std::size_t end) {
    for (std::size_t i = end; i-- > begin;) {
      const std::size_t a = t_.order[i];
      if (t_.count(a) == 1) continue;
      const bool more = ++at_[i] < t_.count(a);
      if (!more) at_[i] = 0;
      first_[a] = at_[i] * t_.tile[a];
      tile_[a] = std::min(t_.tile[a], t_.outer[a] - first_[a]);
      for (Feed& f : feeds_) f.fresh = f.fresh || static_cast<int>(i) <= f.level;
      for (Feed& f : operands_) f.fresh = f.fresh || static_cast<int>(i) <= f.level;
      if (more) return true;
    }
    return false;
  }

  static constexpr double kQueue = 512;  // instructions that wait for a stage (execute.h)

  const TiledTask& task_;
  const Task& s_;
  const Config& c_;
  const TimingParams& p_;
  const Tiles& t_;
  const ChainProgram& chain_;
  const int places_;
  Feed feeds_[2];
  std::vector<Feed> operands_;
  std::vector<DmaTransfers> whole_;  // operands that stay on chip
  std::vector<std::int64_t> tile_, first_, at_;
  std::size_t spatial_ = 0;
  std::int64_t clock_[3] = {}, read_free_ = 0, write_free_ = 0, tile_free_[2] = {}, tiles_ = 0;
  double fetch_each_ = 0, owed_ = 0;
};

}  // namespace

TiledTask::TiledTask(const Task& s, const StageLayout& laid, const Config& c)
    : task(s), chain(compile_chain(s)) {
  const Lanes& l = laid.lanes;
  if (laid.x) x.emplace(l.swapped ? s.w : s.x, *laid.x, s);
  if (laid.w) w.emplace(l.swapped ? s.x : s.w, *laid.w, s);
  for (std::size_t i = 0; i < s.operands.size(); ++i) {
    const Operand& o = s.operands[i];
    TiledChainOperand& added = operands.emplace_back(TiledOperand(o, laid.operands[i], s));
    added.whole = kept_whole(o, s, l, c);
    added.mem = MemType::acc;
  }
  for (const ChainStep& step : chain.steps) {
    if (step.kind != ChainStep::Kind::store) continue;
    const Operand target = target_of(s.chain[step.segment]);
    stores.emplace_back(target, laid.stores[step.segment], s);
  }
}

std::int64_t flow_cycles(const TiledTask& task, const Config& c, const TimingParams& p,
                         const Tiles& t, int places) {
  return Flow(task, c, p, t, places).run();
}

}  // namespace weft::vta
