// SPDX-License-Identifier: Apache-2.0
// The race check against a table of clocks per word, and the calendar against one clock at a time.

#include "weft/targets/qpu/shadow.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <thread>
#include <vector>

#include "weft/targets/qpu/calendar.h"
#include "weft/targets/qpu/saved_pages.h"

namespace weft::qpu::hw {
namespace {

constexpr unsigned kWords = 16 * 6;

/// What Shadow promises, by the definition: the clock of each QPU's last read and write of a word.
struct Plain {
  std::uint32_t clock[kMaxQpus][kMaxQpus] = {}, published[17][kMaxQpus] = {};
  std::uint32_t used[2][kWords][kMaxQpus] = {};  // read, written; 0: never

  Plain() {
    for (int q = 0; q < kMaxQpus; ++q) clock[q][q] = 1;
  }
  Shadow::Conflict line(int q, unsigned word, std::uint32_t mask, bool write, bool uncached) {
    Shadow::Conflict found;
    for (unsigned i = 0; i < 16 && !found.race; ++i) {
      if (!(mask >> i & 1)) continue;
      for (int kind = 1; kind >= (write ? 0 : 1) && !found.race; --kind) {
        for (int other = 0; other < kMaxQpus && !found.race; ++other) {
          std::uint32_t then = used[kind][word + i][other];
          if (then == 0) continue;
          if (other != q && then > clock[q][other]) found = {other, true, word + i};
          else if (kind == 1 && !write && !uncached && found.other < 0)
            found = {other, false, word + i};
        }
      }
    }
    for (unsigned i = 0; i < 16; ++i)
      if (mask >> i & 1) used[write][word + i][q] = clock[q][q];
    return found;
  }
  Shadow::Conflict access(int q, unsigned word, std::uint32_t mask, bool write, bool uncached) {
    std::uint32_t bits = mask << (word & 15);
    unsigned first = word & ~15u;
    Shadow::Conflict low, high;
    if (bits & 0xffff) low = line(q, first, bits & 0xffff, write, uncached);
    if (bits >> 16) high = line(q, first + 16, bits >> 16, write, uncached);
    if (write) return low.other >= 0 ? low : high;
    return low.race || (low.other >= 0 && !high.race) ? low : high;
  }
};

TEST(QpuShadow, random_accesses_against_clocks_per_word) {
  Shadow shadow(kWords + 64);
  int races = 0, stale = 0, quick = 0;
  for (unsigned seed = 1; seed <= 4000; ++seed) {
    std::mt19937 rng(seed);
    shadow.begin_launch();
    Plain plain;
    const unsigned qpus = 1 + rng() % kMaxQpus, parts = 1 + rng() % 4;
    for (int step = 0; step < 40; ++step) {
      int q = static_cast<int>(rng() % qpus);
      if (seed % 3 == 0 && rng() % 6 == 0) {
        unsigned s = rng() % 3;
        if (rng() % 2) {
          shadow.release(q, s);
          for (int i = 0; i < kMaxQpus; ++i)
            plain.published[s][i] = std::max(plain.published[s][i], plain.clock[q][i]);
          ++plain.clock[q][q];
        } else {
          shadow.acquire(q, s);
          for (int i = 0; i < kMaxQpus; ++i)
            plain.clock[q][i] = std::max(plain.clock[q][i], plain.published[s][i]);
        }
        continue;
      }
      // Mostly whole lines, each QPU in its own part or anywhere.
      bool write = rng() % 3 == 0, uncached = rng() % 2, whole = rng() % parts == 0;
      unsigned word = rng() % (kWords - 16);
      std::uint32_t mask = rng() % 4 ? 0xffffu >> rng() % 16 : rng() & 0xffff;
      if (mask == 0) mask = 1;
      if (whole) word &= ~15u, mask = 0xffff;
      Shadow::Conflict want = plain.access(q, word, mask, write, uncached), got;
      if (!whole) {
        got = write ? shadow.write16(q, word, mask) : shadow.read16(q, word, mask, uncached);
      } else if (write ? shadow.write_line(q, word / 16)
                       : shadow.read_line(q, word / 16, uncached)) {
        ++quick;
      } else {
        got = write ? shadow.write16(q, word, mask) : shadow.read16(q, word, mask, uncached);
      }
      ASSERT_EQ(got.other, want.other) << "seed " << seed << " step " << step;
      ASSERT_EQ(got.race, want.race) << "seed " << seed << " step " << step;
      if (want.other >= 0) {
        ASSERT_EQ(got.word, want.word) << "seed " << seed << " step " << step;
      }
      races += want.race, stale += want.other >= 0 && !want.race;
      if (want.race) break;  // a machine stops there
    }
  }
  std::printf("%d races, %d stale reads, %d whole lines by their summary\n", races, stale, quick);
  EXPECT_GT(races, 500);
  EXPECT_GT(stale, 100);
  EXPECT_GT(quick, 5000);
}

// One clock at a time: the first that is free, from the bucket of `now` on.
struct PlainCalendar {
  std::vector<int> used = std::vector<int>(4096);
  std::int64_t reserve(std::int64_t now, std::int64_t clocks) {
    auto bucket = static_cast<std::size_t>(now / 64);
    for (std::int64_t end = now;; ++bucket) {
      std::int64_t take = std::min<std::int64_t>(64 - used[bucket], clocks);
      if (take == 0) continue;
      std::int64_t begin = static_cast<std::int64_t>(bucket) * 64 + used[bucket];
      end = std::max({end, begin, now}) + take;
      used[bucket] += static_cast<int>(take);
      clocks -= take;
      if (clocks == 0) return end;
    }
  }
};

TEST(QpuCalendar, books_the_first_free_clocks) {
  int later = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    std::mt19937 rng(seed);
    Calendar calendar;
    calendar.reset();
    PlainCalendar plain;
    std::int64_t now = 0, busy = 0;
    const unsigned pace = 4 + 8 * (seed % 8), ahead = seed % 2 ? 2048 : 100;
    for (int step = 0; step < 3000; ++step) {
      now += rng() % pace;
      std::int64_t at = std::max<std::int64_t>(now + rng() % ahead - 90, 0),
                   clocks = rng() % 2 ? 8 : 16;
      if (rng() % 9 == 0) clocks = 12;
      busy += clocks;
      std::int64_t end = calendar.reserve(at, clocks);
      ASSERT_EQ(end, plain.reserve(at, clocks)) << "seed " << seed << " step " << step;
      later += end > at + clocks;
    }
    EXPECT_EQ(calendar.busy(), busy);
  }
  EXPECT_GT(later, 20000);
  EXPECT_LT(later, 170000);
}

TEST(QpuShadow, two_shadows_clash_where_one_stored_to_what_the_other_used) {
  Shadow a(kWords + 64), b(kWords + 64);
  int clashes = 0, none = 0;
  for (unsigned seed = 1; seed <= 3000; ++seed) {
    std::mt19937 rng(seed);
    a.begin_launch();
    b.begin_launch(a.launch());
    bool used[2][2][kWords + 64] = {};  // by shadow: read, written
    const unsigned accesses = 1 + rng() % 12, stores = rng() % 4;
    for (unsigned k = 0; k < accesses; ++k) {
      const unsigned which = rng() % 2;
      const bool write = rng() % 4 < stores && rng() % 3 == 0;
      const unsigned word = rng() % 2 ? rng() % (kWords / 16) * 16 : rng() % (kWords - 16);
      const std::uint32_t mask = rng() % 2 ? 0xffffu : rng() % 0xffff + 1;
      const int qpu = static_cast<int>(6 * which + rng() % 6);
      Shadow& shadow = which ? b : a;
      if (write) shadow.write16(qpu, word, mask);
      else shadow.read16(qpu, word, mask, rng() % 2);
      for (unsigned i = 0; i < 16; ++i) used[which][write][word + i] |= (mask >> i & 1) != 0;
    }
    const unsigned first = rng() % (kWords / 16), end = first + 1 + rng() % (kWords / 16 - first);
    bool expected = false;
    for (unsigned w = first * 16; w < end * 16; ++w)
      expected |=
          (used[0][1][w] && (used[1][0][w] || used[1][1][w])) || (used[1][1][w] && used[0][0][w]);
    EXPECT_EQ(Shadow::clash(a, b, first, end), expected) << seed;
    EXPECT_EQ(Shadow::clash(b, a, first, end), expected) << seed;
    ++(expected ? clashes : none);
  }
  EXPECT_GT(clashes, 300);
  EXPECT_GT(none, 300);
}

TEST(QpuSavedPages, memory_is_as_before_the_launch) {
  sim::Memory memory("test", 5 * 4096 + 100, 0x10000 + 512);
  SavedPages saved(memory);
  std::mt19937 rng(7);
  auto fill = [&] {
    for (std::uint64_t at = 0; at < memory.size(); ++at)
      *memory.raw(memory.base() + at) = static_cast<std::byte>(rng());
  };
  fill();
  for (int launch = 0; launch < 20; ++launch) {
    const std::vector<std::byte> before(memory.raw(memory.base()),
                                        memory.raw(memory.base()) + memory.size());
    saved.begin_launch();
    std::vector<unsigned> at;
    for (unsigned k = 0; k < 40; ++k) at.push_back(rng() % (memory.size() - 200));
    auto stores = [&](unsigned from) {  // of one of two threads, which store to common pages
      for (unsigned k = from; k < at.size(); k += 2) {
        saved.hand(static_cast<int>(from)).save(memory.base() + at[k], 1 + k * 5);
        *memory.raw(memory.base() + at[k] + (from ? 1 + k * 5 - 1 : 0)) = std::byte{0x5a};
      }
    };
    std::thread other([&] { stores(1); });
    stores(0);
    other.join();
    std::vector<std::uint32_t> pages = saved.pages();
    std::sort(pages.begin(), pages.end());
    EXPECT_TRUE(std::adjacent_find(pages.begin(), pages.end()) == pages.end());
    saved.put_back();
    EXPECT_TRUE(std::equal(before.begin(), before.end(), memory.raw(memory.base()))) << launch;
    fill();
  }
}

}  // namespace
}  // namespace weft::qpu::hw
