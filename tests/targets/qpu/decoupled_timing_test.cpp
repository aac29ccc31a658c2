// SPDX-License-Identifier: Apache-2.0
// QPUs on several host threads: memory, clocks, statistics, notes and faults are those of one.

#include "weft/targets/qpu/engine/decoupled_timing.h"

#include <chrono>
#include <cstdlib>
#include <map>
#include <random>
#include <set>

#include "left.h"
#include "weft/base/interrupt.h"
#include "weft/targets/qpu/engine/flow.h"
#include "weft/targets/qpu/kernels/kernels.h"
#include "weft/targets/qpu/past_launches.h"

namespace weft::qpu {
namespace {

/// On both engines and 1, 2 and 3 threads, and where a thread joins at some time: all leave the
/// same.
Left same_on_threads(const char* name, const std::function<void(Left&)>& work) {
  constexpr auto kPlain = hw::Engine::interpreted, kTranslated = hw::Engine::translated;
  return same_all_ways(name,
                       {{kPlain, 1},
                        {kPlain, 2},
                        {kPlain, 3},
                        {kTranslated, 1},
                        {kTranslated, 2},
                        {kTranslated, 3},
                        {kTranslated, 2, 1},
                        {kTranslated, 2, 777},
                        {kTranslated, 2, 5000},
                        {kTranslated, 2, 30000}},
                       work);
}

void fill(const SharedArray<float>& a, unsigned seed) {
  std::mt19937 rng(seed);
  auto& to = const_cast<SharedArray<float>&>(a);
  for (std::size_t i = 0; i < a.size(); ++i) to[i] = static_cast<float>(rng() % 2000) / 64.0f - 9;
}

TEST(QpuAhead, the_kernel_library) {
  constexpr int kRows = 37, kCols = 1000;
  same_on_threads("gemv", [](Left& left) {
    kernels::Floats a(kRows * kCols), x(kCols), y(kRows), s(48 * 12);
    fill(a, 1), fill(x, 2);
    left.cycles = kernels::gemv(a, x, y, s, kRows, kCols);
    keep(left, y);
  });
  same_on_threads("gemm", [](Left& left) {
    kernels::Floats a(40 * 33), b(33 * 50), c(40 * 50);
    fill(a, 3), fill(b, 4);
    left.cycles = kernels::gemm(a, b, c, 40, 50, 33, 7);
    keep(left, c);
  });
  same_on_threads("sort", [](Left& left) {
    kernels::Ints x(777), p(1024), q(1024);
    std::mt19937 rng(5);
    for (std::size_t i = 0; i < 777; ++i) x[i] = static_cast<int>(rng());
    left.cycles = kernels::sort(x, p, q, 777);
    keep(left, x);
  });
  same_on_threads("barrier", [](Left& left) {
    kernels::Ints slots(16 * 12), sums(16 * 12);
    left.cycles = kernels::barrier_rounds(slots, sums, 9);
    keep(left, slots), keep(left, sums);
  });
  same_on_threads("mandelbrot", [](Left& left) {
    kernels::Ints out(61 * 45);
    left.cycles = kernels::mandelbrot(out, 61, 45, -2, -1, 0.05f, 0.045f, 60);
    keep(left, out);
  });
  same_on_threads("sha256", [](Left& left) {
    kernels::Words in(16 * 50), out(8 * 50);
    std::mt19937 rng(6);
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<unsigned>(rng());
    left.cycles = kernels::sha256(in, out, 50);
    keep(left, out);
  });
  same_on_threads("fft", [](Left& left) {
    kernels::Floats re(200), im(200);
    fill(re, 7), fill(im, 8);
    left.cycles = kernels::fft(re, im, 200);
    keep(left, re), keep(left, im);
  });
}

// Reads past the end are noted in the same order and number, and stay harmless.
void moving_sum(Int n, Ptr<Float> x, Ptr<Float> y) {
  Int step = numQPUs() << 4;
  Ptr<Float> p = x + index() + (me() << 4), q = y + index() + (me() << 4);
  gather(p);
  gather(q);
  Float a, b;
  For(Int i = 0, i < n, i = i + step)
    gather(p + step);
    gather(q + step);
    receive(a);
    receive(b);
    store(a * 0.5f + b, p);
    p = p + step;
    q = q + step;
  End
  receive(a);
  receive(b);
}

TEST(QpuAhead, notes_of_reads_outside) {
  Left left = same_on_threads("moving sum", [](Left& l) {
    auto k = compile(moving_sum);
    k.setNumQPUs(12);
    constexpr int kN = 16 * 12 * 90;
    SharedArray<float> x(kN), y(kN);
    fill(x, 11), fill(y, 12);
    k(kN, &x, &y);
    l.cycles = k.cycles();
    keep(l, x);
  });
  EXPECT_NE(left.notes.find("qpu.memory.read_outside"), std::string::npos);
}

// Two QPUs store to the same words, late in the launch.
void collide(Int n, Ptr<Int> x, Ptr<Int> y) {
  Int sum = 0;
  For(Int i = 0, i < n, i = i + 1)
    sum = sum + *(y + (i & 3));
  End
  store(sum, x + (me() << 4));
  If(any(me() > 4))
    store(sum, x);
  End
}

// Stores past the end of the array after some work of all, on twelve QPUs; not on six.
void overrun(Int n, Ptr<Int> x, Ptr<Int> y) {
  Int sum = 0;
  For(Int i = 0, i < n, i = i + 1)
    sum = sum + *y;
    store(sum, x + (me() << 4));
  End
  store(sum, x + ((me() + numQPUs()) << 4));
}

TEST(QpuAhead, faults) {
  auto on = [](auto kernel, int qpus, std::int64_t n) {
    return [=](Left& left) {
      auto k = compile(kernel);
      k.setNumQPUs(qpus);
      SharedArray<int> x(16 * 12), y(64);
      for (std::size_t i = 0; i < 64; ++i) y[i] = static_cast<int>(i);
      k(static_cast<int>(n), &x, &y);
      left.cycles = k.cycles();
    };
  };
  Left race = same_on_threads("a race", on(collide, 12, 700));
  EXPECT_NE(race.fault.find("without synchronisation"), std::string::npos) << race.fault;
  Left outside = same_on_threads("a store outside", on(overrun, 12, 300));
  EXPECT_NE(outside.fault.find("a DMA store of 64 bytes"), std::string::npos) << outside.fault;
  // The device works afterwards.
  EXPECT_EQ(same_on_threads("six QPUs", on(overrun, 6, 30)).fault, "");
}

// Adds to rows of many pages, and past their end in the end: what others had added by then stays,
// once.
void fills(Int n, Ptr<Int> x, Ptr<Int> y) {
  For(Int i = 0, i < n, i = i + 1)
    Ptr<Int> row = x + ((i * numQPUs() + me()) << 4);
    Int v = vload(row);
    store(v + *y, row);
    If(any(me() == 3))
      i = i + 1;
    End
  End
  store(n, x + ((n * numQPUs() + me()) << 4));
}

TEST(QpuAhead, stores_to_many_pages_before_a_fault) {
  Left left = same_on_threads("fills", [](Left& l) {
    auto k = compile(fills);
    k.setNumQPUs(12);
    constexpr int kSteps = 200;
    SharedArray<int> x(16 * 12 * kSteps), y(64);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = -1;
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = 1;
    try {
      k(kSteps, &x, &y);
    } catch (const Error& e) {
      l.fault = e.what();
    }
    keep(l, x);
  });
  EXPECT_NE(left.fault.find("a DMA store of 64 bytes"), std::string::npos) << left.fault;
}

// What a fault of one thread's QPU leaves behind does not count: it is done again by one thread,
// on the memory of the beginning.
void count_up(Int n, Ptr<Int> x, Ptr<Int>) {
  For(Int i = 0, i < n, i = i + 1)
    Int v = vload(x + (me() << 4));
    store(v + 1, x + (me() << 4));
  End
  store(n, x + ((me() << 4) + (192 << 4)));
}

TEST(QpuAhead, memory_is_put_back_before_the_second_run) {
  Options options;
  for (std::int64_t join_after : {-1, 0, 2000, 9000}) {  // one thread; two from the beginning
    const int threads = join_after < 0 ? 1 : 2;
    hw::EmulatorOptions& o = emulator().options();
    o.engine = hw::translation_missing().empty() ? hw::Engine::translated : hw::Engine::interpreted;
    o.threads = threads, o.count_instructions = false;
    o.optimisation = 0, o.file_cache = false, o.join_after = join_after;
    o.division = join_after > 0 ? hw::Division::joined : hw::Division::always;
    auto k = compile(count_up);
    k.setNumQPUs(12);
    SharedArray<int> x(16 * 12), y(16);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0;
    EXPECT_THROW(k(200, &x, &y), Error);
    for (std::size_t i = 0; i < x.size(); ++i) {
      EXPECT_GE(x[i], 0);
      EXPECT_LE(x[i], 200) << "counted twice, " << threads << " threads, " << join_after;
    }
  }
}

// The first and the last QPU, which different threads lead, use words of the same line after some
// work of all: both store, one loads through the VPM or the TMU what the other stores, or each
// stores a word of its own.
void meet(Int n, Int how, Ptr<Int> x) {
  Int sum = 0;
  Ptr<Int> mine = x + (me() << 4), common = x + (numQPUs() << 4);
  For(Int i = 0, i < n, i = i + 1)
    sum = sum + i;
    store(sum, mine);
  End
  If(any(me() == 0 && how == 1))
    store(vload(common), mine);
  End
  If(any(me() == 0 && how == 2))
    Int got = *common;
    store(got, mine);
  End
  If(any(me() == 0 && how == 3))
    store(sum, common, 1);
  End
  If(any((me() == 0 && how == 0) || (me() == numQPUs() - 1 && how != 3)))
    store(sum + me(), common);
  End
  If(any(me() == numQPUs() - 1 && how == 3))
    store(sum, common + 1, 5);
  End
}

TEST(QpuAhead, words_that_qpus_of_different_threads_use) {
  for (int how : {0, 1, 2, 3}) {
    Left left = same_on_threads("two QPUs meet", [&](Left& l) {
      auto k = compile(meet);
      k.setNumQPUs(12);
      SharedArray<int> x(16 * 13);
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = -static_cast<int>(i);
      try {
        k(60 + how, how, &x);
        l.cycles = k.cycles();
      } catch (const Error& e) {
        l.fault = e.what();
      }
      keep(l, x);
    });
    EXPECT_EQ(left.fault.find("without synchronisation") != std::string::npos, how != 3) << how;
  }
}

// A QPU waits in a loop for a word that another one, led by another thread, stores a wrong value
// to.
void wait_for_seven(Ptr<Int> flag) {
  If(any(me() == 0))
    While(any(vload(flag) != 7))
      flush();
    End
  End
  If(any(me() == numQPUs() - 1))
    store(3, flag);
  End
}

TEST(QpuAhead, a_race_in_a_loop_without_end) {
  Left left = same_on_threads("waiting for seven", [](Left& l) {
    auto k = compile(wait_for_seven);
    k.setNumQPUs(12);
    SharedArray<int> flag(16);
    for (std::size_t i = 0; i < 16; ++i) flag[i] = 0;
    try {
      k(&flag);
    } catch (const Error& e) {
      l.fault = e.what();
    }
    keep(l, flag);
  });
  EXPECT_NE(left.fault.find("without synchronisation"), std::string::npos) << left.fault;
}

// A QPU asks its TMU for what it has stored long before, as caches may hold what was there.
void asks_late(Int n, Ptr<Int> x, Ptr<Int> y) {
  store(n, x + (me() << 4));
  Int sum = 0;
  For(Int i = 0, i < n, i = i + 1)
    sum = sum + *(y + (i & 3));
  End
  If(any(me() == numQPUs() - 1))
    sum = sum + *(x + (me() << 4));
  End
  store(sum, x + ((me() + numQPUs()) << 4));
}

TEST(QpuAhead, a_late_request_for_what_was_stored) {
  Left left = same_on_threads("asks late", [](Left& l) {
    auto k = compile(asks_late);
    k.setNumQPUs(6);
    SharedArray<int> x(16 * 12), y(64);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0;
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = 1;
    k(700, &x, &y);
  });
  EXPECT_NE(left.fault.find("qpu.tmu.stale"), std::string::npos) << left.fault;
}

// Each QPU writes a row of the VPM, and long after that the next QPU's.
TEST(QpuAhead, rows_of_the_vpm_that_others_have_used_before) {
  std::vector<hw::Instr> code = hw::assemble(
      "mov ra28, unif\nmov r0, unif\nldi r1, 0x1a00\nor vw_setup, r0, r1\nmov vpm, elem\n");
  const std::size_t top = code.size();
  auto more = [&](const std::string& text) {
    for (const hw::Instr& i : hw::assemble(text)) code.push_back(i);
  };
  more("sub ra28, ra28, #1; nop; sf\nnop\nnop\nnop\nbra.anynz rel, 0\n");
  code.back().imm = static_cast<std::uint32_t>(
      (static_cast<std::int64_t>(top) - static_cast<std::int64_t>(code.size()) - 3) * 8);
  more(
      "nop\nnop\nnop\nadd r0, r0, #1\nor vw_setup, r0, r1\nmov vpm, elem\nnop; nop; thrend\n"
      "nop\nnop\n");
  runtime::Binary binary;
  binary.format = "qpu";
  binary.metadata = Json::object();
  binary.metadata["uniforms"] = Json(Json::Array{"900", "me"});
  for (const hw::Instr& i : code) {
    const hw::Code word = hw::encode(i);
    binary.bytes.append(reinterpret_cast<const char*>(&word), 8);
  }
  ASSERT_TRUE(hw::validate(code).empty())
      << hw::violation_error(hw::validate(code)[0], code).what();
  std::string first;
  for (std::int64_t join_after : {-1, 0, 3000}) {
    if (!hw::translation_missing().empty()) break;
    hw::EmulatorOptions o;
    o.engine = hw::Engine::translated, o.threads = join_after < 0 ? 1 : 2;
    o.count_instructions = false, o.optimisation = 0, o.file_cache = false;
    o.memory_bytes = 1 << 20, o.join_after = join_after;
    o.division = join_after > 0 ? hw::Division::joined : hw::Division::always;
    hw::Emulator machine(o);
    sim::Launch launch;
    launch.extents = {4};
    std::string fault;
    try {
      machine.run(machine.load(binary), launch, {});
    } catch (const Error& e) {
      fault = e.what();
    }
    if (first.empty()) first = fault;
    EXPECT_NE(fault.find("qpu.vpm.race"), std::string::npos) << fault;
    EXPECT_EQ(fault, first) << join_after;
  }
}

void endless(Ptr<Int> x) {
  Int sum = 0;
  While(any(sum >= 0))
    sum = (sum + *x) & 0xff;
    store(sum, x + ((me() + 1) << 4));
  End
}

// A check that throws once, as that of Ctrl-C does: the launch is not begun again.
TEST(QpuAhead, an_interrupt_ends_it) {
  Options options;
  for (int threads : {1, 2}) {
    hw::EmulatorOptions& o = emulator().options();
    o.engine = hw::translation_missing().empty() ? hw::Engine::translated : hw::Engine::interpreted;
    o.threads = threads, o.count_instructions = false;
    o.optimisation = 0, o.file_cache = false, o.division = hw::Division::always;
    auto k = compile(endless);
    k.setNumQPUs(12);
    SharedArray<int> x(16 * 13);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = 3;
    int asked = 0;
    InterruptScope scope(
        [&] {
          if (++asked == 2)
            throw Error(ErrorKind::fault, "qpu.module.stopped", cat("stopped by check ", asked));
        },
        std::chrono::milliseconds(20));
    try {
      k(&x);
      ADD_FAILURE() << "an endless kernel ended, " << threads << " threads";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), "qpu.module.stopped") << threads;
    }
    EXPECT_EQ(asked, 2) << threads;
    auto after = compile(overrun);  // and the device works afterwards
    after.setNumQPUs(6);
    SharedArray<int> out(16 * 12), y(64);
    for (std::size_t i = 0; i < 64; ++i) y[i] = 1;
    after(30, &out, &y);
    EXPECT_EQ(out[0], 30);
  }
}

