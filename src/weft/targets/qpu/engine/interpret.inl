// SPDX-License-Identifier: Apache-2.0
// The interpreted engine: blocks become rows of small steps, each with a handler specialised for
// its operations that jumps to the next one's; what a block does not need (flags nobody reads,
// checks that hold by construction) is left out when it is prepared. Included by interpret_*.cpp,
// once per processor variant.

#include <array>
#include <utility>

#include "weft/targets/qpu/engine.h"
#include "weft/targets/qpu/engine/flow.h"
#include "weft/targets/qpu/engine/lanes.h"
#include "weft/targets/qpu/tmu.h"

namespace weft::qpu::hw {
namespace {

struct Op;
/// Returns the first step of the block that follows; null: the QPU stops here for now.
using Handler = const Op* (*)(Machine&, Qpu&, const Op*);

struct Op {
  Handler fn = nullptr;
  // Byte offsets from the QPU's first slot.
  std::uint16_t add_a = 0, add_b = 0, mul_a = 0, mul_b = 0;
  std::uint16_t add_to = kSlotTrash * 64, mul_to = kSlotTrash * 64;
  std::uint16_t add_mask = kAlways * 64, mul_mask = kAlways * 64;  // from the first mask
  std::uint8_t flags = 0;  // bit 0 Z, 1 N, 2 C: set, because read later
  bool flags_add = false, flags_all = false;
  std::uint8_t address = 0, file = 0, amount = 0;
  std::uint32_t at = 0, into = 0;  // instruction, and its place in the block
  const Instr* instr = nullptr;
  const Vec* constant = nullptr;
  std::uint32_t target = 0;                    // of the branch
  const Op *taken = nullptr, *next = nullptr;  // of the block's last step
  std::int64_t* count = nullptr;
};

inline Vec& vec(Qpu& q, std::uint16_t offset) {
  return *reinterpret_cast<Vec*>(reinterpret_cast<char*>(q.slot) + offset);
}
inline Vec& mask_at(Qpu& q, std::uint16_t offset) {
  return *reinterpret_cast<Vec*>(reinterpret_cast<char*>(q.mask) + offset);
}
inline std::uint16_t offset(unsigned slot) { return static_cast<std::uint16_t>(slot * 64); }

inline void locate(Qpu& q, const Op* op) {
  q.pc = op->at;
  q.into = op->into;
  q.now = q.time + timing::kIssue * static_cast<std::int64_t>(op->into);
}

inline const Op* onward(Machine& m, Qpu& q, const Op* op) { return op[1].fn(m, q, op + 1); }

inline void set_flags(Qpu& q, const Op* op, const Lanes& where, const Lanes& on, unsigned set) {
  Lanes mixed = op->flags_all ? on : blend(where, on, load(q.mask[set]));
  store(q.mask[set], mixed);
  store(q.mask[set + 1], invert(mixed));
}

template <int A, int M, bool COND>
const Op* alu(Machine& m, Qpu& q, const Op* op) {
  [[maybe_unused]] Lanes a, b, c, d, x, y;
  if constexpr (A != 0) {
    a = load(vec(q, op->add_a)), b = load(vec(q, op->add_b));
    x = add_op<A>(a, b);
  }
  if constexpr (M != 0) {
    c = load(vec(q, op->mul_a)), d = load(vec(q, op->mul_b));
    y = mul_op<M>(c, d);
  }
  if constexpr (!COND) {
    if constexpr (A != 0) store(vec(q, op->add_to), x);
    if constexpr (M != 0) store(vec(q, op->mul_to), y);
  } else {
    Lanes add_mask = load(mask_at(q, op->add_mask)), mul_mask = load(mask_at(q, op->mul_mask));
    if constexpr (A != 0) {
      Vec& to = vec(q, op->add_to);
      store(to, blend(add_mask, x, load(to)));
    }
    if constexpr (M != 0) {
      Vec& to = vec(q, op->mul_to);
      store(to, blend(mul_mask, y, load(to)));
    }
    if (op->flags) {
      if constexpr (A != 0) {
        if (op->flags & 1) set_flags(q, op, add_mask, is_zero(x), kZs);
        if (op->flags & 2) set_flags(q, op, add_mask, is_negative(x), kNs);
        if (op->flags & 4) set_flags(q, op, add_mask, add_carry<A>(a, b, x), kCs);
      } else if constexpr (M != 0) {
        if (op->flags & 1) set_flags(q, op, mul_mask, is_zero(y), kZs);
        if (op->flags & 2) set_flags(q, op, mul_mask, is_negative(y), kNs);
        if (op->flags & 4) set_flags(q, op, mul_mask, no_lanes(), kCs);
      }
    }
  }
  return onward(m, q, op);
}

const Op* load_constant(Machine& m, Qpu& q, const Op* op) {
  Lanes v = load(*op->constant);
  store(vec(q, op->add_to), v);
  store(vec(q, op->mul_to), v);
  return onward(m, q, op);
}

const Op* read_peripheral(Machine& m, Qpu& q, const Op* op) {
  locate(q, op);
  q.slots_left = op->amount;
  if (!m.read(q, op->file, op->address, vec(q, op->add_to))) return nullptr;
  q.slots_left = 0;
  return onward(m, q, op);
}

const Op* read_uniform(Machine& m, Qpu& q, const Op* op) {
  locate(q, op);
  m.read(q, false, kRUniform, vec(q, op->add_to));
  return onward(m, q, op);
}

template <int N>
const Op* rotate_by(Machine& m, Qpu& q, const Op* op) {
  unsigned n = N == 0 ? q.slot[kSlotAcc + 5][0] & 15 : N;
  Lanes r = rotate(load(vec(q, op->add_a)), n);
  Vec& to = vec(q, op->add_to);
  if (op->flags_all) store(to, r);
  else store(to, blend(load(mask_at(q, op->add_mask)), r, load(to)));
  return onward(m, q, op);
}

template <bool LANE0>
const Op* write_r5(Machine& m, Qpu& q, const Op* op) {
  const Vec& from = vec(q, op->add_a);
  Vec& to = q.slot[kSlotAcc + 5];
  if constexpr (LANE0) {
    std::uint32_t v = from[0];
    for (std::uint32_t& lane : to.lane) lane = v;
  } else {
    Vec v = from;
    for (unsigned l = 0; l < 16; ++l) to[l] = v[l & ~3u];
  }
  return onward(m, q, op);
}

const Op* write_peripheral(Machine& m, Qpu& q, const Op* op) {
  locate(q, op);
  m.write(q, op->file, op->address, vec(q, op->add_a));
  return onward(m, q, op);
}

const Op* write_sfu(Machine& m, Qpu& q, const Op* op) {
  HostFloatMode host;
  locate(q, op);
  m.write(q, op->file, op->address, vec(q, op->add_a));
  q.slot[kSlotAcc + 4] = q.sfu_result;  // nothing can see r4 in between
  q.sfu_countdown = 0;
  return op + 1;
}

template <bool ROW, unsigned UNIT>
const Op* request(Machine& m, Qpu& q, const Op* op) {
  const Vec& where = vec(q, op->add_a);
  const bool row = ROW || is_row(where);
  std::int64_t now = q.time + timing::kIssue * static_cast<std::int64_t>(op->into);
  RequestSite& site = q.site[op->amount];
  if (!row || !m.tmu_request_line<UNIT>(q, site, where[0], now)) {
    locate(q, op);
    if (row) m.tmu_request_row(q, UNIT, where[0]), m.open_site(q, site, where[0]);
    else m.tmu_request_scattered(q, UNIT, where);
  }
  return onward(m, q, op);
}

const Op* receive(Machine& m, Qpu& q, const Op* op) {
  locate(q, op);
  m.tmu_receive(q, op->amount);
  return onward(m, q, op);
}

const Op* semaphore(Machine& m, Qpu& q, const Op* op) {
  locate(q, op);
  q.slots_left = op->amount;  // should it wait, and come back
  if (!m.semaphore(q, op->instr->sem, op->instr->acquire)) return nullptr;
  q.slots_left = 0;
  return onward(m, q, op);
}

const Op* branch(Machine& m, Qpu& q, const Op* op) {
  bool taken = true;
  if (op->instr->cond_br != kBranchAlways)
    taken = any_lane(mask_at(q, op->add_mask)) != (op->amount != 0);
  q.taken = taken;
  if (taken && op->flags) {
    for (std::uint32_t& lane : vec(q, op->add_to).lane) lane = (op->at + 4) * 8;
    for (std::uint32_t& lane : vec(q, op->mul_to).lane) lane = (op->at + 4) * 8;
  }
  return onward(m, q, op);
}

const Op* literal(Machine& m, Qpu& q, const Op* op) {
  HostFloatMode host;
  locate(q, op);
  return literal_instruction(m, q) ? op + 1 : nullptr;
}

const Op* stop_here(Machine& m, Qpu& q, const Op* op) {
  HostFloatMode host;
  locate(q, op);
  m.breakpoint(q);
  return op + 1;
}

const Op* off_the_end(Machine& m, Qpu& q, const Op* op) {
  locate(q, op);
  ran_off(m, q);
}

/// The block's end: its time, and where to go.
inline void close(Qpu& q, const Op* op) {
  q.time += timing::kIssue * static_cast<std::int64_t>(op->into);
  q.instructions += op->into;
  q.into = 0;
  if (op->count) ++*op->count;
}

const Op* falls(Machine&, Qpu& q, const Op* op) {
  close(q, op);
  return op->next;
}

const Op* branches(Machine&, Qpu& q, const Op* op) {
  close(q, op);
  if (!q.taken) return op->next;
  q.taken = false;
  if (q.time < q.limit) [[likely]]
    return op->taken;
  q.pc = op->target;
  return nullptr;
}

const Op* finishes(Machine& m, Qpu& q, const Op* op) {
  close(q, op);
  q.pc = op->at;
  q.now = q.time - timing::kIssue;
  m.finish(q);
  return nullptr;
}

template <int M, std::size_t... As>
Handler pick_add(unsigned op, bool cond, std::index_sequence<As...>) {
  Handler out = nullptr;
  ((op == As &&
    (out = cond ? &alu<static_cast<int>(As), M, true> : &alu<static_cast<int>(As), M, false>,
     true)),
   ...);
  return out;
}

Handler pick_handler(unsigned add, unsigned mul, bool cond) {
  using Ops = std::index_sequence<0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                  22, 23, 24, 30, 31>;
  switch (mul) {
    case 0: return pick_add<0>(add, cond, Ops());
    case kFmul: return pick_add<kFmul>(add, cond, Ops());
    case kMul24: return pick_add<kMul24>(add, cond, Ops());
    case kV8min: return pick_add<kV8min>(add, cond, Ops());
    default: return nullptr;
  }
}

template <std::size_t... Ns>
Handler pick_rotate(unsigned n, std::index_sequence<Ns...>) {
  static constexpr Handler kTable[] = {&rotate_by<static_cast<int>(Ns)>...};
  return kTable[n];
}

class Interpreter final : public FastProgram {
 public:
  Interpreter(const Program& program, bool count, bool keep)
      : flow_(analyse(program, keep)), size_(program.instrs.size()), constants_(size_) {
    counts_.assign(flow_.blocks.size(), 0);
    std::vector<std::size_t> begin, end;
    for (const FlowBlock& b : flow_.blocks) {
      begin.push_back(ops_.size());
      prepare(program, b);
      end.push_back(ops_.size() - 1);
    }
    starts_.assign(size_ + 1, nullptr);
    slot_starts_ = starts_;
    for (std::size_t b = 0; b < begin.size(); ++b) {
      const FlowBlock& block = flow_.blocks[b];
      (block.in_slots ? slot_starts_ : starts_)[block.first] = &ops_[begin[b]];
      Op& last = ops_[end[b]];
      if (count) last.count = &counts_[b];
      if (block.target >= 0) {
        last.target = flow_.blocks[static_cast<std::size_t>(block.target)].first;
        last.taken = &ops_[begin[static_cast<std::size_t>(block.target)]];
      }
      if (block.next >= 0) last.next = &ops_[begin[static_cast<std::size_t>(block.next)]];
    }
  }

