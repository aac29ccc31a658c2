// SPDX-License-Identifier: Apache-2.0
// The other half of a program that runs ahead: its clock, from what the half with the registers
// wrote down. Instructions come in the same order as in emit.cpp and read one word for each that
// was written there.

#include <cstddef>

#include "weft/targets/qpu/engine/emit.h"

namespace weft::qpu::hw {

void Emitter::settle(std::uint32_t at) {
  std::string bytes = t_.def("load i32, ptr ", entry());
  // Mostly there is something; where there is nothing the helper returns at once.
  helper("settle", at, cat("i32 ", bytes));
}

void Emitter::clock_request(std::uint32_t at, int unit) {
  const std::string asked = t_.def("load i32, ptr ", entry());
  if (!in_place_) return helper("clock_row", at, cat("i32 ", asked, ", i32 ", unit));
  const std::size_t fifo = offsetof(Qpu, fifo) + sizeof(TmuFifo) * static_cast<std::size_t>(unit);
  const Kept count_of = unit ? kCount1 : kCount0;
  const std::string head = kept(unit ? kHead1 : kHead0), waiting = kept(count_of);
  kept(kTime);
  const KeptState before = kept_;
  std::string odd = t_.def("trunc i32 ", asked, " to i1");
  unsigned id = t_.fresh();
  t_.rarely(odd, cat("s", id), cat("c", id));
  label_ = cat("c", id);
  t_.label(label_);
  std::string slot =
      t_.def("and i64 ", t_.def("add i64 ", head, ", ", waiting), ", ", TmuFifo::kSlots - 1);
  std::string now = t_.def("add i64 ", kept(kTime), ", ", (at - start_) * timing::kIssue);
  std::string ready = line_ready(unit, asked, now);
  std::string ready_at =
      t_.def("getelementptr i8, ptr %q, i64 ", t_.def("shl i64 ", slot, ", 3"));
  t_.line("store i64 ", ready, ", ptr ", field(ready_at, fifo + offsetof(TmuFifo, ready)));
  keep(count_of, t_.def("add i64 ", waiting, ", 1"));
  const std::string done = label_;
  t_.line("br label %k", id);
  t_.label("s", id);
  label_ = cat("s", id);
  Aside rare = aside("settle", at, cat("i32 ", asked), before);
  t_.line("br label %k", id);
  label_ = cat("k", id);
  t_.label(label_);
  join(rare, done);
}

void Emitter::clock_receive(std::uint32_t at, int unit) {
  const Kept head_of = unit ? kHead1 : kHead0, count_of = unit ? kCount1 : kCount0;
  const std::string head = kept(head_of), count = kept(count_of);
  wait_for(at, unit);
  keep(head_of, t_.def("add i64 ", head, ", 1"));
  keep(count_of, t_.def("sub i64 ", count, ", 1"));
}

void Emitter::clock(std::uint32_t at) {
  const Instr& i = program_.instrs[at];
  if (i.kind == kBranch) return;
  if (i.kind == kSem) return helper("clock_semaphore", at);
  if (needs_literal(i)) return settle(at);
  const bool ldi = is_ldi(i);
  if (!ldi) {
    if (peripheral_a(i) == 50) wait_dma(at, false);
    if (peripheral_b(i) == 50) wait_dma(at, true);
  }
  auto triggered = [&](bool active, unsigned waddr, unsigned cond) {
    if (!active || cond == kNever) return;
    if (waddr == kWTmu0S || waddr == kWTmu1S) clock_request(at, waddr == kWTmu1S);
    if (waddr == kWDmaAddr) settle(at);
  };
  triggered(ldi || i.op_add, i.waddr_add, i.cond_add);
  triggered(ldi || i.op_mul, i.waddr_mul, i.cond_mul);
  if (i.kind == kAlu && (i.sig == kSigLoadTmu0 || i.sig == kSigLoadTmu1))
    clock_receive(at, i.sig - kSigLoadTmu0);
}

}  // namespace weft::qpu::hw