// An instruction remembers the array that it asked last: one that reads two arrays in turns keeps
// both only where their instructions have a place each.
TEST(QpuAhead, instructions_of_unrolled_products_remember_their_own_array) {
  hw::Program program;
  program.instrs = hw::assemble("mov ra0, unif\nmov rb0, unif\n");
  const auto requests = hw::assemble(
      "mov tmu0_s, ra0\nnop; nop; ldtmu0\nmov tmu0_s, rb0\n"
      "nop; nop; ldtmu0\n");
  for (int k = 0; k < 24; ++k)
    program.instrs.insert(program.instrs.end(), requests.begin(), requests.end());
  for (const hw::Instr& i : hw::assemble("nop; nop; thrend\nnop\nnop\n"))
    program.instrs.push_back(i);
  const hw::Flow flow = hw::analyse(program, false);
  std::set<int> places;
  for (std::size_t at = 0; at < program.instrs.size(); ++at)
    if (flow.asks[at]) places.insert(flow.site[at]);
  EXPECT_EQ(places.size(), 48u);
}

// Results that instructions of the literal engine's receive, in a loop around which others wait.
TEST(QpuAhead, literal_instructions_receive) {
  std::vector<hw::Instr> code = hw::assemble(
      "mov ra28, unif\nmov ra0, unif\nmov r0, elem\nshl r0, r0, #2\nadd r1, ra0, r0\n"
      "mov tmu0_s, r1\nmov tmu1_s, r1\nmov tmu0_s, r1\n");
  const std::size_t top = code.size();
  auto more = [&](const std::string& text) {
    for (const hw::Instr& i : hw::assemble(text)) code.push_back(i);
  };
  more(
      "mov tmu0_s, r1\nadd r1, r1, #8\nmov ra5, r0; nop; ldtmu0; pack=1\nmov tmu1_s, r1\n"
      "nop; nop; ldtmu1\nsub ra28, ra28, #1; nop; sf\nnop\nnop\nnop\nbra.anynz rel, 0\n");
  code.back().imm = static_cast<std::uint32_t>(
      (static_cast<std::int64_t>(top) - static_cast<std::int64_t>(code.size()) - 3) * 8);
  more(
      "nop\nnop\nnop\nnop; nop; ldtmu0\nmov ra6, r0; nop; ldtmu1; pack=2\nnop; nop; ldtmu0\n"
      "nop; nop; thrend\nnop\nnop\n");
  runtime::Binary binary;
  binary.format = "qpu";
  binary.metadata = Json::object();
  binary.metadata["uniforms"] = Json(Json::Array{"900", "p0"});
  for (const hw::Instr& i : code) {
    const hw::Code word = hw::encode(i);
    binary.bytes.append(reinterpret_cast<const char*>(&word), 8);
  }
  ASSERT_TRUE(hw::validate(code).empty())
      << hw::violation_error(hw::validate(code)[0], code).what();
  std::string first;
  for (auto [engine, threads] : {std::pair(hw::Engine::oracle, 1),
                                 {hw::Engine::translated, 1},
                                 {hw::Engine::translated, 2}}) {
    if (engine == hw::Engine::translated && !hw::translation_missing().empty()) continue;
    hw::EmulatorOptions o;
    o.engine = engine, o.threads = threads, o.count_instructions = false;
    o.optimisation = 0, o.file_cache = false, o.memory_bytes = 1 << 20,
    o.division = hw::Division::always;
    hw::Emulator machine(o);
    sim::Launch launch;
    launch.pointers = {machine.memory().allocate(1 << 14, 64)};
    launch.extents = {12};
    const auto result = machine.run(machine.load(binary), launch, {});
    const std::string left = cat(result.cycles, "\n", machine.stats().table());
    if (first.empty()) first = left;
    EXPECT_EQ(left, first) << threads;
    EXPECT_EQ(machine.stats().get("instructions"), 12 * (8 + 900 * 13 + 6)) << threads;
  }
}

