// SPDX-License-Identifier: Apache-2.0
// List scheduling of each block onto the two ALUs, signals and ports; branches moved up so that
// their delay slots work; then the rule book has the last word.

#include <algorithm>
#include <optional>

#include "weft/base/error.h"
#include "weft/targets/qpu/compiler/mir.h"
#include "weft/targets/qpu/rules.h"

namespace weft::qpu::mir {

namespace {
using namespace hw;

enum Resource : int {
  kResAcc = 64,
  kResR4 = 68,
  kResR5 = 69,
  kResFlags = 70,
  kResUniform,
  kResVpm,
  kResTmu0,
  kResTmu1,
  kResPrint,
  kResources
};

// What the critical path is measured with, in instructions; guesses that cost nothing when wrong.
constexpr int kTmuSoft = 24, kDmaSoft = 1;

struct Edge {
  int to, hard, soft;
};

struct Node {
  const Ins* i = nullptr;
  std::vector<Edge> next;
  int waiting = 0;  // predecessors not yet placed
  int earliest = 0, wished = 0, height = 0, order = 0;
  bool placed = false;
};

int resource_of(const Src& s, const std::vector<std::int16_t>& home) {
  switch (s.kind) {
    case Src::vreg: return home[s.value] < 64 ? home[s.value] : kResAcc + home[s.value] - 64;
    case Src::r4: return kResR4;
    case Src::r5: return kResR5;
    case Src::special: return s.file == 3 ? kResAcc + static_cast<int>(s.value) : -1;
    default: return -1;
  }
}
int resource_of(const Dst& d, const std::vector<std::int16_t>& home) {
  if (d.kind == Dst::vreg) return home[d.value] < 64 ? home[d.value] : kResAcc + home[d.value] - 64;
  if (d.kind != Dst::special) return -1;
  if (d.value < 32) return static_cast<int>(d.value) + (d.file == 1 ? 32 : 0);
  if (d.value >= 32 && d.value < 36) return kResAcc + static_cast<int>(d.value) - 32;
  return d.value == kWR5 ? kResR5 : -1;
}
bool special_dst(const Ins& i, unsigned lo, unsigned hi) {
  return i.d.kind == Dst::special && i.d.value >= lo && i.d.value <= hi;
}
bool sfu_of(const Ins& i) { return special_dst(i, kWRecip, kWLog2); }
bool tmu_write(const Ins& i, unsigned unit) {
  return special_dst(i, unit ? kWTmu1S : kWTmu0S, unit ? kWTmu1S : kWTmu0S);
}
bool vpm_of(const Ins& i) {
  return i.unit == Unit::wait || special_dst(i, kWVpm, kWDmaAddr) ||
         (i.a.kind == Src::special && i.a.file != 3 && i.a.value == kRVpm);
}
bool reads_unif(const Ins& i) {
  return i.a.kind == Src::special && i.a.file != 3 && i.a.value == kRUniform;
}

/// Puts operations side by side into one word.
std::optional<Instr> combine(const std::vector<const Ins*>& group,
                             const std::vector<std::int16_t>& home) {
  Instr w;
  int port_a = -1, port_b = -1, imm = -1;
  bool read_b = false, add_used = false, mul_used = false, flags_from_mul = false;
  int add_file = 2, mul_file = 2;
  for (const Ins* i : group) {
    if (i->unit == Unit::ldi || i->unit == Unit::semaphore || i->unit == Unit::breakpoint)
      return group.size() == 1 ? std::optional<Instr>(Instr{}) : std::nullopt;
  }
  // Operations bound to one ALU first, so that moves take what is left.
  std::vector<const Ins*> order = group;
  std::stable_sort(order.begin(), order.end(), [](const Ins* p, const Ins* q) {
    return (p->unit == Unit::move && !p->sf) < (q->unit == Unit::move && !q->sf);
  });
  for (const Ins* i : order) {
    if (i->unit == Unit::tmu_load) {
      if (w.sig != kSigNone) return {};
      w.sig = static_cast<std::uint8_t>(kSigLoadTmu0 + i->op);
      continue;
    }
    if (i->unit == Unit::wait) {
      int& port = i->op == 0 ? port_a : port_b;
      if (port >= 0 && port != 50) return {};
      port = 50;
      if (i->op != 0) read_b = true;
      continue;
    }
    bool mul;
    if (i->unit == Unit::add) mul = false;
    else if (i->unit == Unit::mul) mul = true;
    else mul = add_used;
    if (mul ? mul_used : add_used) return {};
    (mul ? mul_used : add_used) = true;
    if (i->sf && mul) flags_from_mul = true;
    if (i->sf) w.sf = 1;
    auto mux = [&](const Src& s) -> int {
      auto through = [&](int& port, int address, int m) {
        if (port >= 0 && port != address) return -1;
        port = address;
        if (m == kMuxB) read_b = true;
        return m;
      };
      switch (s.kind) {
        case Src::vreg: {
          int h = home[s.value];
          if (h >= 64) return h - 64;
          return h < 32 ? through(port_a, h, kMuxA) : through(port_b, h - 32, kMuxB);
        }
        case Src::r4: return kMuxR4;
        case Src::r5: return kMuxR5;
        case Src::imm: {
          int code = find_small_immediate(s.value);
          if (imm >= 0 && imm != code) return -1;
          imm = code;
          return kMuxB;
        }
        case Src::special:
          if (s.file == 3) return static_cast<int>(s.value);
          if (s.file == 0 ||
              (s.file == kFileAny && (port_a < 0 || port_a == static_cast<int>(s.value))))
            return through(port_a, static_cast<int>(s.value), kMuxA);
          return through(port_b, static_cast<int>(s.value), kMuxB);
        default: return -1;
      }
    };
    int a = mux(i->a);
    int b = i->b.kind == Src::none ? a : mux(i->b);
    if (a < 0 || b < 0) return {};
    if (i->rotate) {
      int code = i->rotate == 16 ? 48 : 48 + i->rotate;
      if (imm >= 0 && imm != code) return {};
      imm = code;
    }
    int address = kNull, file = 2;
    if (i->d.kind == Dst::vreg) {
      int h = home[i->d.value];
      if (h < 0) address = kNull;
      else if (h >= 64) address = kWAcc0 + h - 64;
      else address = h & 31, file = h >> 5;
    } else if (i->d.kind == Dst::special) {
      address = static_cast<int>(i->d.value), file = i->d.file;
    }
    unsigned op = i->unit == Unit::move ? (mul ? unsigned{kV8min} : unsigned{kOr}) : i->op;
    if (mul) {
      w.op_mul = static_cast<std::uint8_t>(op), w.mul_a = static_cast<std::uint8_t>(a),
      w.mul_b = static_cast<std::uint8_t>(b);
      w.waddr_mul = static_cast<std::uint8_t>(address), w.cond_mul = i->cond, mul_file = file;
    } else {
      w.op_add = static_cast<std::uint8_t>(op), w.add_a = static_cast<std::uint8_t>(a),
      w.add_b = static_cast<std::uint8_t>(b);
      w.waddr_add = static_cast<std::uint8_t>(address), w.cond_add = i->cond, add_file = file;
    }
  }
  if (flags_from_mul && add_used) return {};
  if (imm >= 0) {
    if (read_b || w.sig != kSigNone) return {};
    w.kind = kAluImm;
    w.sig = kSigImm;
    w.raddr_b = static_cast<std::uint8_t>(imm);
  } else if (port_b >= 0) {
    w.raddr_b = static_cast<std::uint8_t>(port_b);
  }
  if (port_a >= 0) w.raddr_a = static_cast<std::uint8_t>(port_a);
  if (add_file == 1 || mul_file == 0) {
    if (add_file == 0 || mul_file == 1) return {};
    w.ws = 1;
  }
  const char* slug = nullptr;
  word_rule(w, &slug);
  if (slug) return {};
  return w;
}

Instr alone(const Ins& i, const std::vector<std::int16_t>& home) {
  Instr w;
  if (i.unit == Unit::semaphore) {
    w.kind = kSem, w.sig = kSigLdi, w.sem = i.op, w.acquire = i.acquire;
    return w;
  }
  if (i.unit == Unit::breakpoint) {
    w.sig = kSigBreak;
    return w;
  }
  w.kind = kLdi, w.sig = kSigLdi, w.imm = i.imm, w.cond_add = i.cond;
  if (i.d.kind == Dst::vreg) {
    int h = home[i.d.value];
    if (h < 0) return Instr{};
    w.waddr_add = static_cast<std::uint8_t>(h >= 64 ? kWAcc0 + h - 64 : h & 31);
    w.ws = h >= 32 && h < 64;
  } else {
    w.waddr_add = static_cast<std::uint8_t>(i.d.value);
    w.ws = i.d.file == 1;
  }
  return w;
}

class BlockScheduler {
 public:
  BlockScheduler(const Block& block, const std::vector<std::int16_t>& home)
      : block_(block), home_(home), nodes_(block.code.size()) {}

