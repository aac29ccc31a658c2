// SPDX-License-Identifier: Apache-2.0
#include "weft/sim/measure.h"

#include <chrono>

namespace weft::sim {

namespace {
struct Measuring {
  const runtime::Device* device;
  Measuring* outer;
  std::int64_t cycles = 0;
};
thread_local Measuring* measuring = nullptr;
}  // namespace

void count_cycles(const runtime::Device& device, std::int64_t cycles) {
  for (Measuring* m = measuring; m; m = m->outer)
    if (m->device == &device) m->cycles += cycles;
}

runtime::Span measure_cycles(const runtime::Device& device, double clock_hz,
                             const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  Measuring here{&device, measuring};
  struct Scope {
    explicit Scope(Measuring* m) { measuring = m; }
    ~Scope() { measuring = measuring->outer; }
  };
  {
    Scope scope(&here);
    work();
  }
  runtime::Span span;
  span.wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  span.cycles = here.cycles;
  span.seconds = clock_hz > 0 ? static_cast<double>(span.cycles) / clock_hz : span.wall;
  return span;
}

}  // namespace weft::sim