// A thread that joins does: with requests and transfers under way, QPUs that wait for semaphores,
// and QPUs that have ended; not where they have used rows of the VPM in common.
TEST(QpuAhead, a_thread_joins_a_launch) {
  if (!hw::translation_missing().empty()) return;
  for (std::int64_t after : {1, 1500, 12000}) {
    int joined = 0;
    const Way ways[] = {{hw::Engine::translated, 1}, {hw::Engine::translated, 2, after}};
    auto count = [&] { joined += emulator().divided(); };
    auto same = [&](const char* name, const std::function<void(Left&)>& work) {
      same_all_ways(name, {ways[0], ways[1]}, [&](Left& left) { work(left), count(); });
    };
    same("gemv", [](Left& left) {
      kernels::Floats a(37 * 1000), x(1000), y(37), s(48 * 12);
      fill(a, 1), fill(x, 2);
      left.cycles = kernels::gemv(a, x, y, s, 37, 1000);
      keep(left, y);
    });
    same("gemm", [](Left& left) {
      kernels::Floats a(60 * 70), b(70 * 50), c(60 * 50);
      fill(a, 3), fill(b, 4);
      left.cycles = kernels::gemm(a, b, c, 60, 50, 70, 7);
      keep(left, c);
    });
    same("barrier", [](Left& left) {
      kernels::Ints slots(16 * 12), sums(16 * 12);
      left.cycles = kernels::barrier_rounds(slots, sums, 300);
      keep(left, slots), keep(left, sums);
    });
    same("moving sum", [](Left& left) {
      auto k = compile(moving_sum);
      k.setNumQPUs(12);
      constexpr int kN = 16 * 12 * 500;
      SharedArray<float> x(kN), y(kN);
      fill(x, 11), fill(y, 12);
      k(kN, &x, &y);
      left.cycles = k.cycles();
      keep(left, x);
    });
    EXPECT_EQ(joined, 4) << after;
  }
}