  struct Word {
    Instr instr;
    ast::Place place;
    std::int32_t print = -1;
    std::uint32_t skip = 0;
  };  // skip: words of the target done in the slots

  std::vector<Word> run() {
    build();
    measure();
    std::vector<Word> out;
    std::size_t left = nodes_.size();
    for (int t = 0; left > 0; ++t) {
      std::vector<int> group;
      std::vector<const Ins*> parts;
      Instr word;
      while (true) {
        int best = -1;
        std::optional<Instr> best_word;
        for (std::size_t n = 0; n < nodes_.size(); ++n) {
          Node& x = nodes_[n];
          if (x.placed || x.waiting || x.earliest > t) continue;
          if (best >= 0 && !better(x, nodes_[static_cast<std::size_t>(best)], t)) continue;
          std::vector<const Ins*> with = parts;
          with.push_back(x.i);
          std::optional<Instr> w = combine(with, home_);
          if (!w) continue;
          best = static_cast<int>(n), best_word = w;
        }
        if (best < 0) break;
        Node& x = nodes_[static_cast<std::size_t>(best)];
        // Something to wait for is no reason to leave the word empty, but neither to fill it early.
        if (!parts.empty() && x.wished > t) break;
        x.placed = true;
        --left;
        group.push_back(best);
        parts.push_back(x.i);
        word = *best_word;
        for (const Edge& e : x.next) {
          Node& y = nodes_[static_cast<std::size_t>(e.to)];
          --y.waiting;
          y.earliest = std::max(y.earliest, t + e.hard);
          y.wished = std::max(y.wished, t + e.soft);
        }
        const Ins& i = *x.i;
        if (i.unit == Unit::ldi || i.unit == Unit::semaphore || i.unit == Unit::breakpoint) {
          word = alone(i, home_);
          break;
        }
      }
      Word w{word, {}, -1};
      for (const Ins* i : parts) {
        if (i->place.line && (!w.place.line || i->unit == Unit::tmu_load || tmu_write(*i, 0) ||
                              tmu_write(*i, 1) || vpm_of(*i)))
          w.place = i->place;
        if (i->unit == Unit::breakpoint) w.print = i->print;
      }
      out.push_back(w);
    }
    return out;
  }

