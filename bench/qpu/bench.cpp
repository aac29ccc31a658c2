// SPDX-License-Identifier: Apache-2.0
// Figures of the QPU target: speed of the emulator, cycles of kernels against their bounds, compile
// times. Build with -DCMAKE_BUILD_TYPE=Release; run without arguments.

#include <cstdio>
#include <ctime>
#include <string_view>

#include "weft/sim/simulator.h"
#include "weft/targets/qpu/emulator.h"
#include "weft/targets/qpu/kernels/kernels.h"

#include <weft/qpu.h>

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

double now() {  // processor time: the machine may be shared
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

std::int64_t executed() { return device()->stats().get("instructions"); }

void report(const char* name, double seconds, std::int64_t instructions, std::int64_t cycles) {
  std::printf("%-28s %10lld clocks %8.3f ms  %11lld instructions  %7.1f M/s emulated\n", name,
              static_cast<long long>(cycles), static_cast<double>(cycles) / 300e3,
              static_cast<long long>(instructions),
              static_cast<double>(instructions) / seconds / 1e6);
}

template <typename F>
void measure(const char* name, F run) {
  run();  // compile, touch memory
  double best = 1e9;
  std::int64_t cycles = 0, count = 0;
  for (int i = 0; i < 3; ++i) {
    std::int64_t before = executed();
    double start = now();
    cycles = run();
    best = std::min(best, now() - start);
    count = executed() - before;
  }
  report(name, best, count, cycles);
}

hw::Emulator& emulator() {
  return static_cast<hw::Emulator&>(static_cast<weft::sim::SimDevice&>(*device()).simulator());
}

void all(hw::Engine engine, bool races) {
  emulator().options().engine = engine;
  emulator().options().check_races = races;
  emulator().options().count_instructions = false;
  std::printf("engine: %s (%s), race checks %s, statistics off\n",
              engine == hw::Engine::translated ? "translated" : "interpreted", hw::fast_variant(),
              races ? "on" : "off");
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
    double start = now();
    for (int i = 0; i < 20; ++i) compile(heat, "heat");
    std::printf("compile heatmap: %.3f ms, %zu instructions\n", (now() - start) / 20 * 1e3,
                k.instructions());
  }
  takeNotes();
}

}  // namespace

int main(int argc, char** argv) {
  std::string_view only = argc > 1 ? argv[1] : "";
  for (hw::Engine engine : {hw::Engine::interpreted, hw::Engine::translated}) {
    if (engine == hw::Engine::translated && only == "interpreted") continue;
    if (engine == hw::Engine::interpreted && only == "translated") continue;
    for (bool races : {true, false}) all(engine, races);
  }
  return 0;
}
