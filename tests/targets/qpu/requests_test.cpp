// SPDX-License-Identifier: Apache-2.0
// Requests for rows in loops, where the fast engines know the array and do without most of the
// work: clocks, statistics, memory and faults are those of the reference interpreter, on one and on
// two threads.

#include <cstdio>
#include <random>

#include "left.h"

namespace weft::qpu {
namespace {

/// What `work` leaves on the reference interpreter, once every engine left the same.
Left on_all_engines(const std::string& name, const std::function<void(Left&)>& work) {
  return same_all_ways(name,
                       {{hw::Engine::oracle, 1},
                        {hw::Engine::interpreted, 1},
                        {hw::Engine::interpreted, 2},
                        {hw::Engine::translated, 1},
                        {hw::Engine::translated, 2},
                        {hw::Engine::translated, 2, 900}},
                       work);
}

/// Two streams at steps of their own, one per texture unit or both on one.
void streams(Int steps, Ptr<Int> x, Int dx, Ptr<Int> z, Int dz, Ptr<Int> out) {
  Ptr<Int> p = x + index() + me() * dx, q = z + index();
  Int sum = 0, a, b;
  For(Int i = 0, i < steps, i++)
    gather(p);
    gather(q);
    Int c = *p;
    receive(a);
    receive(b);
    sum = (sum << 1) + (a ^ b) + c;
    p = p + dx;
    q = q + dz;
  End
  store(sum, out + (me() << 4));
}

/// Rows at places that a table names.
void wander(Int steps, Ptr<Int> places, Ptr<Int> x, Ptr<Int> out) {
  Int sum = 0, a;
  Ptr<Int> at = places + me();
  For(Int i = 0, i < steps, i++)
    Int where = fetch(at);
    gather(x + where + index());
    receive(a);
    sum = sum * 3 + a;
    at = at + numQPUs();
  End
  store(sum, out + (me() << 4));
}

void fill(SharedArray<int>& a, unsigned seed) {
  std::mt19937 rng(seed);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<int>(rng() & 0xffff);
}

TEST(QpuRequests, streams_of_many_steps) {
  constexpr int kWords = 1 << 18, kSteps = 37;
  int runs = 0;
  // In words: equal, within a line, across lines, next lines, lines that share a place in the TMU's
  // cache (64 lines), and lines that share a set of the L2 (512 lines, four ways).
  for (int dx : {0, 4, 8, 16, 48, 1024, 8192 / 2}) {
    for (int dz : {0, 16, 24}) {
      for (int qpus : {1, 5, 12}) {
        on_all_engines(cat("steps ", dx, " and ", dz, ", ", qpus, " QPUs"), [&](Left& left) {
          SharedArray<int> x(kWords), z(kSteps * 24 + 16), out(16 * 12);
          fill(x, 1), fill(z, 2), fill(out, 3);
          auto k = compile(streams);
          k.setNumQPUs(qpus);
          k(kSteps, &x, dx, &z, dz, &out);
          keep(left, out);
        });
        ++runs;
      }
    }
  }
  std::printf("%d launches on every engine\n", runs);
}

TEST(QpuRequests, places_from_a_table) {
  for (unsigned seed = 1; seed <= 12; ++seed) {
    Left left = on_all_engines(cat("seed ", seed), [&](Left& l) {
      std::mt19937 rng(seed);
      const int qpus = 1 + static_cast<int>(rng() % 12), steps = 60;
      const std::size_t words = 16u << (rng() % 9), lines = words / 16;
      SharedArray<int> places(static_cast<std::size_t>(qpus * steps)), x(words), out(16 * 12);
      // Mostly whole lines; some rows reach over the end, which is noted.
      for (std::size_t i = 0; i < places.size(); ++i)
        places[i] = static_cast<int>(16 * (rng() % lines) + (rng() % 7 ? 0 : rng() % 16));
      fill(x, seed), fill(out, 3);
      auto k = compile(wander);
      k.setNumQPUs(qpus);
      k(steps, &places, &x, &out);
      keep(l, out);
    });
    EXPECT_EQ(left.fault, "");
  }
}

/// Reads line after line; in step `when`, QPU `who` stores to line `line`.
void read_and_store(Int steps, Int who, Int when, Int line, Int count, Ptr<Int> x, Ptr<Int> out) {
  Int sum = 0, a;
  Ptr<Int> p = x + index();
  For(Int i = 0, i < steps, i++)
    gather(p);
    receive(a);
    sum = sum + a;
    If(any(me() == who && i == when))
      store(sum, x + (line << 4), count);
    End
    p = p + 16;
  End
  store(sum, out + (me() << 4));
}

TEST(QpuRequests, lines_that_somebody_stores) {
  auto on = [](int qpus, int who, int when, int line, int count) {
    return on_all_engines(cat(qpus, " QPUs, line ", line, " stored at ", when), [=](Left& left) {
      SharedArray<int> x(16 * 64), out(16 * 12);
      fill(x, 5), fill(out, 6);
      auto k = compile(read_and_store);
      k.setNumQPUs(qpus);
      k(40, who, when, line, count, &x, &out);
      keep(left, x);
    });
  };
  auto has = [](const Left& left, std::string_view code) {
    return left.fault.find(code) != std::string::npos;
  };
  // Alone: what it has read already may be stored; what it reads afterwards is stale.
  EXPECT_EQ(on(1, 0, 20, 11, 16).fault, "");
  EXPECT_TRUE(has(on(1, 0, 20, 30, 16), "qpu.tmu.stale"));
  EXPECT_TRUE(has(on(1, 0, 20, 30, 3), "qpu.tmu.stale"));
  EXPECT_EQ(on(1, 0, 20, 50, 16).fault, "");  // nobody reads it
  // With others, whoever comes first.
  for (int count : {16, 5}) {
    EXPECT_TRUE(has(on(5, 3, 20, 11, count), "qpu.race"));
    EXPECT_TRUE(has(on(5, 3, 20, 30, count), "qpu.race"));
    EXPECT_TRUE(has(on(5, 3, 0, 39, count), "qpu.race"));
    EXPECT_EQ(on(12, 3, 20, 50, count).fault, "");
  }
}

/// QPU 1 reads line after line and releases a semaphore in step `when`; QPU 0 acquires it, then
/// stores to `line`.
void release_while_reading(Int steps, Int when, Int line, Ptr<Int> x) {
  Int sum = 0, a;
  Ptr<Int> p = x + index();
  If(any(me() == 1))
    For(Int i = 0, i < steps, i++)
      gather(p);
      receive(a);
      sum = sum + a;
      If(any(i == when))
        semaInc(3);
      End
      p = p + 16;
    End
    Else semaDec(3);
    store(sum, x + (line << 4));
  End
}

TEST(QpuRequests, what_is_read_after_a_release_is_not_ordered_by_it) {
  auto on = [](int when, int line) {
    return on_all_engines(cat("release in step ", when, ", line ", line), [=](Left& left) {
      SharedArray<int> x(16 * 64);
      fill(x, 7);
      auto k = compile(release_while_reading);
      k.setNumQPUs(2);
      k(40, when, line, &x);
      keep(left, x);
    });
  };
  EXPECT_EQ(on(20, 11).fault, "");
  EXPECT_NE(on(20, 30).fault.find("qpu.race"), std::string::npos);
  EXPECT_NE(on(5, 6).fault.find("qpu.race"), std::string::npos);
  EXPECT_EQ(on(5, 5).fault, "");
}

/// Requests, results and stores in an order that `seed` names: results wait across loops and on one
/// of two ways through the program only, so that their number is not known beforehand.
struct Tangle {
  std::mt19937 rng;
  Int steps;
  Ptr<Int> x, p, q, out;
  Int sum, got;
  int certain = 0, possible = 0;  // results that wait

