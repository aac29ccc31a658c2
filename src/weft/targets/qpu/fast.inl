// SPDX-License-Identifier: Apache-2.0
// The interpreted engine: instructions are decoded once into records with a handler specialised for the
// pair of operations; blocks between branches run without bookkeeping. Included by fast_*.cpp, once per
// processor variant.

#include <array>
#include <utility>

#include "weft/targets/qpu/engine.h"
#include "weft/targets/qpu/lanes.h"

namespace weft::qpu::hw {
namespace {

struct Op;
using Handler = void (*)(Machine&, Qpu&, const Op&);

enum Post : std::uint8_t { kPostAdd = 1, kPostMul = 2, kPostTmu0 = 4, kPostTmu1 = 8, kPostRotate = 16, kPostR5Add = 32, kPostR5Mul = 64 };

struct Op {
  Handler fn = nullptr;
  std::uint8_t ends = 0;                       // leave the inner loop after this one
  std::uint8_t add_a = 0, add_b = 0, mul_a = 0, mul_b = 0, add_to = kSlotTrash, mul_to = kSlotTrash;
  std::uint8_t cond_add = kAlways, cond_mul = kAlways, sf = 0, flags_from_mul = 0;
  std::uint8_t post = 0, add_address = 0, mul_address = 0, add_file = 0, mul_file = 0, rotate = 0, rotate_to = 0, rotate_cond = 0;
  std::uint8_t read_a = 0, read_b = 0;         // peripheral addresses, 0: none
  std::uint8_t last_slot = 0, last_end = 0;    // third slot of a branch; second slot of program end
  Handler inner = nullptr;
  const Op* base = nullptr;
  const Instr* instr = nullptr;
  const Vec* constant = nullptr;
};

/// Position of `op` within the block that started at q.time.
inline std::int64_t into_block(const Qpu& q, const Op& op) { return &op - static_cast<const Op*>(q.block); }

inline void locate(Qpu& q, const Op& op) {
  q.pc = static_cast<std::uint32_t>(&op - op.base);
  q.now = q.time + timing::kIssue * into_block(q, op);
}

inline void set_flags(Qpu& q, const Lanes& where, const Lanes& value, const Lanes& carry, bool all) {
  auto put = [&](unsigned set, const Lanes& on) {
    Lanes mixed = all ? on : blend(where, on, load(q.mask[set]));
    store(q.mask[set], mixed);
    store(q.mask[set + 1], invert(mixed));
  };
  put(kZs, is_zero(value));
  put(kNs, is_negative(value));
  put(kCs, carry);
}

/// Everything after the ALUs: peripherals, rotation, r5, TMU loads.
[[gnu::noinline]] void after(Machine& m, Qpu& q, const Op& op) {
  locate(q, op);
  if (op.post & kPostRotate) {
    unsigned n = op.rotate == 48 ? q.slot[kSlotAcc + 5][0] & 15 : op.rotate - 48;
    Lanes r = rotate(load(q.slot[kSlotOutMul]), n);
    if (op.post & kPostMul) {
      store(q.slot[kSlotOutMul], r);
    } else {
      Vec& to = q.slot[op.rotate_to];
      store(to, op.rotate_cond == kAlways ? r : blend(load(q.mask[op.rotate_cond]), r, load(to)));
    }
  }
  auto r5 = [&](const Vec& from, bool file_b) {
    Vec& to = q.slot[kSlotAcc + 5];
    for (unsigned l = 0; l < 16; ++l) to[l] = from[file_b ? 0 : l & ~3u];
  };
  if (op.post & kPostR5Add) r5(q.slot[kSlotOutAdd], op.add_file);
  if (op.post & kPostR5Mul) r5(q.slot[kSlotOutMul], op.mul_file);
  auto put = [&](bool file_b, unsigned address, const Vec& value) {
    if (address == kWTmu0S || address == kWTmu1S) {
      m.tmu_request(q, address == kWTmu1S, value);
    } else if (address >= kWRecip && address <= kWLog2) {
      HostFloatMode host;
      m.write(q, file_b, address, value);
      q.slot[kSlotAcc + 4] = q.sfu_result;   // nothing can see r4 in between
      q.sfu_countdown = 0;
    } else {
      m.write(q, file_b, address, value);
    }
  };
  if (op.post & kPostAdd) put(op.add_file, op.add_address, q.slot[kSlotOutAdd]);
  if (op.post & kPostMul) put(op.mul_file, op.mul_address, q.slot[kSlotOutMul]);
  if (op.post & kPostTmu0) m.tmu_receive(q, 0);
  if (op.post & kPostTmu1) m.tmu_receive(q, 1);
}

template <int A, int M, bool COND, bool POST>
void alu(Machine& m, Qpu& q, const Op& op) {
  [[maybe_unused]] Lanes a, b, c, d, x, y;
  if constexpr (A != 0) {
    a = load(q.slot[op.add_a]), b = load(q.slot[op.add_b]);
    x = add_op<A>(a, b);
  }
  if constexpr (M != 0) {
    c = load(q.slot[op.mul_a]), d = load(q.slot[op.mul_b]);
    y = mul_op<M>(c, d);
  }
  if constexpr (!COND) {
    if constexpr (A != 0) store(q.slot[op.add_to], x);
    if constexpr (M != 0) store(q.slot[op.mul_to], y);
  } else {
    Lanes add_mask = load(q.mask[op.cond_add]), mul_mask = load(q.mask[op.cond_mul]);
    if constexpr (A != 0) store(q.slot[op.add_to], blend(add_mask, x, load(q.slot[op.add_to])));
    if constexpr (M != 0) store(q.slot[op.mul_to], blend(mul_mask, y, load(q.slot[op.mul_to])));
    if (op.sf) {
      if constexpr (A != 0) set_flags(q, add_mask, x, add_carry<A>(a, b, x), op.cond_add == kAlways);
      else if constexpr (M != 0) set_flags(q, mul_mask, y, mul_carry<M>(c, d), op.cond_mul == kAlways);
    }
  }
  if constexpr (POST) after(m, q, op);
}

void nothing(Machine&, Qpu&, const Op&) {}

void load_constant(Machine& m, Qpu& q, const Op& op) {
  Lanes v = load(*op.constant);
  store(q.slot[op.add_to], v);
  store(q.slot[op.mul_to], v);
  if (op.post) after(m, q, op);
}

/// Reads peripherals into their slots, then goes on.
void read_first(Machine& m, Qpu& q, const Op& op) {
  locate(q, op);
  if (op.read_a && !m.read(q, false, op.read_a, q.slot[kSlotPerA])) return;
  if (op.read_b && op.read_b != op.read_a && !m.read(q, true, op.read_b, q.slot[kSlotPerB])) return;
  op.inner(m, q, op);
}

void semaphore(Machine& m, Qpu& q, const Op& op) {
  locate(q, op);
  m.semaphore(q, op.instr->sem, op.instr->acquire);
}

void branch(Machine&, Qpu& q, const Op& op) {
  static constexpr Cond kWhich[] = {kZs, kZc, kZs, kZc, kNs, kNc, kNs, kNc, kCs, kCc, kCs, kCc};
  unsigned cond = op.instr->cond_br;
  bool taken = true;
  if (cond != kBranchAlways) {
    bool any = cond & 2;
    taken = any ? any_lane(q.mask[kWhich[cond]]) : !any_lane(q.mask[kWhich[cond] ^ 1]);   // all: none of the complement
  }
  q.taken = taken;
  if (!taken) return;
  const Instr& i = *op.instr;
  auto pc = static_cast<std::uint32_t>(&op - op.base);
  q.target = (i.imm + (i.rel ? (pc + 4) * 8 : 0)) / 8;
  if (op.add_to != kSlotTrash || op.mul_to != kSlotTrash) {
    for (std::uint32_t& lane : q.slot[op.add_to].lane) lane = (pc + 4) * 8;
    for (std::uint32_t& lane : q.slot[op.mul_to].lane) lane = (pc + 4) * 8;
  }
}

/// What is rare (packs, odd rotations, conditions on r5): the oracle's own code, for one instruction.
void literal(Machine& m, Qpu& q, const Op& op) {
  HostFloatMode host;
  locate(q, op);
  std::int64_t time = q.time, instructions = q.instructions;
  std::uint32_t pc = q.pc;
  int slots = q.slots_left, end = q.end_left;
  q.time = q.now;
  q.slots_left = 0, q.end_left = -1;
  q.history[0] = q.history[1] = q.history[2] = nullptr;   // clean programs have nothing to check
  step_oracle(m, q);
  if (q.wait == Wait::none) q.time -= timing::kIssue;
  q.time = time + (q.time - (time + timing::kIssue * into_block(q, op)));   // keep stalls only
  q.instructions = instructions;
  q.slots_left = slots, q.end_left = end;
  q.pc = pc;
  if (q.sfu_countdown) q.slot[kSlotAcc + 4] = q.sfu_result, q.sfu_countdown = 0;
}

void stop_here(Machine& m, Qpu& q, const Op& op) {
  locate(q, op);
  m.breakpoint(q);
}

void ran_off(Machine& m, Qpu& q, const Op& op) {
  locate(q, op);
  m.fail(q, "qpu.pc.outside", cat("execution reached ", hex(static_cast<std::uint64_t>(q.pc) * 8), ", past the end of the program"), "end it with thrend and two slots");
}

template <int A, int M>
constexpr Handler pick(bool cond, bool post) {
  if (cond) return post ? &alu<A, M, true, true> : &alu<A, M, true, false>;
  return post ? &alu<A, M, false, true> : &alu<A, M, false, false>;
}

template <int M, std::size_t... As>
Handler pick_add(unsigned op, bool cond, bool post, std::index_sequence<As...>) {
  Handler out = nullptr;
  ((op == As && (out = pick<static_cast<int>(As), M>(cond, post), true)), ...);
  return out;
}

Handler pick_handler(unsigned add, unsigned mul, bool cond, bool post) {
  using Ops = std::index_sequence<0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 30, 31>;
  switch (mul) {
    case 0: return pick_add<0>(add, cond, post, Ops());
    case kFmul: return pick_add<kFmul>(add, cond, post, Ops());
    case kMul24: return pick_add<kMul24>(add, cond, post, Ops());
    case kV8min: return pick_add<kV8min>(add, cond, post, Ops());
    default: return nullptr;
  }
}

class Interpreter final : public FastProgram {
 public:
  Interpreter(const Program& program, bool count) : count_(count) {
    std::size_t n = program.instrs.size();
    ops_.resize(n + 1);
    constants_.resize(n);
    counts_.assign(n + 1, 0);
    for (std::size_t i = 0; i < n; ++i) translate(program, i);
    ops_[n].fn = ran_off;
    for (Op& op : ops_) op.base = ops_.data();
    for (std::size_t i = 0; i < n; ++i) {
      const Instr& instr = program.instrs[i];
      if (instr.kind == kBranch && i + 3 < n) ops_[i + 3].last_slot = ops_[i + 3].ends = 1;
      if (instr.kind == kAlu && instr.sig == kSigEnd && i + 2 < n) ops_[i + 2].last_end = ops_[i + 2].ends = 1;
    }
  }