 private:
  static bool better(const Node& x, const Node& y, int t) {
    bool xs = x.wished <= t, ys = y.wished <= t;
    if (xs != ys) return xs;
    if (x.height != y.height) return x.height > y.height;
    return x.order < y.order;
  }

  void edge(int from, int to, int hard, int soft = -1) {
    if (from < 0 || from == to) return;
    Node& x = nodes_[static_cast<std::size_t>(from)];
    soft = std::max(soft, hard);
    for (Edge& e : x.next) {
      if (e.to == to) {
        e.hard = std::max(e.hard, hard), e.soft = std::max(e.soft, soft);
        return;
      }
    }
    x.next.push_back({to, hard, soft});
    ++nodes_[static_cast<std::size_t>(to)].waiting;
  }

  void build() {
    std::vector<int> writer(kResources, -1);
    std::vector<std::vector<int>> readers(kResources);
    int last_store = -1, last_setup = -1, last_barrier = -1;
    std::vector<int> requests, loads1, requests1;
    // Reads in expressions leave TMU1 empty between blocks; streams do not: then order is kept.
    int outstanding = 0;
    bool streams1 = false;
    for (const Ins& i : block_.code) {
      if (tmu_write(i, 1)) ++outstanding;
      if (i.unit == Unit::tmu_load && i.op == 1) streams1 = --outstanding < 0 || streams1;
    }
    streams1 = streams1 || outstanding != 0;
    for (int n = 0; n < static_cast<int>(nodes_.size()); ++n) {
      const Ins& i = block_.code[static_cast<std::size_t>(n)];
      nodes_[static_cast<std::size_t>(n)].i = &i;
      nodes_[static_cast<std::size_t>(n)].order = n;
      auto read = [&](int r, int extra = 0) {
        if (r < 0) return;
        int w = writer[static_cast<std::size_t>(r)];
        if (w >= 0) {
          const Ins& from = block_.code[static_cast<std::size_t>(w)];
          int latency = r < 64 ? 2 : r == kResR4 && sfu_of(from) ? 3 : 1 + extra;
          edge(w, n, latency);
        }
        readers[static_cast<std::size_t>(r)].push_back(n);
      };
      auto write = [&](int r) {
        if (r < 0) return;
        auto q = static_cast<std::size_t>(r);
        if (writer[q] >= 0)
          edge(writer[q], n,
               r == kResR4 && sfu_of(block_.code[static_cast<std::size_t>(writer[q])]) ? 3 : 1);
        for (int x : readers[q]) edge(x, n, 0);
        readers[q].clear();
        writer[q] = n;
      };
      auto chain = [&](int r) {
        auto q = static_cast<std::size_t>(r);
        if (writer[q] >= 0) edge(writer[q], n, 1);
        writer[q] = n;
      };
      bool rotates = i.rotate != 0;
      read(resource_of(i.a, home_), rotates ? 1 : 0);
      if (i.b.kind != Src::none) read(resource_of(i.b, home_), rotates ? 1 : 0);
      if (i.rotate == 16) read(kResR5, 1);
      if (i.cond != kAlways) read(kResFlags);
      if (reads_unif(i)) chain(kResUniform);
      if (vpm_of(i)) {
        bool read_setup = special_dst(i, kWVpmSetup, kWVpmSetup) && i.d.file == 0;
        bool vpm_read = i.a.kind == Src::special && i.a.file != 3 && i.a.value == kRVpm;
        if (vpm_read) edge(last_setup, n, 4);
        if (i.unit == Unit::wait && writer[kResVpm] >= 0) {
          const Ins& from = block_.code[static_cast<std::size_t>(writer[kResVpm])];
          if (special_dst(from, kWDmaAddr, kWDmaAddr)) edge(writer[kResVpm], n, 1, kDmaSoft);
        }
        chain(kResVpm);
        if (read_setup) last_setup = n;
      }
      if (tmu_write(i, 0) || (i.unit == Unit::tmu_load && i.op == 0)) chain(kResTmu0);
      bool on1 = tmu_write(i, 1), from1 = i.unit == Unit::tmu_load && i.op == 1;
      if (streams1 && (on1 || from1)) chain(kResTmu1);
      if (on1 && !streams1) {
        if (!requests1.empty()) edge(requests1.back(), n, 1);
        if (requests1.size() >= 4)
          edge(loads1.size() > requests1.size() - 4 ? loads1[requests1.size() - 4] : -1, n, 1);
        requests1.push_back(n);
      }
      if (from1 && !streams1) {
        if (!loads1.empty()) edge(loads1.back(), n, 1);
        if (loads1.size() < requests1.size()) edge(requests1[loads1.size()], n, 1, kTmuSoft);
        loads1.push_back(n);
      }
      if (tmu_write(i, 0) || tmu_write(i, 1)) {
        edge(last_store, n, 1);
        requests.push_back(n);
      }
      if (special_dst(i, kWDmaAddr, kWDmaAddr)) {
        for (int r : requests) edge(r, n, 1);
        requests.clear();
        last_store = n;
      }
      if (i.unit == Unit::breakpoint || special_dst(i, 0, 31)) chain(kResPrint);
      int d = resource_of(i.d, home_);
      write(d);
      if (i.unit == Unit::tmu_load || sfu_of(i)) write(kResR4);
      if (i.sf) {
        if (i.cond != kAlways) read(kResFlags);
        write(kResFlags);
      }
      // Synchronisation stays where it is among everything with an effect.
      bool effect = vpm_of(i) || tmu_write(i, 0) || tmu_write(i, 1) || i.unit == Unit::tmu_load ||
                    special_dst(i, kWHostInt, kWHostInt) || i.unit == Unit::breakpoint;
      if (i.unit == Unit::semaphore) {
        for (int m = 0; m < n; ++m) edge(m, n, 1);
        last_barrier = n;
      } else if (effect) {
        edge(last_barrier, n, 1);
      }
    }
    branch_flags_ = block_.jump >= 0 && block_.cond != kBranchAlways ? writer[kResFlags] : -1;
  }

