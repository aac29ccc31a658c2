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

template <typename T>
T* reserve(std::uint64_t count) {
  void* p = ::mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED)
    throw Error(
        ErrorKind::memory, "sim.memory.map",
        cat("the host cannot reserve ", human_bytes(count * sizeof(T)), " for race checks"));
  ::madvise(p, count * sizeof(T), MADV_HUGEPAGE);  // a wish: streams touch many pages at once
  return static_cast<T*>(p);
}
}  // namespace

Shadow::Shadow(std::uint64_t words) : lines_count_((words + 15) / 16 + 1) {
  summary_ = reserve<std::uint32_t>(lines_count_);
  try {
    masks_ = reserve<std::uint16_t>(lines_count_ * 32);
  } catch (...) {
    ::munmap(summary_, lines_count_ * 4);
    throw;
  }
}

Shadow::~Shadow() {
  ::munmap(summary_, lines_count_ * 4);
  ::munmap(masks_, lines_count_ * 64);
}

void Shadow::begin_launch() {
  constexpr std::uint32_t kFirst = kLaunch & -kLaunch;
  begin_launch(launch_ == kLaunch ? kFirst : launch_ + kFirst);
}

void Shadow::begin_launch(std::uint32_t launch) {
  if (launch <= launch_)
    ::madvise(summary_, lines_count_ * 4, MADV_DONTNEED);  // numbers come again
  launch_ = launch;
  for (int q = 0; q < kMaxQpus; ++q) {
    clock_[static_cast<std::size_t>(q)].fill(0);
    clock_[static_cast<std::size_t>(q)][static_cast<std::size_t>(q)] = 1;
  }
  for (Clocks& c : published_) c.fill(0);
  advanced_.store(0, std::memory_order_relaxed);
  lines_.clear();
}

std::uint16_t* Shadow::detail(std::uint64_t line) {
  std::uint32_t s = summary_[line];
  std::uint16_t* masks = masks_ + line * 32;
  if ((s & kLaunch) != launch_) s = launch_;
  if (!(s & kDetailed)) {
    std::fill(masks, masks + 16, static_cast<std::uint16_t>(s & 0xfffu));
    std::uint32_t writer = (s & kWriter) >> 13;
    std::fill(masks + 16, masks + 32, static_cast<std::uint16_t>(writer ? 1u << (writer - 1) : 0));
    summary_[line] = s | kDetailed;
  }
  return masks;
}

Shadow::Users Shadow::users(std::uint64_t line, std::uint32_t summary) const {
  Users out;
  if (summary & kDetailed) {
    std::memcpy(&out, masks_ + line * 32, sizeof out);
    return out;
  }
  const std::uint32_t writer = (summary & kWriter) >> 13;
  std::fill(std::begin(out.read), std::end(out.read), static_cast<std::uint16_t>(summary & 0xfffu));
  std::fill(std::begin(out.written), std::end(out.written),
            static_cast<std::uint16_t>(writer ? 1u << (writer - 1) : 0));
  return out;
}

std::uint32_t Shadow::users_of(std::uint64_t line) const {
  const std::uint32_t summary = summary_[line];
  if ((summary ^ launch_) & kLaunch) return 0;
  const Users used = users(line, summary);
  std::uint32_t all = 0;
  for (unsigned word = 0; word < 16; ++word) all |= used.read[word] | used.written[word];
  return all;
}

bool Shadow::clash(const Shadow& a, const Shadow& b, std::uint64_t first, std::uint64_t end) {
  for (std::uint64_t line = first; line < end; ++line) {
    // Threads may be at work: see Machine::shadows_clash.
    const std::uint32_t of_a = __atomic_load_n(a.summary_ + line, __ATOMIC_RELAXED),
                        of_b = __atomic_load_n(b.summary_ + line, __ATOMIC_RELAXED);
    if (((of_a ^ a.launch_) & kLaunch) || ((of_b ^ b.launch_) & kLaunch)) continue;
    if (!((of_a | of_b) & (kDetailed | kWriter))) continue;
    const Users ua = a.users(line, of_a), ub = b.users(line, of_b);
    for (unsigned word = 0; word < 16; ++word) {
      if (ua.written[word] && ub.read[word]) return true;
      if (!ub.written[word]) continue;
      const unsigned before = ua.read[word] | ua.written[word];
      if (before && (before != ub.written[word] || (before & (before - 1)))) return true;
    }
  }
  return false;
}

