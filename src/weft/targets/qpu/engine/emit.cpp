// SPDX-License-Identifier: Apache-2.0
// The shape of the text: entry, blocks, instructions in order, helpers for what lies beyond the
// registers, and where control goes at the end.

#include "weft/targets/qpu/engine/emit.h"

#include <cstddef>

namespace weft::qpu::hw {

namespace {
constexpr std::string_view kHelpers = R"(
declare i32 @weft_qpu_read(ptr, ptr, i32, i32, i32, i32)
declare i32 @weft_qpu_write(ptr, ptr, i32, i32, i32, i32)
declare i32 @weft_qpu_tmu_row0(ptr, ptr, i32, i32, i32, ptr)
declare i32 @weft_qpu_tmu_row1(ptr, ptr, i32, i32, i32, ptr)
declare preserve_allcc i32 @weft_qpu_rare_read(ptr, ptr, i32, i32, i32, i32)
declare preserve_allcc i32 @weft_qpu_rare_write(ptr, ptr, i32, i32, i32, i32)
declare preserve_allcc i32 @weft_qpu_rare_tmu(ptr, ptr, i32, i32, i32)
declare preserve_allcc i32 @weft_qpu_rare_tmu_row0(ptr, ptr, i32, i32, i32, ptr)
declare preserve_allcc i32 @weft_qpu_rare_tmu_row1(ptr, ptr, i32, i32, i32, ptr)
declare preserve_allcc i32 @weft_qpu_rare_receive(ptr, ptr, i32, i32, i32)
declare preserve_allcc i32 @weft_qpu_rare_settle(ptr, ptr, i32, i32, i32)
declare preserve_allcc i32 @weft_qpu_rare_store(ptr, ptr, i32, i32, i32, ptr)
declare preserve_allcc i32 @weft_qpu_rare_repair(ptr, ptr, i32)
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
declare i32 @llvm.fshr.i32(i32, i32, i32)
declare i32 @weft_qpu_receive(ptr, ptr, i32, i32, i32)
declare i32 @weft_qpu_settle(ptr, ptr, i32, i32, i32)
declare i32 @weft_qpu_clock_row(ptr, ptr, i32, i32, i32, i32)
declare i32 @weft_qpu_clock_semaphore(ptr, ptr, i32, i32)
declare i32 @weft_qpu_semaphore(ptr, ptr, i32, i32)
declare i32 @weft_qpu_literal(ptr, ptr, i32, i32)
declare i32 @weft_qpu_break(ptr, ptr, i32, i32)
declare i32 @weft_qpu_off(ptr, ptr, i32, i32)
declare i32 @weft_qpu_finish(ptr, ptr, i32, i32)
declare i64 @llvm.smax.i64(i64, i64)
declare i32 @llvm.smin.i32(i32, i32)
declare i32 @llvm.smax.i32(i32, i32)
declare i32 @llvm.ctlz.i32(i32, i1)
declare <8 x i32> @llvm.fshr.v8i32(<8 x i32>, <8 x i32>, <8 x i32>)
declare <8 x i32> @llvm.smin.v8i32(<8 x i32>, <8 x i32>)
declare <8 x i32> @llvm.smax.v8i32(<8 x i32>, <8 x i32>)
declare <8 x i32> @llvm.umin.v8i32(<8 x i32>, <8 x i32>)
declare <8 x i32> @llvm.umax.v8i32(<8 x i32>, <8 x i32>)
declare <8 x i32> @llvm.ctlz.v8i32(<8 x i32>, i1)
declare <32 x i8> @llvm.umin.v32i8(<32 x i8>, <32 x i8>)
declare <32 x i8> @llvm.umax.v32i8(<32 x i8>, <32 x i8>)
declare <32 x i8> @llvm.uadd.sat.v32i8(<32 x i8>, <32 x i8>)
declare <32 x i8> @llvm.usub.sat.v32i8(<32 x i8>, <32 x i8>)
declare void @llvm.x86.avx.vzeroupper()
declare <8 x i32> @llvm.x86.avx2.permd(<8 x i32>, <8 x i32>)
declare <8 x i32> @llvm.x86.avx.cvtt.ps2dq.256(<8 x float>)
)";
}  // namespace