  void measure() {
    for (std::size_t n = nodes_.size(); n-- > 0;) {
      Node& x = nodes_[n];
      for (const Edge& e : x.next)
        x.height = std::max(x.height, nodes_[static_cast<std::size_t>(e.to)].height + e.soft);
      if (static_cast<int>(n) == branch_flags_)
        x.height += 4;  // the branch and its slots come after
    }
  }

  const Block& block_;
  const std::vector<std::int16_t>& home_;
  std::vector<Node> nodes_;
  int branch_flags_ = -1;
};

using Words = std::vector<BlockScheduler::Word>;

/// Moves the branch up so that up to three words of the block fill its slots.
void place_branch(const Block& block, Words& words) {
  if (block.jump < 0) return;
  std::size_t after_flags = 0;
  if (block.cond != kBranchAlways) {
    for (std::size_t n = 0; n < words.size(); ++n)
      if (words[n].instr.sf) after_flags = n + 1;
  }
  std::size_t at = std::max(after_flags, words.size() >= 3 ? words.size() - 3 : 0);
  BlockScheduler::Word branch;
  branch.instr.kind = kBranch, branch.instr.sig = kSigBranch, branch.instr.rel = 1,
  branch.instr.cond_br = block.cond, branch.instr.raddr_a = 0;
  branch.place = block.place;
  words.insert(words.begin() + static_cast<std::ptrdiff_t>(at), branch);
  while (words.size() < at + 4) words.push_back({});
}
/// Physical registers (0..67) that hold something when block `b` is entered.
std::vector<bool> live_registers(const Function& f, const std::vector<std::int16_t>& home,
                                 std::size_t b,
                                 const std::vector<std::vector<std::uint64_t>>& out) {
  std::vector<std::uint64_t> now = out[b];
  const auto& code = f.blocks[b].code;
  for (std::size_t n = code.size(); n-- > 0;) {
    const Ins& i = code[n];
    if (i.d.kind == Dst::vreg && i.cond == kAlways)
      now[i.d.value / 64] &= ~(1ull << (i.d.value % 64));
    else if (i.d.kind == Dst::vreg) now[i.d.value / 64] |= 1ull << (i.d.value % 64);
    each_use(i, [&](std::uint32_t v) { now[v / 64] |= 1ull << (v % 64); });
  }
  std::vector<bool> used(68);
  for (std::uint32_t v = 0; v < f.vregs; ++v)
    if ((now[v / 64] >> (v % 64) & 1) && v < home.size() && home[v] >= 0)
      used[static_cast<std::size_t>(home[v])] = true;
  return used;
}

/// The condition that holds in no lane where a branch is not taken; kAlways: nothing is known.
unsigned false_after(unsigned cond_br) {
  switch (cond_br) {
    case 2: return kZs;  // any Z set
    case 3: return kZc;  // any Z clear
    case 6: return kNs;
    case 7: return kNc;
    case 10: return kCs;
    case 11: return kCc;
    default: return kAlways;
  }
}

/// Whether a word may change what `test`, another word, computes its flags from.
bool changes_operands(const Instr& i, const Instr& test) {
  auto reads = [&](unsigned mux) {
    auto writes = [&](bool file_b, unsigned address) {
      if (mux < 4) return address == kWAcc0 + mux;
      if (mux == kMuxA) return !file_b && address == test.raddr_a;
      return test.kind == kAlu && file_b && address == test.raddr_b;
    };
    return writes(add_file_b(i), i.waddr_add) || writes(mul_file_b(i), i.waddr_mul);
  };
  return reads(test.add_a) || reads(test.add_b);
}

/// A comparison of plain registers and small numbers on the ADD unit alone.
bool plain_test(const Instr& i) {
  auto plain = [&](unsigned mux) {
    if (mux < 4) return true;
    if (mux == kMuxA) return i.raddr_a < 32;
    return mux == kMuxB && (i.kind == kAluImm || i.raddr_b < 32);
  };
  return (i.kind == kAlu || i.kind == kAluImm) && i.sf && i.op_add && !i.op_mul &&
         i.cond_add == kAlways && i.waddr_add == kNull && i.pack == 0 && i.unpack == 0 &&
         plain(i.add_a) && plain(i.add_b);
}

/// Whether a word may be executed although its block is not entered: it only computes into dead
/// registers, or under a condition that is false then.
bool harmless(const Instr& i, const std::vector<bool>& live, unsigned never) {
  if ((i.kind != kAlu && i.kind != kAluImm) || (i.kind == kAlu && i.sig != kSigNone)) return false;
  if (i.raddr_a >= 32 && i.raddr_a != kNull && i.raddr_a != kRElementA) return false;
  if (i.kind == kAlu && i.raddr_b >= 32 && i.raddr_b != kNull && i.raddr_b != kRQpuB) return false;
  auto dead = [&](unsigned address, bool file_b, bool active, unsigned cond) {
    if (!active || address == kNull) return true;
    if (never != kAlways && cond == never && address < 36 && !i.sf) return true;
    if (address < 32) return !live[address + (file_b ? 32 : 0)];
    return address < 35 && !live[address - 32 + 64];
  };
  return dead(i.waddr_add, add_file_b(i), i.op_add, i.cond_add) &&
         dead(i.waddr_mul, mul_file_b(i), i.op_mul, i.cond_mul);
}

/// Empty slots of a branch take the first words of its target, which the branch then skips.
void fill_slots(const Function& f, const std::vector<std::int16_t>& home,
                std::vector<Words>& blocks) {
  auto out = live_out(f);
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const Block& block = f.blocks[b];
    if (block.jump < 0) continue;
    Words& words = blocks[b];
    auto t = static_cast<std::size_t>(block.jump);
    std::size_t at = words.size() - 4;  // the branch; its slots end the block
    std::size_t first_empty = words.size();
    while (first_empty > at + 1 && words[first_empty - 1].instr == Instr{} &&
           words[first_empty - 1].print < 0)
      --first_empty;
    std::vector<bool> live(68);
    if (block.cond != kBranchAlways && b + 1 < blocks.size())
      live = live_registers(f, home, b + 1, out);
    std::size_t limit = blocks[t].size();
    for (std::size_t n = 0; n < blocks[t].size(); ++n)
      if (blocks[t][n].instr.kind == kBranch || blocks[t][n].instr.sig == kSigEnd)
        limit = std::min(limit, n);
    Words source(blocks[t].begin(), blocks[t].begin() + static_cast<std::ptrdiff_t>(limit));
    // Where the branch is not taken, its condition holds in no lane while the flags stay as they
    // are: the same test made again changes nothing while its operands stay.
    const Instr* test = nullptr;
    for (std::size_t n = 0; n < at; ++n)
      if (words[n].instr.sf) test = &words[n].instr;
    unsigned never = test ? false_after(block.cond) : unsigned{kAlways};
    bool same = test && plain_test(*test);
    for (std::size_t n = at; n-- > 0 && &words[n].instr != test;)
      same = same && !changes_operands(words[n].instr, *test);
    for (std::size_t n = at + 1; n < first_empty; ++n)
      same = same && !changes_operands(words[n].instr, *test);
    std::uint32_t done = 0;
    for (std::size_t slot = first_empty; slot < words.size() && done < source.size(); ++slot) {
      const auto& w = source[done];
      if (w.print >= 0 || !harmless(w.instr, live, never)) break;
      if (w.instr.sf && !(same && w.instr == *test)) never = kAlways;
      // Into dead registers it may write whatever the flags say.
      same = same && !changes_operands(w.instr, *test);
      bool good = true;
      for (unsigned d = 1; d <= 3 && d <= slot; ++d) {
        const char* slug = nullptr;
        path_rule(words[slot - d].instr, w.instr, d, &slug);
        good = good && !slug;
      }
      if (!good) break;
      words[slot] = w;
      ++done;
    }
    words[at].skip = done;
  }
}
}  // namespace

