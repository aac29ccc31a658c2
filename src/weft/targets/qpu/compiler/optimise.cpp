// SPDX-License-Identifier: Apache-2.0
// Copies and common values within blocks, r4 and r5 used in place, loop-invariant code moved out,
// dead code removed.

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>
#include <unordered_map>

#include "weft/targets/qpu/compiler/mir.h"

namespace weft::qpu::mir {

std::vector<std::vector<std::uint64_t>> live_out(const Function& f) {
  std::size_t n = f.blocks.size(), words = (f.vregs + 63) / 64;
  std::vector<std::vector<std::uint64_t>> use(n, std::vector<std::uint64_t>(words)),
      def = use, in = use, out = use;
  for (std::size_t b = 0; b < n; ++b) {
    for (const Ins& i : f.blocks[b].code) {
      auto read = [&](std::uint32_t v) {
        if (!(def[b][v / 64] >> (v % 64) & 1)) use[b][v / 64] |= 1ull << (v % 64);
      };
      each_use(i, read);
      if (i.d.kind == Dst::vreg) {
        if (i.cond != hw::kAlways) read(i.d.value);  // the old value stays in the other lanes
        else def[b][i.d.value / 64] |= 1ull << (i.d.value % 64);
      }
    }
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t b = n; b-- > 0;) {
      const Block& block = f.blocks[b];
      for (std::size_t w = 0; w < words; ++w) {
        std::uint64_t x = 0;
        if (block.jump >= 0) x |= in[static_cast<std::size_t>(block.jump)][w];
        bool falls = !block.ends && !(block.jump >= 0 && block.cond == hw::kBranchAlways);
        if (falls && b + 1 < n) x |= in[b + 1][w];
        out[b][w] = x;
        std::uint64_t y = use[b][w] | (x & ~def[b][w]);
        if (y != in[b][w]) in[b][w] = y, changed = true;
      }
    }
  }
  return out;
}

