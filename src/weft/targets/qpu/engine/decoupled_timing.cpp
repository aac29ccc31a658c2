// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/qpu/engine/decoupled_timing.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "weft/base/interrupt.h"
#include "weft/base/wait.h"
#include "weft/sim/delays.h"
#include "weft/targets/qpu/tmu.h"

namespace weft::qpu::hw {

namespace {
// Bytes of a chunk's words after which a branch leaves, of a QPU's first and, doubled each time, in
// the end: small, so that whoever settles need not wait long for twelve QPUs' first, nor has much
// left after the last.
constexpr std::size_t kFirstRecord = 512, kRecord = 4096;
constexpr std::size_t kSoon = 768;               // bytes of the next chunk that are asked for early
constexpr std::size_t kMostInstructions = 4096;  // instructions of a program that runs ahead
// Looks at what is awaited before a thread sleeps: fewer each time that it slept all the same, as
// on a busy host, where who looks takes the processor from whom it waits for.
constexpr int kFewSpins = 50, kSpins = 20000;
constexpr std::chrono::microseconds kNap(200);

/// Of this thread, in nanoseconds: what it has done, however busy the host is.
std::int64_t processor_time() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

// Clocks after which accesses of both threads' QPUs are compared, again at each double of them:
// what a race has made of a loop may have no end.
constexpr std::int64_t kFirstLook = 1 << 22;

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

// Between two taken branches every instruction comes once and writes up to seven words: two ports
// read, two requests, a branch.
std::size_t record_room(std::size_t instructions) { return kRecord + 32 * instructions + 1024; }
// Each of these words may stand for a scattered request, of ten events; a transfer has one.
std::size_t event_room(std::size_t instructions) {
  return 10 * record_room(instructions) / 4 * sizeof(Event);
}
}  // namespace

bool may_run_ahead(const Program& program) {
  if (program.instrs.size() > kMostInstructions) return false;
  for (const Instr& i : program.instrs) {
    if (i.kind == kBranch || i.kind == kSem) continue;
    bool alu = i.kind == kAlu || i.kind == kAluImm;
    if (i.kind == kAlu && i.sig == kSigBreak) return false;
    auto clocked = [](unsigned address) { return address == 49 || address == kRMutex; };
    if (alu && (clocked(i.raddr_a) || (i.kind == kAlu && clocked(i.raddr_b)))) return false;
    auto special = [](unsigned address) {
      return address == kWMutex || address == kWUniformsAddr || address == kWNoswap;
    };
    if (special(i.waddr_add) || special(i.waddr_mul)) return false;
  }
  return true;
}

void Machine::settle_one(Qpu& t, const Event*& at) {
  const Event e = *at++;
  auto wait = [&](std::int64_t until, StallReason why) {  // nothing is traced here
    if (until <= t.now) return;
    t.stall[why] += until - t.now;
    t.time += until - t.now;
    t.now = until;
  };
  switch (e.kind) {
    case Event::row:
    case Event::scattered: {
      TmuFifo& fifo = t.fifo[e.extra];
      std::int64_t& ready = fifo.ready[fifo.free()];
      Tmu& tmu = *t.tmu[e.extra];
      if (e.kind == Event::scattered) {
        Vec address;
        t.pc = at->value;
        std::memcpy(static_cast<void*>(&address), at + 1, sizeof address);
        ready = scattered_ready(t, tmu, address, nullptr);
        at += 1 + Event::kRaw;
      } else if (e.value % timing::kLine) {
        ready = row_ready(t, tmu, e.value);
      } else {
        ready = line_booked(tmu, e.value / timing::kLine, t.now);
      }
      ++fifo.count;
      break;
    }
    case Event::receive: {
      TmuFifo& fifo = t.fifo[e.extra];
      wait(fifo.ready[0], kStallTmu);  // who settles has the oldest always there
      std::copy(fifo.ready + 1, fifo.ready + fifo.count--, fifo.ready);
      break;
    }
    case Event::outside_row: {
      const Event& place = *at++;
      t.pc = place.value;
      outside_read(t, e.value, e.extra * 4u,
                   cat("row ", static_cast<unsigned>(place.extra), " of a DMA load"));
      break;
    }
    case Event::dma_load:
    case Event::dma_store:
      dma_time(t, e.value & 0xffff, e.value >> 16, e.kind == Event::dma_store);
      break;
    case Event::wait_load: wait(t.load_done, kStallDmaLoad); break;
    case Event::wait_store: wait(t.store_done, kStallDmaStore); break;
  }
}

Ahead::Ahead(Machine& machine)
    : m_(machine),
      times_(machine.qpus.size()),
      holds_(machine.qpus.size()),
      feeds_(std::make_unique<Feed[]>(machine.qpus.size())),
      saved_(machine.memory),
      spins_{kSpins, kSpins},
      thread_([this] { work(); }) {}

Ahead::~Ahead() {
  quit_ = true;
  tell();
}

template <typename F>
void Ahead::wait_apart(Who who, F ready) {
  if (ready()) return;
  // The thread's clock is the kernel's and dear, so short waits are counted by their looks.
  using Clock = std::chrono::steady_clock;
  const Clock::time_point from = Clock::now();
  const int looks = look(who, ready);
  Looks& all = looks_[who];
  all.count += std::abs(looks);
  if (const int n = std::abs(looks); n >= kFewSpins) {
    const std::chrono::duration<double, std::nano> took = Clock::now() - from;
    const double each = took.count() / n;  // the least: nobody else had the processor meanwhile
    if (all.least == 0 || each < all.least) all.least = each;
  }
  if (looks >= 0) return;
  const std::int64_t asleep = processor_time();
  sleep(who, ready);
  worked_[who] -= processor_time() - asleep;
}

template <typename F>
void Ahead::wait(Who who, F ready) {
  if (look(who, ready) < 0) sleep(who, ready);
}

template <typename F>
int Ahead::look(Who who, F ready) {
  int& spins = spins_[who];
  const int most = spins;
  for (int i = 0; i < most; ++i) {
    if (ready()) {
      spins = std::min(2 * spins, kSpins);
      return i;
    }
    pause();
  }
  spins = std::max(spins / 4, kFewSpins);
  return -most;
}

template <typename F>
void Ahead::sleep(Who who, F ready) {
  std::unique_lock lock(mutex_);
  ++sleeping_;
  // Within a launch nobody makes sure that a sleeper hears of everything.
  while (running_ && !changed_.wait_for(lock, kNap, ready)) {
  }
  if (!running_) weft::wait(changed_, lock, ready);
  --sleeping_;
  lock.unlock();
  if (who == kOwn) affinity_.calls();  // kernels like to wake it where its waker runs
}

void Ahead::tell() {
  sim::hand_over();
  // Who waits counts itself before it looks a last time.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  wake();
}

void Ahead::wake() {
  if (sleeping_.load(std::memory_order_relaxed) == 0) return;
  { std::lock_guard lock(mutex_); }
  changed_.notify_all();
}

int Ahead::candidate(int first, int end) const {
  int best = -1;
  std::uint32_t least = kChunks;
  for (int i = first; i < end; ++i) {
    const Feed& f = feeds_[static_cast<std::size_t>(i)];
    if (f.stopped.load(std::memory_order_acquire)) continue;
    const std::uint32_t waiting = f.filled - f.settled.load(std::memory_order_acquire);
    if (waiting < least) best = i, least = waiting;
  }
  return best;
}

void Ahead::work() {
  affinity_.works();
  while (true) {
    while (!quit_ && idle_) wait(kOther, [&] { return quit_.load() || !idle_.load(); });
    if (quit_) return;
    sim::hand_over();
    {
      Turns turns(fast_);
      worked_[kOther] = -processor_time();
      int i = -1;
      while (true) {
        i = candidate(0, own_);
        if (i < 0)
          wait_apart(kOther, [&] { return !running_.load() || (i = candidate(0, own_)) >= 0; });
        if (!running_) break;
        if (i >= 0) record(i);
      }
      worked_[kOther] += processor_time();
    }
    idle_ = true;
    tell();
  }
}

void Ahead::save_beginning() {
  saved_.begin_launch();
  std::memcpy(vpm_before_, m_.vpm, sizeof vpm_before_);
  std::memcpy(semaphores_before_, m_.semaphores, sizeof semaphores_before_);
  counters_before_ = m_.shared.counters;
  findings_before_ = m_.findings;
}

void Ahead::begin() {
  for (int i = 0; i < active_; ++i) {
    Feed& f = feeds_[static_cast<std::size_t>(i)];
    f.first = f.filled;
    f.stopped.store(joined_ && m_.qpus[static_cast<std::size_t>(i)].finished,
                    std::memory_order_relaxed);
    holds_[static_cast<std::size_t>(i)] = false;
    f.vpm_rows = 0;
  }
}

void Ahead::record(int i) {
  Feed& f = feeds_[static_cast<std::size_t>(i)];
  Qpu& q = m_.qpus[static_cast<std::size_t>(i)];
  const std::uint32_t place = f.filled - f.first;
  sim::hand_over();
  if (place == 0) {
    if (!joined_) m_.begin_qpu(q);
    if (i >= own_) {
      q.shadow = second_;
      for (RequestSite& site : q.site) site = {};  // they may know the other shadow
    }
    q.saved = &saved_.hand(i >= own_);
    q.saved_stamps = saved_.stamps();
    q.saved_stamp = saved_.stamp();
  }
  Chunk& chunk = f.chunk[f.filled % kChunks];
  const std::size_t instructions = m_.program->instrs.size();
  const std::size_t words = record_room(instructions), events = event_room(instructions);
  if (chunk.room < words + events) {
    chunk.memory = std::make_unique_for_overwrite<std::byte[]>(words + events);
    chunk.room = words + events;
  }
  q.record = chunk.memory.get();
  q.record_leave = q.record + std::min(kRecord, kFirstRecord << std::min(place, 16u));
  chunk.leave = q.record_leave;
  chunk.events = q.events = reinterpret_cast<Event*>(q.record + words);
  q.events_end = q.events + events / sizeof(Event);
  bool stopped = false;
  chunk.fault = false;
  try {
    program_->lead(m_, q);
    stopped = q.finished || q.wait != Wait::none;
  } catch (...) {  // whatever it was, one thread finds it again
    chunk.fault = stopped = true;
  }
  chunk.vpm_rows = q.vpm_rows;
  sim::hand_over();
  f.stopped.store(stopped, std::memory_order_relaxed);
  chunk.number.store(++f.filled, std::memory_order_release);
  wake();
}

void Ahead::provide(int i) {
  auto k = static_cast<std::size_t>(i);
  Feed& f = feeds_[k];
  const std::uint32_t settled = f.settled.load(std::memory_order_relaxed);
  const Chunk& chunk = f.chunk[settled % kChunks];
  auto filled = [&] { return chunk.number.load(std::memory_order_acquire) == settled + 1; };
  if (i >= own_) {
    Turns turns(fast_);
    if (!filled()) record(i);
  } else {
    while (!filled()) {
      // What it has to do some time it does now.
      if (const int own = candidate(own_, active_); own >= 0) {
        Turns turns(fast_);
        record(own);
      } else {
        wait_apart(kOwn, filled);
      }
    }
  }
  sim::hand_over();
  if (chunk.fault) throw RunAgain{};
  Qpu& t = times_[k];
  t.settling = chunk.events;
  t.record = chunk.memory.get();
  t.record_leave = chunk.leave;
  t.exhausted = false;
  holds_[k] = true;
  // What comes next is mostly there, in the other thread's cache.
  const Chunk& next = f.chunk[(settled + 1) % kChunks];
  if (next.number.load(std::memory_order_acquire) == settled + 2)
    for (std::size_t at = 0; at < kSoon; at += 64) __builtin_prefetch(next.memory.get() + at);
  if (!(chunk.vpm_rows & ~f.vpm_rows)) return;
  // Rows of the VPM are each QPU's own; where they are shared, one thread looks who is in order.
  f.vpm_rows |= chunk.vpm_rows;
  for (std::size_t other = 0; other < static_cast<std::size_t>(active_); ++other)
    if (other != k && (feeds_[other].vpm_rows & f.vpm_rows)) throw RunAgain{};
}

void Ahead::consume(int i, bool synchronised) {
  auto k = static_cast<std::size_t>(i);
  Feed& f = feeds_[k];
  holds_[k] = false;
  if (synchronised) {
    m_.qpus[k].passed = true;
    m_.qpus[k].wait = Wait::none;
    f.stopped.store(false, std::memory_order_release);
  }
  sim::hand_over();
  f.settled.store(f.settled.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  wake();
}

void Ahead::loop(int active, std::int64_t limit_cycles, std::int64_t window) {
  // As Emulator::run does it with one thread.
  std::int64_t look = kFirstLook;
  while (true) {
    try {
      poll_interrupt();
    } catch (...) {
      stopped_ = std::current_exception();
      throw;
    }
    window += timing::kQuantum;
    if (second_ && window > look) {
      look *= 2;
      if (m_.shadows_clash(saved_.pages())) throw RunAgain{};
    }
    std::int64_t stop = limit_cycles < window ? limit_cycles + 1 : window,
                 earliest = std::numeric_limits<std::int64_t>::max();
    bool running = false, moved = false;
    for (int i = 0; i < active; ++i) {
      auto k = static_cast<std::size_t>(i);
      Qpu& t = times_[k];
      if (t.finished) continue;
      running = true;
      if (t.wait != Wait::none && !m_.wake(t)) continue;
      bool goes_on = t.time < stop;  // as far as a branch, whatever the clock says before it
      while (goes_on) {
        if (!holds_[k]) provide(i);
        const bool all = program_->settle(m_, t, stop), passed = t.passed;
        if (all || passed) consume(i, passed);
        goes_on = all || passed;
      }
      moved = true;
      if (t.time > limit_cycles) throw RunAgain{};
      if (!t.finished && t.wait == Wait::none) earliest = std::min(earliest, t.time);
    }
    if (!running) return;
    if (!moved) throw RunAgain{};
    if (earliest != std::numeric_limits<std::int64_t>::max())
      window = std::max(window, earliest / timing::kQuantum * timing::kQuantum);
  }
}

void Ahead::settle_down() {
  sim::hand_over();
  running_ = false;
  tell();
  while (!idle_) wait(kOwn, [&] { return idle_.load(); });
}

int Ahead::best_share() const {
  const auto qpus = static_cast<double>(active_), led = static_cast<double>(own_);
  auto worked = [this](Who who) {
    const Looks& looks = looks_[who];
    return static_cast<double>(worked_[who]) - static_cast<double>(looks.count) * looks.least;
  };
  const double lead = worked(kOther) / led,  // one QPU
      settle = worked(kOwn) - (qpus - led) * lead;
  int best = 0;
  double least = qpus * lead;
  for (int share = 1; share < active_; ++share) {
    const double busier = std::max(settle + share * lead, (qpus - share) * lead);
    if (busier < least) best = share, least = busier;
  }
  return best;
}

void Ahead::choose_share(FastProgram& fast, int active, int share) {
  fast_ = &fast, program_ = fast.divided(), active_ = active;
  program_->prepare();
  if (share < 0) share = program_->own_share < 0 ? active / 6 : program_->own_share;
  own_ = active - std::min(share, most_share(*program_, active));
  second_ = own_ < active ? &m_.second_shadow() : nullptr;
}

bool Ahead::run(FastProgram& fast, int active, std::int64_t limit_cycles, int share) {
  choose_share(fast, active, share);
  save_beginning();
  joined_ = false;
  for (int i = 0; i < active; ++i) m_.begin_clocks(times_[static_cast<std::size_t>(i)], i);
  begin();
  return run_prepared(limit_cycles, 0);
}

void Ahead::watch(int active) {
  save_beginning();
  for (int i = 0; i < active; ++i) m_.qpus[static_cast<std::size_t>(i)].saved = &saved_.hand(0);
}

bool Ahead::may_join(int active) const {
  std::uint64_t all = 0;
  for (int i = 0; i < active; ++i) {
    const std::uint64_t rows = m_.vpm_rows_of(m_.qpus[static_cast<std::size_t>(i)]);
    if (all & rows) return false;
    all |= rows;
  }
  return true;
}

bool Ahead::join(FastProgram& fast, int active, std::int64_t limit_cycles, std::int64_t window) {
  choose_share(fast, active, -1);
  joined_ = true;
  begin();
  for (int i = 0; i < active; ++i) {
    const auto k = static_cast<std::size_t>(i);
    Qpu& q = m_.qpus[k];
    m_.go_on_with_clocks(times_[k], q);
    feeds_[k].vpm_rows = q.vpm_rows = m_.vpm_rows_of(q);
    q.wait = Wait::none;  // its clocks wait
  }
  return run_prepared(limit_cycles, window);
}

void Ahead::put_back() {
  saved_.put_back();
  std::memcpy(m_.vpm, vpm_before_, sizeof vpm_before_);
  std::memcpy(m_.semaphores, semaphores_before_, sizeof semaphores_before_);
  m_.shared.counters = counters_before_;
  m_.findings = std::move(findings_before_);
}

bool Ahead::run_prepared(std::int64_t limit_cycles, std::int64_t window) {
  affinity_.calls();
  looks_[kOwn].count = looks_[kOther].count = 0;
  worked_[kOwn] = -processor_time();
  running_ = true;
  idle_ = false;  // the last: the other thread begins
  tell();
  try {
    loop(active_, limit_cycles, window);
    worked_[kOwn] += processor_time();
    settle_down();
    if (second_ && m_.shadows_clash(saved_.pages())) throw RunAgain{};
  } catch (...) {  // RunAgain, or a fault: others have gone past it, one thread stops in time
    settle_down();
    put_back();
    for (int i = 0; i < active_; ++i) {
      Feed& f = feeds_[static_cast<std::size_t>(i)];
      f.settled.store(f.filled, std::memory_order_relaxed);
    }
    if (!stopped_) return false;
    // Somebody wants it to end: not again, and nothing has been done.
    for (int i = 0; i < active_; ++i) m_.begin_qpu(m_.qpus[static_cast<std::size_t>(i)]);
    std::rethrow_exception(std::exchange(stopped_, nullptr));
  }
  if (!program_->synchronises) program_->own_share = best_share();
  for (int i = 0; i < active_; ++i) {
    Qpu& q = m_.qpus[static_cast<std::size_t>(i)];
    const Qpu& t = times_[static_cast<std::size_t>(i)];
    const Feed& f = feeds_[static_cast<std::size_t>(i)];
    if (f.filled == f.first) continue;  // it had ended before
    consume(i, false);                  // it ended within its last chunk
    q.time = t.time;
    std::copy(std::begin(t.stall), std::end(t.stall), std::begin(q.stall));
    // Translated code leaves the waits for the TMU to who has counted the instructions.
    std::int64_t waited = q.time - timing::kIssue * q.instructions;
    for (std::int64_t stalled : q.stall) waited -= stalled;
    q.stall[kStallTmu] += waited;
  }
  return true;
}

}  // namespace weft::qpu::hw