// One thread for short launches, two for long ones, the faster way between, as suggested.
TEST(QpuAhead, past_launches_say_who_runs_the_next) {
  using hw::PastLaunches;
  PastLaunches past;
  auto key = [](int qpus, std::int64_t n) { return PastLaunches::key(qpus, {&n, 1}); };
  EXPECT_EQ(past.way(key(12, 5)), PastLaunches::kOneThread);
  EXPECT_FALSE(past.knows(key(12, 5)));
  struct Kind {
    std::int64_t n, one, two;  // microseconds
    int suggested, most = 11;
  };
  auto run = [&](const Kind& kind) {
    const int way = std::min(past.way(key(12, kind.n)), kind.most);
    past.note(key(12, kind.n), way, (way < 0 ? kind.one : kind.two) * 1000, kind.suggested,
              kind.most);
    return way;
  };
  auto ways = [&](int launches, const Kind& kind) {
    std::map<int, int> count;
    for (int i = 0; i < launches; ++i) ++count[run(kind)];
    return count;
  };
  EXPECT_EQ(ways(200, {1, 50, 10, 0})[PastLaunches::kOneThread], 200);  // too short
  EXPECT_GT(ways(200, {2, 300, 310, 2})[PastLaunches::kOneThread], 185);
  EXPECT_GT(ways(200, {3, 300, 200, 2})[2], 190);
  EXPECT_EQ(ways(200, {6, 9000, 9900, 1})[PastLaunches::kOneThread], 1);  // long: never again
  EXPECT_GT(ways(200, {7, 300, 200, 2, 0})[0], 190);                      // there is no other share
  // The share is followed in steps of one: a launch may have been disturbed.
  ways(50, {3, 300, 200, 2});
  run({3, 300, 200, 9});
  EXPECT_EQ(run({3, 300, 200, 2}), 3);
  EXPECT_EQ(run({3, 300, 200, 2}), 2);
  EXPECT_GT(ways(50, {3, 300, 200, 6})[6], 40);
  // Two threads that have become slower give way to one, and are tried again ever more seldom.
  EXPECT_GT(ways(100, {3, 300, 400, 6})[PastLaunches::kOneThread], 80);
  EXPECT_GT(ways(1000, {3, 300, 400, 6})[PastLaunches::kOneThread], 960);
  EXPECT_GT(ways(1000, {3, 300, 200, 6})[6], 700);  // and faster again
  EXPECT_GT(ways(1000, {2, 300, 200, 2})[2], 700);
  EXPECT_TRUE(past.knows(key(12, 2)) && !past.knows(key(11, 2)));
  EXPECT_EQ(past.way(key(11, 2)), 2);  // as the last launch
  for (int n = 10; n < 50; ++n) run({n, 50, 10, 0});
  EXPECT_FALSE(past.knows(key(12, 2)));  // long ago
}

