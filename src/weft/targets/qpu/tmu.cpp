// SPDX-License-Identifier: Apache-2.0
// The texture units as memory readers: requests, their caches' timing, and the FIFO of results.
// Source: architecture guide, section 4.

#include <cstring>

#include "weft/targets/qpu/assumptions.h"
#include "weft/targets/qpu/machine.h"

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

std::int64_t Machine::line_missing(unsigned unit, std::uint32_t line, std::int64_t start) {
  tmu_tag_[unit][line % timing::kTmuLines] = line;
  std::size_t set = line % timing::kL2Sets;
  std::uint32_t found = 0;
  for (std::uint32_t way : l2_tag_[set]) found |= way == line;
  if (found) {
    ++counters.l2_hits;
    return start + timing::kL2Hit;
  }
  l2_tag_[set][l2_next_[set]++ & (timing::kL2Ways - 1)] = line;
  ++counters.memory_lines;
  return sdram.reserve(start, timing::kLine / timing::kSdramBytesPerClock) + timing::kMemory;
}

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

void Machine::tmu_row_race(Qpu& q, std::uint64_t first) {
  Shadow::Conflict c = shadow_.read16(q.id, (first - memory.base()) / 4, 0xffff, false);
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
  unsigned which = tmu_of(q, unit), at = (fifo.head + fifo.count) & 7;
  Vec& data = fifo.data[at];
  std::int64_t start = tmu_unit[which].reserve(q.now, timing::kTmuVector), ready = 0;
  ++counters.tmu_requests;
  std::uint32_t previous = 0;
  for (unsigned i = 0; i < 16; ++i) {
    std::uint64_t a = address.lane[i] & ~3u;
    if (!inside(q, a, 4)) [[unlikely]] {
      outside_read(q, a, 4, cat("lane ", i, " of a TMU request"));
      data[i] = memory.contains(a, 4) ? memory.load<std::uint32_t>(a) : 0;
    } else {
      std::memcpy(&data[i], memory.raw(a), 4);
      if (check_races) {
        Shadow::Conflict c = shadow_.read16(q.id, (a - memory.base()) / 4, 1, false);
        if (c.other >= 0) [[unlikely]]
          conflict(q, c, memory.base(), false, true);
      }
    }
    auto line = static_cast<std::uint32_t>(a / timing::kLine);
    if (line != previous || i == 0) ready = std::max(ready, line_ready(which, line, start));
    previous = line;
  }
  fifo.ready[at] = ready;
  ++fifo.count;
}

void Machine::tmu_receive(Qpu& q, unsigned unit) {
  TmuFifo& fifo = q.fifo[unit];
  if (fifo.count == 0) [[unlikely]] {
    fail(q, "qpu.tmu.empty",
         cat("qpu ", q.id, " waits for TMU ", unit,
             " without a request outstanding; it would wait for ever"),
         "request before receiving");
  }
  stall(q, fifo.ready[fifo.head], kStallTmu);
  std::memcpy(&q.slot[kSlotAcc + 4], &fifo.data[fifo.head], 64);
  fifo.head = (fifo.head + 1) & 7;
  --fifo.count;
}

}  // namespace weft::qpu::hw
