// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/qpu/engine/flow.h"

#include <algorithm>

namespace weft::qpu::hw {

namespace {
bool waits(const Instr& i) {
  return i.kind == kSem ||
         (is_alu(i) && (i.raddr_a == kRMutex || (i.kind == kAlu && i.raddr_b == kRMutex)));
}

/// A move, whichever unit makes it.
bool add_moves(const Instr& i) {
  return i.add_a == i.add_b &&
         (i.op_add == kOr || i.op_add == kAnd || i.op_add == kMin || i.op_add == kMax);
}
bool mul_moves(const Instr& i) {
  return i.mul_a == i.mul_b && (i.op_mul == kV8min || i.op_mul == kV8max);
}

std::int32_t wrap(std::int32_t a, std::int32_t b, bool minus) {
  auto x = static_cast<std::uint32_t>(a), y = static_cast<std::uint32_t>(b);
  return static_cast<std::int32_t>(minus ? x - y : x + y);
}

std::uint32_t target_of(const Instr& i, std::uint32_t at) {
  return (i.imm + (i.rel ? (at + 4) * 8 : 0)) / 8;
}
}  // namespace

unsigned peripheral_a(const Instr& i) {
  return is_alu(i) && i.raddr_a >= 32 && i.raddr_a != kNull && i.raddr_a != kRElementA ? i.raddr_a
                                                                                       : 0;
}
unsigned peripheral_b(const Instr& i) {
  return i.kind == kAlu && i.raddr_b >= 32 && i.raddr_b != kNull && i.raddr_b != kRQpuB ? i.raddr_b
                                                                                        : 0;
}

std::uint8_t source_slot(const Instr& i, unsigned mux) {
  if (mux < 6) return static_cast<std::uint8_t>(kSlotAcc + mux);
  if (mux == kMuxA) {
    return static_cast<std::uint8_t>(i.raddr_a < 32            ? kSlotRa + i.raddr_a
                                     : i.raddr_a == kRElementA ? kSlotElement
                                     : i.raddr_a == kNull      ? kSlotZero
                                                               : kSlotPerA);
  }
  if (i.kind == kAluImm) return static_cast<std::uint8_t>(kSlotImm + i.raddr_b);
  return static_cast<std::uint8_t>(i.raddr_b < 32        ? kSlotRb + i.raddr_b
                                   : i.raddr_b == kRQpuB ? kSlotNumber
                                   : i.raddr_b == kNull  ? kSlotZero
                                                         : kSlotPerB);
}

std::uint8_t plain_slot(bool file_b, unsigned address) {
  if (address < 32) return static_cast<std::uint8_t>((file_b ? kSlotRb : kSlotRa) + address);
  if (address < 36) return static_cast<std::uint8_t>(kSlotAcc + address - 32);
  return kSlotTrash;
}

Cond branch_mask(unsigned cond_br, bool* negated) {
  static constexpr Cond kWhich[] = {kZs, kZc, kZs, kZc, kNs, kNc, kNs, kNc, kCs, kCc, kCs, kCc};
  bool any = cond_br & 2;
  *negated = !any;  // all lanes of a set: none of the other
  return any ? kWhich[cond_br] : static_cast<Cond>(kWhich[cond_br] ^ 1);
}

bool needs_literal(const Instr& i) {
  if (i.kind == kSem || i.kind == kBranch) return false;
  if (i.pack || i.unpack) return true;
  bool ldi = is_ldi(i);
  auto odd = [&](bool active, unsigned address, unsigned cond) {
    return active && cond != kNever && address != kNull && address >= 36 && cond != kAlways;
  };
  if (odd(ldi || i.op_add, i.waddr_add, i.cond_add) ||
      odd(ldi || i.op_mul, i.waddr_mul, i.cond_mul))
    return true;
  if (ldi) {
    auto plain = [](unsigned c) { return c == kAlways || c == kNever; };
    return i.sf || !plain(i.cond_add) || !plain(i.cond_mul);
  }
  if (i.kind == kAlu && i.sig != kSigNone && i.sig != kSigEnd && i.sig != kSigLoadTmu0 &&
      i.sig != kSigLoadTmu1 && i.sig != kSigBreak)
    return true;
  unsigned a = peripheral_a(i), b = peripheral_b(i);
  if (a && b) return true;
  if (i.kind == kAlu && i.sig == kSigBreak)
    return i.op_add || i.op_mul || i.raddr_a != kNull || i.raddr_b != kNull;
  if (i.op_mul == kV8muld) return true;
  if (rotates_product(i)) {
    if (i.mul_a > 3 || i.mul_b > 3) return true;
    if (i.sf && (!i.op_add || i.cond_mul != kAlways)) return true;  // flags before the rotation
  }
  return i.sf && !i.op_add && i.op_mul == kMul24;  // its carry
}

void uses_of(const Instr& i, Live* reads, Live* writes) {
  if (i.kind == kSem) return;
  if (i.kind == kBranch) {
    bool negated = false;
    if (i.cond_br != kBranchAlways)
      reads->set(kFlagZ + static_cast<std::size_t>(branch_mask(i.cond_br, &negated) - kZs) / 2);
    for (std::uint8_t s :
         {plain_slot(add_file_b(i), i.waddr_add), plain_slot(mul_file_b(i), i.waddr_mul)})
      if (s < kTracked) reads->set(s);  // written only when taken
    return;
  }
  if (needs_literal(i) || (i.kind == kAlu && i.sig == kSigBreak)) {
    reads->set();
    return;
  }
  bool ldi = is_ldi(i);
  auto read = [&](unsigned slot) {
    if (slot < kTracked) reads->set(slot);
  };
  if (!ldi) {
    if (i.op_add) {
      read(source_slot(i, i.add_a));
      if (add_operands(i.op_add) > 1) read(source_slot(i, i.add_b));
    }
    if (i.op_mul) read(source_slot(i, i.mul_a)), read(source_slot(i, i.mul_b));
    if (rotates_product(i) && i.raddr_b == 48) read(kSlotAcc + 5);
  }
  Live conditional;
  auto write = [&](bool active, bool file_b, unsigned address, unsigned cond) {
    if (!active || cond == kNever) return;
    std::size_t slot = address == kWR5 ? kSlotAcc + 5 : plain_slot(file_b, address);
    if (address >= kWRecip && address <= kWLog2) slot = kSlotAcc + 4;
    if (cond != kAlways) reads->set(kFlagZ + (cond - kZs) / 2);
    if (slot >= kTracked) return;
    if (cond == kAlways) writes->set(slot);
    else conditional.set(slot);
  };
  write(ldi || i.op_add, add_file_b(i), i.waddr_add, i.cond_add);
  write(ldi || i.op_mul, mul_file_b(i), i.waddr_mul, i.cond_mul);
  *reads |= conditional & ~*writes;
  if (i.kind == kAlu && (i.sig == kSigLoadTmu0 || i.sig == kSigLoadTmu1)) writes->set(kSlotAcc + 4);
  if (i.sf && (i.op_add || i.op_mul)) {
    unsigned cond = i.op_add ? i.cond_add : i.cond_mul;
    for (std::size_t f : {kFlagZ, kFlagN, kFlagC}) {
      if (cond == kAlways) writes->set(f);
      else if (cond != kNever) reads->set(f);
    }
    if (cond >= kZs) reads->set(kFlagZ + (cond - kZs) / 2);
  }
}

void step_shapes(const Instr& i, Shapes* shapes) {
  constexpr Shape kSame{0}, kNothing{Shape::kUnknown};
  Shapes& s = *shapes;
  if (i.kind == kSem) return;
  if (i.kind == kBranch) {
    for (std::uint8_t to :
         {plain_slot(add_file_b(i), i.waddr_add), plain_slot(mul_file_b(i), i.waddr_mul)})
      if (to < kTracked) s[to] = kNothing;
    return;
  }
  if (needs_literal(i)) {
    auto spoil = [&](bool file_b, unsigned address) {
      std::uint8_t to = plain_slot(file_b, address);
      if (to < kTracked) s[to] = kNothing;
      if (address == kWR5) s[kSlotAcc + 5] = kNothing;
    };
    spoil(add_file_b(i), i.waddr_add), spoil(mul_file_b(i), i.waddr_mul);
    s[kSlotAcc + 4] = kNothing;
    return;
  }
  bool ldi = is_ldi(i);
  auto shape = [&](unsigned mux) -> Shape {
    unsigned slot = source_slot(i, mux);
    if (slot < kTracked) return s[slot];
    if (slot == kSlotElement) return {1};
    if (slot == kSlotPerA) return i.raddr_a == kRUniform ? kSame : kNothing;
    if (slot == kSlotPerB) return i.raddr_b == kRUniform ? kSame : kNothing;
    return kSame;  // immediates, the QPU's number, zero
  };
  Shape add = kNothing, mul = kNothing;
  if (ldi) {
    add = mul = i.kind == kLdi ? kSame : kNothing;
  } else {
    Shape a = shape(i.add_a), b = shape(i.add_b), c = shape(i.mul_a), d = shape(i.mul_b);
    if (add_operands(i.op_add) < 2) b = kSame;
    if (a == kSame && b == kSame) add = kSame;
    else if (add_moves(i)) add = a;
    else if (i.op_add == kAdd && a.known() && b.known()) add = {wrap(a.stride, b.stride, false)};
    else if (i.op_add == kSub && a.known() && b.known()) add = {wrap(a.stride, b.stride, true)};
    else if (i.op_add == kShl && a.known() && i.kind == kAluImm && i.add_b == kMuxB &&
             std::abs(a.stride) < 1024) {
      unsigned n = small_immediate(i.raddr_b) & 31;
      if (n < 16) add = {static_cast<std::int32_t>(static_cast<std::uint32_t>(a.stride) << n)};
    }
    if (c == kSame && d == kSame) mul = kSame;
    else if (mul_moves(i) && !rotates_product(i)) mul = c;
  }
  auto put = [&](bool active, bool file_b, unsigned address, unsigned cond, Shape v) {
    if (!active || cond == kNever) return;
    if (address == kWR5) {
      s[kSlotAcc + 5] = file_b || v == kSame ? kSame : kNothing;
    } else if (address >= kWRecip && address <= kWLog2) {
      s[kSlotAcc + 4] = v == kSame ? kSame : kNothing;
    } else if (std::uint8_t to = plain_slot(file_b, address); to < kTracked) {
      s[to] = cond == kAlways ? v : kNothing;
    }
  };
  put(ldi || i.op_add, add_file_b(i), i.waddr_add, i.cond_add, add);
  put(ldi || i.op_mul, mul_file_b(i), i.waddr_mul, i.cond_mul, mul);
  if (i.kind == kAlu && (i.sig == kSigLoadTmu0 || i.sig == kSigLoadTmu1))
    s[kSlotAcc + 4] = kNothing;
}

Shape result_shape(const Instr& i, bool mul, const Shapes& shapes) {
  Instr only = i;
  if (i.kind == kAlu) only.sig = kSigNone;
  (mul ? only.waddr_mul : only.waddr_add) = kWAcc0;
  (mul ? only.waddr_add : only.waddr_mul) = kNull;
  (mul ? only.cond_mul : only.cond_add) = kAlways;
  Shapes s = shapes;
  step_shapes(only, &s);
  return s[kSlotAcc];
}

void step_waiting(const Instr& i, Waiting* waiting) {
  if (i.kind == kBranch || i.kind == kSem) return;
  const bool ldi = is_ldi(i);
  for (unsigned unit : {0u, 1u}) {
    auto asks = [&](bool active, unsigned address, unsigned cond) {
      return active && cond != kNever && address == (unit ? kWTmu1S : kWTmu0S);
    };
    const int asked = asks(ldi || i.op_add, i.waddr_add, i.cond_add) +
                      asks(ldi || i.op_mul, i.waddr_mul, i.cond_mul),
              received = i.kind == kAlu && i.sig == (unit ? kSigLoadTmu1 : kSigLoadTmu0);
    std::int8_t& now = (*waiting)[unit];
    if (now < 0 || asked + received == 0) continue;
    const int after = now + asked - received;
    const bool good = after >= 0 && now + asked <= assume::kTmuFifoDepth && !needs_literal(i);
    now = static_cast<std::int8_t>(good ? after : -1);
  }
}

Flow analyse(const Program& program, bool keep) {
  const std::vector<Instr>& code = program.instrs;
  auto n = static_cast<std::uint32_t>(code.size());
  std::vector<char> starts(n + 1, 0);
  starts[0] = starts[n] = 1;
  for (std::uint32_t at = 0; at < n; ++at) {
    if (waits(code[at])) starts[at] = starts[at + 1] = 1;
    if (code[at].kind == kBranch) {
      std::uint32_t target = target_of(code[at], at);
      if (target <= n) starts[target] = 1;
      if (at + 4 <= n) starts[at + 4] = 1;
    }
  }
  Flow flow;
  flow.asks.assign(n, false);
  flow.site.assign(n, 0);
  for (std::size_t at = 0, requests = 0; at < n; ++at) {
    auto asks = [](unsigned address) { return address == kWTmu0S || address == kWTmu1S; };
    const Instr& i = code[at];
    if (i.kind == kBranch) continue;
    flow.asks[at] = asks(i.waddr_add) || asks(i.waddr_mul);
    const bool transfers = i.waddr_add == kWDmaAddr || i.waddr_mul == kWDmaAddr;
    if (!flow.asks[at] && !transfers) continue;
    flow.own_sites = flow.own_sites && requests < Qpu::kSites && !(flow.asks[at] && transfers);
    flow.site[at] = static_cast<std::uint8_t>(requests++ % Qpu::kSites);
  }
  flow.block_at.assign(n + 1, -1);
  for (std::uint32_t at = 0; at <= n; ++at) {
    if (!starts[at]) continue;
    FlowBlock b;
    b.first = at;
    flow.block_at[at] = static_cast<std::int32_t>(flow.blocks.size());
    flow.blocks.push_back(b);
  }
  flow.slot_block_at.assign(n + 1, -1);
  std::vector<FlowBlock>& blocks = flow.blocks;
  for (std::size_t k = 0; k < blocks.size(); ++k) {  // grows by blocks in slots
    FlowBlock b = blocks[k];
    std::uint32_t at = b.first;
    bool branching = b.in_slots;
    for (; at < n; ++at) {
      if (branching && at == b.branch + 4) break;
      if (branching && at > b.branch && at != b.first &&
          (waits(code[at]) || (b.in_slots && waits(code[at - 1])))) {
        // Given up here, the rest of the slots would be forgotten: it becomes blocks of its own.
        FlowBlock rest;
        rest.first = at, rest.in_slots = true, rest.branch = b.branch;
        b.next = flow.slot_block_at[at] = static_cast<std::int32_t>(blocks.size());
        blocks.push_back(rest);
        break;
      }
      if (!branching && at != b.first && starts[at]) break;
      if (!branching && code[at].kind == kBranch) branching = true, b.branch = at;
      if (code[at].kind == kAlu && code[at].sig == kSigEnd) {
        b.end = BlockEnd::finishes;
        at += 3;
        break;
      }
    }
    if (at > n) at = n, b.end = BlockEnd::runs_off;
    if (at == b.first || (branching && b.next < 0 && at != b.branch + 4))
      b.end = BlockEnd::runs_off;  // past the end of the program
    b.last = at == 0 ? 0 : at - 1;
    if (b.end == BlockEnd::falls && branching && b.next < 0) {
      b.end = BlockEnd::branches;
      std::uint32_t target = target_of(code[b.branch], b.branch);
      b.target = target <= n ? flow.block_at[target] : flow.block_at[n];
      if (code[b.branch].cond_br != kBranchAlways) b.next = flow.block_at[at];
    } else if (b.end == BlockEnd::falls && b.next < 0) {
      b.next = flow.block_at[at];
    }
    blocks[k] = b;
  }
  // Liveness, backward to a fixed point.
  std::vector<Live> live_in(flow.blocks.size());
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t k = flow.blocks.size(); k-- > 0;) {
      FlowBlock& b = flow.blocks[k];
      Live live;
      if (keep && b.end == BlockEnd::finishes) live.set();
      if (b.target >= 0) live |= live_in[static_cast<std::size_t>(b.target)];
      if (b.next >= 0) live |= live_in[static_cast<std::size_t>(b.next)];
      b.live_out = live;
      if (b.first < n) {
        for (std::uint32_t at = b.last + 1; at-- > b.first;) {
          Live reads, writes;
          uses_of(code[at], &reads, &writes);
          live = (live & ~writes) | reads;
        }
      }
      if (live != live_in[k]) live_in[k] = live, changed = true;
    }
  }
  // Shapes and what waits, forward; registers are zero when a launch begins.
  std::vector<std::size_t> work{0};
  flow.blocks[0].reached = true;
  while (!work.empty()) {
    std::size_t k = work.back();
    work.pop_back();
    Shapes s = flow.blocks[k].shapes;
    Waiting w = flow.blocks[k].waiting;
    if (flow.blocks[k].first < n)
      for (std::uint32_t at = flow.blocks[k].first; at <= flow.blocks[k].last; ++at)
        step_shapes(code[at], &s), step_waiting(code[at], &w);
    for (std::int32_t to : {flow.blocks[k].target, flow.blocks[k].next}) {
      if (to < 0) continue;
      FlowBlock& next = flow.blocks[static_cast<std::size_t>(to)];
      bool changed = !next.reached;
      for (std::size_t r = 0; r < kTracked; ++r) {
        Shape joined = !next.reached || next.shapes[r] == s[r] ? s[r] : Shape{Shape::kUnknown};
        if (!(joined == next.shapes[r])) next.shapes[r] = joined, changed = true;
      }
      for (unsigned unit : {0u, 1u}) {
        const std::int8_t joined = !next.reached || next.waiting[unit] == w[unit] ? w[unit] : -1;
        if (joined != next.waiting[unit]) next.waiting[unit] = joined, changed = true;
      }
      next.reached = true;
      if (changed) work.push_back(static_cast<std::size_t>(to));
    }
  }
  return flow;
}

bool orders_accesses(const Program& program, const Flow& flow) {
  auto accesses = [&](std::uint32_t at) {
    const Instr& i = program.instrs[at];
    return flow.asks[at] || i.waddr_add == kWDmaAddr || i.waddr_mul == kWDmaAddr;
  };
  std::vector<bool> later(flow.blocks.size());  // by block: in it or in one that follows
  bool ordered = false;
  for (bool changed = true; changed && !ordered;) {
    changed = false;
    for (std::size_t k = 0; k < flow.blocks.size(); ++k) {
      const FlowBlock& b = flow.blocks[k];
      if (b.first >= program.instrs.size()) continue;
      bool seen = false;
      for (std::int32_t to : {b.target, b.next})
        seen = seen || (to >= 0 && later[static_cast<std::size_t>(to)]);
      for (std::uint32_t at = b.last + 1; at-- > b.first;) {
        ordered = ordered || (seen && program.instrs[at].kind == kSem);
        seen = seen || accesses(at);
      }
      if (seen != later[k]) later[k] = seen, changed = true;
    }
  }
  return ordered;
}

}  // namespace weft::qpu::hw