TEST(QpuAhead, semaphores_that_order_accesses) {
  auto orders = [](const std::string& text) {
    std::vector<hw::Code> words;
    for (const hw::Instr& i : hw::assemble(text + "nop; nop; thrend\nnop\nnop\n"))
      words.push_back(hw::encode(i));
    const hw::Program program = hw::make_program(std::move(words), {});
    return hw::orders_accesses(program, hw::analyse(program, false));
  };
  EXPECT_FALSE(orders("mov tmu0_s, unif\nnop; nop; ldtmu0\nsrel 3\nsacq 4\n"));
  EXPECT_TRUE(orders("sacq 3\nmov tmu0_s, unif\nnop; nop; ldtmu0\n"));
  EXPECT_TRUE(orders("srel 3\nmov vw_addr, unif\nmov null, vw_wait\n"));
  // In a loop the access comes after the semaphore in the next round.
  EXPECT_TRUE(
      orders("mov r0, unif\nmov tmu0_s, unif\nnop; nop; ldtmu0\nsrel 3\n"
             "sub r0, r0, #1; nop; sf\nnop\nbra.anynz rel, -72\nnop\nnop\nnop\n"));
  EXPECT_FALSE(
      orders("mov tmu0_s, unif\nnop; nop; ldtmu0\nmov r0, unif\nsrel 3\n"
             "sub r0, r0, #1; nop; sf\nnop\nbra.anynz rel, -56\nnop\nnop\nnop\n"));
}

TEST(QpuAhead, what_looks_at_time_runs_on_one_thread) {
  auto program = [](const std::string& text) {
    std::vector<hw::Code> words;
    for (const hw::Instr& i : hw::assemble(text + "nop; nop; thrend\nnop\nnop\n"))
      words.push_back(hw::encode(i));
    return hw::make_program(std::move(words), {});
  };
  EXPECT_TRUE(hw::may_run_ahead(program("mov r0, unif\nsacq 3\n")));
  EXPECT_FALSE(hw::may_run_ahead(program("nop; nop; raddr_b=49\n")));  // DMA busy
  EXPECT_FALSE(hw::may_run_ahead(program("nop; nop; raddr_b=51\n")));  // mutex
  EXPECT_FALSE(hw::may_run_ahead(program("nop; nop; bkpt\n")));
}

}  // namespace
}  // namespace weft::qpu
