// SPDX-License-Identifier: Apache-2.0
// The meaning of QPU words, literally: one instruction, one lane at a time, every rule of the book
// checked on the way. Slow, and what every other engine must agree with.

#include "weft/targets/qpu/abi.h"
#include "weft/targets/qpu/engine.h"
#include "weft/targets/qpu/float.h"
#include "weft/targets/qpu/tmu.h"

namespace weft::qpu::hw {

Program make_program(std::vector<Code> words, std::vector<runtime::DebugEntry> debug) {
  Program p;
  p.instrs = decode_words(words);
  p.words = std::move(words);
  p.debug = std::move(debug);
  p.violations = validate(p.instrs);
  p.flagged.assign(p.instrs.size(), 0);
  for (const Violation& v : p.violations) {
    std::string_view slug = v.rule->slug;
    if (v.rule->kind == RuleKind::word || slug == "end_access" || slug == "branch_target" ||
        slug == "scoreboard")
      p.flagged[v.at] = 1;
  }
  p.clean = p.violations.empty() && !has_register_branch(p.instrs);
  return p;
}

namespace {
bool branch_taken(const Qpu& q, unsigned cond) {
  if (cond == kBranchAlways) return true;
  static constexpr Cond kWhich[] = {kZs, kZc, kZs, kZc, kNs, kNc, kNs, kNc, kCs, kCc, kCs, kCc};
  bool any = cond & 2, found = !any;
  for (std::uint32_t lane : q.mask[kWhich[cond]].lane) {
    if (any) found = found || lane;
    else found = found && lane;
  }
  return found;
}

void set_flags(Qpu& q, unsigned lane, std::uint32_t value, bool carry) {
  auto put = [&](unsigned set, bool on) {
    q.mask[set][lane] = on ? ~0u : 0;
    q.mask[set + 1][lane] = on ? 0 : ~0u;
  };
  put(kZs, value == 0);
  put(kNs, value >> 31);
  put(kCs, carry);
}

/// The vector that an ALU destination names; null for peripherals.
Vec* destination(Qpu& q, bool file_b, unsigned address) {
  if (address < 32) return &q.slot[(file_b ? kSlotRb : kSlotRa) + address];
  if (address < 36) return &q.slot[kSlotAcc + address - 32];
  if (address == kNull) return &q.slot[kSlotTrash];
  return nullptr;
}

/// Writes a result, then whatever the address triggers.
void deliver(Machine& m, Qpu& q, const Instr& i, bool mul, const Vec& result, unsigned op,
             bool gives_float, const Vec* operands) {
  unsigned cond = mul ? i.cond_mul : i.cond_add, address = mul ? i.waddr_mul : i.waddr_add;
  bool file_b = mul ? mul_file_b(i) : add_file_b(i);
  if (cond == kNever || address == kNull) return;
  Vec* to = destination(q, file_b, address);
  if (!to && address == kWR5) {
    Vec& r5 = q.slot[kSlotAcc + 5];
    for (unsigned l = 0; l < 16; ++l) {
      unsigned from = file_b ? 0 : l & ~3u;
      if (q.mask[cond][l]) r5[l] = result[from];
    }
    return;
  }
  bool pack_a = !i.pm && i.pack && !file_b && address < 32, pack_mul = i.pm && i.pack && mul;
  Vec value = result;
  for (unsigned l = 0; l < 16; ++l) {
    std::uint32_t old = to ? (*to)[l] : 0;
    if (pack_a) {
      std::uint32_t v = value[l];
      if (i.pack >= 8 && operands) v = saturate32(op, operands[0][l], operands[1][l], v);
      value[l] = pack_lane(i.pack, old, v, gives_float);
    }
    if (pack_mul) value[l] = pack_colour(i.pack, old, value[l]);
  }
  if (!to) {
    m.write(q, file_b, address, value);
    return;
  }
  for (unsigned l = 0; l < 16; ++l) {
    if (q.mask[cond][l]) (*to)[l] = value[l];
  }
}

bool execute_alu(Machine& m, Qpu& q, const Instr& i) {
  Vec port_a = i.raddr_a < 32 ? q.slot[kSlotRa + i.raddr_a] : q.slot[kSlotZero];
  Vec port_b = i.kind == kAluImm ? q.slot[kSlotImm + i.raddr_b]
               : i.raddr_b < 32  ? q.slot[kSlotRb + i.raddr_b]
                                 : q.slot[kSlotZero];
  if (i.raddr_a == kRMutex && !m.read(q, false, kRMutex, port_a)) return false;
  if (i.kind == kAlu && i.raddr_b == kRMutex && i.raddr_a != kRMutex &&
      !m.read(q, true, kRMutex, port_b))
    return false;
  if (i.raddr_a >= 32 && i.raddr_a != kNull && i.raddr_a != kRMutex)
    m.read(q, false, i.raddr_a, port_a);
  if (i.kind == kAlu && i.raddr_b >= 32 && i.raddr_b != kNull && i.raddr_b != kRMutex)
    m.read(q, true, i.raddr_b, port_b);

  bool float_use = (add_is_float(i.op_add) && (i.add_a == kMuxA || i.add_b == kMuxA)) ||
                   (i.op_mul == kFmul && (i.mul_a == kMuxA || i.mul_b == kMuxA));
  auto input = [&](unsigned mux) {
    Vec v = mux < 6 ? q.slot[kSlotAcc + mux] : mux == kMuxA ? port_a : port_b;
    if (i.unpack && ((mux == kMuxA && !i.pm && i.raddr_a < 32) || (mux == kMuxR4 && i.pm))) {
      for (std::uint32_t& lane : v.lane) lane = unpack_lane(i.unpack, lane, i.pm || float_use);
    }
    return v;
  };
  Vec add_in[2] = {input(i.add_a), input(i.add_b)}, mul_in[2] = {input(i.mul_a), input(i.mul_b)};
  Vec add_out, mul_out;
  bool add_carry[16], mul_carry[16];
  for (unsigned l = 0; l < 16; ++l) {
    LaneResult r = add_lane(i.op_add, add_in[0][l], add_in[1][l]);
    add_out[l] = r.value, add_carry[l] = r.carry;
  }
  Vec plain;
  bool plain_carry[16];
  for (unsigned l = 0; l < 16; ++l) {
    LaneResult r = mul_lane(i.op_mul, mul_in[0][l], mul_in[1][l]);
    plain[l] = r.value, plain_carry[l] = r.carry;
  }
  unsigned amount = i.kind == kAluImm && i.raddr_b >= 48
                        ? (i.raddr_b == 48 ? q.slot[kSlotAcc + 5][0] & 15 : i.raddr_b - 48)
                        : 0;
  bool full = i.mul_a < 4 && i.mul_b < 4;
  for (unsigned l = 0; l < 16; ++l) {
    unsigned from = full ? (l - amount) & 15 : (l & ~3u) | ((l - amount) & 3);
    mul_out[l] = plain[from], mul_carry[l] = plain_carry[from];
  }
  bool from_add = i.op_add != kANop;
  Vec flags_mask = q.mask[from_add ? i.cond_add : i.cond_mul];
  if (i.op_add) deliver(m, q, i, false, add_out, i.op_add, add_gives_float(i.op_add), add_in);
  if (i.op_mul) deliver(m, q, i, true, mul_out, kANop, i.op_mul == kFmul, nullptr);
  if (i.sf && (i.op_add || i.op_mul)) {
    for (unsigned l = 0; l < 16; ++l) {
      if (flags_mask[l])
        set_flags(q, l, from_add ? add_out[l] : mul_out[l], from_add ? add_carry[l] : mul_carry[l]);
    }
  }
  return true;
}

void execute_ldi(Machine& m, Qpu& q, const Instr& i) {
  Vec value;
  for (unsigned l = 0; l < 16; ++l) {
    std::uint32_t low = i.imm >> l & 1, high = i.imm >> (16 + l) & 1;
    value[l] = i.kind == kLdi ? i.imm : i.kind == kLdiUnsigned ? low + 2 * high : low - 2 * high;
  }
  Vec flags_mask = q.mask[i.cond_add];
  deliver(m, q, i, false, value, kANop, false, nullptr);
  deliver(m, q, i, true, value, kANop, false, nullptr);
  if (i.sf) {
    for (unsigned l = 0; l < 16; ++l)
      if (flags_mask[l]) set_flags(q, l, value[l], false);
  }
}

void execute_branch(Qpu& q, const Instr& i) {
  q.slots_left = 4;  // counted down after this instruction too
  q.taken = branch_taken(q, i.cond_br);
  if (!q.taken) return;
  std::uint32_t bytes =
      i.imm + (i.rel ? (q.pc + 4) * 8 : 0) + (i.reg ? q.slot[kSlotRa + i.raddr_a][15] : 0);
  q.target = bytes / 8;
  for (bool mul : {false, true}) {
    Vec* to = destination(q, mul ? mul_file_b(i) : add_file_b(i), mul ? i.waddr_mul : i.waddr_add);
    if (to)
      for (std::uint32_t& lane : to->lane) lane = (q.pc + 4) * 8;
  }
}

void check_rules(Machine& m, Qpu& q, const Instr& i) {
  const Program& p = *m.program;
  if (p.flagged[q.pc]) {
    for (const Violation& v : p.violations) {
      if (v.at == q.pc && v.rule->kind != RuleKind::path) m.fail_rule(q, v.rule->slug, v.detail);
      std::string_view slug = v.rule->slug;
      if (v.at == q.pc && (slug == "end_access" || slug == "branch_target" || slug == "scoreboard"))
        m.fail_rule(q, slug, v.detail);
    }
  }
  for (unsigned d = 1; d <= 3 && q.history[d - 1]; ++d) {
    const char* slug = nullptr;
    std::string detail = path_rule(*q.history[d - 1], i, d, &slug);
    if (slug)
      m.fail_rule(
          q, slug,
          cat(detail, " (at ", hex(q.history_pc[d - 1] * 8), ": ", print(*q.history[d - 1]), ")"));
  }
}
}  // namespace

bool step_oracle(Machine& m, Qpu& q) {
  const Program& p = *m.program;
  q.now = q.time;
  if (q.pc >= p.instrs.size()) ran_off(m, q);
  const Instr& i = p.instrs[q.pc];
  check_rules(m, q, i);
  if (q.sfu_countdown > 0 && --q.sfu_countdown == 0) q.slot[kSlotAcc + 4] = q.sfu_result;
  switch (i.kind) {
    case kAlu:
    case kAluImm:
      if (!execute_alu(m, q, i)) {
        if (q.sfu_countdown > 0) ++q.sfu_countdown;  // tried again
        return false;
      }
      break;
    case kSem:
      if (!m.semaphore(q, i.sem, i.acquire)) {
        if (q.sfu_countdown > 0) ++q.sfu_countdown;
        return false;
      }
      break;
    case kBranch: execute_branch(q, i); break;
    default: execute_ldi(m, q, i); break;
  }
  if (i.kind == kAlu) {
    if (i.sig == kSigLoadTmu0 || i.sig == kSigLoadTmu1) m.tmu_receive(q, i.sig - kSigLoadTmu0);
    else if (i.sig == kSigBreak) m.breakpoint(q);
    else if (i.sig == kSigEnd) q.end_left = 3;
    else if (i.sig != kSigNone)
      m.fail(q, "qpu.unsupported", cat("signal ", i.sig, " is for fragment programs"));
  }
  q.time += timing::kIssue;
  ++q.instructions;
  for (int h = 2; h > 0; --h)
    q.history[h] = q.history[h - 1], q.history_pc[h] = q.history_pc[h - 1];
  q.history[0] = &i;
  q.history_pc[0] = q.pc;
  ++q.pc;
  if (q.end_left > 0 && --q.end_left == 0) {
    --q.pc;  // faults name the last slot
    q.now = q.time - timing::kIssue;
    m.finish(q);
    return true;
  }
  if (q.slots_left > 0 && --q.slots_left == 0 && q.taken) q.pc = q.target;
  return true;
}

void run_oracle(Machine& m, Qpu& q, std::int64_t limit) {
  while (!q.finished) {
    bool last_slot = q.slots_left == 1 && q.taken;
    if (!step_oracle(m, q)) return;
    if (last_slot && q.time >= limit) return;
  }
}

}  // namespace weft::qpu::hw
