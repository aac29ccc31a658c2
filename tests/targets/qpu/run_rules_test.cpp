// SPDX-License-Identifier: Apache-2.0
// Rules that only a run can break: programs that just keep them. Those that break them are
// emulator_test.cpp's. And what is said of programs that cannot go on, and of semaphores that a
// launch leaves behind.

#include <gtest/gtest.h>

#include <set>

#include "weft/targets/qpu/rules.h"
#include "words.h"

namespace weft::qpu::hw {
namespace {

struct Kept {
  const char* slug;
  std::string text;
};

TEST(QpuRunRules, programs_that_just_keep_them_run) {
  const std::string request = "mov tmu0_s, r0\n", receive = "nop; nop; ldtmu0\n",
                    wait = "nop; nop; raddr_b=50\n", row = "ldi vw_setup, 0x80904000\n";
  const Kept kept[] = {
      // Four requests wait; the fifth comes after one has been received.
      {"tmu_overflow", kAddresses + request + request + request + request + receive + request +
                           receive + receive + receive + receive},
      {"tmu_unread", kAddresses + request + receive},
      {"dma_outstanding",
       kAddresses + row + "mov vw_addr, ra0\n" + wait + "mov vw_addr, ra0\n" + wait},
      // A load and a store at once are two units.
      {"dma_outstanding", kAddresses + row +
                              "ldi vr_setup, 0x83010010\nmov vr_addr, ra0\nmov vw_addr, ra0\n" +
                              wait + "nop; nop; raddr_a=50\n"},
      // Two set-ups wait; what they ask for is read.
      {"vpm_read_count",
       "ldi vr_setup, 0x00101a00\nldi vr_setup, 0x00101a01\nnop\nnop\nnop\nmov r0, vpm\nmov r0, "
       "vpm\n"},
  };
  std::set<std::string> seen;
  for (const Kept& k : kept) {
    seen.insert(k.slug);
    EXPECT_EQ(rule(k.slug).kind, RuleKind::run);
    for (Engine engine : engines()) {
      Bench b(with(engine));
      const std::uint64_t a = b.array(16);
      EXPECT_NO_THROW(b.run(binary_of(k.text + kEnd, {"p0"}), {a})) << k.slug << "\n" << k.text;
    }
  }
  for (const Rule& r : rules()) {
    if (r.kind != RuleKind::run) continue;
    EXPECT_TRUE(seen.count(r.slug)) << "no test just keeps rule " << r.name << " " << r.slug;
  }
}

/// The text of the fault that `work` ends in.
template <typename F>
std::string fault_of(const char* code, F work) {
  try {
    work();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    return e.what();
  }
  ADD_FAILURE() << code << " was not found";
  return "";
}

void expect_parts(const std::string& text, std::initializer_list<const char*> parts) {
  for (const char* part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << "missing \"" << part << "\" in\n" << text;
}

TEST(QpuStuck, each_qpu_says_where_and_what_it_waits_for) {
  // QPU 0 ends; 1 has the mutex and waits for semaphore 5; 2 wants the mutex.
  const std::string text =
      "mov ra1, unif\nnop\nsub null, ra1, #0; nop; sf\nbra.allz rel, 88\nnop\nnop\nnop\n"
      "sub null, ra1, #1; nop; sf\nbra.allnz rel, 24\nnop\nnop\nnop\n"
      "mov r0, mutex\nsacq 5\nmov mutex, r0\n"
      "mov r0, mutex\nmov mutex, r0\nnop\n" +
      std::string(kEnd);
  std::set<std::string> texts;
  for (Engine engine : engines()) {
    Bench b(with(engine));
    texts.insert(fault_of("qpu.deadlock", [&] { b.run(binary_of(text, {"me"}), {}, 3); }));
  }
  ASSERT_EQ(texts.size(), 1u);
  expect_parts(*texts.begin(), {"waiting are qpu 1 for semaphore 5, qpu 2 for the mutex",
                                "qpu 1 at pc 0x68: semaphore 5 is 0, and nobody takes it up",
                                "the mutex is held by qpu 1", "finished: qpu 0"});
  // A semaphore that is full.
  std::string full;
  for (int i = 0; i < 16; ++i) full += "srel 4\n";
  Bench b(with(Engine::oracle));
  expect_parts(fault_of("qpu.deadlock", [&] { b.run(binary_of(full + kEnd)); }),
               {"semaphore 4 is 15, its most, and nobody takes it down"});
}

TEST(QpuStuck, stepping_meets_the_same_fault) {
  Bench b(with(Engine::oracle));
  const std::size_t p = b.emulator.load(binary_of("sacq 3\n" + std::string(kEnd)));
  sim::Launch launch;
  launch.extents = {2};
  b.emulator.begin(p, launch);
  expect_parts(fault_of("qpu.deadlock",
                        [&] {
                          for (int i = 0; i < 100 && b.emulator.step(); ++i) {
                          }
                        }),
               {"qpu 0 for semaphore 3, qpu 1 for semaphore 3"});
  // The machine lives on, and its books balance.
  EXPECT_NO_THROW(b.run(binary_of(kEnd)));
  EXPECT_FALSE(b.emulator.stats().check_books());
}

TEST(QpuSemaphores, what_a_launch_leaves_is_noted) {
  for (Engine engine : engines()) {
    Bench b(with(engine));
    const runtime::Binary up = binary_of("srel 7\nsrel 7\nsrel 2\n" + std::string(kEnd)),
                          down = binary_of("sacq 7\nsacq 7\nsacq 2\n" + std::string(kEnd));
    b.run(up);
    std::vector<Finding> notes = b.emulator.take_findings();
    ASSERT_EQ(notes.size(), 2u);
    EXPECT_EQ(notes[0].code, "qpu.semaphore.left");
    expect_parts(notes[0].message, {"semaphore 2 is 1 at the end of the launch"});
    expect_parts(notes[1].message, {"semaphore 7 is 2"});
    b.run(down);
    EXPECT_TRUE(b.emulator.take_findings().empty());
    // The same again and again is one note.
    for (int i = 0; i < 3; ++i)
      b.run(binary_of("srel 1\n" + std::string(kEnd))),
          b.run(binary_of("sacq 1\n" + std::string(kEnd)));
    notes = b.emulator.take_findings();
    ASSERT_EQ(notes.size(), 1u);
    EXPECT_EQ(notes[0].count, 3);
    // A launch that ends in a fault leaves none.
    EXPECT_THROW(b.run(binary_of("srel 3\nsacq 4\n" + std::string(kEnd))), Error);
    EXPECT_TRUE(b.emulator.take_findings().empty());
  }
}

}  // namespace
}  // namespace weft::qpu::hw