  void run(Machine& m, Qpu& q, std::int64_t limit) override {
    FloatMode mode;
    const Op* op = ops_.data() + q.pc;
    while (true) {
      const Op* start = op;
      q.block = start;
      do {
        op->fn(m, q, *op);
      } while (!(op++)->ends);
      const Op& last = op[-1];
      std::int64_t n = op - start;
      if (q.wait != Wait::none) {
        --n;
        --op;
      }
      q.time += timing::kIssue * n;
      q.instructions += n;
      if (count_ && n) ++counts_[static_cast<std::size_t>(start - ops_.data())], --counts_[static_cast<std::size_t>(op - ops_.data())];
      q.pc = static_cast<std::uint32_t>(op - ops_.data());
      if (q.wait != Wait::none) return;
      if (last.last_end) {
        --q.pc;
        q.now = q.time - timing::kIssue;
        m.finish(q);
        return;
      }
      if (last.last_slot && q.taken) {
        q.taken = false;
        q.pc = q.target;
        op = ops_.data() + q.pc;
        if (q.time >= limit) return;
      }
    }
  }

  const std::vector<std::int64_t>& counts() const override {
    totals_ = counts_;
    for (std::size_t i = 1; i < totals_.size(); ++i) totals_[i] += totals_[i - 1];
    return totals_;
  }
  void clear_counts() override { std::fill(counts_.begin(), counts_.end(), 0); }