  unsigned enter() override { return set_float_mode(); }
  void leave(unsigned before) override { restore_float_mode(before); }

  void run(Machine& m, Qpu& q, std::int64_t limit) override {
    q.limit = limit;
    q.into = 0;
    try {
      const Op* op = (q.slots_left ? slot_starts_ : starts_)[q.pc];
      while (op) op = op->fn(m, q, op);
    } catch (...) {  // what the block has executed so far
      q.time += timing::kIssue * static_cast<std::int64_t>(q.into);
      q.instructions += q.into;
      throw;
    }
  }

  const std::vector<std::int64_t>& counts() const override {
    totals_.assign(size_, 0);
    for (std::size_t b = 0; b < flow_.blocks.size(); ++b) {
      for (std::size_t at = flow_.blocks[b].first; at <= flow_.blocks[b].last && at < size_; ++at)
        totals_[at] += counts_[b];
    }
    return totals_;
  }
  void clear_counts() override { std::fill(counts_.begin(), counts_.end(), 0); }

 private:
  Op& step(Handler fn, std::uint32_t at, std::uint32_t into) {
    Op& op = ops_.emplace_back();
    op.fn = fn, op.at = at, op.into = into;
    return op;
  }

  void prepare(const Program& program, const FlowBlock& b) {
    auto n = static_cast<std::uint32_t>(size_);
    std::uint32_t length = b.first < n ? b.last - b.first + 1 : 0;
    std::vector<Live> live(length);
    Live after = b.live_out;
    for (std::uint32_t k = length; k-- > 0;) {
      live[k] = after;
      Live reads, writes;
      uses_of(program.instrs[b.first + k], &reads, &writes);
      after = (after & ~writes) | reads;
    }
    Shapes shapes = b.shapes;
    std::size_t first = ops_.size();
    for (std::uint32_t k = 0; k < length; ++k) {
      const Instr& i = program.instrs[b.first + k];
      instruction(i, b.first + k, k, live[k], shapes);
      step_shapes(i, &shapes);
      if (k == 0 && b.in_slots)
        for (std::size_t o = first; o < ops_.size(); ++o)
          if (ops_[o].fn == semaphore || ops_[o].fn == read_peripheral)
            ops_[o].amount = static_cast<std::uint8_t>(b.branch + 4 - b.first);
    }
    switch (b.end) {
      case BlockEnd::falls: step(falls, b.last, length); break;
      case BlockEnd::branches: step(branches, b.last, length); break;
      case BlockEnd::finishes: step(finishes, b.last, length); break;
      case BlockEnd::runs_off: step(off_the_end, n, length); break;
    }
  }