WEFT_QPU_CLONES Shadow::Conflict Shadow::access(int qpu, std::uint64_t line, std::uint32_t mask,
                                                bool write, bool uncached) {
  constexpr U16x16 kBits = {1,     2,     4,     8,     0x10,   0x20,   0x40,   0x80,
                            0x100, 0x200, 0x400, 0x800, 0x1000, 0x2000, 0x4000, 0x8000};
  std::uint16_t* masks = detail(line);
  U16x16 r, w, where = (kBits & static_cast<std::uint16_t>(mask)) != 0;
  std::memcpy(&r, masks, 32);
  std::memcpy(&w, masks + 16, 32);
  auto mine = static_cast<std::uint16_t>(1u << qpu);
  auto others = static_cast<std::uint16_t>(0xfffu & ~(1u << qpu));
  // Who else matters: any user of what is written, writers of what is read.
  U16x16 clash = where & (write ? (r | w) & others : uncached ? w & others : w);
  if (write) w |= where & mine;
  else r |= where & mine;
  std::memcpy(masks, &r, 32);
  std::memcpy(masks + 16, &w, 32);
  std::uint64_t part[4];
  std::memcpy(part, &clash, 32);
  if (part[0] | part[1] | part[2] | part[3]) return slow(qpu, line, mask, write, uncached);
  if (advanced(qpu)) record(qpu, line, mask, write);
  return {};
}

Shadow::Conflict Shadow::read16(int qpu, std::uint64_t word, std::uint32_t mask, bool uncached) {
  std::uint64_t line = word >> 4;
  unsigned offset = word & 15;
  if (offset == 0 && mask == 0xffffu && read_line(qpu, line, uncached)) return {};
  std::uint32_t bits = mask << offset;
  Conflict low, high;
  if (bits & 0xffffu) low = access(qpu, line, bits & 0xffffu, false, uncached);
  if (bits >> 16) high = access(qpu, line + 1, bits >> 16, false, uncached);
  return low.race || (low.other >= 0 && !high.race) ? low : high;
}

Shadow::Conflict Shadow::write16(int qpu, std::uint64_t word, std::uint32_t mask) {
  std::uint64_t line = word >> 4;
  if ((word & 15) == 0 && mask == 0xffffu && write_line(qpu, line)) return {};
  std::uint32_t bits = mask << (word & 15);
  Conflict low, high;
  if (bits & 0xffffu) low = access(qpu, line, bits & 0xffffu, true, false);
  if (bits >> 16) high = access(qpu, line + 1, bits >> 16, true, false);
  return low.other >= 0 ? low : high;
}

void Shadow::record(int qpu, std::uint64_t line, std::uint32_t mask, bool write) {
  LineClocks& clocks = lines_[line];
  for (std::uint32_t m = mask; m; m &= m - 1) {
    (write ? clocks.write : clocks.read)[qpu][std::countr_zero(m)] =
        clock_[static_cast<std::size_t>(qpu)][static_cast<std::size_t>(qpu)];
  }
}

Shadow::Conflict Shadow::slow(int qpu, std::uint64_t line, std::uint32_t mask, bool write,
                              bool uncached) {
  Conflict found;
  const Clocks& seen = clock_[static_cast<std::size_t>(qpu)];
  const std::uint16_t* masks = masks_ + line * 32;
  auto clocks = lines_.find(line);
  for (std::uint32_t m = mask; m && !found.race; m &= m - 1) {
    auto word = static_cast<unsigned>(std::countr_zero(m));
    for (int kind = 0; kind < (write ? 2 : 1) && !found.race;
         ++kind) {  // earlier writes, then earlier reads
      std::uint16_t who = masks[kind == 0 ? 16 + word : word];
      for (int other = 0; other < kMaxQpus; ++other) {
        if (!(who >> other & 1)) continue;
        if (other == qpu) {
          if (kind == 0 && !write && !uncached && found.other < 0)
            found = {other, false, line * 16 + word};
          continue;
        }
        std::uint32_t then = 1;
        if (clocks != lines_.end())
          then =
              std::max(then, (kind == 0 ? clocks->second.write : clocks->second.read)[other][word]);
        if (then > seen[static_cast<std::size_t>(other)]) {
          found = {other, true, line * 16 + word};
          break;
        }
        if (kind == 0 && !write && !uncached && found.other < 0)
          found = {other, false, line * 16 + word};
      }
    }
  }
  if (advanced(qpu)) record(qpu, line, mask, write);
  return found;
}

void Shadow::release(int qpu, unsigned s) {
  auto q = static_cast<std::size_t>(qpu);
  for (std::size_t i = 0; i < kMaxQpus; ++i)
    published_[s][i] = std::max(published_[s][i], clock_[q][i]);
  ++clock_[q][q];
  advanced_.fetch_or(1u << qpu, std::memory_order_relaxed);
}

void Shadow::acquire(int qpu, unsigned s) {
  auto q = static_cast<std::size_t>(qpu);
  for (std::size_t i = 0; i < kMaxQpus; ++i)
    clock_[q][i] = std::max(clock_[q][i], published_[s][i]);
}

}  // namespace weft::qpu::hw
