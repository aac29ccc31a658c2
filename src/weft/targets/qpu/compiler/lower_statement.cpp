// SPDX-License-Identifier: Apache-2.0
// Statements: loops tested at the bottom, stores, prints, and the end of a kernel.

#include "weft/targets/qpu/compiler/lowerer.h"

namespace weft::qpu::mir {

void Lowerer::statements(const std::vector<const Stmt*>& list) {
  for (const Stmt* s : list) statement(*s);
}

void Lowerer::statement(const Stmt& s) {
  memo_.clear();
  if (s.place.line) place_ = s.place;
  switch (s.op) {
    case Stmt::Op::assign: return lower_to(s.value, Dst::of(s.var), kAlways);
    case Stmt::Op::gather:
      return lower_to(s.address, Dst::write(s.all ? kWTmu1S : kWTmu0S), kAlways);
    case Stmt::Op::receive: return tmu_read(s.all, Dst::of(s.var), kAlways);
    case Stmt::Op::store: return store(s);
    case Stmt::Op::flush: return wait_store();
    case Stmt::Op::if_: return if_statement(s);
    case Stmt::Op::while_: return while_statement(s);
    case Stmt::Op::where: return where(s, Src());
    case Stmt::Op::print_text: return print("text", s);
    case Stmt::Op::print_int: return print("int", s);
    case Stmt::Op::print_uint: return print("uint", s);
    case Stmt::Op::print_float: return print("float", s);
    case Stmt::Op::read_stride: {
      if (!uses_lanes_) return;
      Src n = lower(s.value), step = add(kShl, add(kAdd, n, Src::constant(1)), Src::constant(2));
      Src element = fresh_move(Src::read(kRElementA, 0));
      return mul(kMul24, Dst::of(lane4_), element, step);
    }
    case Stmt::Op::write_stride: {
      if (!uses_store_) return;
      wait_store();
      Src bytes = add(kShl, lower(s.value), Src::constant(2));
      return add_to(kAdd, Dst::write(kWVpmSetup, 1), bytes, big(0xc0000000));
    }
    case Stmt::Op::semaphore_up: return semaphore(s.var, false);
    case Stmt::Op::semaphore_down: return semaphore(s.var, true);
    case Stmt::Op::host_interrupt: return move(Dst::write(kWHostInt), Src::constant(1));
    case Stmt::Op::barrier: return;
  }
}

void Lowerer::semaphore(unsigned number, bool acquire) {
  Ins i;
  i.unit = Unit::semaphore, i.op = static_cast<std::uint8_t>(number), i.acquire = acquire;
  emit(i);
}

void Lowerer::wait_store() {
  if (!uses_store_) return;
  Ins i;
  i.unit = Unit::wait, i.op = 1;
  emit(i);
}

void Lowerer::store(const Stmt& s) {
  if (!s.count) return store_now(s, store_setup_);
  const unsigned unit = write_strided_ ? 23 : 16;  // where the set-up word holds the count
  if (const auto words = known(s.count)) {
    const auto n = static_cast<std::int32_t>(*words);
    if (n >= 16) return store_now(s, store_setup_);
    if (n > 0) store_now(s, add(kAdd, count_setup_, big(*words << unit)));
    return;
  }
  // Nothing for n <= 0; at most 16.
  std::uint32_t n = temp();
  Src most = big(16), count = lower(s.count);
  add_to(kMin, Dst::of(n), count, most);
  move(Dst::write(kWR5, 1), Src::of(n));  // lane 0 decides
  std::uint32_t m = temp();
  move(Dst::of(m), Src{Src::r5, 0, kFileAny});
  add_to(kMax, Dst(), Src::of(m), Src::constant(0), kAlways, true);  // C: m > 0
  memo_.clear();
  std::size_t from = f_.blocks.size() - 1;
  f_.blocks[from].cond = kAllCc;
  start_block();
  Src setup = add(kAdd, count_setup_, add(kShl, Src::of(m), shift(unit)));
  store_now(s, setup);
  start_block();
  f_.blocks[from].jump = static_cast<std::int32_t>(f_.blocks.size() - 1);
}

void Lowerer::store_now(const Stmt& s, Src setup) {
  Src a = lower(s.address);
  Src v;
  bool late = clobbers(s.value) || s.value->op == Op::deref || s.value->op == Op::vload ||
              s.value->op == Op::fetch;
  if (late) v = lower(s.value);
  wait_store();
  if (late) move(Dst::write(kWVpm), v);
  else lower_to(s.value, Dst::write(kWVpm), kAlways);
  if (f_.may_spill) {  // directly before the write, so that nothing can come between
    Ins set;
    set.unit = Unit::move, set.d = Dst::write(kWVpmSetup, 1), set.a = vpm_write_setup_,
    set.place = place_;
    block().code.insert(block().code.end() - 1, set);
  }
  move(Dst::write(kWVpmSetup, 1), setup);
  move(Dst::write(kWDmaAddr, 1), a);
}

void Lowerer::if_statement(const Stmt& s) {
  std::uint8_t skip = decide(s.cond, s.all, false);
  std::size_t from = f_.blocks.size() - 1;
  f_.blocks[from].cond = skip;
  start_block();
  statements(s.body);
  if (!s.other.empty()) {
    std::size_t end_of_then = f_.blocks.size() - 1;
    start_block();
    f_.blocks[from].jump = static_cast<std::int32_t>(f_.blocks.size() - 1);
    statements(s.other);
    start_block();
    f_.blocks[end_of_then].jump = static_cast<std::int32_t>(f_.blocks.size() - 1);
    f_.blocks[end_of_then].cond = kBranchAlways;
  } else {
    start_block();
    f_.blocks[from].jump = static_cast<std::int32_t>(f_.blocks.size() - 1);
  }
}

void Lowerer::while_statement(const Stmt& s) {
  std::uint8_t skip = decide(s.cond, s.all, false);
  std::size_t guard = f_.blocks.size() - 1;
  f_.blocks[guard].cond = skip;
  start_block();  // preheader: hoisted code goes here
  ++depth_;
  start_block();
  std::size_t first = f_.blocks.size() - 1;
  statements(s.body);
  if (s.place.line) place_ = s.place;
  std::uint8_t again = decide(s.cond, s.all, true);
  std::size_t last = f_.blocks.size() - 1;
  f_.blocks[last].jump = static_cast<std::int32_t>(first);
  f_.blocks[last].cond = again;
  --depth_;
  f_.loops.push_back({first, last});
  start_block();
  f_.blocks[guard].jump = static_cast<std::int32_t>(f_.blocks.size() - 1);
}

bool Lowerer::simple(const std::vector<const Stmt*>& list) {
  for (const Stmt* s : list) {
    if (s->op != Stmt::Op::assign || clobbers(s->value)) return false;
  }
  return true;
}

void Lowerer::where(const Stmt& s, Src outer) {
  if (outer.kind == Src::none && simple(s.body) && simple(s.other)) {
    std::uint8_t cond = flags(s.cond);
    for (const Stmt* x : s.body) memo_.clear(), lower_to(x->value, Dst::of(x->var), cond);
    for (const Stmt* x : s.other) memo_.clear(), lower_to(x->value, Dst::of(x->var), flip(cond));
    return;
  }
  Src m = mask(s.cond);
  auto part = [&](const std::vector<const Stmt*>& list, Src active) {
    for (const Stmt* x : list) {
      memo_.clear();
      if (x->op == Stmt::Op::where) {
        where(*x, active);
        continue;
      }
      Src v = lower(x->value);
      add_to(kOr, Dst(), active, active, kAlways, true);
      move(Dst::of(x->var), v, kZc);
    }
  };
  Src inside = outer.kind == Src::none ? m : add(kAnd, m, outer);
  part(s.body, inside);
  if (!s.other.empty()) {
    memo_.clear();
    Src not_m = add(kXor, m, Src::constant(1));
    part(s.other, outer.kind == Src::none ? not_m : add(kAnd, not_m, outer));
  }
}

void Lowerer::print(const char* kind, const Stmt& s) {
  if (s.value) lower_to(s.value, Dst::write(0, 0), kAlways);  // ra0 is kept for this
  Ins i;
  i.unit = Unit::breakpoint;
  i.print = static_cast<std::int32_t>(f_.prints.size());
  f_.prints.push_back({kind, s.text});
  emit(i);
}

void Lowerer::finish() {
  memo_.clear();
  place_ = {};
  wait_store();
  add_to(kOr, Dst(), Src::of(uniform_[0]), Src::of(uniform_[0]), kAlways, true);
  std::size_t from = f_.blocks.size() - 1;
  f_.blocks[from].cond = kAllZc;
  start_block();
  std::uint32_t left = temp();
  add_to(kSub, Dst::of(left), Src::of(uniform_[1]), Src::constant(1), kAlways, true);
  std::size_t guard = f_.blocks.size() - 1;
  f_.blocks[guard].cond = kAllZs;
  start_block();
  std::size_t loop = f_.blocks.size() - 1;
  semaphore(15, true);
  add_to(kSub, Dst::of(left), Src::of(left), Src::constant(1), kAlways, true);
  f_.blocks[loop].jump = static_cast<std::int32_t>(loop);
  f_.blocks[loop].cond = kAnyZc;
  start_block();
  std::size_t done = f_.blocks.size() - 1;
  f_.blocks[guard].jump = static_cast<std::int32_t>(done);
  move(Dst::write(kWHostInt), Src::constant(1));
  block().ends = true;
  start_block();
  f_.blocks[from].jump = static_cast<std::int32_t>(f_.blocks.size() - 1);
  semaphore(15, false);
  block().ends = true;
}

}  // namespace weft::qpu::mir
