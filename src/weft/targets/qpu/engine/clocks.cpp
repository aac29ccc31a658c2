// SPDX-License-Identifier: Apache-2.0
// The other half of a program that runs ahead: its clock, from what the half with the registers
// wrote down. Instructions come in the same order as in emit.cpp and read one word for each that
// was written there.

#include <algorithm>
#include <cstddef>

#include "weft/targets/qpu/engine/emit.h"

namespace weft::qpu::hw {

void Emitter::settle(std::uint32_t at) {
  std::string bytes = t_.def("load i32, ptr ", entry());
  // Mostly there is something; where there is nothing the helper returns at once.
  helper("settle", at, cat("i32 ", bytes));
}

void Emitter::clock_request(std::uint32_t at, int unit) {
  std::int8_t& waiting = waiting_[static_cast<std::size_t>(unit)];
  if (waiting == assume::kTmuFifoDepth) drop(), waiting = -1;  // never comes here
  if (in_place_) {
    clock_request_in_place(at, unit);
  } else {
    const std::string asked = t_.def("load i32, ptr ", entry());
    helper("clock_row", at, cat("i32 ", asked, ", i32 ", unit));
  }
  if (waiting < 0) return;
  ++waiting;
  if (in_place_) keep(unit ? kCount1 : kCount0, std::to_string(waiting));
}

/// The clocks of results that wait lie from the queue's first place on; where their number is known
/// as well, they are kept.
void Emitter::clock_request_in_place(std::uint32_t at, int unit) {
  const std::string asked_at = entry(), asked = t_.def("load i32, ptr ", asked_at);
  const Kept count_of = unit ? kCount1 : kCount0;
  const int waiting = waiting_[static_cast<std::size_t>(unit)];
  const auto place = static_cast<Kept>((unit ? kReady1 : kReady0) + std::max(waiting, 0));
  if (waiting < 0) kept(count_of);
  else keep(place, "undef");
  kept(kTime);
  const KeptState before = kept_;
  unsigned id = t_.fresh();
  t_.rarely(t_.def("icmp slt i32 ", asked, ", 0"), cat("s", id), cat("c", id));
  label_ = cat("c", id);
  t_.label(label_);
  std::string now = t_.def("add i64 ", kept(kTime), ", ", (at - start_) * timing::kIssue);
  std::string ready = line_ready(unit, told_line(asked, asked_at), now);
  if (waiting < 0) {
    const std::size_t fifo = offsetof(Qpu, fifo) + sizeof(TmuFifo) * static_cast<std::size_t>(unit);
    std::string slot = t_.def("and i64 ", kept(count_of), ", ", TmuFifo::kSlots - 1);
    std::string to = t_.def("getelementptr i8, ptr %q, i64 ", t_.def("shl i64 ", slot, ", 3"));
    t_.line("store i64 ", ready, ", ptr ", field(to, fifo + offsetof(TmuFifo, ready)));
    keep(count_of, t_.def("add i64 ", kept(count_of), ", 1"));
  } else {
    keep(place, ready);
  }
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
  const Kept count_of = unit ? kCount1 : kCount0;
  std::int8_t& waiting = waiting_[static_cast<std::size_t>(unit)];
  auto place = [&](int k) { return static_cast<Kept>((unit ? kReady1 : kReady0) + k); };
  if (waiting > 0) {
    wait_until(at, kept(place(0)), kStallTmu);
    --waiting;
    for (int k = 0; k < waiting; ++k) {
      std::string later = kept(place(k + 1));
      keep(place(k), std::move(later));
    }
    kept_[place(waiting)] = {};
    keep(count_of, std::to_string(waiting));
    return;
  }
  drop(), waiting = -1;
  const std::size_t ready = offsetof(Qpu, fifo) + sizeof(TmuFifo) * static_cast<std::size_t>(unit) +
                            offsetof(TmuFifo, ready);
  wait_until(at, t_.def("load i64, ptr ", address(ready)), kStallTmu);
  for (std::size_t k = 1; k < TmuFifo::kSlots; ++k)
    t_.line("store i64 ", t_.def("load i64, ptr ", address(ready + 8 * k)), ", ptr ",
            address(ready + 8 * (k - 1)));
  keep(count_of, t_.def("sub i64 ", kept(count_of), ", 1"));
}

void Emitter::clock_store(std::uint32_t at) {
  const std::string told = t_.def("load i32, ptr ", entry());
  kept(kTime);
  const KeptState before = kept_;
  unsigned id = t_.fresh();
  t_.usually(t_.def("icmp eq i32 ", told, ", ", std::uint32_t{Event::kLineStored}), cat("c", id),
             cat("s", id));
  label_ = cat("c", id);
  t_.label(label_);
  stored_line(at);
  const std::string done = label_;
  t_.line("br label %k", id);
  t_.label("s", id);
  label_ = cat("s", id);
  Aside rare = aside("settle", at, cat("i32 ", told), before);
  t_.line("br label %k", id);
  label_ = cat("k", id);
  t_.label(label_);
  join(rare, done);
}

void Emitter::clock(std::uint32_t at) {
  const Instr& i = program_.instrs[at];
  if (i.kind == kBranch) return;
  if (i.kind == kSem) return helper("clock_semaphore", at);
  if (needs_literal(i)) {
    settle(at);
    step_waiting(i, &waiting_);
    return;
  }
  const bool ldi = is_ldi(i);
  if (!ldi) {
    if (peripheral_a(i) == 50) wait_dma(at, false);
    if (peripheral_b(i) == 50) wait_dma(at, true);
  }
  auto triggered = [&](bool active, bool file_b, unsigned waddr, unsigned cond) {
    if (!active || cond == kNever) return;
    if (waddr == kWTmu0S || waddr == kWTmu1S) clock_request(at, waddr == kWTmu1S);
    if (waddr == kWDmaAddr) file_b ? clock_store(at) : settle(at);
  };
  triggered(ldi || i.op_add, add_file_b(i), i.waddr_add, i.cond_add);
  triggered(ldi || i.op_mul, mul_file_b(i), i.waddr_mul, i.cond_mul);
  if (i.kind == kAlu && (i.sig == kSigLoadTmu0 || i.sig == kSigLoadTmu1))
    clock_receive(at, i.sig - kSigLoadTmu0);
}

}  // namespace weft::qpu::hw