namespace {
std::vector<std::uint32_t> definitions(const Function& f) {
  std::vector<std::uint32_t> count(f.vregs);
  for (const Block& b : f.blocks)
    for (const Ins& i : b.code)
      if (i.d.kind == Dst::vreg) ++count[i.d.value];
  return count;
}

/// Copies forwarded and repeated values found, one block at a time.
void local_values(Function& f) {
  std::vector<std::uint32_t> defs = definitions(f), version(f.vregs);
  using Key = std::tuple<int, int, int, std::uint32_t, std::uint32_t, int, std::uint32_t,
                         std::uint32_t, int, std::uint32_t>;
  for (Block& block : f.blocks) {
    std::map<Key, std::pair<std::uint32_t, std::uint32_t>> values;  // -> vreg and its version
    std::unordered_map<std::uint32_t, std::pair<Src, std::uint32_t>>
        copies;  // vreg -> source and that source's version
    auto forward = [&](Src& s) {
      if (s.kind != Src::vreg) return;
      auto found = copies.find(s.value);
      if (found == copies.end()) return;
      const auto& [source, v] = found->second;
      if (source.kind == Src::vreg && version[source.value] != v) return;
      s = source;
    };
    for (Ins& i : block.code) {
      bool rotation = i.rotate != 0;
      if (!rotation) {
        Src a = i.a, b = i.b;
        forward(a), forward(b);
        bool two = a.kind == Src::imm && b.kind == Src::imm && a.value != b.value;
        if (!two) i.a = a, i.b = b;
      }
      auto id = [&](const Src& s) { return s.kind == Src::vreg ? version[s.value] : 0u; };
      bool candidate =
          i.pure() && i.cond == hw::kAlways && !(i.unit == Unit::move && i.a.kind == Src::imm);
      Key key{static_cast<int>(i.unit),
              i.op,
              i.a.kind,
              i.a.value,
              id(i.a),
              i.b.kind,
              i.b.value,
              id(i.b),
              i.rotate,
              i.imm};
      if (candidate && i.unit != Unit::move) {
        auto found = values.find(key);
        if (found != values.end() && version[found->second.first] == found->second.second) {
          Ins copy;
          copy.unit = Unit::move, copy.d = i.d, copy.a = Src::of(found->second.first),
          copy.place = i.place;
          i = copy;
        }
      }
      if (i.d.kind != Dst::vreg) continue;
      std::uint32_t d = i.d.value;
      ++version[d];
      copies.erase(d);
      if (i.cond != hw::kAlways) continue;
      if (i.unit == Unit::move && !i.sf && (i.a.kind == Src::vreg || i.a.kind == Src::imm) &&
          !(i.a.kind == Src::vreg && i.a.value == d)) {
        copies[d] = {i.a, i.a.kind == Src::vreg ? version[i.a.value] : 0};
      } else if (candidate && i.unit != Unit::move && defs[d] == 1 && !f.needs_acc[d]) {
        values[key] = {d, version[d]};
      }
    }
  }
}

/// "mov v, r4" (or r5) disappears when v lives only until the next write of r4 (r5) in the same
/// block.
void use_in_place(Function& f, Src::Kind which) {
  std::vector<std::uint32_t> defs = definitions(f), uses(f.vregs);
  for (const Block& b : f.blocks)
    for (const Ins& i : b.code) each_use(i, [&](std::uint32_t v) { ++uses[v]; });
  auto overwrites = [&](const Ins& i) {
    if (which == Src::r5) return i.d.kind == Dst::special && i.d.value == hw::kWR5;
    return i.unit == Unit::tmu_load ||
           (i.d.kind == Dst::special && i.d.value >= hw::kWRecip && i.d.value <= hw::kWLog2);
  };
  auto live = live_out(f);
  for (std::size_t b = 0; b < f.blocks.size(); ++b) {
    auto& code = f.blocks[b].code;
    for (std::size_t n = 0; n < code.size(); ++n) {
      Ins& i = code[n];
      if (i.unit != Unit::move || i.a.kind != which || i.d.kind != Dst::vreg ||
          i.cond != hw::kAlways || i.sf)
        continue;
      std::uint32_t v = i.d.value;
      if (defs[v] != 1 || (live[b][v / 64] >> (v % 64) & 1)) continue;
      std::vector<Ins*> users;
      std::uint32_t seen = 0;
      bool rotates = false;
      for (std::size_t k = n + 1; k < code.size(); ++k) {
        bool here = false;
        each_use(code[k], [&](std::uint32_t u) {
          if (u == v) ++seen, here = true;
        });
        if (here) users.push_back(&code[k]), rotates |= code[k].rotate != 0;
        if (overwrites(code[k])) break;
      }
      if (seen != uses[v] || rotates) continue;
      for (Ins* u : users) {
        if (u->a.kind == Src::vreg && u->a.value == v) u->a = Src{which, 0, kFileAny};
        if (u->b.kind == Src::vreg && u->b.value == v) u->b = Src{which, 0, kFileAny};
      }
      code.erase(code.begin() + static_cast<std::ptrdiff_t>(n));
      --n;
    }
  }
}

/// The most values alive at once within a loop.
int pressure(const Function& f, const Loop& loop) {
  auto live = live_out(f);
  int most = 0;
  for (std::size_t b = loop.first; b <= loop.last; ++b) {
    std::vector<std::uint64_t> now = live[b];
    int count = 0;
    for (std::uint64_t w : now) count += std::popcount(w);
    most = std::max(most, count);
    const auto& code = f.blocks[b].code;
    auto set = [&](std::uint32_t v, bool on) {
      std::uint64_t bit = 1ull << (v % 64);
      if (((now[v / 64] & bit) != 0) == on) return;
      now[v / 64] ^= bit;
      count += on ? 1 : -1;
    };
    for (std::size_t n = code.size(); n-- > 0;) {
      const Ins& i = code[n];
      if (i.d.kind == Dst::vreg) set(i.d.value, i.cond != hw::kAlways);
      each_use(i, [&](std::uint32_t v) { set(v, true); });
      most = std::max(most, count);
    }
  }
  return most;
}

void move_invariants(Function& f) {
  constexpr int kRoom =
      48;  // values at once that registers surely hold, with some left for scheduling
  for (const Loop& loop : f.loops) {
    int most = kRoom - pressure(f, loop);
    std::vector<std::uint32_t> all = definitions(f), inside(f.vregs);
    for (std::size_t b = loop.first; b <= loop.last; ++b) {
      for (const Ins& i : f.blocks[b].code)
        if (i.d.kind == Dst::vreg) ++inside[i.d.value];
    }
    auto& target = f.blocks[loop.first - 1].code;
    int moved = 0;
    for (bool changed = true; changed && moved < most;) {
      changed = false;
      for (std::size_t b = loop.first; b <= loop.last; ++b) {
        auto& code = f.blocks[b].code;
        std::size_t keep = 0;
        for (std::size_t n = 0; n < code.size(); ++n) {
          Ins& i = code[n];
          bool invariant = moved < most && i.pure() && i.cond == hw::kAlways &&
                           all[i.d.value] == 1 && !i.rotate && !f.needs_acc[i.d.value] &&
                           !(i.unit == Unit::move && i.a.kind == Src::imm);
          each_use(i, [&](std::uint32_t v) { invariant = invariant && inside[v] == 0; });
          if (invariant) {
            --inside[i.d.value];
            target.push_back(i);
            ++moved;
            changed = true;
          } else {
            if (keep != n) code[keep] = i;
            ++keep;
          }
        }
        code.resize(keep);
      }
    }
  }
}

void remove_dead(Function& f) {
  for (bool changed = true; changed;) {
    changed = false;
    auto live = live_out(f);
    for (std::size_t b = 0; b < f.blocks.size(); ++b) {
      auto& code = f.blocks[b].code;
      std::vector<std::uint64_t>& now = live[b];
      std::vector<bool> dead(code.size());
      for (std::size_t n = code.size(); n-- > 0;) {
        const Ins& i = code[n];
        if (i.d.kind == Dst::vreg) {
          bool kept =
              f.may_spill && (i.d.value == f.spill.base || i.d.value == f.spill.write_setup ||
                              i.d.value == f.spill.store_setup || i.d.value == f.spill.load_setup ||
                              i.d.value == f.spill.read_setup);
          bool wanted = kept || now[i.d.value / 64] >> (i.d.value % 64) & 1;
          bool reads_only = i.unit == Unit::add || i.unit == Unit::mul || i.unit == Unit::move ||
                            i.unit == Unit::ldi;
          bool stream =
              i.a.kind == Src::special && i.a.value != hw::kRElementA && i.a.value != hw::kRQpuB;
          bool self =
              i.unit == Unit::move && i.a.kind == Src::vreg && i.a.value == i.d.value && !i.sf;
          if (self || (!wanted && !i.sf && reads_only && !stream)) {
            dead[n] = true, changed = true;
            continue;
          }
          if (i.cond == hw::kAlways) now[i.d.value / 64] &= ~(1ull << (i.d.value % 64));
        }
        each_use(i, [&](std::uint32_t v) { now[v / 64] |= 1ull << (v % 64); });
      }
      std::size_t keep = 0;
      for (std::size_t n = 0; n < code.size(); ++n) {
        if (!dead[n]) {
          if (keep != n) code[keep] = code[n];
          ++keep;
        }
      }
      code.resize(keep);
    }
  }
}

/// "op t, ..." directly followed only by "mov x, t" writes x itself.
void write_through(Function& f) {
  std::vector<std::uint32_t> defs = definitions(f), uses(f.vregs);
  for (const Block& b : f.blocks)
    for (const Ins& i : b.code) each_use(i, [&](std::uint32_t v) { ++uses[v]; });
  for (Block& block : f.blocks) {
    auto& code = block.code;
    for (std::size_t n = 0; n < code.size(); ++n) {
      Ins& m = code[n];
      if (m.unit != Unit::move || m.a.kind != Src::vreg || m.d.kind != Dst::vreg ||
          m.cond != hw::kAlways || m.sf)
        continue;
      std::uint32_t t = m.a.value, x = m.d.value;
      if (defs[t] != 1 || uses[t] != 1 || f.needs_acc[x] != f.needs_acc[t]) continue;
      // Back to the definition of t; x must not be touched in between.
      for (std::size_t k = n; k-- > 0;) {
        Ins& i = code[k];
        bool touches = i.d.kind == Dst::vreg && i.d.value == x;
        if (i.d.kind == Dst::vreg && i.d.value == t) {
          if (i.cond == hw::kAlways) {
            i.d.value = x;
            code.erase(code.begin() + static_cast<std::ptrdiff_t>(n));
            --n;
          }
          break;
        }
        each_use(i, [&](std::uint32_t v) { touches |= v == x; });
        if (touches) break;
      }
    }
  }
}
}  // namespace