std::string translate_text(const Program& program, const Flow& flow, bool count, Role role) {
  return Emitter(program, flow, count, role).run();
}

std::string Emitter::run() {
  std::string head =
      "define void @weft_qpu_run(ptr %m, ptr %q, ptr %shared, i64 %limit, ptr %counts, ptr "
      "%scratch, i32 %from) nounwind {\nstart:\n  %booked = alloca i64\n";
  auto constant = [&](std::string_view name, std::string_view type, std::string_view base,
                      std::size_t offset) {
    head += cat("  %at.", name, " = getelementptr i8, ptr %", base, ", i64 ", offset, "\n  %", name,
                " = load ", type, ", ptr %at.", name, "\n");
  };
  constant("bit", "i32", "q", offsetof(Qpu, bit));
  constant("writer", "i32", "q", offsetof(Qpu, writer));
  constant("launch", "i32", "shared", offsetof(Shared, launch));
  constant("vpm", "ptr", "shared", offsetof(Shared, vpm));
  constant("rows", "ptr", "shared", offsetof(Shared, vpm_summary));
  constant("full", "ptr", "q", offsetof(Qpu, record_leave));
  constant("tmu0", "ptr", "q", offsetof(Qpu, tmu));
  constant("tmu1", "ptr", "q", offsetof(Qpu, tmu) + 8);
  for (const Instr& i : program_.instrs)
    swaps_ = swaps_ || i.waddr_add == kWNoswap || i.waddr_mul == kWNoswap;
  head += "  switch i32 %from, label %out [\n";
  for (std::size_t b = 0; b < flow_.blocks.size(); ++b)
    head += cat("    i32 ", b, ", label %b", b, "\n");
  head += "  ]\nout:\n  ret void\n";
  for (std::size_t b = 0; b < flow_.blocks.size(); ++b) block(b);
  std::string out = std::move(head);
  out += t_.body();
  out += "}\n";
  out += kHelpers;
  out += book_on();
  if (!pool_.empty()) {
    out += cat("@pool = internal global [", pool_.size() * 16, " x i32] [");
    for (std::size_t p = 0; p < pool_.size(); ++p)
      for (unsigned l = 0; l < 16; ++l)
        out += cat(p || l ? ", i32 " : "i32 ", static_cast<std::int32_t>(pool_[p][l]));
    out += "], align 64\n";
  }
  for (std::size_t r = 0; r < recipes_.size(); ++r) {
    out += cat("@recipe", r, " = internal constant [", recipes_[r].size(), " x i32] [");
    for (std::size_t k = 0; k < recipes_[r].size(); ++k)
      out += cat(k ? ", i32 " : "i32 ", recipes_[r][k]);
    out += "]\n";
  }
  out += "!0 = !{!\"branch_weights\", i32 4000, i32 1}\n";
  out += "!1 = !{!\"branch_weights\", i32 1, i32 4000}\n";
  out += "!2 = !{!\"branch_weights\", i32 1, i32 8}\n";
  return out;
}

void Emitter::block(std::size_t index) {
  const FlowBlock& b = flow_.blocks[index];
  label_ = cat("b", index);
  t_.label(label_);
  values_.clear();
  forget();
  shapes_ = b.shapes;
  start_ = b.first;
  kept_ = {};
  waiting_ = b.waiting;
  record_.clear();
  record_bytes_ = 0;
  taken_.clear();
  auto n = static_cast<std::uint32_t>(program_.instrs.size());
  if (b.first >= n) {
    helper("off", n);
    t_.line("ret void");
    return;
  }
  std::uint32_t length = b.last - b.first + 1;
  std::size_t requests = 0;
  for (std::uint32_t at = b.first; at <= b.last; ++at) requests += flow_.asks[at];
  in_place_ = requests <= kInPlace || role_ != Role::alone;
  live_.assign(length, {});
  Live live = b.live_out;
  for (std::uint32_t k = length; k-- > 0;) {
    live_[k] = live;
    Live reads, writes;
    uses_of(program_.instrs[b.first + k], &reads, &writes);
    live = (live & ~writes) | reads;
  }
  loop_ = loops(index);
  if (loop_) open_loop(index);
  auto each = [&](std::uint32_t at) { role_ == Role::clocks ? clock(at) : instruction(at); };
  if (b.in_slots) {
    if (role_ != Role::clocks) {
      std::string kept = t_.def("load i8, ptr ", address(offsetof(Qpu, taken)));
      taken_ = t_.def("icmp ne i8 ", kept, ", 0");
    }
    // Should it wait now, it comes back here and not to the block that starts outside of slots.
    slots_left(b.branch + 4 - b.first);
    each(b.first);
    slots_left(0);
  }
  for (std::uint32_t at = b.first + b.in_slots; at <= b.last; ++at) each(at);
  finish_block(b, length);
  loop_ = false;
}