Emitted schedule(const Function& f, const std::vector<std::int16_t>& home) {
  std::vector<Words> blocks;
  for (const Block& b : f.blocks) {
    blocks.push_back(BlockScheduler(b, home).run());
    place_branch(b, blocks.back());
    if (b.ends) {
      BlockScheduler::Word end;
      end.instr.sig = kSigEnd;
      blocks.back().push_back(end);
      blocks.back().push_back({});
      blocks.back().push_back({});
    }
  }
  fill_slots(f, home, blocks);
  std::vector<std::size_t> pad(blocks.size());  // nops put before a block
  for (int round = 0;; ++round) {
    Emitted out;
    std::vector<std::size_t> start;
    std::vector<std::size_t> block_of;
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      start.push_back(out.code.size());
      for (const auto& w : blocks[b]) {
        if (w.print >= 0)
          out.prints.push_back({static_cast<std::uint32_t>(out.code.size()), w.print});
        out.code.push_back(w.instr);
        out.places.push_back(w.place);
        block_of.push_back(b);
      }
    }
    for (std::size_t n = 0; n < out.code.size(); ++n) {
      if (out.code[n].kind != kBranch) continue;
      auto target = static_cast<std::size_t>(f.blocks[block_of[n]].jump);
      std::uint32_t skip = blocks[block_of[n]][n - start[block_of[n]]].skip;
      auto to = static_cast<std::int64_t>(start[target] + (skip ? pad[target] + skip : 0));
      out.code[n].imm = static_cast<std::uint32_t>((to - static_cast<std::int64_t>(n) - 4) * 8);
    }
    std::vector<Violation> found = validate(out.code);
    if (found.empty()) return out;
    WEFT_CHECK(round < 64, "the scheduler cannot satisfy the rule book: ",
               violation_error(found[0], out.code).what());
    std::vector<bool> padded(blocks.size());
    for (const Violation& v : found) {
      std::size_t b = block_of[v.at];
      bool from_outside = block_of[v.because] != b || v.because >= v.at;
      WEFT_CHECK(from_outside, "the scheduler broke a rule: ", violation_error(v, out.code).what());
      if (!padded[b]) blocks[b].insert(blocks[b].begin(), BlockScheduler::Word{}), ++pad[b];
      padded[b] = true;
    }
  }
}

}  // namespace weft::qpu::mir
