// SPDX-License-Identifier: Apache-2.0
#pragma once
// Requests to the texture units and their results, as far as the engines compile them into
// themselves: rows of one line by a short path, all others through tmu.cpp.

#include <bit>

#include "weft/targets/qpu/machine.h"

namespace weft::qpu::hw {

[[gnu::always_inline]] inline std::int64_t Machine::line_booked(Tmu& tmu, std::uint32_t line,
                                                                std::int64_t now) {
  return line_ready(tmu, line, tmu.calendar.book(now, timing::kTmuVector));
}

template <unsigned kUnit>
[[gnu::always_inline]] inline bool Machine::tmu_request_line(Qpu& q, const RequestSite& site,
                                                             std::uint32_t first,
                                                             std::int64_t now) {
  TmuFifo& fifo = q.fifo[kUnit];
  // Lines from the array's first; an address within a line is far from all of them.
  const std::uint32_t place = std::rotr(first - site.begin, 6);
  static_assert(timing::kLine == 1 << 6);
  if (place >= site.lines || fifo.count >= assume::kTmuFifoDepth ||
      !q.shadow->read_line(site.summary[place], q.id))
    return false;
  const std::uint64_t at = fifo.free();
  ++fifo.count;
  const std::byte* from = site.data + std::size_t{timing::kLine} * place;
  copy_row(&fifo.data[at], from);
  __builtin_prefetch(from + 4 * timing::kLine);  // streams go on
  fifo.ready[at] = line_booked(*q.tmu[kUnit], first / timing::kLine, now);
  return true;
}

inline void Machine::tmu_request_row(Qpu& q, unsigned unit, std::uint32_t address) {
  TmuFifo& fifo = q.fifo[unit];
  std::uint64_t first = address & ~3u;
  if (fifo.count >= assume::kTmuFifoDepth || !inside(q, first, 64)) [[unlikely]] {
    tmu_row_slow(q, unit, address);
    return;
  }
  const std::byte* from = memory.raw(first);
  const std::uint64_t at = fifo.free();
  copy_row(&fifo.data[at], from);
  __builtin_prefetch(from + 64);  // streams go on
  row_race(q, first);
  if (q.events) note(q, Event::row, unit, first);
  else fifo.ready[at] = row_ready(q, *q.tmu[unit], first);
  ++fifo.count;
}

inline void Machine::tmu_receive(Qpu& q, unsigned unit) {
  TmuFifo& fifo = q.fifo[unit];
  if (fifo.count == 0) [[unlikely]]
    tmu_empty(q, unit);
  if (q.events) note(q, Event::receive, unit);
  else stall(q, fifo.ready[fifo.first()], kStallTmu);
  copy_row(&q.slot[kSlotAcc + 4], &fifo.data[fifo.first()]);
  ++fifo.head;
  --fifo.count;
}

}  // namespace weft::qpu::hw
