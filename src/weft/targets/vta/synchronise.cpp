// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/vta/synchronise.h"

#include <algorithm>
#include <array>

namespace weft::vta {

namespace {

using Clock = std::array<std::int64_t, 3>;

constexpr int kLoad = 0, kCompute = 1, kStore = 2;

class Synchroniser {
 public:
  Synchroniser(const Stream& in, const std::vector<std::uint32_t>& uops, const Isa& isa)
      : in_(in), uops_(uops), isa_(isa), c_(isa.config()) {
    for (MemType m : {MemType::inp, MemType::wgt, MemType::acc}) {
      written_[static_cast<int>(m)].assign(static_cast<std::size_t>(c_.depth(m)), 0);
      read_[static_cast<int>(m)].assign(static_cast<std::size_t>(c_.depth(m)), 0);
    }
    resident_.assign(static_cast<std::size_t>(c_.depth(MemType::uop)), 0);
    for (std::size_t i = 0; i < in_.insns.size(); ++i) {
      const Insn& n = in_.insns[i];
      if (!n.is_dma() || n.is_nop() || in_.base[i] >= kUopArena) continue;
      std::size_t p = in_.base[i];
      if (p >= loads_.size()) loads_.resize(p + 1), stores_.resize(p + 1), dram_.resize(p + 1);
      (n.op == Opcode::store ? stores_ : loads_)[p] = true;
    }
  }

  Stream run() {
    for (std::size_t i = 0; i < in_.insns.size(); ++i) one(in_.insns[i], in_.base[i]);
    return std::move(out_);
  }

 private:
  struct Interval {
    std::int64_t first, end, position;
  };

  std::int64_t position(int stage) const { return static_cast<std::int64_t>(at_[stage].size()); }

  std::size_t append(const Insn& n, std::uint16_t base) {
    int s = static_cast<int>(n.stage());
    out_.insns.push_back(n);
    out_.base.push_back(base);
    at_[s].push_back(out_.insns.size() - 1);
    clock_[s][static_cast<std::size_t>(s)] = position(s);
    after_[s].push_back(clock_[s]);
    return out_.insns.size() - 1;
  }

  /// Makes the last instruction of `s` (just appended) wait for the first `pos` instructions of
  /// `t`.
  void wait(int s, int t, std::int64_t pos) {
    if (pos <= clock_[s][static_cast<std::size_t>(t)]) return;
    Insn& from = out_.insns[at_[t][static_cast<std::size_t>(pos - 1)]];
    Insn& to = out_.insns[at_[s].back()];
    (t < s ? from.push_next : from.push_prev) = true;
    (t < s ? to.pop_prev : to.pop_next) = true;
    const Clock& theirs = after_[t][static_cast<std::size_t>(pos - 1)];
    for (std::size_t k = 0; k < 3; ++k) clock_[s][k] = std::max(clock_[s][k], theirs[k]);
    after_[s].back() = clock_[s];
  }

  void nop_in_compute(int t, std::int64_t pos) {
    Insn n;
    n.op = Opcode::load, n.mem = MemType::uop;
    append(n, kAbsolute);
    wait(kCompute, t, pos);
  }

  void one(const Insn& n, std::uint16_t base) {
    int s = static_cast<int>(n.stage());
    need_ = {0, 0, 0};
    position_ = position(s) + 1;
    if (n.op == Opcode::finish) {
      need_ = {position(kLoad), 0, position(kStore)};
    } else if (!n.is_nop()) {
      access(n, base, s);
    }
    need_[static_cast<std::size_t>(s)] = 0;
    // Load and store do not talk: compute stands between.
    if (s != kCompute) {
      int far = s == kLoad ? kStore : kLoad;
      std::int64_t pos = need_[static_cast<std::size_t>(far)];
      if (pos > clock_[s][static_cast<std::size_t>(far)]) {
        if (pos > clock_[kCompute][static_cast<std::size_t>(far)]) nop_in_compute(far, pos);
        need_[kCompute] = std::max(need_[kCompute], first_knowing(far, pos));
      }
    }
    append(n, base);
    for (int t = 0; t < 3; ++t) {
      if (t != s && (s == kCompute || t == kCompute))
        wait(s, t, need_[static_cast<std::size_t>(t)]);
    }
  }

  /// The first instruction of compute after which `pos` of `far` are known to be done.
  std::int64_t first_knowing(int far, std::int64_t pos) const {
    const auto& clocks = after_[kCompute];
    auto found = std::partition_point(clocks.begin(), clocks.end(), [&](const Clock& c) {
      return c[static_cast<std::size_t>(far)] < pos;
    });
    return found - clocks.begin() + 1;
  }