 private:
  void translate(const Program& program, std::size_t at) {
    const Instr& i = program.instrs[at];
    Op& op = ops_[at];
    op.instr = &i;
    if (i.kind == kSem) {
      op.fn = semaphore;
      op.ends = 1;
      return;
    }
    if (i.kind == kBranch) {
      op.fn = branch;
      op.add_to = plain_slot(add_file_b(i), i.waddr_add), op.mul_to = plain_slot(mul_file_b(i), i.waddr_mul);
      return;
    }
    if (i.kind == kAlu && i.sig == kSigBreak) {
      op.fn = stop_here;
      bool idle = !i.op_add && !i.op_mul && i.raddr_a == kNull && i.raddr_b == kNull;
      if (!idle) op.fn = literal;
      return;
    }
    bool ok = i.kind != kAlu || i.sig == kSigNone || i.sig == kSigEnd || i.sig == kSigLoadTmu0 || i.sig == kSigLoadTmu1;
    if (i.kind == kAlu && i.sig == kSigLoadTmu0) op.post |= kPostTmu0;
    if (i.kind == kAlu && i.sig == kSigLoadTmu1) op.post |= kPostTmu1;
    ok = ok && !i.pack && !i.unpack;
    bool ldi = is_ldi(i);
    bool add = ldi || i.op_add, mul = ldi || i.op_mul;
    ok = result(op, i, add, false) && ok;
    ok = result(op, i, mul, true) && ok;
    op.sf = i.sf;
    if (ldi) {
      if (i.sf || (i.cond_add != kAlways && i.cond_add != kNever) || (i.cond_mul != kAlways && i.cond_mul != kNever)) ok = false;
      Vec& v = constants_[at];
      for (unsigned l = 0; l < 16; ++l) {
        std::uint32_t low = i.imm >> l & 1, high = i.imm >> (16 + l) & 1;
        v[l] = i.kind == kLdi ? i.imm : i.kind == kLdiUnsigned ? low + 2 * high : low - 2 * high;
      }
      op.constant = &v;
      if (op.post & kPostAdd || op.post & kPostR5Add) op.add_to = kSlotOutAdd;
      if (op.post & kPostMul || op.post & kPostR5Mul) op.mul_to = kSlotOutMul;
      op.fn = ok ? load_constant : literal;
      return;
    }
    auto source = [&](unsigned mux) -> std::uint8_t {
      if (mux < 6) return static_cast<std::uint8_t>(kSlotAcc + mux);
      if (mux == kMuxA) return static_cast<std::uint8_t>(i.raddr_a < 32 ? kSlotRa + i.raddr_a : i.raddr_a == kRElementA ? kSlotElement : i.raddr_a == kNull ? kSlotZero : kSlotPerA);
      if (i.kind == kAluImm) return static_cast<std::uint8_t>(kSlotImm + i.raddr_b);
      return static_cast<std::uint8_t>(i.raddr_b < 32 ? kSlotRb + i.raddr_b : i.raddr_b == kRQpuB ? kSlotNumber : i.raddr_b == kNull ? kSlotZero : kSlotPerB);
    };
    op.add_a = source(i.add_a), op.add_b = source(i.add_b), op.mul_a = source(i.mul_a), op.mul_b = source(i.mul_b);
    if (i.raddr_a >= 32 && i.raddr_a != kNull && i.raddr_a != kRElementA) op.read_a = i.raddr_a;
    if (i.kind == kAlu && i.raddr_b >= 32 && i.raddr_b != kNull && i.raddr_b != kRQpuB) op.read_b = i.raddr_b;
    if (op.read_a && op.read_a == op.read_b && op.read_a != 49 && op.read_a != 50) ok = false;
    if (op.read_a && op.read_b && op.read_a != op.read_b) ok = false;
    if (i.kind == kAluImm && i.raddr_b >= 48 && i.op_mul) {
      if (i.mul_a > 3 || i.mul_b > 3 || (i.sf && (!i.op_add || op.cond_mul != kAlways))) {   // flags come before the rotation here
        ok = false;
      } else {
        op.rotate = i.raddr_b;
        op.rotate_to = op.mul_to, op.rotate_cond = op.cond_mul;
        op.mul_to = kSlotOutMul, op.cond_mul = kAlways;
        op.post |= kPostRotate;
      }
    }
    bool cond = i.sf || (i.op_add && op.cond_add != kAlways) || (i.op_mul && op.cond_mul != kAlways);
    Handler handler = pick_handler(i.op_add, i.op_mul, cond, op.post != 0);
    if (!i.op_add && !i.op_mul && !op.post) handler = nothing;
    if (!ok || !handler) {
      op.fn = literal;
    } else if (op.read_a || op.read_b) {
      op.inner = handler;
      op.fn = read_first;
    } else {
      op.fn = handler;
    }
    if (i.raddr_a == kRMutex || (i.kind == kAlu && i.raddr_b == kRMutex)) op.ends = 1;
  }

