// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/qpu/engine/ahead.h"

#include <algorithm>
#include <limits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "weft/base/interrupt.h"
#include "weft/targets/qpu/tmu.h"

namespace weft::qpu::hw {

namespace {
constexpr std::size_t kEvents = 2048;   // of a chunk, after which a branch leaves
constexpr std::size_t kLargest = 4096;  // instructions of a program that runs ahead
constexpr int kSpins = 4000;  // looks at a changed state before a thread sleeps: about 100 us

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

// Between two taken branches every instruction comes once; most write one event, a scattered
// request ten, a transfer up to 64 rows checks its own room.
std::size_t room_for(std::size_t instructions) { return kEvents + 20 * instructions + 4096; }
}  // namespace

bool may_run_ahead(const Program& program) {
  if (program.instrs.size() > kLargest) return false;
  for (const Instr& i : program.instrs) {
    if (i.kind == kBranch || i.kind == kSem) continue;
    bool alu = i.kind == kAlu || i.kind == kAluImm;
    if (i.kind == kAlu && i.sig == kSigBreak) return false;
    auto clocked = [](unsigned address) { return address == 49 || address == kRMutex; };
    if (alu && (clocked(i.raddr_a) || (i.kind == kAlu && clocked(i.raddr_b)))) return false;
    auto special = [](unsigned address) { return address == kWMutex || address == kWUniformsAddr; };
    if (special(i.waddr_add) || special(i.waddr_mul)) return false;
  }
  return true;
}

Machine::Settled Machine::settle(Qpu& t, const Event*& from, const Event* end, std::int64_t limit) {
  const Event* at = from;
  std::uint16_t last = t.event_at;
  auto leave = [&](Settled how, const Event* next) {
    from = next;
    t.event_at = last;
    return how;
  };
  auto wait = [&](std::int64_t until, StallReason why) {  // nothing is traced here
    if (until <= t.now) return;
    t.stall[why] += until - t.now;
    t.time = t.now = until;
  };
  for (; at < end; ++at) {
    const Event e = *at;
    t.time += timing::kIssue * static_cast<std::int64_t>(static_cast<std::uint16_t>(e.at - last));
    last = e.at;
    t.now = t.time;
    switch (e.kind) {
      case Event::row:
      case Event::scattered: {
        TmuFifo& fifo = t.fifo[e.extra & 15];
        std::int64_t& ready = fifo.ready[(fifo.head + fifo.count) & (TmuFifo::kSlots - 1)];
        Tmu& tmu = shared.tmus[e.extra >> 4];
        if (e.kind == Event::row) {
          const std::uint32_t line = e.value / timing::kLine;
          ready = e.value % timing::kLine || shadow_.advanced(t.id) ||
                          !shadow_.read_line(*summary_of(line), t.id)
                      ? row_ready(t, tmu, e.value)
                      : line_booked(tmu, line, t.now);
        } else {
          Vec address;
          t.pc = (++at)->value;
          std::memcpy(static_cast<void*>(&address), at + 1, sizeof address);
          ready = scattered_ready(t, tmu, address, nullptr);
          at += Event::kRaw;
        }
        ++fifo.count;
        break;
      }
      case Event::receive: {
        TmuFifo& fifo = t.fifo[e.extra];
        wait(fifo.ready[fifo.head], kStallTmu);
        fifo.head = (fifo.head + 1) & (TmuFifo::kSlots - 1);
        --fifo.count;
        break;
      }
      case Event::load_words:
      case Event::store_words:
        dma_words(t, memory.base() + 4ull * e.value, e.extra, e.kind == Event::store_words);
        break;
      case Event::load_row:
      case Event::store_row:
        dma_row(t, memory.base() + 4ull * e.value, e.extra, e.kind == Event::store_row);
        break;
      case Event::outside_row:
        ++at;
        t.pc = at->value;
        outside_read(t, e.value, e.extra * 4u,
                     cat("row ", static_cast<unsigned>(at->extra), " of a DMA load"));
        break;
      case Event::dma_load:
      case Event::dma_store:
        dma_time(t, e.value & 0xffff, e.value >> 16, e.kind == Event::dma_store);
        break;
      case Event::wait_load: wait(t.load_done, kStallDmaLoad); break;
      case Event::wait_store: wait(t.store_done, kStallDmaStore); break;
      case Event::semaphore:
        t.pc = e.value >> 1;
        if (!semaphore(t, e.extra, e.value & 1)) return leave(Settled::waits, at);
        epoch.fetch_add(1, std::memory_order_relaxed);
        return leave(Settled::synchronised, at + 1);
      case Event::branch:
        if (t.time >= limit) return leave(Settled::late, at + 1);
        break;
      case Event::finish: {
        // The clock stands after the instruction.
        t.time += timing::kIssue;
        t.finished = true;
        return leave(Settled::finished, at + 1);
      }
      case Event::fault: throw RunAgain{};
    }
  }
  return leave(Settled::all, at);
}

Ahead::Ahead(Machine& machine, int threads)
    : m_(machine),
      times_(machine.qpus.size()),
      at_(machine.qpus.size()),
      end_(machine.qpus.size()),
      feeds_(machine.qpus.size()) {
  for (int i = 1; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

Ahead::~Ahead() {
  {
    std::lock_guard lock(mutex_);
    quit_ = true;
    tell();
  }
}

int Ahead::candidate() const {
  if (stopping_ || !fast_) return -1;
  int best = -1;
  std::size_t least = kChunks;
  for (int i = 0; i < active_; ++i) {
    const Feed& f = feeds_[static_cast<std::size_t>(i)];
    if (!f.running && !f.stopped && f.filled < least) best = i, least = f.filled;
  }
  return best;
}

void Ahead::work() {
  std::unique_lock lock(mutex_);
  while (!quit_) {
    int i = candidate();
    if (i >= 0) record(i, lock);
    else sleep(lock);
  }
}

void Ahead::sleep(std::unique_lock<std::mutex>& lock) {
  std::uint32_t seen = version_.load(std::memory_order_relaxed);
  lock.unlock();
  for (int i = 0; i < kSpins; ++i) {
    if (version_.load(std::memory_order_acquire) != seen) {
      lock.lock();
      return;
    }
    pause();
  }
  lock.lock();
  ++sleeping_;
  changed_.wait(lock, [&] { return version_.load(std::memory_order_relaxed) != seen; });
  --sleeping_;
}

void Ahead::tell() {
  version_.fetch_add(1, std::memory_order_release);
  if (sleeping_) changed_.notify_all();
}

void Ahead::record(int i, std::unique_lock<std::mutex>& lock) {
  Feed& f = feeds_[static_cast<std::size_t>(i)];
  Qpu& q = m_.qpus[static_cast<std::size_t>(i)];
  Chunk& chunk = f.chunk[(f.first + f.filled) % kChunks];
  f.running = true;
  lock.unlock();
  std::size_t room = room_for(m_.program->instrs.size());
  if (chunk.events.size() < room + 1) chunk.events.resize(room + 1);
  Event* begin = chunk.events.data();
  q.events = begin;
  q.events_leave = begin + kEvents;
  // One event per instruction is written without asking.
  q.events_end = begin + room - m_.program->instrs.size();
  bool stopped = false;
  try {
    Turns turns(fast_);
    fast_->run(m_, q, std::numeric_limits<std::int64_t>::min());
    // It left for want of room, at its end, or at a semaphore.
    stopped = q.finished || q.events[-1].kind == Event::semaphore;
  } catch (...) {  // whatever it was, one thread finds it again
    Event e;
    e.kind = Event::fault;
    *q.events++ = e;
    stopped = true;
  }
  chunk.used = static_cast<std::size_t>(q.events - begin);
  chunk.vpm_rows = q.vpm_rows;
  lock.lock();
  f.running = false;
  f.stopped = stopped;
  ++f.filled;
  tell();
}

void Ahead::provide(int i) {
  std::unique_lock lock(mutex_);
  Feed& f = feeds_[static_cast<std::size_t>(i)];
  while (f.filled == 0) {
    WEFT_CHECK(f.running || !f.stopped, "a QPU that stopped has nothing to settle");
    int other = f.running ? candidate() : i;
    if (other >= 0) record(other, lock);
    else sleep(lock);
  }
  auto at = static_cast<std::size_t>(i);
  const Chunk& chunk = f.chunk[f.first];
  at_[at] = chunk.events.data();
  end_[at] = at_[at] + chunk.used;
  // Rows of the VPM are each QPU's own; where they are shared, one thread looks who is in order.
  f.vpm_rows |= chunk.vpm_rows;
  for (const Feed& g : feeds_)
    if (&g != &f && (g.vpm_rows & f.vpm_rows)) throw RunAgain{};
}

void Ahead::consume(int i, bool synchronised) {
  std::lock_guard lock(mutex_);
  auto at = static_cast<std::size_t>(i);
  Feed& f = feeds_[at];
  f.first = (f.first + 1) % kChunks;
  --f.filled;
  at_[at] = end_[at] = nullptr;
  if (synchronised) m_.qpus[at].passed = true, f.stopped = false;
  tell();
}

void Ahead::loop(int active, std::int64_t limit_cycles) {
  // As Emulator::run does it with one thread.
  std::int64_t window = 0;
  while (true) {
    poll_interrupt();
    window += timing::kQuantum;
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
        if (at_[k] == end_[k]) {
          if (at_[k]) consume(i, false);
          provide(i);
        }
        Machine::Settled how = m_.settle(t, at_[k], end_[k], stop);
        if (how == Machine::Settled::synchronised) consume(i, true);
        else goes_on = how == Machine::Settled::all;
      }
      moved = true;
      if (t.time > limit_cycles) throw RunAgain{};
      if (!t.finished && t.wait == Wait::none) earliest = std::min(earliest, t.time);
    }
    if (!running) return;
    if (!moved) throw RunAgain{};
    if (earliest != std::numeric_limits<std::int64_t>::max()) {
      window = std::max(window, earliest / timing::kQuantum * timing::kQuantum);
      m_.advance(std::min(earliest, window));
    }
  }
}

void Ahead::settle_down() {
  std::unique_lock lock(mutex_);
  stopping_ = true;
  while (std::any_of(feeds_.begin(), feeds_.end(), [](const Feed& f) { return f.running; }))
    sleep(lock);
  fast_ = nullptr;
  for (Qpu& q : m_.qpus) q.events = nullptr, q.replaced = nullptr;
}

void Ahead::put_back() {
  struct Store {
    std::uint32_t epoch, address;
    const std::uint32_t* words;
    std::size_t count;
  };
  // The latest first: by epoch, and within one by each QPU's order. Stores of two QPUs in one epoch
  // go to different words, or they race, which the second run finds too.
  std::vector<Store> stores;
  for (const Feed& f : feeds_) {
    for (std::size_t end = f.replaced.used; end > 0;) {
      const std::uint32_t* tail = f.replaced.words.data() + end - 3;
      std::size_t count = tail[1];
      stores.push_back({tail[2], tail[0], tail - count, count});
      end -= count + 3;
    }
  }
  std::stable_sort(stores.begin(), stores.end(),
                   [](const Store& a, const Store& b) { return a.epoch > b.epoch; });
  for (const Store& s : stores) std::memcpy(m_.memory.raw(s.address), s.words, s.count * 4);
}

bool Ahead::run(FastProgram& fast, int active, std::int64_t limit_cycles) {
  std::uint32_t vpm[64][16];
  std::uint8_t semaphores[16];
  std::memcpy(vpm, m_.vpm, sizeof vpm);
  std::memcpy(semaphores, m_.semaphores, sizeof semaphores);
  Counters counters = m_.shared.counters;
  std::vector<Finding> findings = m_.findings;
  for (std::size_t i = 0; i < times_.size(); ++i) {
    Qpu& t = times_[i];
    t = Qpu{};
    t.id = static_cast<int>(i);
    t.finished = m_.qpus[i].finished;
    at_[i] = end_[i] = nullptr;
  }
  {
    std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < feeds_.size(); ++i) {
      Feed& f = feeds_[i];
      f.first = f.filled = 0;
      f.stopped = f.running = false;
      f.replaced.used = 0;
      f.vpm_rows = 0;
      m_.qpus[i].replaced = &f.replaced;
    }
    fast_ = &fast, active_ = active, stopping_ = false;
    tell();
  }
  try {
    loop(active, limit_cycles);
  } catch (...) {  // RunAgain, or a fault: others have gone past it, one thread stops in time
    settle_down();
    put_back();
    std::memcpy(m_.vpm, vpm, sizeof vpm);
    std::memcpy(m_.semaphores, semaphores, sizeof semaphores);
    m_.shared.counters = counters;
    m_.findings = std::move(findings);
    return false;
  }
  settle_down();
  for (int i = 0; i < active; ++i) {
    Qpu& q = m_.qpus[static_cast<std::size_t>(i)];
    const Qpu& t = times_[static_cast<std::size_t>(i)];
    q.time = t.time;
    std::copy(std::begin(t.stall), std::end(t.stall), std::begin(q.stall));
  }
  return true;
}

}  // namespace weft::qpu::hw
