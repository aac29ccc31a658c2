// SPDX-License-Identifier: Apache-2.0
// Figures of the QPU target: speed of the emulator, cycles of kernels against their bounds, compile
// times. qpu_bench [interpreted|translated|threads|threads:translated|pairs|compile [part of a name
// [repeats]]]. pairs: launches on one thread and on two in turns, medians of the elapsed time.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string_view>
#include <vector>

#include "weft/sim/simulator.h"
#include "weft/targets/qpu/emulator.h"
#include "weft/targets/qpu/kernels/kernels.h"

#include <weft/qpu.h>
#include "hundred_lines.h"

using namespace weft::qpu;

namespace {

struct Cursor {
  Ptr<Float> addr;
  Float prev, current, next;
  void init(Ptr<Float> p) {
    gather(p);
    current = 0;
    addr = p + 16;
  }
  void prime() {
    receive(next);
    gather(addr);
  }
  void advance() {
    addr = addr + 16;
    prev = current;
    gather(addr);
    current = next;
    receive(next);
  }
  void finish() { receive(next); }
  void shift_left(Float& result) {
    result = rotate(current, 15);
    Float other = rotate(next, 15);
    Where(index() == 15)
      result = other;
    End
  }
  void shift_right(Float& result) {
    result = rotate(current, 1);
    Float other = rotate(prev, 1);
    Where(index() == 0)
      result = other;
    End
  }
};

void heat(Ptr<Float> map, Ptr<Float> out, Int pitch, Int width, Int height) {
  Cursor row[3];
  map = map + pitch * me() + index();
  out = out + pitch;
  For(Int y = me(), y < height, y = y + numQPUs())
    Ptr<Float> p = out + y * pitch;
    for (int i = 0; i < 3; i++) row[i].init(map + i * pitch);
    for (int i = 0; i < 3; i++) row[i].prime();
    For(Int x = 0, x < width, x = x + 16)
      for (int i = 0; i < 3; i++) row[i].advance();
      Float left[3], right[3];
      for (int i = 0; i < 3; i++) {
        row[i].shift_left(right[i]);
        row[i].shift_right(left[i]);
      }
      Float sum = left[0] + row[0].current + right[0] + left[1] + right[1] + left[2] +
                  row[2].current + right[2];
      store(row[1].current - 0.25 * (row[1].current - sum * 0.125), p);
      p = p + 16;
    End
    for (int i = 0; i < 3; i++) row[i].finish();
    map = map + pitch * numQPUs();
  End
}

bool wall = false;  // several threads
int repeats = 9;

double now() {  // processor time: the machine may be shared
  timespec t;
  clock_gettime(wall ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

std::int64_t executed() { return device()->stats().get("instructions"); }

void report(const char* name, double seconds, std::int64_t instructions, std::int64_t cycles) {
  std::printf("%-28s %10lld clocks %8.3f ms  %11lld instructions  %7.1f M/s emulated\n", name,
              static_cast<long long>(cycles), static_cast<double>(cycles) / 300e3,
              static_cast<long long>(instructions),
              static_cast<double>(instructions) / seconds / 1e6);
}

std::string_view only;  // names to measure; empty: all

hw::Emulator& emulator() {
  return static_cast<hw::Emulator&>(static_cast<weft::sim::SimDevice&>(*device()).simulator());
}

bool in_turns = false;  // pairs

/// Six launches on one thread and six on two in turns: what slows the host slows both. The first of
/// each six finds the second thread asleep and is left out.
template <typename F>
void compare(const char* name, F run) {
  std::vector<double> times[2];
  for (int turn = -1; turn < repeats; ++turn) {
    for (int two : {0, 1}) {
      emulator().options().threads = 1 + two;
      for (int i = 0; i < 6; ++i) {
        const double start = now();
        run();
        if (turn >= 0 && i > 0) times[two].push_back(now() - start);  // the first turn compiles
      }
    }
  }
  for (std::vector<double>& t : times) std::sort(t.begin(), t.end());
  auto at = [&](int two, double part) {
    return times[two][static_cast<std::size_t>(part * static_cast<double>(times[two].size() - 1))] *
           1e3;
  };
  std::printf("%-28s one %8.3f two %8.3f ms, ratio %.2f; fastest %8.3f %8.3f, %.2f\n", name,
              at(0, 0.5), at(1, 0.5), at(0, 0.5) / at(1, 0.5), at(0, 0), at(1, 0),
              at(0, 0) / at(1, 0));
}

template <typename F>
void measure(const char* name, F run) {
  if (std::string_view(name).find(only) == std::string_view::npos) return;
  run();  // compile, touch memory
  if (in_turns) return compare(name, run);
  double best = 1e9;
  std::int64_t cycles = 0, count = 0;
  for (int i = 0; i < repeats; ++i) {
    std::int64_t before = executed();
    double start = now();
    cycles = run();
    best = std::min(best, now() - start);
    count = executed() - before;
  }
  report(name, best, count, cycles);
}

/// The first tour's product, its weights given index() and its cursors in order: what a program
/// written for QPULib looks like.
struct Stream {
  Ptr<Float> at;
  Float value, coming;
  void open(Ptr<Float> p) {
    gather(p);
    value = 0;
    at = p + 16;
  }
  void fill() {
    receive(coming);
    gather(at);
  }
  void step() {
    at = at + 16;
    gather(at);
    value = coming;
    receive(coming);
  }
  void close() { receive(coming); }
};

void tour_gemv(Ptr<Float> a, Ptr<Float> x, Ptr<Float> out, Int pitch, Int width, Int height) {
  Stream row, w;
  a = a + pitch * me() + index();
  For(Int y = me(), y < height, y = y + numQPUs())
    row.open(a);
    w.open(x + index());
    row.fill();
    w.fill();
    Float sum = 0;
    For(Int i = 0, i < width, i = i + 16)
      row.step();
      w.step();
      sum = sum + row.value * w.value;
    End
    store(sum, out + y * 16);
    row.close();
    w.close();
    a = a + pitch * numQPUs();
  End
}

/// Compile times: the median of 21.
template <typename... Ts>
void compile_time(const char* name, void (*f)(Ts...)) {
  if (std::string_view(name).find(only) == std::string_view::npos) return;
  std::size_t words = compile(f, name).instructions();
  double times[21];
  for (double& t : times) {
    double start = now();
    compile(f, name);
    t = now() - start;
  }
  std::sort(std::begin(times), std::end(times));
  std::printf("%-28s %.3f ms (fastest %.3f), %zu instructions\n", name, times[10] * 1e3,
              times[0] * 1e3, words);
}

void all(hw::Engine engine, bool races, int threads) {
  wall = threads > 1;
  emulator().options().threads = threads;
  emulator().options().engine = engine;
  emulator().options().check_races = races;
  emulator().options().count_instructions = false;
  std::printf("engine: %s (%s), %d thread%s, race checks %s, statistics off\n",
              engine == hw::Engine::translated ? "translated" : "interpreted", hw::fast_variant(),
              threads, threads > 1 ? "s (elapsed time)" : "", races ? "on" : "off");
  for (int e = 0, cols = 1; e <= 5; ++e, cols *= 10) {
    kernels::Floats a(100 * static_cast<std::size_t>(cols)), x(static_cast<std::size_t>(cols)),
        y(100), s(112 * 12);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 97) / 97.0f;
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 89) / 89.0f;
    char name[64];
    std::snprintf(name, sizeof name, "gemv 100 x 10^%d, 12 QPUs", e);
    measure(name, [&] { return kernels::gemv(a, x, y, s, 100, cols); });
  }
  {
    constexpr int kRows = 96, kCols = 16384;
    SharedArray<float> a(kRows * kCols + 32), x(kCols + 32), y(kRows * 16);
    for (std::size_t i = 0; i < kRows * kCols; ++i) a[i] = static_cast<float>(i % 97) / 97.0f;
    for (std::size_t i = 0; i < kCols; ++i) x[i] = static_cast<float>(i % 89) / 89.0f;
    auto k = compile(tour_gemv, "tour_gemv");
    k.setNumQPUs(12);
    measure("tour's gemv 96 x 16384", [&] {
      k(&a, &x, &y, kCols, kCols, kRows);
      return k.cycles();
    });
  }
  {
    kernels::Floats a(512 * 512), b(512 * 512), c(512 * 512);
    for (std::size_t i = 0; i < a.size(); ++i)
      a[i] = static_cast<float>(i % 97) / 97.0f, b[i] = static_cast<float>(i % 89) / 89.0f;
    std::int64_t cycles = 0;
    measure("gemm 512^3, 12 QPUs", [&] { return cycles = kernels::gemm(a, b, c, 512, 512, 512); });
    std::printf("  %.2f GFLOP/s at 300 MHz, %.1f %% of 28.8\n",
                2.0 * 512 * 512 * 512 / (static_cast<double>(cycles) / 300e6) / 1e9,
                2.0 * 512 * 512 * 512 / (static_cast<double>(cycles) / 300e6) / 28.8e9 * 100);
  }
  {
    SharedArray<float> m(506 * 512 + 1024), n(506 * 512 + 1024);
    for (int i = 0; i < 500; ++i) m[static_cast<std::size_t>(i * 517)] = 1000;
    auto k = compile(heat, "heat");
    for (int qpus : {1, 12}) {
      k.setNumQPUs(qpus);
      char name[64];
      std::snprintf(name, sizeof name, "heatmap 512 x 504, %d QPUs", qpus);
      measure(name, [&] {
        k(&m, &n, 512, 496, 504);
        return k.cycles();
      });
    }
  }
  takeNotes();
}

}  // namespace

int main(int argc, char** argv) {
  std::string_view which = argc > 1 ? argv[1] : "";
  only = argc > 2 ? argv[2] : "";
  if (argc > 3) repeats = std::max(1, std::atoi(argv[3]));
  for (hw::Engine engine : {hw::Engine::interpreted, hw::Engine::translated}) {
    if (!which.empty() &&
        which != (engine == hw::Engine::translated ? "translated" : "interpreted"))
      continue;
    for (bool races : {true, false}) all(engine, races, 1);
  }
  if (which.empty() || which.starts_with("threads")) {
    for (hw::Engine engine : {hw::Engine::interpreted, hw::Engine::translated})
      if (which != "threads:translated" || engine == hw::Engine::translated) all(engine, true, 2);
  }
  if (which == "pairs") {
    in_turns = true;
    all(hw::Engine::translated, true, 2);
  }
  wall = false;
  if (which.empty() || which == "compile") {
    compile_time("compile a 100-line kernel", hundred_lines);
    compile_time("compile heatmap", heat);
  }
  return 0;
}
