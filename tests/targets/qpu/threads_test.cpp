// SPDX-License-Identifier: Apache-2.0
// One emulated chip used by several threads of the host: programs come and go while others run and
// ask for statistics.

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "weft/sim/simulator.h"
#include "words.h"

namespace weft::qpu::hw {
namespace {

// Three additions, a multiplication, both at once, and the end.
constexpr const char* kSums =
    "add r0, r0, #1\nadd r0, r0, #1\nadd r0, r0, #1\nnop; fmul r1, r2, r3\nadd r0, r0, #1; fmul "
    "r1, "
    "r2, r3\nnop; nop; thrend\nnop\nnop\n";

sim::Launch one_qpu() {
  sim::Launch launch;
  launch.extents = {1};
  return launch;
}

TEST(QpuThreads, statistics_outlive_programs) {
  Emulator chip;
  const std::size_t p = chip.load(binary_of(kSums));
  for (int i = 0; i < 3; ++i) chip.run(p, one_qpu(), {});
  const runtime::StatReport before = chip.stats();
  EXPECT_EQ(before.get("mix.add"), 9);
  EXPECT_EQ(before.get("mix.mul"), 3);
  EXPECT_EQ(before.get("mix.both"), 3);
  chip.unload(p);
  EXPECT_EQ(chip.stats().table(), before.table());
  const std::size_t again = chip.load(binary_of(kSums));
  chip.run(again, one_qpu(), {});
  EXPECT_EQ(chip.stats().get("mix.add"), 12);
  chip.clear_stats();
  EXPECT_EQ(chip.stats().get("mix.add"), 0);
  chip.unload(again);
  EXPECT_EQ(chip.stats().get("mix.add"), 0);
}

TEST(QpuThreads, programs_come_and_go_while_others_ask_for_statistics) {
  Ref<runtime::Device> device = make_device("qpu:qpus=1,memory=16");
  constexpr int kThreads = 4, kRounds = 400;
  std::atomic<int> left{kThreads};
  std::vector<std::jthread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRounds; ++i) {
        // Several at a time, so that the table of programs grows as well.
        std::vector<Ref<runtime::Executable>> loaded;
        for (int k = 0; k <= (i + t) % 4; ++k) {
          loaded.push_back(device->load(binary_of(kSums)));
          const std::int64_t one = 1;
          device->launch(*loaded.back(), 0, {}, {&one, 1});
        }
      }
      --left;
    });
  }
  std::int64_t last = 0;
  while (left) {
    const runtime::StatReport report = device->stats();
    const std::int64_t now = report.has("mix.add") ? report.get("mix.add") : 0;
    EXPECT_GE(now, last);
    last = now;
  }
  threads.clear();
  const runtime::StatReport all = device->stats();
  EXPECT_EQ(all.get("mix.add"), 3 * all.get("launches"));
  EXPECT_EQ(all.get("launches"), kThreads * kRounds * 5 / 2);
}

}  // namespace
}  // namespace weft::qpu::hw
