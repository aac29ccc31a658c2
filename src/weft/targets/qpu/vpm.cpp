// SPDX-License-Identifier: Apache-2.0
// The vertex pipe memory and its two DMA engines, as general storage. Source: architecture guide,
// section 7.

#include <algorithm>

#include "weft/targets/qpu/machine.h"

namespace weft::qpu::hw {

namespace {
struct Cell {
  unsigned row, column, shift;
  std::uint32_t mask;
};

/// Where lane i of the vector at `a.addr` lies.
Cell cell(const VpmAccess& a, unsigned i) {
  unsigned sub_bits = 2 - a.size;  // bits of the sub-word offset: 8 bit 2, 16 bit 1
  unsigned sub = a.addr & ((1u << sub_bits) - 1), place = a.addr >> sub_bits;
  unsigned width = 8u << a.size, per_word = 1u << sub_bits;
  unsigned along = i, part = sub;
  if (a.size != 2 && !a.laned) {
    along = (16 / per_word) * sub + i / per_word;
    part = i % per_word;
  }
  std::uint32_t mask = width == 32 ? ~0u : (1u << width) - 1;
  if (a.horizontal) return {place & 63, along, part * width, mask};
  return {((place >> 4 & 3) << 4) + along, place & 15, part * width, mask};
}

unsigned address_mask(const VpmAccess& a) { return a.size == 2 ? 63 : a.size == 1 ? 127 : 255; }

/// Clocks that a DMA engine needs.
std::int64_t beats(unsigned rows, std::int64_t words) {
  return rows * timing::kDmaRow +
         (words * 4 + timing::kVpmBytesPerClock - 1) / timing::kVpmBytesPerClock;
}

std::uint32_t* words_at(sim::Memory& memory, std::uint64_t address) {
  return reinterpret_cast<std::uint32_t*>(memory.raw(address));
}

std::uint64_t rows(unsigned first, unsigned count) {
  return (count >= 64 ? ~0ull : (1ull << count) - 1) << first;
}
}  // namespace

void Machine::vpm_shadow(Qpu& q, unsigned row, unsigned column, std::uint32_t mask, bool write) {
  if (!check_races) return;
  if (q.events) {
    q.vpm_rows |= 1ull << row;
    return;
  }
  std::uint64_t word = row * 16 + column;
  Shadow::Conflict c =
      write ? vpm_shadow_.write16(q.id, word, mask) : vpm_shadow_.read16(q.id, word, mask, true);
  if (c.race) [[unlikely]] {
    fail(q, "qpu.vpm.race",
         cat("qpu ", q.id, write ? " writes" : " reads", " VPM row ", c.word / 16, " column ",
             c.word % 16, ", which qpu ", c.other, " also uses without synchronisation"),
         "give each QPU rows of its own, or synchronise through semaphores");
  }
}

void Machine::setup(Qpu& q, bool write, std::uint32_t w) {
  unsigned id = w >> 30;
  if (id == 0) {
    VpmAccess a;
    a.addr = w & 255;
    a.size = w >> 8 & 3;
    a.laned = w >> 10 & 1;
    a.horizontal = w >> 11 & 1;
    a.stride = w >> 12 & 63;
    if (a.stride == 0) a.stride = 64;
    a.left = w >> 20 & 15;
    if (a.left == 0) a.left = 16;
    if (a.size == 3)
      fail(q, "qpu.vpm.size", cat("VPM set-up ", hex(w, 8), " has the reserved size 3"));
    a.rows = a.size == 2 && a.horizontal;
    if (write) {
      q.vpm_write = a;
      q.vpm_write_set = true;
    } else {
      if (q.vpm_reads == 2 || (q.vpm_reads == 1 && q.vpm_read[0].left > 1)) {
        fail_rule(q, "vpm_read_count",
                  cat("a VPM read set-up while ", q.vpm_read[0].left,
                      " vectors of the one before are unread"));
      }
      q.vpm_read[q.vpm_reads++] = a;
    }
    return;
  }
  if (write && id == 2) {
    q.vdw_setup = w;
    q.vdw_set = true;
    return;
  }
  if (write && id == 3) {
    q.vdw_stride = w & 0xffff;
    return;
  }
  if (!write && (w >> 28) == 9) {
    q.vdr_pitch = w & 0x1fff;
    return;
  }
  if (!write && id >= 2) {
    q.vdr_setup = w;
    q.vdr_set = true;
    return;
  }
  fail(q, "qpu.vpm.setup",
       cat(hex(w, 8), " is no ", write ? "VPM write or DMA store" : "VPM read or DMA load",
           " set-up"));
}

void Machine::vpm_read(Qpu& q, Vec& out) {
  if (q.vpm_reads == 0)
    fail_rule(q, "vpm_read_count",
              cat("qpu ", q.id, " reads the VPM without a vector set up; it would wait for ever"));
  VpmAccess& a = q.vpm_read[0];
  ++q.counts.vpm_reads;
  if (a.rows && !(q.load_pending && (q.load_rows >> (a.addr & 63) & 1))) {
    vpm_row_shadow(q, a.addr & 63, false);
    copy_row(&out, vpm[a.addr & 63]);
  } else
    for (unsigned i = 0; i < 16; ++i) {
      Cell c = cell(a, i);
      if (q.load_pending && (q.load_rows >> c.row & 1)) {
        fail(q, "qpu.dma.early_read",
             cat("VPM row ", c.row, " is read while the DMA load into it has not been waited for"),
             "read vr_wait first");
      }
      vpm_shadow(q, c.row, c.column, 1, false);
      out[i] = vpm[c.row][c.column] >> c.shift & c.mask;
    }
  a.addr = (a.addr + a.stride) & address_mask(a);
  if (--a.left == 0) {
    q.vpm_read[0] = q.vpm_read[1];
    --q.vpm_reads;
  }
}

void Machine::vpm_write(Qpu& q, const Vec& value) {
  if (!q.vpm_write_set)
    fail(q, "qpu.vpm.no_setup", cat("qpu ", q.id, " writes the VPM without a set-up"),
         "write vw_setup first");
  VpmAccess& a = q.vpm_write;
  ++q.counts.vpm_writes;
  if (a.rows && !(q.store_pending && (q.store_rows >> (a.addr & 63) & 1))) {
    vpm_row_shadow(q, a.addr & 63, true);
    copy_row(vpm[a.addr & 63], &value);
  } else
    for (unsigned i = 0; i < 16; ++i) {
      Cell c = cell(a, i);
      if (q.store_pending && (q.store_rows >> c.row & 1)) {
        fail(q, "qpu.dma.early_write",
             cat("VPM row ", c.row,
                 " is written while the DMA store from it has not been waited for"),
             "read vw_wait first");
      }
      vpm_shadow(q, c.row, c.column, 1, true);
      std::uint32_t& word = vpm[c.row][c.column];
      word = (word & ~(c.mask << c.shift)) | ((value[i] & c.mask) << c.shift);
    }
  a.addr = (a.addr + a.stride) & address_mask(a);
}

void Machine::dma_load(Qpu& q, std::uint32_t address) {
  if (q.load_pending)
    fail_rule(q, "dma_outstanding",
              cat("qpu ", q.id, " starts a DMA load before waiting for the one before"));
  if (!q.vdr_set)
    fail(q, "qpu.dma.no_setup", cat("qpu ", q.id, " starts a DMA load without a set-up"),
         "write vr_setup first");
  std::uint32_t w = q.vdr_setup;
  if (w >> 28 & 7)
    fail(q, "qpu.unsupported",
         cat("DMA load set-up ", hex(w, 8), " asks for elements below 32 bits"));
  if (address & 3)
    fail(q, "qpu.dma.align", cat("the DMA load address ", hex(address), " is no multiple of 4"));
  unsigned mpitch = w >> 24 & 15, length = w >> 20 & 15, count = w >> 16 & 15,
           vpitch = w >> 12 & 15, vertical = w >> 11 & 1;
  unsigned y = w >> 4 & 63, x = w & 15;
  if (!length) length = 16;
  if (!count) count = 16;
  if (!vpitch) vpitch = 16;
  std::uint64_t pitch = mpitch ? 8ull << mpitch : q.vdr_pitch;
  unsigned last_row = y + (count - 1) * vpitch + (vertical ? length - 1 : 0),
           last_column = x + (vertical ? 0 : length - 1);
  if (last_row > 63 || last_column > 15) {
    fail(q, "qpu.vpm.range", cat("a DMA load reaches VPM row ", last_row, " column ", last_column),
         "rows go to 63, columns to 15");
  }
  q.load_rows = 0;
  for (unsigned r = 0; r < count; ++r) {
    std::uint64_t from = address + r * pitch;
    bool good = inside(q, from, length * 4);
    if (!good && q.events)
      note(q, Event::outside_row, length, from), note(q, Event::outside_row, r, q.pc);
    else if (!good) outside_read(q, from, length * 4, cat("row ", r, " of a DMA load"));
    if (good) dma_words(q, from, length, false);
    if (good && !vertical) {
      if (length == 16) vpm_row_shadow(q, y + r * vpitch, true);
      else vpm_shadow(q, y + r * vpitch, x, (1u << length) - 1, true);
      copy_words(&vpm[y + r * vpitch][x], words_at(memory, from), length);
    } else
      for (unsigned e = 0; e < length; ++e) {
        unsigned row = y + r * vpitch + (vertical ? e : 0), column = x + (vertical ? 0 : e);
        vpm_shadow(q, row, column, 1, true);
        vpm[row][column] =
            memory.contains(from + 4 * e, 4) ? memory.load<std::uint32_t>(from + 4 * e) : 0;
      }
    q.load_rows |= rows(y + r * vpitch, vertical ? length : 1);
  }
  q.load_pending = true;
  std::int64_t words = static_cast<std::int64_t>(count) * length;
  dma_time(q, words, beats(count, words), false);
}

bool Machine::dma_store_line(Qpu& q, std::uint32_t address) {
  const std::uint32_t w = q.vdw_setup;
  const unsigned y = w >> 7 & 63;
  if ((w & VdwSetup::kOneRowBits) != VdwSetup::kOneRow || address % timing::kLine || !q.vdw_set ||
      q.store_pending || trace || !inside(q, address, timing::kLine))
    return false;
  if (check_races && ((!q.events && !vpm_shadow_.read_line(q.id, y, true)) ||
                      !q.shadow->write_line(q.id, (address - memory.base()) / timing::kLine)))
    return false;
  q.store_rows = 1ull << y;
  q.store_pending = true;
  if (q.saved) q.saved->save(address, timing::kLine);
  if (q.events) {
    q.vpm_rows |= 1ull << y;
    copy_row(memory.raw(address), vpm[y]);
    dma_time(q, 16, beats(1, 16), true);
    return true;
  }
  copy_row(memory.raw(address), vpm[y]);
  store_line_booked(q);
  return true;
}

void Machine::store_line_booked(Qpu& q) {
  const std::int64_t start = q.now + timing::kDmaStart;
  const std::int64_t end = shared.vdw.reserve(start, timing::kLineStore);
  q.store_done = std::max(end, shared.sdram.reserve(start, timing::kLineClocks));
  ++shared.counters.dma_stores;
  shared.counters.dma_bytes_written += timing::kLine;
}

void Machine::dma_store(Qpu& q, std::uint32_t address) {
  if (dma_store_line(q, address)) return;
  if (q.store_pending)
    fail_rule(q, "dma_outstanding",
              cat("qpu ", q.id, " starts a DMA store before waiting for the one before"));
  if (!q.vdw_set)
    fail(q, "qpu.dma.no_setup", cat("qpu ", q.id, " starts a DMA store without a set-up"),
         "write vw_setup first");
  std::uint32_t w = q.vdw_setup;
  if (w & 7)
    fail(q, "qpu.unsupported",
         cat("DMA store set-up ", hex(w, 8), " asks for elements below 32 bits"));
  if (address & 3)
    fail(q, "qpu.dma.align", cat("the DMA store address ", hex(address), " is no multiple of 4"));
  unsigned units = w >> 23 & 127, depth = w >> 16 & 127, horizontal = w >> 14 & 1, y = w >> 7 & 127,
           x = w >> 3 & 15;
  if (!units) units = 128;
  if (!depth) depth = 128;
  unsigned last_row = horizontal ? y + units - 1 : y + depth - 1 + 16 * ((x + units - 1) / 16);
  unsigned last_column = horizontal ? x + depth - 1 : (x + units - 1) % 16;
  if (last_row > 63 || last_column > 15) {
    fail(q, "qpu.vpm.range", cat("a DMA store reaches VPM row ", last_row, " column ", last_column),
         "rows go to 63, columns to 15");
  }
  std::uint64_t step = depth * 4 + q.vdw_stride;
  q.store_rows = horizontal ? rows(y, units) : rows(y, last_row - y + 1);
  for (unsigned u = 0; u < units; ++u) {
    std::uint64_t to = address + u * step;
    if (!inside(q, to, depth * 4)) {
      fail(q, "qpu.memory.store_outside",
           cat("a DMA store of ", depth * 4, " bytes at ", hex(to), " is ",
               memory.describe(to, depth * 4)),
           "store only the elements that exist");
    }
    for (unsigned d = 0; d < depth; d += 16)
      dma_words(q, to + 4ull * d, std::min(16u, depth - d), true);
    if (q.saved) q.saved->save(to, depth * 4);
    if (horizontal) {
      if (depth == 16) vpm_row_shadow(q, y + u, false);
      else vpm_shadow(q, y + u, x, (1u << depth) - 1, false);
      copy_words(words_at(memory, to), &vpm[y + u][x], depth);
    } else
      for (unsigned d = 0; d < depth; ++d) {
        unsigned row = horizontal ? y + u : y + d + 16 * ((x + u) / 16),
                 column = horizontal ? x + d : (x + u) % 16;
        vpm_shadow(q, row, column, 1, false);
        memory.store<std::uint32_t>(to + 4 * d, vpm[row][column]);
      }
  }
  q.store_pending = true;
  std::int64_t words = static_cast<std::int64_t>(units) * depth;
  dma_time(q, words, beats(units, words), true);
}

void Machine::dma_words(Qpu& q, std::uint64_t address, unsigned count, bool write) {
  if (!check_races) return;
  std::uint64_t word = (address - memory.base()) / 4;
  std::uint32_t mask = (1u << count) - 1;
  if (word % 16 == 0 && count == 16 &&
      (write ? q.shadow->write_line(q.id, word / 16) : q.shadow->read_line(q.id, word / 16, true)))
    return;
  Shadow::Conflict c =
      write ? q.shadow->write16(q.id, word, mask) : q.shadow->read16(q.id, word, mask, true);
  if (c.other >= 0) conflict(q, c, memory.base(), write, false);
}

void Machine::dma_time(Qpu& q, std::int64_t words, std::int64_t clocks, bool write) {
  if (q.events) {
    return note(q, write ? Event::dma_store : Event::dma_load, 0,
                static_cast<std::uint64_t>(words | clocks << 16));
  }
  std::int64_t bytes = words * 4, start = q.now + timing::kDmaStart;
  std::int64_t end = (write ? shared.vdw : shared.vdr).reserve(start, clocks);
  std::int64_t moved = shared.sdram.reserve(
      start, (bytes + timing::kSdramBytesPerClock - 1) / timing::kSdramBytesPerClock);
  end = std::max(end, write ? moved : moved + timing::kMemory);
  if (trace)
    trace->span(trace->track("qpu", write ? "dma store" : "dma load"), cat("qpu ", q.id),
                static_cast<double>(start) / timing::kClockHz * 1e6,
                static_cast<double>(end - start) / timing::kClockHz * 1e6);
  (write ? q.store_done : q.load_done) = end;
  ++(write ? shared.counters.dma_stores : shared.counters.dma_loads);
  (write ? shared.counters.dma_bytes_written : shared.counters.dma_bytes_read) += bytes;
}

}  // namespace weft::qpu::hw
