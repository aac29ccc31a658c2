// SPDX-License-Identifier: Apache-2.0
// The texture units as memory readers: requests, their caches' timing, and the FIFO of results.
// Source: architecture guide, section 4.

#include <cstring>

#include "weft/targets/qpu/assumptions.h"
#include "weft/targets/qpu/tmu.h"

namespace weft::qpu::hw {

namespace {
typedef std::uint32_t U32x16 __attribute__((vector_size(64), may_alias));
constexpr U32x16 kWords = {0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60};

WEFT_QPU_CLONES bool contiguous(const Vec& a) {
  U32x16 v;
  std::memcpy(&v, &a, 64);
  v ^= a.lane[0] + kWords;
  std::uint64_t part[8], bad = 0;
  std::memcpy(part, &v, 64);
  for (std::uint64_t p : part) bad |= p;
  return bad == 0;
}
}  // namespace

void Machine::check_fifo(const Qpu& q, unsigned unit) {
  if (q.fifo[unit].count >= assume::kTmuFifoDepth) [[unlikely]] {
    fail_rule(q, "tmu_overflow",
              cat("TMU ", unit, " of qpu ", q.id, " has ", q.fifo[unit].count,
                  " requests outstanding already"));
  }
}

void Machine::tmu_row_slow(Qpu& q, unsigned unit, std::uint32_t address) {
  Vec lanes;
  for (unsigned i = 0; i < 16; ++i) lanes[i] = address + 4 * i;
  tmu_request_scattered(q, unit, lanes);
}

void Machine::open_site(Qpu& q, RequestSite& site, std::uint32_t first) {
  if (first % timing::kLine || q.shadow->advanced(q.id) || q.traced) return;
  for (const Qpu::Range& r : q.range) {
    if (first < r.begin || first >= r.end || r.begin % timing::kLine) continue;
    site = {static_cast<std::uint32_t>(r.begin),
            static_cast<std::uint32_t>((r.end - r.begin) / timing::kLine), memory.raw(r.begin),
            summary_of(q, r.begin / timing::kLine)};
    return;
  }
}

void Machine::read_word(Qpu& q, std::uint64_t address) {
  if (!check_races) return;
  Shadow::Conflict c = q.shadow->read16(q.id, (address - memory.base()) / 4, 1, false);
  if (c.other >= 0) [[unlikely]]
    conflict(q, c, memory.base(), false, true);
}

std::int64_t Machine::row_ready(Qpu& q, Tmu& tmu, std::uint64_t first) {
  std::int64_t start = tmu.calendar.book(q.now, timing::kTmuVector);
  if (trace) [[unlikely]]
    trace_request(q, tmu, start);
  auto line = static_cast<std::uint32_t>(first / timing::kLine);
  unsigned offset = first % timing::kLine;
  std::int64_t ready = line_ready(tmu, line, start);
  if (offset) {
    ready = std::max(ready, line_ready(tmu, line + 1, start));
    ++shared.counters.more_lines;
  }
  return ready;
}

void Machine::tmu_row_race(Qpu& q, std::uint64_t first) {
  Shadow::Conflict c = q.shadow->read16(q.id, (first - memory.base()) / 4, 0xffff, false);
  if (c.other >= 0) [[unlikely]]
    conflict(q, c, memory.base(), false, true);
}

void Machine::tmu_request(Qpu& q, unsigned unit, const Vec& address) {
  if (contiguous(address)) tmu_request_row(q, unit, address[0]);
  else tmu_request_scattered(q, unit, address);
}

void Machine::tmu_request_scattered(Qpu& q, unsigned unit, const Vec& address) {
  check_fifo(q, unit);
  TmuFifo& fifo = q.fifo[unit];
  const std::uint64_t at = fifo.free();
  Vec& data = fifo.data[at];
  if (q.events) {
    note(q, Event::scattered, unit), note(q, Event::scattered, 0, q.pc);
    if (q.events_end - q.events < Event::kRaw) throw RunAgain{};
    std::memcpy(static_cast<void*>(q.events), &address, sizeof address);
    q.events += Event::kRaw;
    for (unsigned i = 0; i < 16; ++i) {
      std::uint64_t a = address[i] & ~3u;
      data[i] = memory.contains(a, 4) ? memory.load<std::uint32_t>(a) : 0;
      if (inside(q, a, 4)) read_word(q, a);
    }
  } else {
    fifo.ready[at] = scattered_ready(q, *q.tmu[unit], address, &data);
  }
  ++fifo.count;
}

std::int64_t Machine::scattered_ready(Qpu& q, Tmu& tmu, const Vec& address, Vec* data) {
  std::int64_t start = tmu.calendar.book(q.now, timing::kTmuVector), ready = 0;
  if (trace) [[unlikely]]
    trace_request(q, tmu, start);
  std::uint32_t previous = 0;
  for (unsigned i = 0; i < 16; ++i) {
    std::uint64_t a = address.lane[i] & ~3u;
    if (!inside(q, a, 4)) [[unlikely]] {
      outside_read(q, a, 4, cat("lane ", i, " of a TMU request"));
      if (data) (*data)[i] = memory.contains(a, 4) ? memory.load<std::uint32_t>(a) : 0;
    } else {
      if (data) std::memcpy(&(*data)[i], memory.raw(a), 4), read_word(q, a);
    }
    auto line = static_cast<std::uint32_t>(a / timing::kLine);
    if (line != previous || i == 0) {
      ready = std::max(ready, line_ready(tmu, line, start));
      ++shared.counters.more_lines;  // a fault on the way leaves no request
    }
    previous = line;
  }
  --shared.counters.more_lines;
  return ready;
}

void Machine::tmu_empty(const Qpu& q, unsigned unit) {
  fail(q, "qpu.tmu.empty",
       cat("qpu ", q.id, " waits for TMU ", unit,
           " without a request outstanding; it would wait for ever"),
       "request before receiving");
}

}  // namespace weft::qpu::hw