void Emitter::slots_left(std::uint32_t n) {
  t_.line("store i32 ", n, ", ptr ", address(offsetof(Qpu, slots_left)));
}

void Emitter::advance(std::uint32_t length) {
  if (role_ != Role::values)
    keep(kTime, t_.def("add i64 ", kept(kTime), ", ", length * timing::kIssue));
  if (role_ != Role::clocks) bump("%q", offsetof(Qpu, instructions), static_cast<int>(length));
}

void Emitter::finish_block(const FlowBlock& b, std::uint32_t length) {
  resolve();
  if (!loop_ && role_ != Role::clocks) flush(b.live_out);
  auto n = static_cast<std::uint32_t>(program_.instrs.size());
  if (b.end == BlockEnd::runs_off) {
    helper("off", n);
    t_.line("ret void");
    return;
  }
  advance(length);
  if (count_) {
    std::string at = t_.def("getelementptr i64, ptr %counts, i64 ", flow_.block_at[b.first]);
    std::string old = t_.def("load i64, ptr ", at);
    std::string more = t_.def("add i64 ", old, ", 1");
    t_.line("store i64 ", more, ", ptr ", at);
  }
  const bool branches = b.end == BlockEnd::branches, decides = branches && b.next >= 0;
  if (branches && role_ != Role::alone) {
    // Whether it is taken; a word also where it always is, so that a loop of nothing else ends.
    std::string place = entry();
    if (decides && role_ == Role::values)
      t_.line("store i32 ", t_.def("zext i1 ", taken_, " to i32"), ", ptr ", place);
    if (decides && role_ == Role::clocks)
      taken_ = t_.def("icmp ne i32 ", t_.def("load i32, ptr ", place), ", 0");
  }
  close_record();
  if (loop_) return close_loop(static_cast<std::size_t>(b.target));
  drop();
  if (b.end == BlockEnd::finishes) {
    if (role_ == Role::clocks) t_.line("store i8 1, ptr ", address(offsetof(Qpu, finished)));
    else t_.line("call i32 @weft_qpu_finish(ptr %m, ptr %q, i32 ", b.last, ", i32 0)");
    t_.line("ret void");
    return;
  }
  if (b.end == BlockEnd::falls) {
    if (!taken_.empty()) {
      std::string kept = t_.def("zext i1 ", taken_, " to i8");
      t_.line("store i8 ", kept, ", ptr ", address(offsetof(Qpu, taken)));
    }
    t_.line("br label %b", b.next);
    return;
  }
  leave(b);
}

/// The end of a block that branches: a branch that is taken is where a QPU may give way.
void Emitter::leave(const FlowBlock& b) {
  unsigned id = t_.fresh();
  if (b.next >= 0) {
    t_.line("br i1 ", taken_, ", label %t", id, ", label %b", b.next);
    t_.label("t", id);
  }
  std::string stop;
  if (role_ != Role::values) {
    std::string time = t_.def("load i64, ptr ", address(offsetof(Qpu, time)));
    stop = t_.def("icmp sge i64 ", time, ", %limit");
  }
  if (role_ != Role::alone) {
    std::string full = t_.def("icmp uge ptr ", record_, ", %full");
    stop = stop.empty() ? full : t_.def("or i1 ", stop, ", ", full);
  }
  t_.rarely(stop, cat("y", id), cat("b", b.target));
  t_.label("y", id);
  t_.line("store i32 ", flow_.blocks[static_cast<std::size_t>(b.target)].first, ", ptr ",
          address(offsetof(Qpu, pc)));
  t_.line("ret void");
}

