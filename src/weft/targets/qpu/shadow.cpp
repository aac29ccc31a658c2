// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/qpu/shadow.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "weft/base/error.h"
#include "weft/targets/qpu/vector.h"

namespace weft::qpu::hw {

namespace {
typedef std::uint16_t U16x16 __attribute__((vector_size(32), aligned(2), may_alias));

std::uint16_t* map_words(std::uint64_t words) {
  void* p = ::mmap(nullptr, words * 2 + 64, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED)
    throw Error(ErrorKind::memory, "sim.memory.map",
                cat("the host cannot reserve ", human_bytes(words * 2), " for race checks"));
  return static_cast<std::uint16_t*>(p);
}
}  // namespace

Shadow::Shadow(std::uint64_t words)
    : words_((words + 15) / 16 * 16), words16_(map_words(words_ * 2)) {}

Shadow::~Shadow() { ::munmap(words16_, words_ * 4 + 64); }

void Shadow::begin_launch() {
  if (tag_ == 0xf000u) {
    ::madvise(words16_, words_ * 4 + 64, MADV_DONTNEED);
    tag_ = 0;
  }
  tag_ = static_cast<std::uint16_t>(tag_ + 0x1000u);
  for (int q = 0; q < kMaxQpus; ++q) {
    clock_[static_cast<std::size_t>(q)].fill(0);
    clock_[static_cast<std::size_t>(q)][static_cast<std::size_t>(q)] = 1;
  }
  for (Clocks& c : published_) c.fill(0);
  advanced_ = 0;
  lines_.clear();
}

WEFT_QPU_CLONES Shadow::Conflict Shadow::read16(int qpu, std::uint64_t word, std::uint32_t mask,
                                                bool uncached) {
  auto mine = static_cast<std::uint16_t>(tag_ | (1u << qpu));
  if (mask == 0xffffu && (word & 15) == 0) {
    std::uint16_t* line = words16_ + (word >> 4) * 32;
    __builtin_prefetch(line + 32, 1);  // streams go on
    U16x16 r, w;
    std::memcpy(&r, line, 32);
    std::memcpy(&w, line + 16, 32);
    U16x16 stale = (r & 0xf000) != tag_;
    r = (r & ~stale) | mine;
    std::memcpy(line, &r, 32);
    U16x16 written = ((w & 0xf000) == tag_) &
                     (uncached ? w & static_cast<std::uint16_t>(0xfffu & ~(1u << qpu)) : w & 0xfff);
    std::uint64_t part[4];
    std::memcpy(part, &written, 32);
    if (!(part[0] | part[1] | part[2] | part[3])) {
      if (advanced_ >> qpu & 1) record(qpu, word, mask, false);
      return {};
    }
    return slow(qpu, word, mask, false, uncached);
  }
  bool clash = false;
  for (std::uint32_t m = mask; m; m &= m - 1) {
    std::uint64_t at = word + static_cast<unsigned>(std::countr_zero(m));
    std::uint16_t& r = readers(at);
    r = static_cast<std::uint16_t>((r & 0xf000u) == tag_ ? r | mine : mine);
    clash |=
        (writers(at) & 0xf000u) == tag_ && (writers(at) & 0xfffu & (uncached ? ~(1u << qpu) : ~0u));
  }
  if (clash) return slow(qpu, word, mask, false, uncached);
  if (advanced_ >> qpu & 1) record(qpu, word, mask, false);
  return {};
}

WEFT_QPU_CLONES Shadow::Conflict Shadow::write16(int qpu, std::uint64_t word, std::uint32_t mask) {
  auto mine = static_cast<std::uint16_t>(tag_ | (1u << qpu));
  std::uint32_t others = 0xfffu & ~(1u << qpu);
  bool clash = false;
  for (std::uint32_t m = mask; m; m &= m - 1) {
    std::uint64_t at = word + static_cast<unsigned>(std::countr_zero(m));
    std::uint16_t& w = writers(at);
    clash |= ((w & 0xf000u) == tag_ && (w & others)) ||
             ((readers(at) & 0xf000u) == tag_ && (readers(at) & others));
    w = static_cast<std::uint16_t>((w & 0xf000u) == tag_ ? w | mine : mine);
  }
  if (clash) return slow(qpu, word, mask, true, false);
  if (advanced_ >> qpu & 1) record(qpu, word, mask, true);
  return {};
}

void Shadow::record(int qpu, std::uint64_t word, std::uint32_t mask, bool write) {
  for (std::uint32_t m = mask; m; m &= m - 1) {
    std::uint64_t at = word + static_cast<unsigned>(std::countr_zero(m));
    LineClocks& line = lines_[at >> 4];
    (write ? line.write : line.read)[qpu][at & 15] =
        clock_[static_cast<std::size_t>(qpu)][static_cast<std::size_t>(qpu)];
  }
}

Shadow::Conflict Shadow::slow(int qpu, std::uint64_t word, std::uint32_t mask, bool write,
                              bool uncached) {
  Conflict found;
  const Clocks& seen = clock_[static_cast<std::size_t>(qpu)];
  for (std::uint32_t m = mask; m && !found.race; m &= m - 1) {
    std::uint64_t at = word + static_cast<unsigned>(std::countr_zero(m));
    auto line = lines_.find(at >> 4);
    for (int kind = 0; kind < (write ? 2 : 1) && !found.race;
         ++kind) {  // earlier writes, then earlier reads
      std::uint16_t who = kind == 0 ? writers(at) : readers(at);
      if ((who & 0xf000u) != tag_) continue;
      for (int other = 0; other < kMaxQpus; ++other) {
        if (!(who >> other & 1)) continue;
        if (other == qpu) {
          if (kind == 0 && !write && !uncached && found.other < 0) found = {other, false, at};
          continue;
        }
        std::uint32_t then = 1;
        if (line != lines_.end())
          then =
              std::max(then, (kind == 0 ? line->second.write : line->second.read)[other][at & 15]);
        if (then > seen[static_cast<std::size_t>(other)]) {
          found = {other, true, at};
          break;
        }
        if (kind == 0 && !write && !uncached && found.other < 0) found = {other, false, at};
      }
    }
  }
  if (advanced_ >> qpu & 1) record(qpu, word, mask, write);
  return found;
}

void Shadow::release(int qpu, unsigned s) {
  auto q = static_cast<std::size_t>(qpu);
  for (std::size_t i = 0; i < kMaxQpus; ++i)
    published_[s][i] = std::max(published_[s][i], clock_[q][i]);
  ++clock_[q][q];
  advanced_ |= 1u << qpu;
}

void Shadow::acquire(int qpu, unsigned s) {
  auto q = static_cast<std::size_t>(qpu);
  for (std::size_t i = 0; i < kMaxQpus; ++i)
    clock_[q][i] = std::max(clock_[q][i], published_[s][i]);
}

}  // namespace weft::qpu::hw