void optimise(Function& f) {
  local_values(f);
  remove_dead(f);
  move_invariants(f);
  local_values(f);
  write_through(f);
  use_in_place(f, Src::r4);
  use_in_place(f, Src::r5);
  remove_dead(f);
}

std::string print(const Function& f) {
  std::string out;
  auto src = [](const Src& s) -> std::string {
    switch (s.kind) {
      case Src::vreg: return cat("v", s.value);
      case Src::imm: return cat("#", static_cast<std::int32_t>(s.value));
      case Src::special: return hw::read_name(s.file == 1, s.value);
      case Src::r4: return "r4";
      case Src::r5: return "r5";
      default: return "";
    }
  };
  for (std::size_t b = 0; b < f.blocks.size(); ++b) {
    out += cat("block ", b, " (depth ", f.blocks[b].depth, ")\n");
    for (const Ins& i : f.blocks[b].code) {
      static constexpr const char* kUnits[] = {"add", "mul",   "mov",  "ldi",
                                               "sem", "ldtmu", "wait", "print"};
      out +=
          cat("  ", kUnits[static_cast<int>(i.unit)], " ", i.op,
              i.cond != hw::kAlways ? cat(" if ", i.cond) : std::string(), i.sf ? " sf" : "", " ",
              i.d.kind == Dst::vreg      ? cat("v", i.d.value)
              : i.d.kind == Dst::special ? hw::write_name(i.d.file == 1, i.d.value)
                                         : std::string("-"),
              " <- ", src(i.a), " ", src(i.b), i.unit == Unit::ldi ? hex(i.imm) : std::string(),
              i.rotate ? cat(" rot ", i.rotate) : std::string(), "\n");
    }
    if (f.blocks[b].jump >= 0)
      out += cat("  branch ", f.blocks[b].cond, " to ", f.blocks[b].jump, "\n");
  }
  return out;
}

}  // namespace weft::qpu::mir