void Emitter::literal(std::uint32_t at) {
  resolve();
  flush(Live().set());
  noted("literal", at);
  forget();
}

void Emitter::instruction(std::uint32_t at) {
  const Instr& i = program_.instrs[at];
  pinned_.clear();
  if (i.kind == kSem) {
    helper("semaphore", at);
  } else if (i.kind == kBranch) {
    branch(at);
  } else if (needs_literal(i)) {
    literal(at);
  } else if (i.kind == kAlu && i.sig == kSigBreak) {
    resolve();
    flush(Live().set());
    helper("break", at);
  } else if (is_ldi(i)) {
    load_immediate(at, i);
  } else {
    alu(at, i);
  }
  step_shapes(i, &shapes_);
}

void Emitter::branch(std::uint32_t at) {
  const Instr& i = program_.instrs[at];
  taken_ = "true";
  if (i.cond_br != kBranchAlways) {
    bool negated = false;
    Cond mask = branch_mask(i.cond_br, &negated);
    const Flag& f = flags_[(mask - kZs) / 2];
    if (f.known && !f.uniform.empty()) {
      const bool inverted = ((mask - kZs) % 2 != 0) != negated;
      taken_ = inverted ? t_.def("xor i1 ", f.uniform, ", true") : f.uniform;
    } else {
      std::string bits = any(flag(mask));
      taken_ = t_.def("icmp ", negated ? "eq" : "ne", " i8 ", bits, ", 0");
    }
  }
  for (std::uint8_t to :
       {plain_slot(add_file_b(i), i.waddr_add), plain_slot(mul_file_b(i), i.waddr_mul)}) {
    if (to >= kTracked) continue;
    Halves old = ints(read(to)), link = ints(splat((at + 4) * 8));
    Value v;
    v.as_int.lo = t_.def("select i1 ", taken_, ", ", kInt8, " ", link.lo, ", ", kInt8, " ", old.lo);
    v.as_int.hi = t_.def("select i1 ", taken_, ", ", kInt8, " ", link.hi, ", ", kInt8, " ", old.hi);
    set(to, add(v));
  }
}

void Emitter::load_immediate(std::uint32_t at, const Instr& i) {
  std::int32_t value;
  if (i.kind == kLdi) {
    value = splat(i.imm);
  } else {
    Value v;
    for (unsigned half = 0; half < 2; ++half) {
      std::string& text = half ? v.as_int.hi : v.as_int.lo;
      for (unsigned l = half * 8; l < half * 8 + 8; ++l) {
        std::uint32_t low = i.imm >> l & 1, high = i.imm >> (16 + l) & 1;
        text += cat(
            l % 8 ? ", i32 " : "<i32 ",
            static_cast<std::int32_t>(i.kind == kLdiUnsigned ? low + 2 * high : low - 2 * high));
      }
      text += ">";
    }
    value = add(v);
  }
  pinned_.push_back(value);
  deliver(at, add_file_b(i), i.waddr_add, i.cond_add, value, {0});
  deliver(at, mul_file_b(i), i.waddr_mul, i.cond_mul, value, {0});
}

