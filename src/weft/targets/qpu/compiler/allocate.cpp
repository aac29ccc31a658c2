// SPDX-License-Identifier: Apache-2.0
// Registers: colouring of the interference graph over r0..r2 and both files, so that operands of
// one operation lie in different files; what does not fit lives in memory, reached through the VPM.

#include <algorithm>
#include <bit>
#include <cmath>

#include "weft/base/error.h"
#include "weft/targets/qpu/compiler/mir.h"

namespace weft::qpu::mir {

namespace {
using Bits = std::vector<std::uint64_t>;
constexpr double kBalance = 1e-3;  // what an even load of the files counts beside a clash
constexpr double kBeside = 0.5;    // what a lost chance to share a word counts beside it

struct Facts {
  std::vector<double> weight;         // uses and definitions, by loop depth
  std::vector<std::uint32_t> length;  // instructions at which it is live
  std::vector<Bits> conflicts;        // interference matrix
  struct Pair {
    std::uint32_t other;
    double weight;
  };
  std::vector<std::vector<Pair>> partners;  // operands of one operation
  std::vector<double> with_imm;             // used beside a small immediate: not in file B
  std::vector<double> beside;  // used by the ADD unit where the MUL unit rotates: its amount takes
                               // the port of file B, so such a word reads file A only
  std::vector<bool> used;
};

Facts collect(const Function& f) {
  Facts x;
  std::size_t n = f.vregs, words = (n + 63) / 64;
  x.weight.assign(n, 0), x.length.assign(n, 0), x.conflicts.assign(n, Bits(words)),
      x.partners.resize(n), x.with_imm.assign(n, 0), x.beside.assign(n, 0), x.used.assign(n, false);
  auto live = live_out(f);
  for (std::size_t b = 0; b < f.blocks.size(); ++b) {
    double w = std::pow(8.0, std::min(f.blocks[b].depth, 6));
    Bits now = live[b];
    const auto& code = f.blocks[b].code;
    double rotations = 0, adds = 0;
    for (const Ins& i : code) rotations += i.rotate != 0, adds += i.unit == Unit::add;
    const double chance = adds > 0 ? std::min(1.0, rotations / adds) : 0;
    for (std::size_t k = code.size(); k-- > 0;) {
      const Ins& i = code[k];
      if (i.unit == Unit::add && chance > 0)
        each_use(i, [&](std::uint32_t v) { x.beside[v] += kBeside * chance * w; });
      if (i.d.kind == Dst::vreg) {
        std::uint32_t d = i.d.value;
        x.weight[d] += w, x.used[d] = true;
        for (std::size_t q = 0; q < words; ++q) x.conflicts[d][q] |= now[q];
        if (i.cond == hw::kAlways) now[d / 64] &= ~(1ull << (d % 64));
        else now[d / 64] |= 1ull << (d % 64);
      }
      each_use(i, [&](std::uint32_t v) {
        x.weight[v] += w, x.used[v] = true, now[v / 64] |= 1ull << (v % 64);
      });
      if (i.a.kind == Src::vreg && i.b.kind == Src::vreg && i.a.value != i.b.value) {
        x.partners[i.a.value].push_back({i.b.value, w});
        x.partners[i.b.value].push_back({i.a.value, w});
      }
      bool imm = i.a.kind == Src::imm || i.b.kind == Src::imm;
      if (imm) each_use(i, [&](std::uint32_t v) { x.with_imm[v] += w; });
      for (std::size_t q = 0; q < words; ++q) {
        for (std::uint64_t m = now[q]; m; m &= m - 1)
          ++x.length[q * 64 + static_cast<unsigned>(std::countr_zero(m))];
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

/// Ways to hand out registers: spread out, so that reuse does not chain instructions together;
/// packed into few; packed, the long-lived first.
enum class Way : std::uint8_t { spread, packed, long_first };

/// Colours what fits; returns what does not.
std::vector<std::uint32_t> colour(const Function& f, const Facts& x, Way way,
                                  std::vector<std::int16_t>& home) {
  home.assign(f.vregs, -1);
  std::vector<std::uint32_t> order;
  for (std::uint32_t v = 0; v < f.vregs; ++v)
    if (x.used[v]) order.push_back(v);
  auto urgency = [&](std::uint32_t v) {
    if (f.needs_acc[v]) return 1e12;
    return way == Way::long_first ? x.length[v] + 0.0 : x.weight[v] / (x.length[v] + 1.0);
  };
  std::sort(order.begin(), order.end(), [&](std::uint32_t p, std::uint32_t q) {
    double a = urgency(p), b = urgency(q);
    return a != b ? a > b : p < q;
  });
  bool keep_ra0 = !f.prints.empty();
  unsigned turn = 0;
  // Each word has one port per file: uses are spread over both, so that operations find partners.
  double load[2] = {0, 0};
  std::vector<std::uint32_t> homeless;
  for (std::uint32_t v : order) {
    bool taken[67] = {};
    if (keep_ra0) taken[0] = true;
    std::size_t words = x.conflicts[v].size();
    for (std::size_t q = 0; q < words; ++q) {
      for (std::uint64_t m = x.conflicts[v][q]; m; m &= m - 1) {
        std::size_t u = q * 64 + static_cast<unsigned>(std::countr_zero(m));
        if (home[u] >= 0) taken[home[u]] = true;
      }
    }
    double cost_a = 0, cost_b = x.with_imm[v] * 2 + x.beside[v];
    for (const Facts::Pair& p : x.partners[v]) {
      std::int16_t h = home[p.other];
      if (h >= 0 && h < 32) cost_a += p.weight;
      if (h >= 32 && h < 64) cost_b += p.weight;
    }
    std::int16_t best = -1;
    if (f.needs_acc[v] || x.length[v] <= 16) {
      // In turn as well: the next value of a kind should not have to wait for this one's register.
      for (unsigned k = 0; k < 3 && best < 0; ++k) {
        auto r = static_cast<std::int16_t>(64 + (v + k) % 3);
        if (!taken[r]) best = r;
      }
    }
    if (best < 0 && !f.needs_acc[v]) {
      double best_cost = 0;
      for (int file = 0; file < 2; ++file) {
        double cost = (file ? cost_b : cost_a) + kBalance * load[file];
        if (best >= 0 && cost >= best_cost) continue;
        for (unsigned k = 0; k < 32; ++k) {
          auto r = static_cast<std::int16_t>(file * 32 + static_cast<int>((turn + k) & 31));
          if (taken[r]) continue;
          best = r, best_cost = cost;
          break;
        }
      }
      if (best < 0) {
        for (std::int16_t r = 64; r < 67 && best < 0; ++r)
          if (!taken[r]) best = r;
      }
      if (way == Way::spread) turn += 3;
    }
    if (best < 0) homeless.push_back(v);
    else home[v] = best;
    if (best >= 0 && best < 64) load[best >> 5] += x.weight[v];
  }
  return homeless;
}

bool writes_to(const Ins& i, unsigned address, std::uint8_t file) {
  return i.d.kind == Dst::special && i.d.value == address && i.d.file == file;
}

/// Rewrites v to live in memory: every definition stores, every use loads, through the VPM (the TMU
/// would not see the stores).
void spill(Function& f, std::uint32_t v) {
  std::uint32_t offset = static_cast<std::uint32_t>(f.spill_slots++) * 64;
  for (Block& block : f.blocks) {
    std::vector<Ins> out;
    ast::Place place;
    auto temp = [&](bool acc = false) {
      f.needs_acc.push_back(acc);
      return f.vregs++;
    };
    auto move = [&](Dst d, Src a) {
      Ins i;
      i.unit = Unit::move, i.d = d, i.a = a, i.place = place;
      out.push_back(i);
    };
    auto wait = [&](std::uint8_t store) {
      Ins i;
      i.unit = Unit::wait, i.op = store, i.place = place;
      out.push_back(i);
    };
    auto address = [&] {
      if (offset == 0) return Src::of(f.spill.base);
      std::uint32_t o = temp(), a = temp();
      Ins ldi;
      ldi.unit = Unit::ldi, ldi.d = Dst::of(o), ldi.imm = offset, ldi.place = place;
      out.push_back(ldi);
      Ins add;
      add.unit = Unit::add, add.op = hw::kAdd, add.d = Dst::of(a), add.a = Src::of(o),
      add.b = Src::of(f.spill.base), add.place = place;
      out.push_back(add);
      return Src::of(a);
    };
    auto load = [&](std::uint32_t t) {
      Src a = address();
      move(Dst::write(hw::kWVpmSetup, 0), Src::of(f.spill.load_setup));
      move(Dst::write(hw::kWDmaAddr, 0), a);
      wait(0);
      move(Dst::write(hw::kWVpmSetup, 0), Src::of(f.spill.read_setup));
      move(Dst::of(t), Src::read(hw::kRVpm));
    };
    auto store = [&](std::uint32_t t) {
      Src a = address();
      wait(1);
      move(Dst::write(hw::kWVpmSetup, 1), Src::of(f.spill.write_setup));
      move(Dst::write(hw::kWVpm), Src::of(t));
      move(Dst::write(hw::kWVpmSetup, 1), Src::of(f.spill.store_setup));
      move(Dst::write(hw::kWDmaAddr, 1), a);
      wait(1);
    };
    for (Ins i : block.code) {
      place = i.place;
      bool reads = false, writes = i.d.kind == Dst::vreg && i.d.value == v;
      each_use(i, [&](std::uint32_t u) { reads |= u == v; });
      if (!reads && !writes) {
        out.push_back(i);
        continue;
      }
      std::uint32_t t = temp(f.needs_acc[v]);
      // An address that a DMA load was set up for: loading it would set up another.
      std::vector<Ins> after;
      if (reads && writes_to(i, hw::kWDmaAddr, 0)) {
        auto set = std::find_if(out.rbegin(), out.rend(), [](const Ins& before) {
          return writes_to(before, hw::kWVpmSetup, 0);
        });
        WEFT_CHECK(set != out.rend(), "a DMA load that nothing sets up");
        after.assign(set.base() - 1, out.end());
        out.erase(set.base() - 1, out.end());
      }
      if (reads || i.cond != hw::kAlways) load(t);
      out.insert(out.end(), after.begin(), after.end());
      if (i.a.kind == Src::vreg && i.a.value == v) i.a = Src::of(t);
      if (i.b.kind == Src::vreg && i.b.value == v) i.b = Src::of(t);
      if (writes) i.d = Dst::of(t);
      out.push_back(i);
      if (writes) store(t);
    }
    block.code = std::move(out);
  }
}
}  // namespace

bool allocate(Function& f, std::vector<std::int16_t>& home) {
  std::size_t values = 0;  // of the program itself: each round spills one of them at least
  for (std::size_t round = 0;; ++round) {
    Facts x = collect(f);
    if (round == 0) values = x.used.size();
    std::vector<std::uint32_t> homeless = colour(f, x, Way::spread, home);
    for (Way way : {Way::packed, Way::long_first})
      if (!homeless.empty()) homeless = colour(f, x, way, home);
    if (homeless.empty()) break;
    if (!f.may_spill) return false;
    WEFT_CHECK(round <= values, "spilling does not end: ", homeless.size(), " values left");
    // Evict long-lived, little used values: those without a register, or neighbours of one that
    // must have it.
    std::uint32_t from = homeless.front();
    std::uint32_t victim = from;
    double best = -1;
    int evicted = 0;
    for (std::uint32_t one : homeless) {
      if (evicted >= 4) break;
      victim = one, best = -1;
      auto consider = [&](std::uint32_t v) {
        if ((v >= f.spill_first && v < f.spill_last) || x.length[v] < 16 ||
            (f.needs_acc[one] && home[v] < 64 && v != one))
          return;
        double score = x.length[v] / (x.weight[v] + 1.0);
        if (score > best) best = score, victim = v;
      };
      consider(one);
      for (std::uint32_t v = 0; v < x.used.size(); ++v)
        if (x.used[v] && (x.conflicts[one][v / 64] >> (v % 64) & 1)) consider(v);
      WEFT_CHECK(best >= 0, "no value can be spilled for v", one);
      spill(f, victim);
      x.length[victim] = 0;
      ++evicted;
    }
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
      bool clash =
          i.b.kind != Src::none && file(i.a) >= 0 && file(i.a) == file(i.b) &&
          !(i.a.kind == i.b.kind &&
            (i.a.kind == Src::imm ? i.a.value == i.b.value : home[i.a.value] == home[i.b.value]));
      if (clash) {
        Ins m;
        m.unit = Unit::move, m.place = i.place;
        m.d = Dst::write(hw::kWAcc0 + 3);
        bool first = i.a.kind == Src::vreg;
        m.a = first ? i.a : i.b;
        out.push_back(m);
        (first ? i.a : i.b) =
            Src::read(3);  // r3: schedule() knows addresses below 6 as accumulators
        (first ? i.a : i.b).file = 3;
      }
      out.push_back(i);
    }
    block.code = std::move(out);
  }
  return true;
}

}  // namespace weft::qpu::mir