  int any_of(int count) { return static_cast<int>(rng() % static_cast<unsigned>(count)); }
  void ask() {
    switch (any_of(6)) {
      case 0: gather(q + (me() << 2)); break;  // in a line, or across two
      case 1: gather(x + ((index() * (1 + 2 * any_of(40)) + sum) & 255)); break;  // scattered
      default: gather(p);
    }
    ++certain, ++possible;
  }
  void take() {
    receive(got);
    sum = (sum << 1) + got;
    --certain, --possible;
  }
  void some(int depth) {
    for (int n = 2 + any_of(4); n > 0; --n) {
      switch (any_of(depth ? 8 : 6)) {
        case 0:
        case 1:
          if (possible < 4) ask();
          break;
        case 2:
          if (certain) take();
          break;
        case 3: p = p + 16 * any_of(3); break;
        case 4: sum = sum + *q; break;
        case 5:
          if (any_of(3)) store(sum, out + (me() << 4));
          else store(sum, out + (me() << 4), 1 + any_of(16));
          break;
        case 6: {
          if (possible > 3) break;
          Int odd = (me() + any_of(2)) & 1;
          If(any(odd == 1))
            ask();
          End
          --certain;  // as far as the others are concerned
          const int before = certain;
          some(depth - 1);
          while (certain > before) take();
          while (certain < before) ask();
          ++certain;
          If(any(odd == 1))
            take();
          End
          break;
        }
        default: {
          const int before = certain;
          For(Int i = 0, i < 1 + any_of(4), i++)
            some(depth - 1);
            while (certain > before) take();
            while (certain < before) ask();
          End
        }
      }
    }
  }
};

unsigned tangle_seed = 0;  // of the kernel that is compiled next

void tangled(Int steps, Ptr<Int> x, Ptr<Int> out) {
  Tangle t{std::mt19937(tangle_seed), steps, x, x + index() + (me() << 4), x + index(), out, 0, 0};
  For(Int i = 0, i < steps, i++)
    t.p = x + index() + ((me() + i) << 4);
    t.some(2);
    while (t.certain) t.take();
  End
  store(t.sum, out + (me() << 4));
}

TEST(QpuRequests, results_wait_across_loops_and_ways) {
  std::size_t instructions = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    tangle_seed = seed;
    auto k = compile(tangled, cat("tangled ", seed));
    instructions += k.instructions();
    Left left = same_all_ways(
        cat("seed ", seed),
        {{hw::Engine::oracle, 1}, {hw::Engine::translated, 1}, {hw::Engine::translated, 2}},
        [&](Left& l) {
          SharedArray<int> x(16 * 256), out(16 * 12);
          fill(x, seed), fill(out, 3);
          k.setNumQPUs(seed % 3 ? 12 : 1 + static_cast<int>(seed % 7));
          k(3 + static_cast<int>(seed % 20), &x, &out);
          l.cycles = k.cycles();
          keep(l, out);
        });
    EXPECT_EQ(left.fault, "") << "seed " << seed;
  }
  std::printf("%zu instructions in 60 programs\n", instructions);
}

}  // namespace
}  // namespace weft::qpu