void Emitter::alu(std::uint32_t at, const Instr& i) {
  auto read_port = [&](unsigned slot, unsigned address_read) {
    now_[slot] = -1;
    if (address_read == 50) now_[slot] = splat(0);
    if (address_read != kRUniform) return;
    Value v;
    v.loaded = true;
    v.scalar = t_.def("load i32, ptr ", address(offsetof(Qpu, slot) + 64ull * slot));
    now_[slot] = add(std::move(v));
  };
  if (unsigned a = peripheral_a(i)) {
    if (a == 50) wait_dma(at, false);
    else helper("read", at, cat("i32 0, i32 ", a));
    read_port(kSlotPerA, a);
  }
  if (unsigned b = peripheral_b(i)) {
    if (b == 50) wait_dma(at, true);
    else helper("read", at, cat("i32 1, i32 ", b));
    read_port(kSlotPerB, b);
  }
  std::int32_t add_a = -1, add_b = -1, mul_a = -1, mul_b = -1, sum = -1, product = -1;
  if (i.op_add) {
    pinned_.push_back(add_a = source(i, i.add_a));
    pinned_.push_back(add_b = add_operands(i.op_add) > 1 ? source(i, i.add_b) : add_a);
  }
  if (i.op_mul) {
    pinned_.push_back(mul_a = source(i, i.mul_a));
    pinned_.push_back(mul_b = source(i, i.mul_b));
  }
  if (i.op_add) pinned_.push_back(sum = add_op(i, add_a, add_b));
  if (i.op_mul) {
    product = mul_op(i, mul_a, mul_b);
    if (rotates_product(i)) product = rotated(product, i.raddr_b);
    pinned_.push_back(product);
  }
  // Conditions look at the flags before this instruction.
  bool from_mul = !i.op_add;
  auto chosen = [&](std::int32_t v, bool file_b, unsigned waddr, unsigned cond,
                    std::int32_t before) {
    std::uint8_t to = plain_slot(file_b, waddr);
    if (v < 0 || cond == kNever || cond == kAlways || to >= kTracked) return v;
    std::int32_t mixed = choose(cond, v, before < 0 ? read(to) : before);
    pinned_.push_back(mixed);
    return mixed;
  };
  std::int32_t put_sum = chosen(sum, add_file_b(i), i.waddr_add, i.cond_add, -1);
  // Where both write one register, the product comes last: lanes that it leaves have the sum.
  const bool both =
      i.op_add && i.cond_add != kNever &&
      plain_slot(add_file_b(i), i.waddr_add) == plain_slot(mul_file_b(i), i.waddr_mul);
  std::int32_t put_product =
      chosen(product, mul_file_b(i), i.waddr_mul, i.cond_mul, both ? put_sum : -1);
  if (i.sf && (i.op_add || i.op_mul))
    set_flags(i, at, from_mul, from_mul ? mul_a : add_a, from_mul ? mul_b : add_b,
              from_mul ? product : sum);
  // Registers first, then what the addresses trigger.
  for (bool plain : {true, false}) {
    if (i.op_add && (i.waddr_add < 36) == plain)
      deliver(at, add_file_b(i), i.waddr_add, i.cond_add, put_sum,
              plain ? Shape{} : result_shape(i, false, shapes_));
    if (i.op_mul && (i.waddr_mul < 36) == plain)
      deliver(at, mul_file_b(i), i.waddr_mul, i.cond_mul, put_product,
              plain ? Shape{} : result_shape(i, true, shapes_));
  }
  if (i.kind == kAlu && (i.sig == kSigLoadTmu0 || i.sig == kSigLoadTmu1)) {
    receive(at, i.sig - kSigLoadTmu0);
  }
}

void Emitter::deliver(std::uint32_t at, bool file_b, unsigned waddr, unsigned cond,
                      std::int32_t value, Shape shape) {
  if (cond == kNever || waddr == kNull) return;
  if (waddr < 36) {
    set(plain_slot(file_b, waddr), value);
    return;
  }
  if (waddr == kWR5) {
    set(kSlotAcc + 5, spread(value, file_b));
    return;
  }
  if (waddr == kWTmu0S || waddr == kWTmu1S) {
    int unit = waddr == kWTmu1S;
    request(at, unit, value, shape.known() && shape.stride == 4);
    return;
  }
  // Set-ups and addresses are lane 0's.
  if (waddr == kWVpmSetup && file_b) return set_up_store(at, first_lane(value));
  if (waddr == kWVpm) return write_vpm(at, file_b, value);
  if (waddr == kWDmaAddr && file_b) return store_line(at, first_lane(value));
  if (waddr == kWVpmSetup || waddr == kWDmaAddr)
    t_.line("store i32 ", first_lane(value), ", ptr ",
            address(offsetof(Qpu, slot) + 64ull * kSlotOutAdd));
  else store_slot(kSlotOutAdd, value);
  std::string extra = cat("i32 ", file_b ? 1 : 0, ", i32 ", waddr);
  if (waddr == kWDmaAddr) noted("write", at, extra);
  else helper("write", at, extra);
  if (waddr >= kWRecip && waddr <= kWLog2) {
    now_[kSlotAcc + 4] = -1;
    dirty_[kSlotAcc + 4] = false;
  }
}

}  // namespace weft::qpu::hw