  static std::uint8_t plain_slot(bool file_b, unsigned address) {
    if (address < 32) return static_cast<std::uint8_t>((file_b ? kSlotRb : kSlotRa) + address);
    if (address < 36) return static_cast<std::uint8_t>(kSlotAcc + address - 32);
    return kSlotTrash;
  }

  /// Where an ALU's result goes; false: only the literal way will do.
  static bool result(Op& op, const Instr& i, bool active, bool mul) {
    unsigned address = mul ? i.waddr_mul : i.waddr_add, cond = mul ? i.cond_mul : i.cond_add;
    bool file_b = mul ? mul_file_b(i) : add_file_b(i);
    (mul ? op.mul_file : op.add_file) = file_b;
    (mul ? op.mul_address : op.add_address) = static_cast<std::uint8_t>(address);
    std::uint8_t& to = mul ? op.mul_to : op.add_to;
    std::uint8_t& when = mul ? op.cond_mul : op.cond_add;
    to = kSlotTrash;
    when = static_cast<std::uint8_t>(cond);
    if (!active || cond == kNever || address == kNull) {
      if (!i.sf) when = kAlways;
      return true;
    }
    if (address < 36) {
      to = plain_slot(file_b, address);
      return true;
    }
    if (cond != kAlways) return false;
    to = mul ? kSlotOutMul : kSlotOutAdd;
    if (address == kWR5) op.post |= mul ? kPostR5Mul : kPostR5Add; else op.post |= mul ? kPostMul : kPostAdd;
    return true;
  }

  bool count_;
  std::vector<Op> ops_;
  std::vector<Vec> constants_;
  std::vector<std::int64_t> counts_;
  mutable std::vector<std::int64_t> totals_;
};

}  // namespace

std::unique_ptr<FastProgram> WEFT_QPU_FAST_NAME(const Program& program, bool count) {
  return std::make_unique<Interpreter>(program, count);
}

}  // namespace weft::qpu::hw
