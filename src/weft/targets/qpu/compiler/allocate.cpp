// SPDX-License-Identifier: Apache-2.0
// Registers: colouring of the interference graph over r0..r2 and both files, so that operands of one
// operation lie in different files; what does not fit lives in memory, reached through the VPM.

#include <algorithm>
#include <bit>
#include <cmath>

#include "weft/base/error.h"
#include "weft/targets/qpu/compiler/mir.h"

namespace weft::qpu::mir {

namespace {
using Bits = std::vector<std::uint64_t>;

struct Facts {
  std::vector<double> weight;                              // uses and definitions, by loop depth
  std::vector<std::uint32_t> length;                       // instructions at which it is live
  std::vector<Bits> conflicts;                             // interference matrix
  struct Pair { std::uint32_t other; double weight; };
  std::vector<std::vector<Pair>> partners;                 // operands of one operation
  std::vector<double> with_imm;                            // used beside a small immediate: not in file B
  std::vector<bool> used;
};

Facts collect(const Function& f) {
  Facts x;
  std::size_t n = f.vregs, words = (n + 63) / 64;
  x.weight.assign(n, 0), x.length.assign(n, 0), x.conflicts.assign(n, Bits(words)), x.partners.resize(n), x.with_imm.assign(n, 0), x.used.assign(n, false);
  auto live = live_out(f);
  for (std::size_t b = 0; b < f.blocks.size(); ++b) {
    double w = std::pow(8.0, std::min(f.blocks[b].depth, 6));
    Bits now = live[b];
    const auto& code = f.blocks[b].code;
    for (std::size_t k = code.size(); k-- > 0;) {
      const Ins& i = code[k];
      if (i.d.kind == Dst::vreg) {
        std::uint32_t d = i.d.value;
        x.weight[d] += w, x.used[d] = true;
        for (std::size_t q = 0; q < words; ++q) x.conflicts[d][q] |= now[q];
        if (i.cond == hw::kAlways) now[d / 64] &= ~(1ull << (d % 64));
        else now[d / 64] |= 1ull << (d % 64);
      }
      each_use(i, [&](std::uint32_t v) { x.weight[v] += w, x.used[v] = true, now[v / 64] |= 1ull << (v % 64); });
      if (i.a.kind == Src::vreg && i.b.kind == Src::vreg && i.a.value != i.b.value) {
        x.partners[i.a.value].push_back({i.b.value, w});
        x.partners[i.b.value].push_back({i.a.value, w});
      }
      bool imm = i.a.kind == Src::imm || i.b.kind == Src::imm;
      if (imm) each_use(i, [&](std::uint32_t v) { x.with_imm[v] += w; });
      for (std::size_t q = 0; q < words; ++q) {
        for (std::uint64_t m = now[q]; m; m &= m - 1) ++x.length[q * 64 + static_cast<unsigned>(std::countr_zero(m))];
      }
    }
  }
  for (std::size_t v = 0; v < n; ++v) {
    for (std::size_t q = 0; q < words; ++q) {
      for (std::uint64_t m = x.conflicts[v][q]; m; m &= m - 1) {
        std::size_t u = q * 64 + static_cast<unsigned>(std::countr_zero(m));
        if (u < n) x.conflicts[u][v / 64] |= 1ull << (v % 64);
      }
    }
    x.conflicts[v][v / 64] &= ~(1ull << (v % 64));
  }
  return x;
}

}  // namespace

std::vector<std::int16_t> allocate(Function& f) {
  Facts x = collect(f);
  std::vector<std::int16_t> home(f.vregs, -1);
  std::vector<std::uint32_t> order;
  for (std::uint32_t v = 0; v < f.vregs; ++v) if (x.used[v]) order.push_back(v);
  auto urgency = [&](std::uint32_t v) { return (f.needs_acc[v] ? 1e12 : 0) + x.weight[v] / (x.length[v] + 1.0); };
  std::sort(order.begin(), order.end(), [&](std::uint32_t p, std::uint32_t q) {
    double a = urgency(p), b = urgency(q);
    return a != b ? a > b : p < q;
  });
  bool keep_ra0 = !f.prints.empty();
  unsigned turn = 0;
  std::vector<std::uint32_t> homeless;
  for (std::uint32_t v : order) {
    bool taken[67] = {};
    if (keep_ra0) taken[0] = true;
    taken[14] = taken[46] = true;   // ra14 and rb14 must rest at program end
    std::size_t words = x.conflicts[v].size();
    for (std::size_t q = 0; q < words; ++q) {
      for (std::uint64_t m = x.conflicts[v][q]; m; m &= m - 1) {
        std::size_t u = q * 64 + static_cast<unsigned>(std::countr_zero(m));
        if (home[u] >= 0) taken[home[u]] = true;
      }
    }
    double cost_a = 0, cost_b = x.with_imm[v] * 2;
    for (const Facts::Pair& p : x.partners[v]) {
      std::int16_t h = home[p.other];
      if (h >= 0 && h < 32) cost_a += p.weight;
      if (h >= 32 && h < 64) cost_b += p.weight;
    }
    std::int16_t best = -1;
    if (f.needs_acc[v] || x.length[v] <= 12) {
      for (std::int16_t r = 64; r < 67 && best < 0; ++r) if (!taken[r]) best = r;
    }
    if (best < 0 && !f.needs_acc[v]) {
      double best_cost = 0;
      for (int file = 0; file < 2; ++file) {
        double cost = file ? cost_b : cost_a;
        if (best >= 0 && cost >= best_cost) continue;
        for (unsigned k = 0; k < 32; ++k) {   // in turn, so that reuse does not chain instructions together
          auto r = static_cast<std::int16_t>(file * 32 + static_cast<int>((turn + k) & 31));
          if (taken[r]) continue;
          best = r, best_cost = cost;
          break;
        }
      }
      if (best < 0) {
        for (std::int16_t r = 64; r < 67 && best < 0; ++r) if (!taken[r]) best = r;
      }
      turn += 3;
    }
    if (best < 0) homeless.push_back(v); else home[v] = best;
  }
  if (!homeless.empty()) {
    throw Error(ErrorKind::emit, "qpu.compile.registers", cat("the kernel keeps more values at once than the QPU has registers: ", homeless.size(), " do not fit"))
        .help("split the kernel, or keep fewer variables alive");
  }

  // Operands that share a file: one goes through r3.
  for (Block& block : f.blocks) {
    std::vector<Ins> out;
    for (Ins& i : block.code) {
      auto file = [&](const Src& s) {
        if (s.kind == Src::imm) return 1;
        if (s.kind != Src::vreg) return -1;
        return home[s.value] < 32 ? 0 : home[s.value] < 64 ? 1 : -1;
      };
      bool clash = i.b.kind != Src::none && file(i.a) >= 0 && file(i.a) == file(i.b) &&
                   !(i.a.kind == i.b.kind && (i.a.kind == Src::imm ? i.a.value == i.b.value : home[i.a.value] == home[i.b.value]));
      if (clash) {
        Ins m;
        m.unit = Unit::move, m.place = i.place;
        m.d = Dst::write(hw::kWAcc0 + 3);
        bool first = i.a.kind == Src::vreg;
        m.a = first ? i.a : i.b;
        out.push_back(m);
        (first ? i.a : i.b) = Src::read(3);   // r3: schedule() knows addresses below 6 as accumulators
        (first ? i.a : i.b).file = 3;
      }
      out.push_back(i);
    }
    block.code = std::move(out);
  }
  return home;
}

}  // namespace weft::qpu::mir