  void needs(int stage, std::int64_t pos) {
    need_[static_cast<std::size_t>(stage)] = std::max(need_[static_cast<std::size_t>(stage)], pos);
  }

  /// inp and wgt are written by load and read by compute; acc is written by compute and read by
  /// store.
  void writes(MemType m, std::int64_t i) {
    auto k = static_cast<std::size_t>(i);
    needs(m == MemType::acc ? kStore : kCompute, read_[static_cast<int>(m)][k]);
    written_[static_cast<int>(m)][k] = position_;
  }
  void reads(MemType m, std::int64_t i) {
    auto k = static_cast<std::size_t>(i);
    needs(m == MemType::acc ? kCompute : kLoad, written_[static_cast<int>(m)][k]);
    read_[static_cast<int>(m)][k] = position_;
  }

  void access(const Insn& n, std::uint16_t base, int s) {
    auto inside = [&](MemType m, std::int64_t end) {
      if (end > c_.depth(m)) fault_range(n, m, end);
    };
    switch (n.op) {
      case Opcode::load:
        if (n.mem == MemType::uop) {
          inside(MemType::uop, n.sram + n.sram_elements());
          for (std::uint32_t j = 0; j < n.x_size && n.dram + j < uops_.size(); ++j)
            resident_[n.sram + j] = uops_[n.dram + j];
          return;
        } else {
          MemType m = n.mem == MemType::acc8 ? MemType::acc : n.mem;
          inside(m, n.sram + n.sram_elements());
          for (std::int64_t i = n.sram; i < n.sram + n.sram_elements(); ++i) writes(m, i);
        }
        break;
      case Opcode::store:
        inside(MemType::acc, n.sram + n.sram_elements());
        for (std::int64_t i = n.sram; i < n.sram + n.sram_elements(); ++i) reads(MemType::acc, i);
        break;
      case Opcode::gemm:
      case Opcode::alu:
        for (std::uint32_t u = n.uop_begin; u < n.uop_end; ++u) {
          Uop uop = isa_.decode_uop(resident_.at(u));
          for (std::int64_t y = 0; y < n.iter_out; ++y) {
            for (std::int64_t x = 0; x < n.iter_in; ++x) {
              std::int64_t dst = uop.dst + y * n.dst_out + x * n.dst_in,
                           src = uop.src + y * n.src_out + x * n.src_in,
                           wgt = uop.wgt + y * n.wgt_out + x * n.wgt_in;
              inside(MemType::acc, dst + 1);
              writes(MemType::acc, dst);
              if (n.op == Opcode::alu || n.reset) continue;
              inside(MemType::inp, src + 1);
              inside(MemType::wgt, wgt + 1);
              reads(MemType::inp, src);
              reads(MemType::wgt, wgt);
            }
          }
        }
        return;
      case Opcode::finish: return;
    }
    // DRAM that this program both loads and stores.
    if (base >= loads_.size() || !loads_[base] || !stores_[base] || n.y_size == 0) return;
    std::int64_t bytes = c_.elem_bytes(n.mem), first = std::int64_t{n.dram} * bytes;
    std::int64_t end = first + ((std::int64_t{n.y_size} - 1) * n.x_stride + n.x_size) * bytes;
    for (int t = 0; t < 3; ++t) {
      if (t == s || (s != kStore && t != kStore)) continue;
      for (const Interval& i : dram_[base][static_cast<std::size_t>(t)]) {
        if (i.first < end && first < i.end) needs(t, i.position);
      }
    }
    dram_[base][static_cast<std::size_t>(s)].push_back({first, end, position_});
  }

  [[noreturn]] void fault_range(const Insn& n, MemType m, std::int64_t end) const {
    throw Error(ErrorKind::lower, "vta.lower.range",
                cat("an instruction reaches element ", end - 1, " of ", to_string(m),
                    ", which has ", c_.depth(m)))
        .at("instruction", isa_.print(n));
  }

  const Stream& in_;
  const std::vector<std::uint32_t>& uops_;
  const Isa& isa_;
  const Config& c_;
  Stream out_;
  std::vector<std::size_t> at_[3];
  Clock clock_[3] = {};
  std::vector<Clock> after_[3];
  Clock need_{};
  std::int64_t position_ = 0;
  std::vector<std::int64_t> written_[4], read_[4];
  std::vector<std::uint32_t> resident_;
  std::vector<bool> loads_, stores_;
  std::vector<std::array<std::vector<Interval>, 3>> dram_;
};

}  // namespace

Stream synchronise(const Stream& stream, const std::vector<std::uint32_t>& uops, const Isa& isa) {
  return Synchroniser(stream, uops, isa).run();
}

}  // namespace weft::vta
