// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/qpu/machine.h"

#include <algorithm>

#include "weft/sim/fault.h"
#include "weft/targets/qpu/float.h"

namespace weft::qpu::hw {

namespace {
constexpr std::uint64_t kMemoryBase = 0x10000;  // so that small integers are no pointers
constexpr std::uint64_t kGuard =
    4096;  // between allocations: prefetch past an end meets no neighbour
}  // namespace

Machine::Machine(int count, std::uint64_t memory_bytes)
    : memory("QPU memory", memory_bytes, kMemoryBase),
      qpus(static_cast<std::size_t>(count)),
      uniforms(static_cast<std::size_t>(count)),
      shadow_(memory_bytes / 4 + 64),
      vpm_shadow_(64 * 16 + 64) {
  memory.set_guard(kGuard);
  for (std::size_t i = 0; i < qpus.size(); ++i) qpus[i].id = static_cast<int>(i);
  for (unsigned code = 0; code < immediates_.size(); ++code)
    std::fill(std::begin(immediates_[code].lane), std::end(immediates_[code].lane),
              small_immediate(code));
}

void Machine::begin_qpu(Qpu& q, bool active) {
  const int id = q.id;
  q = Qpu{};
  q.id = id;
  q.shadow = &shadow_;
  q.bit = 1u << id;
  q.writer = Shadow::writer_of(id);
  q.own_row_bits = check_races ? ~0u : 0;
  q.own_row = (vpm_shadow_.launch() | q.bit | q.writer) & q.own_row_bits;
  q.finished = !active;
  q.traced = trace != nullptr;
  pair_tmus(q, false);
  for (unsigned i = 0; i < 16; ++i) {
    q.slot[kSlotElement][i] = i;
    q.slot[kSlotNumber][i] = static_cast<std::uint32_t>(id);
    for (unsigned c = 0; c < 8; ++c)
      q.mask[c][i] = c == kAlways || c == kZc || c == kNc || c == kCc ? ~0u : 0;
  }
  std::copy(immediates_.begin(), immediates_.end(), q.slot + kSlotImm);
  const auto [begin, end] = uniforms[static_cast<std::size_t>(id)];
  set_uniforms(q, begin, end);
}

void Machine::begin_clocks(Qpu& t, int id) {
  t.id = id;
  t.bit = 1u << id;
  t.pc = t.into = 0;
  t.time = t.now = t.instructions = 0;
  t.events = nullptr;
  t.finished = t.passed = false;
  t.exhausted = true;
  t.wait = Wait::none;
  t.slots_left = 0;
  t.load_done = t.store_done = 0;
  std::fill(std::begin(t.stall), std::end(t.stall), 0);
  std::fill(std::begin(t.range), std::end(t.range), Qpu::Range{});
  for (TmuFifo& fifo : t.fifo) fifo.head = fifo.count = 0;
  pair_tmus(t, false);
}

void Machine::go_on_with_clocks(Qpu& t, const Qpu& q) {
  begin_clocks(t, q.id);
  t.pc = q.pc, t.slots_left = q.slots_left;
  t.time = q.time, t.now = q.now;
  t.finished = q.finished;
  t.wait = q.wait, t.wait_semaphore = q.wait_semaphore;
  t.load_done = q.load_done, t.store_done = q.store_done;
  std::copy(std::begin(q.stall), std::end(q.stall), std::begin(t.stall));
  for (unsigned unit = 0; unit < 2; ++unit) {  // the oldest result comes first here
    const TmuFifo& from = q.fifo[unit];
    TmuFifo& to = t.fifo[unit];
    to.count = from.count;
    for (std::uint64_t k = 0; k < from.count; ++k)
      to.ready[k] = from.ready[(from.head + k) & (TmuFifo::kSlots - 1)];
  }
}

std::uint64_t Machine::vpm_rows_of(const Qpu& q) const {
  std::uint64_t rows = 0;
  for (unsigned row = 0; row < 64; ++row)
    rows |= std::uint64_t{vpm_shadow_.users_of(row) >> q.id & 1u} << row;
  return rows;
}

void Machine::begin_launch(const Program& p, int active, bool whole) {
  program = &p;
  shadow_.begin_launch();
  vpm_shadow_.begin_launch();
  shared.launch = shadow_.launch();
  shared.vpm = reinterpret_cast<std::byte*>(vpm);
  shared.vpm_summary = vpm_shadow_.summary(0);
  for (Qpu& q : qpus)
    if (whole || q.id >= active) begin_qpu(q, q.id < active);
  for (Calendar* c : {&shared.sdram, &shared.vdr, &shared.vdw}) c->reset();
  for (Tmu& t : shared.tmus) {
    t.calendar.reset();
    t.requests = 0;
    std::fill(std::begin(t.tag), std::end(t.tag), 0);
  }
  std::fill(&shared.l2_tag[0][0], &shared.l2_tag[0][0] + timing::kL2Sets * timing::kL2Ways, 0);
  std::fill(std::begin(semaphore_time), std::end(semaphore_time), 0);
  std::fill(&increments_[0][0], &increments_[0][0] + 16 * 16, 0);
  mutex_owner = -1;
  mutex_time = 0;
  host_interrupts = 0;
}

void Machine::end_launch(bool clean) {
  if (!clean) std::fill(std::begin(semaphores), std::end(semaphores), 0);
  for (Qpu& q : qpus) q.finished = true;
  program = nullptr;
}

Shadow& Machine::second_shadow() {
  if (!second_shadow_) second_shadow_ = std::make_unique<Shadow>(memory.size() / 4 + 64);
  second_shadow_->begin_launch(shadow_.launch());
  return *second_shadow_;
}

bool Machine::shadows_clash(const std::vector<std::uint32_t>& pages) {
  const std::uint64_t base = memory.base() / timing::kLine, lines = memory.size() / timing::kLine;
  constexpr std::uint64_t kLines = (1ull << SavedPages::kShift) / timing::kLine;
  for (const std::uint64_t page : pages) {
    const std::uint64_t first = std::max(page * kLines, base) - base;
    const std::uint64_t end = std::min((page + 1) * kLines - base, lines);
    if (Shadow::clash(shadow_, *second_shadow_, first, end)) return true;
  }
  return false;
}

void Machine::set_uniforms(Qpu& q, std::uint32_t begin, std::uint32_t end) {
  q.uniform = begin;
  q.uniform_end = end;
}

std::string Machine::source_of(std::uint32_t pc) const {
  if (!program || program->debug.empty()) return "";
  std::uint64_t at = static_cast<std::uint64_t>(pc) * 8;
  const runtime::DebugEntry* best = nullptr;
  for (const runtime::DebugEntry& e : program->debug) {
    if (e.pc <= at) best = &e;
  }
  if (!best) return "";
  if (best->file.empty()) return best->block;
  return cat(best->block.empty() ? "" : cat("\"", best->block, "\", "), best->file, ":",
             best->line);
}

void Machine::fail(const Qpu& q, std::string_view code, std::string message,
                   std::string_view help) {
  throw fault(q, code, std::move(message), help);
}

Error Machine::fault(const Qpu& q, std::string_view code, std::string message,
                     std::string_view help) const {
  sim::FaultPlace place;
  place.unit = cat("qpu ", q.id);
  place.pc = static_cast<std::int64_t>(q.pc) * 8;
  place.cycle = q.now;
  if (program && q.pc < program->instrs.size()) place.instruction = print(program->instrs[q.pc]);
  place.source = source_of(q.pc);
  Error error = sim::fault(code, std::move(message), place);
  if (!help.empty()) error.help(std::string(help));
  return error;
}

void Machine::fail_rule(const Qpu& q, std::string_view slug, std::string message) {
  const Rule& r = rule(slug);
  sim::FaultPlace place;
  place.unit = cat("qpu ", q.id);
  place.pc = static_cast<std::int64_t>(q.pc) * 8;
  place.cycle = q.now;
  if (program && q.pc < program->instrs.size()) place.instruction = print(program->instrs[q.pc]);
  place.source = source_of(q.pc);
  Error error = sim::fault(cat("qpu.hazard.", slug), std::move(message), place);
  error.note(cat("rule ", r.name, ": ", r.text));
  error.help(r.help);
  throw error;
}

void Machine::trace_request(const Qpu& q, const Tmu& tmu, std::int64_t start) {
  const double us = 1e6 / timing::kClockHz;
  trace->span(trace->track("qpu", cat("tmu ", &tmu - shared.tmus)), cat("request of qpu ", q.id),
              static_cast<double>(start) * us, timing::kTmuVector * us);
}

void Machine::trace_stall(const Qpu& q, std::int64_t clocks, StallReason why) {
  static constexpr const char* kNames[] = {"wait tmu", "wait dma load", "wait dma store",
                                           "wait semaphore", "wait mutex"};
  double us = static_cast<double>(q.now) / timing::kClockHz * 1e6;
  trace->span(trace->track("qpu", cat("qpu ", q.id)), kNames[why], us,
              static_cast<double>(clocks) / timing::kClockHz * 1e6);
}

bool Machine::semaphore(Qpu& q, unsigned number, bool acquire) {
  if (q.events) {
    if (std::exchange(q.passed, false)) {
      if (!acquire) forget_sites(q);
      return true;
    }
    q.wait = Wait::semaphore;  // until it is settled
    return false;
  }
  std::uint8_t& value = semaphores[number];
  if (acquire ? value == 0 : value == 15) {
    q.wait = Wait::semaphore;
    q.wait_semaphore = number;
    return false;
  }
  // Times of the increments in order: an acquire takes the oldest, and cannot end before it.
  std::int64_t* times = increments_[number];
  if (acquire) {
    stall(q, times[0], kStallSemaphore);
    std::copy(times + 1, times + value, times);
    semaphore_time[number] = q.now;
  } else {
    times[value] = q.now;
    std::sort(times, times + value + 1);
  }
  value = static_cast<std::uint8_t>(acquire ? value - 1 : value + 1);
  if (acquire) {
    shadow_.acquire(q.id, number), vpm_shadow_.acquire(q.id, number);
  } else {
    shadow_.release(q.id, number), vpm_shadow_.release(q.id, number);
    forget_sites(q);
  }
  return true;
}

bool Machine::wake(Qpu& q) {
  if (q.wait == Wait::semaphore) {
    const Instr& i = program->instrs[q.pc];
    std::uint8_t value = semaphores[q.wait_semaphore];
    if (i.acquire ? value == 0 : value == 15) return false;
    q.now = q.time;
    if (!i.acquire) stall(q, semaphore_time[q.wait_semaphore], kStallSemaphore);
  } else if (q.wait == Wait::mutex) {
    if (mutex_owner >= 0) return false;
    q.now = q.time;
    stall(q, mutex_time, kStallMutex);
  }
  q.wait = Wait::none;
  return true;
}

void Machine::breakpoint(Qpu& q) {
  if (!on_breakpoint)
    fail(q, "qpu.breakpoint", cat("software breakpoint at instruction ", q.pc),
         "remove it, or run where prints are shown");
  on_breakpoint(q);
}

void Machine::finish(Qpu& q) {
  for (unsigned unit = 0; unit < 2; ++unit) {
    if (q.fifo[unit].count)
      fail_rule(q, "tmu_unread",
                cat(q.fifo[unit].count, " requests of TMU ", unit, " were never received"));
  }
  if (q.vpm_reads)
    fail_rule(q, "vpm_read_count",
              cat(q.vpm_read[0].left, " vectors set up for reading were left in the VPM"));
  if (q.load_pending)
    fail(q, "qpu.dma.not_waited",
         cat("qpu ", q.id, " ended with a DMA load that nobody waited for"),
         "read vr_wait before the end");
  if (q.store_pending)
    fail(q, "qpu.dma.not_waited",
         cat("qpu ", q.id, " ended with a DMA store that nobody waited for"),
         "read vw_wait before the end");
  if (mutex_owner == q.id)
    fail(q, "qpu.mutex.held", cat("qpu ", q.id, " ended while holding the mutex"),
         "write mutex before the end");
  q.finished = true;
}

bool Machine::find_range(Qpu& q, std::uint64_t address, std::uint64_t bytes) {
  auto [begin, size] = memory.allocation(address);
  if (size == 0 || address + bytes > begin + size) return false;
  q.range[q.range_next++ & 3] = {begin, begin + size};
  return true;
}

void Machine::outside_read(Qpu& q, std::uint64_t address, std::uint64_t bytes,
                           std::string_view what) {
  std::string message = cat(what, " reads ", bytes, " bytes at ", hex(address), ", ",
                            memory.describe(address, bytes));
  if (outside_reads == OutsideReads::fault)
    fail(q, "qpu.memory.read_outside", std::move(message),
         "keep every lane's address inside an array");
  for (Finding& f : findings) {
    if (f.pc == q.pc && f.qpu == q.id && f.code == "qpu.memory.read_outside") {
      ++f.count;
      return;
    }
  }
  findings.push_back(
      {"qpu.memory.read_outside", q.id, q.pc, std::move(message), source_of(q.pc), 1});
}

void Machine::conflict(Qpu& q, const Shadow::Conflict& c, std::uint64_t base, bool write,
                       bool tmu) {
  std::uint64_t address = base + c.word * 4;
  if (c.race) {
    fail(q, "qpu.race",
         cat("qpu ", q.id, write ? " stores to" : " reads", " the word at ", hex(address),
             ", which qpu ", c.other, " also uses without synchronisation"),
         "let one release a semaphore after its access and the other acquire it before");
  }
  if (tmu) {
    fail(q, "qpu.tmu.stale",
         cat("the word at ", hex(address), " was stored by qpu ", c.other,
             " earlier in this launch; the TMU's caches may still hold its old value"),
         "read it through the VPM, or in the next launch");
  }
}

bool Machine::read(Qpu& q, bool file_b, unsigned address, Vec& out) {
  switch (address) {
    case kRUniform: {
      if (q.uniform == 0 || q.uniform + 4 > q.uniform_end) {
        fail(q, "qpu.uniform.exhausted", cat("qpu ", q.id, " reads past the end of its uniforms"),
             "bind every parameter");
      }
      std::uint32_t value = memory.load<std::uint32_t>(q.uniform);
      q.uniform += 4;
      ++q.counts.uniforms;
      for (std::uint32_t& lane : out.lane) lane = value;
      return true;
    }
    case 38: out = q.slot[file_b ? kSlotNumber : kSlotElement]; return true;
    case kNull: out = q.slot[kSlotZero]; return true;
    case kRVpm: vpm_read(q, out); return true;
    case 49: {
      bool busy =
          file_b ? q.store_pending && q.store_done > q.now : q.load_pending && q.load_done > q.now;
      for (std::uint32_t& lane : out.lane) lane = busy;
      return true;
    }
    case 50:
      if (file_b) {
        if (q.store_pending && q.events) note(q, Event::wait_store);
        else if (q.store_pending) stall(q, q.store_done, kStallDmaStore);
        q.store_pending = false, q.store_rows = 0;
      } else {
        if (q.load_pending && q.events) note(q, Event::wait_load);
        else if (q.load_pending) stall(q, q.load_done, kStallDmaLoad);
        q.load_pending = false, q.load_rows = 0;
      }
      out = q.slot[kSlotZero];
      return true;
    case kRMutex:
      if (mutex_owner == q.id)
        fail(q, "qpu.mutex.twice", cat("qpu ", q.id, " acquires the mutex that it holds"),
             "release it first");
      if (mutex_owner >= 0) {
        q.wait = Wait::mutex;
        return false;
      }
      stall(q, mutex_time, kStallMutex);
      mutex_owner = q.id;
      shadow_.acquire(q.id, Shadow::kMutex), vpm_shadow_.acquire(q.id, Shadow::kMutex);
      out = q.slot[file_b ? kSlotNumber : kSlotElement];
      return true;
    default:
      fail(q, "qpu.unsupported",
           cat("reading ", read_name(file_b, address), " (address ", address,
               ") is for fragment programs or undefined"));
  }
}

void Machine::write(Qpu& q, bool file_b, unsigned address, const Vec& value) {
  switch (address) {
    case kWNoswap:
      settle_requests(q);
      pair_tmus(q, value[0] != 0);
      return;
    case kWHostInt:
      if (value[0] && !q.events) ++host_interrupts;
      return;
    case kNull: return;
    case kWUniformsAddr: {
      auto [begin, size] = memory.allocation(value[0]);
      if (size == 0)
        fail(q, "qpu.uniform.address",
             cat("the uniforms' address ", hex(value[0]), " is ", memory.describe(value[0], 4)));
      set_uniforms(q, value[0], static_cast<std::uint32_t>(begin + size));
      return;
    }
    case kWVpm: vpm_write(q, value); return;
    case kWVpmSetup: setup(q, file_b, value[0]); return;
    case kWDmaAddr:
      if (file_b) dma_store(q, value[0]);
      else dma_load(q, value[0]);
      return;
    case kWMutex:
      if (mutex_owner != q.id)
        fail(q, "qpu.mutex.release",
             cat("qpu ", q.id, " releases a mutex held by ",
                 mutex_owner < 0 ? std::string("nobody") : cat("qpu ", mutex_owner)));
      mutex_owner = -1;
      mutex_time = q.now;
      shadow_.release(q.id, Shadow::kMutex), vpm_shadow_.release(q.id, Shadow::kMutex);
      forget_sites(q);
      return;
    case kWRecip:
    case kWRsqrt:
    case kWExp2:
    case kWLog2:
      ++q.counts.sfu;
      for (unsigned i = 0; i < 16; ++i) q.sfu_result[i] = sfu(address, value[i]);
      q.sfu_countdown = 3;
      return;
    case kWTmu0S: tmu_request(q, 0, value); return;
    case kWTmu1S: tmu_request(q, 1, value); return;
    default:
      fail(q, "qpu.unsupported",
           cat("writing ", write_name(file_b, address), " (address ", address,
               ") is for fragment programs or textures"));
  }
}

}  // namespace weft::qpu::hw