  void instruction(const Instr& i, std::uint32_t at, std::uint32_t into, const Live& live,
                   const Shapes& shapes) {
    if (i.kind == kSem) {
      step(semaphore, at, into).instr = &i;
    } else if (i.kind == kBranch) {
      Op& op = step(branch, at, into);
      op.instr = &i;
      op.add_to = offset(plain_slot(add_file_b(i), i.waddr_add));
      op.mul_to = offset(plain_slot(mul_file_b(i), i.waddr_mul));
      op.flags = op.add_to != kSlotTrash * 64 || op.mul_to != kSlotTrash * 64;
      bool negated = false;
      if (i.cond_br != kBranchAlways) op.add_mask = offset(branch_mask(i.cond_br, &negated));
      op.amount = negated;
    } else if (needs_literal(i)) {
      step(literal, at, into);
    } else if (i.kind == kAlu && i.sig == kSigBreak) {
      step(stop_here, at, into);
    } else {
      registers(i, at, into, live, shapes);
    }
  }

  /// An instruction of the ALUs or a load: reads, operations, what the addresses trigger, TMU.
  void registers(const Instr& i, std::uint32_t at, std::uint32_t into, const Live& live,
                 const Shapes& shapes) {
    for (bool file_b : {false, true}) {
      unsigned address = file_b ? peripheral_b(i) : peripheral_a(i);
      if (!address) continue;
      Op& op = step(address == kRUniform ? read_uniform : read_peripheral, at, into);
      op.file = file_b, op.address = static_cast<std::uint8_t>(address);
      op.add_to = offset(file_b ? kSlotPerB : kSlotPerA);
    }
    bool ldi = is_ldi(i), rotates = i.kind == kAluImm && i.raddr_b >= 48 && i.op_mul;
    bool add = ldi || i.op_add, mul = ldi || i.op_mul;
    bool cond = i.sf && !ldi;
    auto result = [&](bool active, bool file_b, unsigned address, unsigned when, bool is_mul,
                      Op& op) {
      std::uint16_t& to = is_mul ? op.mul_to : op.add_to;
      std::uint16_t& mask = is_mul ? op.mul_mask : op.add_mask;
      to = offset(kSlotTrash);
      if (!active) return;
      mask = offset(when);
      if (when == kNever || address == kNull) {
        if (!i.sf) mask = offset(kAlways);
      } else if (address < 36) {
        to = offset(plain_slot(file_b, address));
      } else {
        to = offset(is_mul ? kSlotOutMul : kSlotOutAdd);
      }
      if (mask != offset(kAlways)) cond = true;
    };
    Op op;
    op.at = at, op.into = into;
    result(add, add_file_b(i), i.waddr_add, i.cond_add, false, op);
    result(mul, mul_file_b(i), i.waddr_mul, i.cond_mul, true, op);
    Op turn;
    if (rotates) {
      turn.at = at, turn.into = into;
      turn.fn = pick_rotate(i.raddr_b - 48u, std::make_index_sequence<16>());
      turn.add_a = offset(kSlotOutMul), turn.add_to = op.mul_to, turn.add_mask = op.mul_mask;
      turn.flags_all = op.mul_mask == offset(kAlways);
      op.mul_to = offset(kSlotOutMul), op.mul_mask = offset(kAlways);
      cond = i.sf || (i.op_add && op.add_mask != offset(kAlways));
    }
    if (ldi) {
      Vec& v = constants_[at];
      for (unsigned l = 0; l < 16; ++l) {
        std::uint32_t low = i.imm >> l & 1, high = i.imm >> (16 + l) & 1;
        v[l] = i.kind == kLdi ? i.imm : i.kind == kLdiUnsigned ? low + 2 * high : low - 2 * high;
      }
      op.constant = &v;
      op.fn = load_constant;
    } else {
      op.add_a = offset(source_slot(i, i.add_a)), op.add_b = offset(source_slot(i, i.add_b));
      op.mul_a = offset(source_slot(i, i.mul_a)), op.mul_b = offset(source_slot(i, i.mul_b));
      if (i.sf) {
        for (unsigned f = 0; f < 3; ++f)
          if (live[kFlagZ + f]) op.flags = static_cast<std::uint8_t>(op.flags | 1u << f);
        op.flags_all = (i.op_add ? i.cond_add : i.cond_mul) == kAlways;
      }
      if (cond && !op.flags && op.add_mask == offset(kAlways) && op.mul_mask == offset(kAlways))
        cond = false;
      op.fn = pick_handler(i.op_add, i.op_mul, cond);
      if (!op.fn) {
        step(literal, at, into);
        return;
      }
    }
    if (ldi || i.op_add || i.op_mul) ops_.push_back(op);
    if (rotates) ops_.push_back(turn);
    for (bool is_mul : {false, true}) {
      unsigned address = is_mul ? i.waddr_mul : i.waddr_add;
      unsigned when = is_mul ? i.cond_mul : i.cond_add;
      bool file_b = is_mul ? mul_file_b(i) : add_file_b(i);
      if (!(is_mul ? mul : add) || when == kNever || address == kNull || address < 36) continue;
      Op& out = step(write_peripheral, at, into);
      out.add_a = offset(is_mul ? kSlotOutMul : kSlotOutAdd);
      out.file = file_b, out.address = static_cast<std::uint8_t>(address);
      if (address == kWR5) {
        out.fn = file_b ? write_r5<true> : write_r5<false>;
      } else if (address >= kWRecip && address <= kWLog2) {
        out.fn = write_sfu;
      } else if (address == kWTmu0S || address == kWTmu1S) {
        Shape shape = result_shape(i, is_mul, shapes);
        bool row = shape.known() && shape.stride == 4;
        out.fn = address == kWTmu1S ? (row ? request<true, 1> : request<false, 1>)
                                    : (row ? request<true, 0> : request<false, 0>);
        out.amount = flow_.site[at];
      }
    }
    if (i.kind == kAlu && (i.sig == kSigLoadTmu0 || i.sig == kSigLoadTmu1))
      step(receive, at, into).amount = static_cast<std::uint8_t>(i.sig - kSigLoadTmu0);
  }

  Flow flow_;
  std::size_t size_;
  std::vector<Op> ops_;
  std::vector<const Op*> starts_, slot_starts_;
  std::vector<Vec> constants_;
  std::vector<std::int64_t> counts_;
  mutable std::vector<std::int64_t> totals_;
};

}  // namespace

std::unique_ptr<FastProgram> WEFT_QPU_FAST_NAME(const Program& program, bool count, bool keep) {
  return std::make_unique<Interpreter>(program, count, keep);
}

}  // namespace weft::qpu::hw
